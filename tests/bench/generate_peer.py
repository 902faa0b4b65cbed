#!/usr/bin/env python3
"""Measures tokens per second of a GPT in PyTorch that keeps keys and values in preallocated caches. Prints one JSON
object with the best of eager mode and torch.compile.

  generate_peer.py char|gpt2 [--tokens N] [--rounds N] [--threads N] [--dtype f32|bf16]

char is the model of docs/examples/shakespeare_char.ini, gpt2 that of gpt2_124m.ini, both with random weights. A round
reads a prompt of 6 tokens, then draws N tokens with a temperature of 0.8; the rate is that of the tokens behind the
first."""
import argparse
import json
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {"char": dict(vocabulary=65, width=128, heads=4, depth=4, window=64),
         "gpt2": dict(vocabulary=50257, width=768, heads=12, depth=12, window=1024)}


class Block(nn.Module):
    def __init__(self, width, heads, window):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("keys", torch.zeros(1, heads, window, self.head))
        self.register_buffer("values", torch.zeros(1, heads, window, self.head))

    def forward(self, x, at, end, mask):
        n = x.shape[1]
        q, k, v = (t.view(1, n, self.heads, self.head).transpose(1, 2) for t in self.qkv(self.ln_1(x)).chunk(3, -1))
        self.keys[:, :, at:end], self.values[:, :, at:end] = k, v
        y = F.scaled_dot_product_attention(q, self.keys[:, :, :end], self.values[:, :, :end], attn_mask=mask)
        x = x + self.proj(y.transpose(1, 2).reshape(1, n, -1))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, width, heads, depth, window):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(window, width)
        self.h = nn.ModuleList(Block(width, heads, window) for _ in range(depth))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, at):
        end = at + tokens.shape[1]
        x = self.wte(tokens) + self.wpe.weight[at:end]
        mask = None if tokens.shape[1] == 1 else torch.ones(end - at, end, dtype=torch.bool).tril(at)
        for block in self.h:
            x = block(x, at, end, mask)
        return self.head(self.ln_f(x[:, -1:]))[0, 0].float()


def draw(scores):
    return torch.multinomial(torch.softmax(scores / 0.8, -1), 1)[None]


def generate(model, prompt, tokens):
    """The seconds of all tokens but the first."""
    token, at = draw(model(prompt, 0)), prompt.shape[1]
    start = time.perf_counter()
    for _ in range(tokens - 1):
        token, at = draw(model(token, at)), at + 1
        token.item()
    return time.perf_counter() - start


def rate(model, tokens, rounds):
    prompt = torch.randint(0, 65, (1, 6))
    generate(model, prompt, tokens)
    return statistics.median((tokens - 1) / generate(model, prompt, tokens) for _ in range(rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--tokens", type=int, default=56)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile, too")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    model = Gpt(**SIZES[args.size]).eval()
    if args.dtype == "bf16":
        model = model.bfloat16()
    with torch.inference_mode():
        rates = {"eager": rate(model, args.tokens, args.rounds)}
        if args.compile:
            rates["compile"] = rate(torch.compile(model, dynamic=True), args.tokens, args.rounds)
    best = max(rates, key=rates.get)
    print(json.dumps({"peer": f"torch {torch.__version__} {best}", "tokens_per_s": rates[best], "rates": rates,
                      "threads": torch.get_num_threads()}))


main()
