#!/usr/bin/env python3
"""Compares the models of docs/zoo with those of torchvision, timm, transformers, diffusers and zoo_peers.py.

    python3 tests/golden/compare_zoo.py TENON [--report docs/results/zoo.md] [NAME...]

Each model of PyTorch begins with random weights, and random statistics where it has some. `tenon predict` loads them from a
file of safetensors, as the package would write it, and computes the same batch. The difference is the largest one of
an output, as a part of its largest element. Ends with 1 where one is above 1e-4. The largest models of text are compared with
fewer and narrower layers, by the same lines; tests/golden/zoo_test.c counts their parameters. FILE gets the table.
"""
import argparse
import ast
import inspect
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import tokenize

import diffusers
import numpy as np
import timm
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

import zoo_peers

BATCH, TOLERANCE = 2, 1e-4


# ---- models and inputs ----

def picture(size=224):
    return {"image": torch.randn(BATCH, 3, size, size)}


def tokens(below, n, low=0):
    return {"tokens": torch.randint(low, below, (BATCH, n))}


class Row:
    """A model: the one of PyTorch, its inputs by the names of the INI, and its outputs for them by name; `changes` of the INI; its weights by the names
    of the published file."""

    def __init__(self, build, inputs, run=None, changes=(), stored=nn.Module.state_dict):
        self.build, self.inputs, self.changes, self.stored = build, inputs, changes, stored
        self.run = run or (lambda model, x: {"output": model(*x.values())})


def of_torchvision(name, size=224, **options):
    return Row(lambda: getattr(torchvision.models, name)(weights=None, **options), lambda: picture(size))


def of_timm(name):
    return Row(lambda: timm.create_model(name), picture)


def of_segmentation(name):
    build = getattr(torchvision.models.segmentation, name)
    return Row(lambda: build(weights=None, weights_backbone=None, aux_loss=True), lambda: picture(520), lambda model, x: {"output": model(x["image"])["out"]})


def detect(model, x):
    features = list(model.backbone(x["image"]).values())
    out = model.head(features)
    return {"scores": out["cls_logits"], "offsets": out["bbox_regression"]}


def sentences(pad, below):
    """The second text is shorter, and filled up."""
    x = tokens(below, 128, 5)
    x["tokens"][1, 90:] = pad
    return x


def classify(pad):
    return lambda model, x: {"output": model(x["tokens"], attention_mask=(x["tokens"] != pad).long()).logits}


def score(model, x):
    return {"output": model(x["tokens"]).logits}


def decoder(kind, config, n=128, changes=(), stored=nn.Module.state_dict, **options):
    """A decoder of transformers; its INI has windows of more tokens than are compared."""
    build = getattr(transformers, kind)
    return Row(lambda: build(getattr(transformers, config)(**options)), lambda: tokens(options.get("vocab_size", 50257), n), score,
               ((r"(tokens|next): i32\[\d+\]", rf"\1: i32[{n}]"), (r"(?m)^tokens = \d+$", f"tokens = {n}"), *changes), stored)


LLAMA = dict(vocab_size=512, hidden_size=128, num_hidden_layers=2, num_attention_heads=8, intermediate_size=352)
LARGE = lambda call, heads, kv, options: (
    (r"decoder\(.*?\)", f"decoder(512, 128, 2, heads={heads}, kv_heads={kv}, hidden=352{options})"), (r"linear\(\d+", "linear(512"), (r"classes = \d+", "classes = 512"))


def t5(model, x):
    out = model(input_ids=x["tokens"], attention_mask=(x["tokens"] != 0).long(), decoder_input_ids=x["decoder_tokens"])
    return {"output": out.logits}


def clip_inputs():
    x = picture() | tokens(49406, 77)
    x["tokens"][0, 20], x["tokens"][1, 76] = 49407, 49407
    return x


def clip(model, x):
    out = model(pixel_values=x["image"], input_ids=x["tokens"])
    return {"image_embeds": out.image_embeds, "text_embeds": out.text_embeds}


def autoencode(model, x):
    mean = model.encode(x["image"]).latent_dist.mean
    return {"decoder": model.decode(mean).sample, "mean": mean}


UNET = dict(sample_size=32, block_out_channels=(128, 256, 256, 256), layers_per_block=2, norm_eps=1e-6, freq_shift=1, flip_sin_to_cos=False,
            downsample_padding=0, attention_head_dim=None,
            down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
VAE = dict(block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, down_block_types=("DownEncoderBlock2D",) * 4,
           up_block_types=("UpDecoderBlock2D",) * 4)
ROWS = {
    **{name: of_torchvision(name) for name in (
        "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "wide_resnet50_2", "vgg11", "vgg11_bn", "vgg16", "vgg16_bn",
        "alexnet", "squeezenet1_1", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0", "efficientnet_v2_s",
        "shufflenet_v2_x1_0", "regnet_x_400mf", "regnet_y_400mf", "convnext_tiny", "vit_b_16", "swin_t")},
    "googlenet": of_torchvision("googlenet", aux_logits=False, init_weights=False),
    "inception_v3": of_torchvision("inception_v3", 299, aux_logits=False, init_weights=False),
    **{name: of_timm(name) for name in ("deit_small_patch16_224", "deit_base_patch16_224", "mixer_b16_224")},
    **{name: of_segmentation(name) for name in ("fcn_resnet50", "deeplabv3_resnet50")},
    "retinanet_resnet50_fpn": Row(lambda: torchvision.models.detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None),
                                  lambda: picture(512), detect),
    "yolo_small": Row(zoo_peers.Yolo, lambda: picture(640), lambda model, x: {"places": model(**x)}),
    "unet": Row(zoo_peers.UNet, lambda: picture(256)),
    "bert_base": Row(lambda: transformers.BertForSequenceClassification(transformers.BertConfig()), lambda: sentences(0, 30522), classify(0)),
    "roberta_base": Row(lambda: transformers.RobertaForSequenceClassification(transformers.RobertaConfig(
        vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)), lambda: sentences(1, 50265), classify(1)),
    "distilbert_base": Row(lambda: transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig()), lambda: sentences(0, 30522),
                           classify(0)),
    "gpt2": decoder("GPT2LMHeadModel", "GPT2Config", stored=lambda model: model.transformer.state_dict()),
    "pythia_160m": decoder("GPTNeoXForCausalLM", "GPTNeoXConfig", vocab_size=50304, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                           intermediate_size=3072, stored=lambda model: {k.replace("lm_head", "embed_out"): v for k, v in model.state_dict().items()}),
    "smollm_135m": decoder("LlamaForCausalLM", "LlamaConfig", vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9,
                           num_key_value_heads=3, intermediate_size=1536, rms_norm_eps=1e-5, tie_word_embeddings=True),
    "qwen2_0.5b": decoder("Qwen2ForCausalLM", "Qwen2Config", vocab_size=151936, hidden_size=896, num_hidden_layers=24, num_attention_heads=14,
                          num_key_value_heads=2, intermediate_size=4864, rope_theta=1e6, rms_norm_eps=1e-6, tie_word_embeddings=True),
    "tinyllama_1b": decoder("LlamaForCausalLM", "LlamaConfig", **LLAMA, num_key_value_heads=2, rms_norm_eps=1e-5, changes=LARGE("", 8, 2, "")),
    "llama2_7b": decoder("LlamaForCausalLM", "LlamaConfig", **LLAMA, num_key_value_heads=8, rms_norm_eps=1e-5, changes=LARGE("", 8, 8, "")),
    "llama3_8b": decoder("LlamaForCausalLM", "LlamaConfig", **LLAMA, num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=500000.0,
                         changes=LARGE("", 8, 2, ", base=500000")),
    "mistral_7b": decoder("MistralForCausalLM", "MistralConfig", **LLAMA, num_key_value_heads=2, rms_norm_eps=1e-5, sliding_window=48,
                          changes=LARGE("", 8, 2, ", window=48")),
    "gemma_2b": decoder("GemmaForCausalLM", "GemmaConfig", **LLAMA, num_key_value_heads=1, head_dim=32, rms_norm_eps=1e-6, tie_word_embeddings=True,
                        changes=((r"gemma\(256000.*\)", "gemma(512, 128, 2, heads=8, kv_heads=1, hidden=352, head=32)"), (r"linear\(256000", "linear(512"),
                                 ("classes = 256000", "classes = 512"))),
    "t5_small": Row(lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=32128)),
                    lambda: sentences(0, 32128) | {"decoder_tokens": torch.randint(1, 32128, (BATCH, 64))}, t5),
    "whisper_tiny": Row(lambda: transformers.WhisperForConditionalGeneration(transformers.WhisperConfig()),
                        lambda: {"mel": torch.randn(BATCH, 80, 3000), **tokens(51865, 64)},
                        lambda model, x: {"output": model(input_features=x["mel"], decoder_input_ids=x["tokens"]).logits}),
    "clip_vit_b_32": Row(lambda: transformers.CLIPModel(transformers.CLIPConfig()), clip_inputs, clip),
    "ddpm_cifar10_32": Row(lambda: diffusers.UNet2DModel(**UNET), lambda: picture(32) | {"time": torch.tensor([3, 977])},
                           lambda model, x: {"output": model(x["image"], x["time"]).sample}),
    "sd_vae": Row(lambda: diffusers.AutoencoderKL(**VAE), lambda: picture(256), autoencode,
                  ((r"latent = mean \+ .*", "latent = mean"),)),
    "dcgan": Row(zoo_peers.Generator, lambda: {"noise": torch.randn(BATCH, 100, 1, 1)}),
    "wavenet": Row(zoo_peers.WaveNet, lambda: {"samples": torch.randint(0, 256, (BATCH, 4000))}),
    "dlrm": Row(zoo_peers.DLRM, lambda: {"numbers": torch.randn(BATCH, 13), "categories": torch.randint(0, 10000, (BATCH, 26))}),
    "lstm_tagger": Row(zoo_peers.Tagger, lambda: tokens(20000, 64) | {"length": torch.tensor([17, 64])}),
    "siamese": Row(zoo_peers.Siamese, lambda: {"left": torch.randn(BATCH, 1, 105, 105), "right": torch.randn(BATCH, 1, 105, 105)},
                   lambda model, x: {"distance": model(**x)}),
}


def randomize(model):
    """Values that a model begins with everywhere alike would hide mistakes."""
    with torch.no_grad():
        for p in model.parameters():
            if p.numel() > 1 and p.std() == 0:
                p.add_(0.1 * torch.randn_like(p))
        for module in model.modules():
            if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 2)


# ---- the INI ----

def written(tenon, name, folder):
    """The text of `tenon init zoo:NAME --weights w.safetensors`."""
    file = folder / "model.ini"
    subprocess.run([tenon, "init", f"zoo:{name}", "--weights", "w.safetensors", "--output", str(file)], check=True, capture_output=True, cwd=folder)
    return file.read_text()


def code_lines(text, sections=("model", "block ")):
    """Lines of the model and its blocks, without comments and blank ones."""
    count, inside = 0, False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line[1:].startswith(sections)
        count += inside and line.strip() != "" and not line.strip().startswith("#")
    return count


def mapping_lines(text):
    lines, inside = 0, False
    for line in text.splitlines():
        inside = line.startswith("[weights]") if line.startswith("[") else inside
        lines += inside and line.strip() != "" and not line.startswith(("[", "#", "file = "))
    return lines


# ---- the class ----

def python_lines(model):
    """Lines of code of the classes that a model has, but for PyTorch's own: without comments, blank lines and docstrings."""
    classes = {c for module in model.modules() for c in type(module).__mro__
               if issubclass(c, nn.Module) and not c.__module__.startswith("torch.") and c is not nn.Module}
    return sum(code_of(inspect.getsource(c)) for c in classes if not c.__name__.endswith(("PreTrainedModel", "ModelMixin")))


def code_of(source):
    source = textwrap.dedent(source)
    strings = {line for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
               and isinstance(node.value.value, str) for line in range(node.lineno, node.end_lineno + 1)}
    other = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines = {n for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in other
             for n in range(token.start[0], token.end[0] + 1)}
    return len(lines - strings)


# ---- one comparison ----

def save(weights, path):
    """Of weights that share memory the first."""
    seen, named = set(), {}
    for name, value in weights.items():
        if value.numel() > 1 and value.data_ptr() in seen:
            continue
        seen.add(value.data_ptr())
        named[name] = value.contiguous().clone()
    save_file(named, path)


def difference(ours, theirs):
    theirs = theirs.detach().numpy()
    if ours.shape != theirs.shape:
        raise SystemExit(f"the output is {ours.shape}, expected {theirs.shape}")
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def predict(tenon, ini, inputs, folder):
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value.numpy() if value.is_floating_point() else value.numpy().astype(np.int32))
        arguments += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run([tenon, "predict", str(ini), *arguments, "--output", str(folder / "out.safetensors"), "--quiet"],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return load_file(folder / "out.safetensors")


def compare(tenon, name):
    row = ROWS[name]
    torch.manual_seed(0)
    model = row.build().eval()
    randomize(model)
    inputs = row.inputs()
    with torch.no_grad():
        wanted = row.run(model, inputs)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        save(row.stored(model), folder / "w.safetensors")
        text = written(tenon, name, folder)
        for pattern, new in row.changes:
            text, n = re.subn(pattern, new, text)
            if n == 0:
                raise SystemExit(f"{name}.ini: nothing matches {pattern}")
        (folder / "model.ini").write_text(text)
        got = predict(tenon, folder / "model.ini", inputs, folder)
    worst = max(difference(got[key].numpy(), value) for key, value in wanted.items())
    return {"difference": worst, "lines": code_lines(text), "peer": python_lines(model), "mapping": mapping_lines(text), "reduced": bool(row.changes),
            "class": f"{type(model).__module__.split('.')[0]} {type(model).__name__}".replace("zoo_peers", "")}


def report(path, rows):
    version = ", ".join(f"{m.__name__} {m.__version__}" for m in (torch, torchvision, timm, transformers, diffusers))
    lines = ["# The zoo", "", "<!-- Written by `tests/golden/compare_zoo.py TENON --report`. -->", "",
             f"The models of [docs/zoo](../zoo) beside those of {version},",
             f"with random weights and a batch of {BATCH}: the largest difference of an output as a part of its largest element; lines of the model and its blocks, and of the classes of the peer, without comments and blank",
             "lines; lines of `[weights]`. A star: in a changed form, with shorter texts, with fewer and narrower layers from 1 B parameters on, and",
             "without the random numbers of sd_vae.", "",
             "| model | difference | lines | peer | its lines | mapping |", "|---|---|---|---|---|---|"]
    for name, r in sorted(rows.items()):
        lines.append(f"| {name}{'*' if r['reduced'] else ''} | {r['difference']:.1e} | {r['lines']} | {r['class']} | {r['peer']} | {r['mapping']} |")
    worst = max(rows, key=lambda n: rows[n]["difference"])
    lines += ["", f"{len(rows)} models; the largest difference is {rows[worst]['difference']:.1e}, of {worst}."]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--report")
    options = parser.parse_args()
    tenon = str(pathlib.Path(options.tenon).resolve())
    rows, failed = {}, []
    for name in options.names or ROWS:
        try:
            rows[name] = compare(tenon, name)
        except SystemExit as e:
            print(f"{name}: {e}")
            failed.append(name)
            continue
        r = rows[name]
        print(f"{name}: {r['difference']:.1e}, {r['lines']} lines, {r['class']} has {r['peer']}, {r['mapping']} of mapping", flush=True)
        if not r["difference"] <= TOLERANCE or r["lines"] >= r["peer"] or r["mapping"] > 5:
            failed.append(name)
    if options.report:
        report(options.report, rows)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
