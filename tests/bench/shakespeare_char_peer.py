#!/usr/bin/env python3
"""Trains docs/examples/shakespeare_char.ini in PyTorch: the same layers, initial distributions, parts of the text, windows,
AdamW groups, schedule, clipping and number of steps. Prints a JSON object for each epoch and the end.

  shakespeare_char_peer.py TEXT [--steps N] [--seed N] [--threads N] [--compile] [--weights FILE] [--eval FILE]

TEXT is tinyshakespeare.txt. The loss of validation is the mean over all windows of the last tenth of the text. --weights
begins with a checkpoint of Tenon (model.safetensors); --eval only validates one. Needs torch; for checkpoints safetensors.
"""
import argparse
import json
import math
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from make_curves import CharTransformer  # noqa: E402

TOKENS, BATCH, WARMUP, FLOOR, LR = 64, 12, 100, 0.1, 1e-3


def initialize(net):
    """The distributions of the configuration: 0.02, and 0.007 for the last layer of each branch; biases are zero."""
    for name, p in net.named_parameters():
        if name.endswith(".bias"):
            nn.init.zeros_(p)
        elif "ln_" not in name:
            nn.init.normal_(p, std=0.007 if name.endswith(("proj.weight", "down.weight")) else 0.02)


def optimizer(net):
    no_decay = [p for n, p in net.named_parameters() if n.endswith(".bias") or "ln_" in n]
    chosen = set(map(id, no_decay))
    groups = [{"params": [p for p in net.parameters() if id(p) not in chosen]}, {"params": no_decay, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)


def rate(step, steps):
    """A linear rise, then half a cosine to FLOOR at the last step."""
    done = min(max((step - WARMUP) / (steps - WARMUP), 0), 1)
    ramp = (step + 1) / (WARMUP + 1) if step < WARMUP else 1.0
    return LR * ramp * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))


def windows(ids):
    """Adjacent windows; each needs one more character, the target of its last."""
    n = (len(ids) - 1) // TOKENS
    return torch.stack([ids[w * TOKENS:(w + 1) * TOKENS + 1] for w in range(n)])


def loss_of(net, spans):
    return F.cross_entropy(net(spans[:, :-1]).flatten(0, -2), spans[:, 1:].flatten())


def validate(net, spans):
    net.eval()
    with torch.inference_mode():
        parts = [loss_of(net, part).item() * len(part) for part in spans.split(256)]
    net.train()
    return sum(parts) / len(spans)


def say(**values):
    print(json.dumps(values), flush=True)


def train(args, net, training, validation):
    opt, step_loss = optimizer(net), torch.compile(loss_of) if args.compile else loss_of
    per_epoch, start, total = len(training) // BATCH, time.perf_counter(), 0.0
    order = []
    for step in range(args.steps):
        if step % per_epoch == 0:
            order, total = torch.randperm(len(training)), 0.0
        at = step % per_epoch * BATCH
        for group in opt.param_groups:
            group["lr"] = rate(step, args.steps)
        loss = step_loss(net, training[order[at:at + BATCH]])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        total += loss.item()
        if step == 0:
            say(event="first", loss=loss.item())
        if (step + 1) % per_epoch == 0 or step + 1 == args.steps:
            say(event="epoch", step=step + 1, seconds=round(time.perf_counter() - start, 3),
                train_loss=total / (step % per_epoch + 1), valid_loss=validate(net, validation))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--weights")
    parser.add_argument("--eval")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    text = open(args.text, encoding="utf-8", newline="").read()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[c] for c in text])
    parts = int(len(ids) * 0.9)
    training, validation = windows(ids[:parts]), windows(ids[parts:])
    net = CharTransformer(vocabulary=len(number))
    initialize(net)
    if args.weights or args.eval:
        from safetensors.torch import load_file
        net.load_state_dict(load_file(args.weights or args.eval), strict=True)
    say(event="start", peer="torch " + torch.__version__, threads=torch.get_num_threads(), seed=args.seed, steps=args.steps,
        windows=[len(training), len(validation)], parameters=sum(p.numel() for p in net.parameters()))
    if args.eval:
        say(event="eval", valid_loss=validate(net, validation))
    else:
        train(args, net, training, validation)


if __name__ == "__main__":
    main()
