#!/usr/bin/env python3
"""Training steps of GPT-2 124M in PyTorch, as docs/examples/gpt2_124m.ini: bf16 autocast, fused AdamW, clip 1.0, no weight decay of
biases and layer norms, no dropout. Prints a line of JSON for each vocabulary. The batch lies on the device.

The model is Hugging Face's, with PyTorch's own kernels for GELU and attention, and without a cache of keys and values."""
import argparse
from fnmatch import fnmatch

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

import peer_timing


def build(a, words):
    config = GPT2Config(vocab_size=words, n_layer=a.layers, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
                        activation_function="gelu_pytorch_tanh", attn_implementation="sdpa")
    with torch.device(a.device):
        return GPT2LMHeadModel(config).train()


def make_optimizer(net):
    """The groups of gpt2_124m.ini: [group.no_decay] match = *.bias, *ln_*."""
    kept, decayed = [], []
    for name, parameter in net.named_parameters():
        (kept if fnmatch(name, "*.bias") or fnmatch(name, "*ln_*") else decayed).append(parameter)
    groups = [dict(params=decayed, weight_decay=0.1), dict(params=kept, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)


def make_step(a, words):
    net = build(a, words)
    optimizer = make_optimizer(net)
    x, y = (torch.randint(50257, (a.batch, a.tokens), device=a.device) for _ in range(2))

    def loss_of(x, y):
        with torch.autocast(a.device, dtype=torch.bfloat16):
            return F.cross_entropy(net(x).logits.flatten(0, 1), y.flatten())
    if a.variant == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return step


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--variant", default="eager", choices=["eager", "compile"])
    p.add_argument("--vocab", type=int, nargs="+", default=[50257], help="50304 pads it to a multiple of 64")
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--tokens", type=int, default=1024, help="of a sample, at most 1024")
    peer_timing.add_options(p, steps=10)
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    for words in a.vocab:
        rounds = peer_timing.measure(a, make_step(a, words))
        model = "gpt2" if words == 50257 else "gpt2_%d" % words
        peer_timing.report(a, rounds, model=model, dtype="bf16", variant=a.variant)
        if a.device == "cuda":
            torch.cuda.empty_cache()


main()
