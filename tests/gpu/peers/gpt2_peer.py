#!/usr/bin/env python3
"""One training step of GPT-2 124M in PyTorch, as docs/examples/gpt2_124m.ini: bf16 autocast, AdamW, clip 1.0. Prints a line of JSON.

The batch lies on the device, and each round waits once."""
import argparse
import json
import time

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--batch", type=int, default=8)
p.add_argument("--variant", default="eager", choices=["eager", "compile"])
p.add_argument("--vocab", type=int, default=50257, help="50304 pads it to a multiple of 64")
p.add_argument("--steps", type=int, default=10)
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--device", default="cuda")
p.add_argument("--layers", type=int, default=12)
a = p.parse_args()
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
config = GPT2Config(vocab_size=a.vocab, n_layer=a.layers, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa")
net = GPT2LMHeadModel(config).to(a.device)
optimizer = torch.optim.AdamW(net.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
x, y = (torch.randint(50257, (a.batch, 1024), device=a.device) for _ in range(2))
wait = torch.cuda.synchronize if a.device == "cuda" else (lambda: None)


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


for _ in range(3):
    step()
rounds = []
for _ in range(a.rounds):
    wait()
    began = time.perf_counter()
    for _ in range(a.steps):
        step()
    wait()
    rounds.append((time.perf_counter() - began) / a.steps * 1e3)
rounds.sort()
middle = rounds[len(rounds) // 2]
print(json.dumps(dict(peer="torch " + torch.__version__, model="gpt2_124m", variant=a.variant, batch=a.batch, vocab=a.vocab,
                      ms=[round(v, 4) for v in (rounds[0], middle, rounds[-1])], per_s=round(a.batch / middle * 1e3, 2))))
