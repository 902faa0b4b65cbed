#!/usr/bin/env python3
"""Exports models of torchvision, timm and transformers by both exporters of PyTorch, imports them, and compares.

    python3 tests/golden/compare_imported.py BUILD --rows FILE [--only TEXT] [--report FILE]

Weights are random, models of transformers small. Compared are the results for a batch of another size than the exporter's
example, relative to the largest, and for classifiers of pictures that the older exporter wrote, the losses of three training steps
and the results behind them (plain gradient descent, no dropout, PyTorch with doubles). The imported model is exported again, and onnxruntime
runs that file. FILE of --rows keeps what was measured, so that models can be measured one after the other;
--report writes the table. Needs torch, torchvision, timm, transformers, onnxscript and onnxruntime.
"""
import argparse
import copy
import json
import logging
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnxruntime
import torch

from tenon_library import Library, Refused

EXPORTERS = ("torchscript", "dynamo")
# Models of docs/zoo under another name.
ZOO = {"bert": "bert_base", "roberta": "roberta_base", "distilbert": "distilbert_base", "gpt_neox": "pythia_160m", "llama": "llama3_8b",
       "qwen2": "qwen2_0.5b", "mixer_s16_224": "mixer_b16_224", "deit_tiny_patch16_224": "deit_small_patch16_224"}
RATE, TRAINED = 0.01, 8  # of training: the learning rate and the batch
VISION = {"alexnet": 224, "vgg11": 224, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64, "densenet121": 64,
          "googlenet": 64, "inception_v3": 96, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "mnasnet0_5": 64, "efficientnet_b0": 64,
          "efficientnet_v2_s": 64, "shufflenet_v2_x1_0": 64, "squeezenet1_1": 64, "regnet_y_400mf": 64, "convnext_tiny": 64,
          "vit_b_16": 224, "swin_t": 64}
SEGMENTATION = {"fcn_resnet50": 64, "deeplabv3_resnet50": 64}
TIMM = {"mixer_s16_224": 224, "deit_tiny_patch16_224": 224, "resmlp_12_224": 224, "convmixer_768_32": 64, "ghostnet_100": 64,
        "mobilevit_xxs": 64, "efficientformer_l1": 224, "levit_128s": 224, "poolformer_s12": 64, "repvgg_a0": 64}
OPSET = "20"  # of the file that Tenon writes
WORDS = 100


class First(torch.nn.Module):
    """A model with the tensor that is compared as its only result."""

    def __init__(self, model, pick):
        super().__init__()
        self.inner, self.pick = model, pick

    def forward(self, x):
        return self.pick(self.inner(x))


def text_models():
    import transformers as t
    small = dict(vocab_size=WORDS, attn_implementation="eager")
    wide = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64)
    causal = dict(small, **wide, use_cache=False)
    first = lambda out: out[0]
    return {
        "bert": lambda: First(t.BertModel(t.BertConfig(**small, **wide)), first),
        "roberta": lambda: First(t.RobertaModel(t.RobertaConfig(**small, **wide, pad_token_id=1)), first),
        "electra": lambda: First(t.ElectraModel(t.ElectraConfig(**small, **wide, embedding_size=16)), first),
        "distilbert": lambda: First(t.DistilBertModel(t.DistilBertConfig(vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
                                                                         attn_implementation="eager")), first),
        "albert": lambda: First(t.AlbertModel(t.AlbertConfig(**small, **wide, embedding_size=16)), first),
        "gpt2": lambda: First(t.GPT2LMHeadModel(t.GPT2Config(**small, n_embd=32, n_layer=2, n_head=4, n_positions=64, use_cache=False)), first),
        "gpt_neox": lambda: First(t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**causal)), first),
        "llama": lambda: First(t.LlamaForCausalLM(t.LlamaConfig(**causal, num_key_value_heads=2)), first),
        "qwen2": lambda: First(t.Qwen2ForCausalLM(t.Qwen2Config(**causal, num_key_value_heads=2)), first),
        "opt": lambda: First(t.OPTForCausalLM(t.OPTConfig(**small, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
                                                          max_position_embeddings=64, word_embed_proj_dim=32, use_cache=False)), first),
    }


def vision_model(name):
    import torchvision
    if name in SEGMENTATION:
        return First(getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None), lambda out: out["out"])
    options = dict(aux_logits=False, init_weights=False) if name in ("googlenet", "inception_v3") else {}
    return getattr(torchvision.models, name)(weights=None, **options)


def timm_model(name):
    import timm
    size = {"img_size": TIMM[name]} if re.search("deit|mixer_s|resmlp", name) else {}
    return timm.create_model(name, pretrained=False, **size)


def settle(model):
    """Statistics of batch norm that are no zeros and ones, and no dropout."""
    for part in model.modules():
        if isinstance(part, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 2)
        if isinstance(part, torch.nn.Linear) and not part.weight.any():  # heads begin with zeros, and so do all results
            torch.nn.init.normal_(part.weight, std=0.02)
        if type(part).__name__ in ("Dropout", "StochasticDepth", "DropPath"):
            for rate in ("p", "drop_prob"):
                if hasattr(part, rate):
                    setattr(part, rate, 0.0)
    return model.eval()


def catalog():
    """Name: package, model, inputs for two samples and for three."""
    picture = lambda size: (torch.randn(2, 3, size, size), torch.randn(3, 3, size, size))
    words = (torch.randint(2, WORDS - 10, (2, 12)), torch.randint(2, WORDS - 10, (3, 12)))
    rows = {n: ("transformers", make, lambda: words) for n, make in text_models().items()}
    rows.update({n: ("torchvision", lambda n=n: vision_model(n), lambda s=s: picture(s)) for n, s in {**VISION, **SEGMENTATION}.items()})
    rows.update({n: ("timm", lambda n=n: timm_model(n), lambda s=s: picture(s)) for n, s in TIMM.items()})
    return rows


def export(model, example, path, exporter):
    if exporter == "dynamo":
        torch.onnx.export(model, (example,), path, dynamo=True, input_names=["x"], dynamic_shapes=({0: torch.export.Dim("n")},), verbose=False)
    else:
        torch.onnx.export(model, example, path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}}, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)


def relative(is_, expected):
    return float(np.abs(is_ - expected).max() / np.abs(expected).max())


def train_torch(model, x, label, dtype):
    """Losses of three steps, and the results behind them."""
    model, x = copy.deepcopy(model).to(dtype).train(), x.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        return losses, model.eval()(x).numpy()


def train_tenon(library, configuration, x, label):
    overrides = ["model.loss=cross_entropy", "optimizer.type=sgd", f"optimizer.lr={RATE}"]
    with library.open(configuration, len(x), overrides, train=True) as session:
        session.bind_inputs({"x": x.numpy(), "label": label.numpy().astype(np.int32)})
        losses = [session.train() for _ in range(3)]
        return losses, session.infer({"x": x.numpy(), "label": label.numpy().astype(np.int32)})[0]


def export_again(build, configuration, folder, x):
    """The result of onnxruntime for the imported model, as Tenon exports it."""
    again = folder / "again.onnx"
    done = subprocess.run([str(build / "tools" / "tenon"), "export", str(configuration), "-o", str(again), "--opset", OPSET, "--quiet"],
                          capture_output=True, text=True)
    if done.returncode:
        raise Refused(done.stderr)
    session = onnxruntime.InferenceSession(str(again), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def compare_training(library, configuration, model, x):
    """Differences from PyTorch with doubles, of Tenon and of PyTorch in f32: batch norm over few elements makes much of roundings."""
    label = torch.arange(len(x)) * 3
    losses, after = train_torch(model, x, label, torch.float64)
    ours, single = train_tenon(library, configuration, x, label), train_torch(model, x, label, torch.float32)
    worst = lambda found: max(abs(a - b) / abs(b) for a, b in zip(found, losses))
    return {"training": worst(ours[0]), "trained": relative(ours[1], after), "single": worst(single[0]), "single_after": relative(single[1], after)}


def short(text):
    text = re.sub(r"/\S*/", "", str(text)).strip().split("\n")
    return "; ".join(line.strip() for line in (text[1:] if len(text) > 1 else text))[:200].replace("|", "\\|")


def trains(package, exporter):
    """The newer exporter folds batch norm and dropout; models of texts have no loss in the file."""
    return exporter == "torchscript" and package != "transformers"


def lines_of(text):
    return sum(1 for line in text.split("\n") if line.strip() and line[0] != "#")


def zoo_lines(name):
    """Lines of [model] and of the blocks that it uses, of the model of docs/zoo that a person wrote; '' for none."""
    path = pathlib.Path(__file__).resolve().parents[2] / "docs" / "zoo" / f"{ZOO.get(name, name)}.ini"
    if not path.exists():
        return ""
    text = path.read_text()
    for part in re.findall(r"^include = (.*)$", text, re.M):
        text += "".join("\n" + (path.parent / p.strip()).read_text() for p in part.split(","))
    sections = re.split(r"^(?=\[)", text, flags=re.M)
    return sum(lines_of(s) for s in sections if re.match(r"\[(model\]|block )", s))


def compare_flat(library, path, folder, session, example):
    """Lines without blocks, and whether both configurations give the same bits."""
    library.import_onnx(path, folder / "flat.ini", flat=True)
    with library.open(folder / "flat.ini", len(example)) as flat:
        same = np.array_equal(session.infer([example])[0], flat.infer([example])[0], equal_nan=True)
    return lines_of((folder / "flat.ini").read_text()), bool(same)


def measure(library, build, folder, name, row, exporter):
    package, make, inputs = row
    torch.manual_seed(0)
    model, (example, other) = settle(make()), inputs()
    result, path, ini = {"package": package, "exporter": exporter}, folder / "model.onnx", folder / "model.ini"
    try:
        export(copy.deepcopy(model), example, path, exporter)
    except Exception as reason:  # of any kind that the exporter has
        return {**result, "reason": f"the exporter: {short(reason)}"}
    try:
        made = library.import_onnx(path, ini)
        text = ini.read_text()
        result.update(nodes=made["nodes"], lines=lines_of(text))
        with torch.no_grad():
            expected = model(other).numpy()
        with library.open(ini, len(other)) as session:
            result["difference"] = relative(session.infer([other.numpy()])[0], expected)
            result["flat"], result["same"] = compare_flat(library, path, folder, session, other.numpy())
        result["again"] = relative(export_again(build, ini, folder, other.numpy()), expected)
        if name not in SEGMENTATION and trains(package, exporter):
            picture = torch.randn(TRAINED, *other.shape[1:])
            result.update(compare_training(library, ini, model, picture))
    except Refused as reason:
        result["reason"] = short(reason)
    return result


def number(row, key):
    return f"{row[key]:.1e}" if key in row else ""


def pair(row, ours, theirs):
    return f"{number(row, ours)} / {number(row, theirs)}" if ours in row else ""


def report(path, rows):
    done = [r for r in rows.values() if "difference" in r]
    lines = ["# Models of PyTorch by way of ONNX", "", "<!-- Written by `tests/golden/compare_imported.py BUILD --rows FILE --report`. -->", "",
             f"{len({k.split()[0] for k in rows})} models with random weights, exported by torch {torch.__version__} with both exporters:",
             "`flat` are the lines with `--no-blocks`, `zoo` those of [model] and blocks in docs/zoo, which a person wrote;",
             f"{sum(r.get('same', False) for r in done)} of {sum('same' in r for r in done)} give the same bits with blocks and without.",
             f"{len(done)} of {len(rows)} files are imported, {sum(r['difference'] <= 1e-4 for r in done)} give results within 1e-4 of the largest one.",
             f"`again` is the difference of what onnxruntime {onnxruntime.__version__} gives for the file that `tenon export` writes of the imported model.",
             f"`steps` is the largest relative difference of the losses of three training steps of batch {TRAINED} from those of PyTorch with",
             "doubles, `after` that of the results behind them; behind the stroke the same of PyTorch in f32.", "",
             "| model | package | exporter | nodes | lines of the INI | flat | zoo | results | again | steps | after | |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for key in sorted(rows):
        r = rows[key]
        lines.append(f"| {key.split()[0]} | {r['package']} | {r['exporter']} | {r.get('nodes', '')} | {r.get('lines', '')} | {r.get('flat', '')} | "
                     f"{zoo_lines(key.split()[0])} | {number(r, 'difference')} | "
                     f"{number(r, 'again')} | "
                     f"{pair(r, 'training', 'single')} | {pair(r, 'trained', 'single_after')} | {r.get('reason', '')} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rows", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--exporter", default="")
    parser.add_argument("--report", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    rows = json.loads(arguments.rows.read_text()) if arguments.rows.exists() else {}
    library = Library(arguments.build)
    for name, row in catalog().items():
        for exporter in EXPORTERS:
            if not re.search(arguments.only, name) or arguments.exporter not in exporter:
                continue
            with tempfile.TemporaryDirectory() as folder:
                rows[f"{name} {exporter}"] = measure(library, arguments.build, pathlib.Path(folder), name, row, exporter)
            print(name, rows[f"{name} {exporter}"], flush=True)
            arguments.rows.write_text(json.dumps(rows, indent=1))
    if arguments.report:
        report(arguments.report, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
