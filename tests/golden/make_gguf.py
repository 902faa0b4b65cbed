#!/usr/bin/env python3
"""Writes tests/golden/gguf: blocks of each format with their elements, and two small decoders with the tokens that transformers
generates.

    make_gguf.py                      the goldens
    make_gguf.py TENON --large        no golden: a decoder of the size of TinyLlama, whose tokens are compared

blocks.gguf has a tensor of random blocks for each format, and blocks.safetensors what the package gguf makes of them.
llama.gguf and qwen2.gguf are decoders with random weights and a tokenizer each; NAME.json has a prompt with its ids, and the tokens
that transformers draws greedily from the dequantized weights. Needs gguf, torch, transformers, safetensors.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Q
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent / "gguf"
FORMATS = (Q.F32, Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.Q4_K, Q.Q5_K, Q.Q6_K)
# places of the scales of f16 in a block
SCALES = {Q.Q4_0: (0,), Q.Q4_1: (0, 2), Q.Q5_0: (0,), Q.Q5_1: (0, 2), Q.Q8_0: (0,), Q.Q4_K: (0, 2), Q.Q5_K: (0, 2), Q.Q6_K: (208,)}
random = np.random.default_rng(1)


def blocks(form, rows, columns, spread=0.02):
    """Random blocks whose scales are small numbers, as the bytes of each row."""
    if form in (Q.F32, Q.F16, Q.BF16):
        return gguf.quantize(random.normal(0, spread, (rows, columns)).astype(np.float32), form)
    elements, size = gguf.GGML_QUANT_SIZES[form]
    raw = random.integers(0, 256, (rows, columns // elements, size), dtype=np.uint8)
    for place in SCALES[form]:
        few = {Q.Q4_K: 600, Q.Q5_K: 1200, Q.Q6_K: 1500}.get(form, 8)
        scale = (random.uniform(0.5, 1, raw.shape[:2]) * spread / few).astype(np.float16)
        raw[:, :, place:place + 2] = scale[..., None].view(np.uint8)
    return raw.reshape(rows, -1)


def write_blocks():
    writer, values = gguf.GGUFWriter(HERE / "blocks.gguf", "none"), {}
    for form in FORMATS:
        raw = blocks(form, 3, 512)
        writer.add_tensor(form.name, raw, raw_dtype=form)
        values[form.name] = gguf.dequantize(raw, form).astype(np.float32)
    finish(writer)
    save_file(values, HERE / "blocks.safetensors")


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- decoders ----

class Decoder:
    """A decoder: its sizes, and the file that is written."""

    def __init__(self, path, architecture, vocabulary, width, depth, heads, kv_heads, hidden, forms, tied=False, context=64, base=10000.0):
        self.path, self.architecture, self.tied = path, architecture, tied
        self.vocabulary, self.width, self.depth, self.heads, self.kv_heads, self.hidden = vocabulary, width, depth, heads, kv_heads, hidden
        self.forms, self.base, self.context = forms, base, context
        self.weights, self.writer, self.written = {}, gguf.GGUFWriter(path, architecture), 0

    def keys(self):
        w = self.writer
        w.add_name(f"A small decoder of the form of {self.architecture}")
        w.add_context_length(self.context)
        w.add_embedding_length(self.width)
        w.add_block_count(self.depth)
        w.add_feed_forward_length(self.hidden)
        w.add_head_count(self.heads)
        w.add_head_count_kv(self.kv_heads)
        w.add_layer_norm_rms_eps(1e-5)
        w.add_rope_freq_base(self.base)
        w.add_rope_dimension_count(self.width // self.heads)

    def matrix(self, name, theirs, rows, columns, heads=0):
        """A matrix; of q and k in files of LLaMA the two halves of a head alternate."""
        form = self.forms[self.written % len(self.forms)]
        self.written += 1
        raw = blocks(form, rows, columns, 0.08)
        self.writer.add_tensor(name, raw, raw_dtype=form)
        values = gguf.dequantize(raw, form).astype(np.float32)
        if heads and self.architecture == "llama":
            values = values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        self.weights[theirs] = torch.from_numpy(values)

    def vector(self, name, theirs, n, mean):
        values = (mean + random.normal(0, 0.1, n)).astype(np.float32)
        self.writer.add_tensor(name, values)
        self.weights[theirs] = torch.from_numpy(values)

    def block(self, i):
        ours, theirs, kv = f"blk.{i}.", f"model.layers.{i}.", self.width // self.heads * self.kv_heads
        self.vector(ours + "attn_norm.weight", theirs + "input_layernorm.weight", self.width, 1)
        for name, rows, heads in (("q", self.width, self.heads), ("k", kv, self.kv_heads), ("v", kv, 0)):
            self.matrix(f"{ours}attn_{name}.weight", f"{theirs}self_attn.{name}_proj.weight", rows, self.width, heads)
            if self.architecture == "qwen2":
                self.vector(f"{ours}attn_{name}.bias", f"{theirs}self_attn.{name}_proj.bias", rows, 0)
        self.matrix(ours + "attn_output.weight", theirs + "self_attn.o_proj.weight", self.width, self.width)
        self.vector(ours + "ffn_norm.weight", theirs + "post_attention_layernorm.weight", self.width, 1)
        for name, full, rows, columns in (("gate", "gate", self.hidden, self.width), ("up", "up", self.hidden, self.width),
                                          ("down", "down", self.width, self.hidden)):
            self.matrix(f"{ours}ffn_{name}.weight", f"{theirs}mlp.{full}_proj.weight", rows, columns)

    def write(self):
        self.keys()
        self.matrix("token_embd.weight", "model.embed_tokens.weight", self.vocabulary, self.width)
        for i in range(self.depth):
            self.block(i)
        self.vector("output_norm.weight", "model.norm.weight", self.width, 1)
        if not self.tied:
            self.matrix("output.weight", "lm_head.weight", self.vocabulary, self.width)
        finish(self.writer)

    def model(self):
        kind = {"llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig), "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config)}
        build, config = kind[self.architecture]
        with torch.device("meta"):
            model = build(config(vocab_size=self.vocabulary, hidden_size=self.width, num_hidden_layers=self.depth, num_attention_heads=self.heads,
                                 num_key_value_heads=self.kv_heads, intermediate_size=self.hidden, rms_norm_eps=1e-5, rope_theta=self.base,
                                 tie_word_embeddings=self.tied, max_position_embeddings=self.context))
        model.model.rotary_emb = type(model.model.rotary_emb)(model.config)
        missing, unexpected = model.eval().load_state_dict(self.weights, strict=False, assign=True)
        assert not unexpected and all(m == "lm_head.weight" for m in missing) and bool(missing) == self.tied, (missing, unexpected)
        if self.tied:
            model.tie_weights()
        return model

    def greedy(self, ids, n):
        """The n most probable tokens behind these."""
        model, ids = self.model(), list(ids)
        start = len(ids)
        with torch.no_grad():
            for _ in range(n):
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        return ids[start:]


# ---- tokenizers ----

def add_sentencepiece(writer):
    """Bytes, letters and some words; <s> is in front of every text. Returns the pieces."""
    words = ["▁", "▁t", "h", "e", "he", "▁the", "in", "er", "an", "▁a", "on", "re", "ce", "▁on", "ti", "me", "▁time"]
    letters = [c for c in "abcdefghijklmnopqrstuvwxyz.,ABCDEFGHIJKLMNOPQRSTUVWXYZ▁" if c not in words]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + words + letters
    tokens += [f"<extra{i}>" for i in range(352 - len(tokens))]
    kind = lambda t: 2 if t == "<unk>" else 3 if t in ("<s>", "</s>") or t.startswith("<extra") else 6 if t.startswith("<0x") else 1
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(words.index(t)) if t in words and len(t) > 1 else -1000.0 if kind(t) == 1 else 0.0 for t in tokens])
    writer.add_token_types([kind(t) for t in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    return tokens


def byte_letters():
    """The letters that stand for bytes in BPE of GPT-2."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return {b: chr(b) if b in plain else chr(256 + [x for x in range(256) if x not in plain].index(b)) for b in range(256)}


def add_bpe(writer):
    letters = byte_letters()
    merges = ["t h", "th e", "Ġ the", "i n", "e r", "Ġ a", "o n", "Ġ t", "i m", "im e", "Ġt ime"]
    tokens = [letters[i] for i in range(256)] + [m.replace(" ", "") for m in merges] + ["<|end|>"]
    tokens += [f"<|extra{i}|>" for i in range(288 - len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if t.startswith("<|") else 1 for t in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokens.index("<|end|>"))
    return tokens


def write_decoder(decoder, tokens, prompt, pieces, begin):
    decoder.write()
    ids = ([begin] if begin is not None else []) + [tokens.index(p) for p in pieces]
    golden = {"prompt": prompt, "ids": ids, "tokens": decoder.greedy(ids, 24)}
    (HERE / f"{decoder.path.stem}.json").write_text(json.dumps(golden) + "\n")


def write_goldens():
    HERE.mkdir(exist_ok=True)
    write_blocks()
    llama = Decoder(HERE / "llama.gguf", "llama", 352, 64, 2, 4, 2, 96, (Q.Q8_0, Q.Q4_0, Q.F16, Q.BF16))
    write_decoder(llama, add_sentencepiece(llama.writer), "theoné", ["▁the", "on", "<0xC3>", "<0xA9>"], 1)
    qwen2 = Decoder(HERE / "qwen2.gguf", "qwen2", 288, 64, 2, 4, 1, 96, (Q.F16, Q.Q5_1), tied=True, base=1e6)
    write_decoder(qwen2, add_bpe(qwen2.writer), "the12time", ["the", "1", "2", "t", "ime"], None)


def compare_large(tenon):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "large.gguf"
        decoder = Decoder(path, "llama", 32000, 2048, 22, 32, 4, 5632, (Q.Q4_K, Q.Q6_K), context=2048)
        decoder.write()
        ids = [1, 15043, 3186, 29892, 278, 931]
        expected = decoder.greedy(ids, 16)
        decoder.weights.clear()
        done = subprocess.run([tenon, "generate", str(path), "--prompt-tokens", " ".join(map(str, ids)), "--tokens", "16", "--temperature", "0",
                               "--json", "--set", "model.inputs=tokens: i32[64]", "--set", "model.targets=next: i32[64]"],
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        result = json.loads(done.stdout)
        print(f"{path.stat().st_size / 1e6:.0f} MB, tokens {result['tokens']}, {'equal' if result['tokens'] == expected else f'expected {expected}'}")
        print(f"{result['tokens_per_s']:.1f} tokens a second")
        if result["tokens"] != expected:
            raise SystemExit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon", nargs="?")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    compare_large(options.tenon) if options.large else write_goldens()


main()
