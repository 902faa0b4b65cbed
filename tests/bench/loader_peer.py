#!/usr/bin/env python3
"""Measures batches of pictures of torchvision's ImageFolder and torch's DataLoader in the way of
`tenon bench --mode load`: 4 batches to warm up, then rounds of 40 measured batches. Prints one JSON object.

  loader_peer.py FOLDER cifar224|cifar32|imagenet [--workers N] [--batch N] [--steps N] [--rounds N]

FOLDER has a folder of pictures per class."""
import argparse
import json
import statistics
import time

import torch
import torchvision
from torchvision import transforms

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder")
parser.add_argument("recipe", choices=["cifar224", "cifar32", "imagenet"])
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--rounds", type=int, default=1)
args = parser.parse_args()

first = {
    "cifar224": lambda: transforms.Resize(224),
    "cifar32": lambda: transforms.RandomCrop(32, padding=4),
    "imagenet": lambda: transforms.RandomResizedCrop(224),
}[args.recipe]()
chain = transforms.Compose([
    first,
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
])
loader = torch.utils.data.DataLoader(torchvision.datasets.ImageFolder(args.folder, chain), args.batch, shuffle=True,
                                     num_workers=args.workers, drop_last=True, persistent_workers=args.workers > 0)


def endless():
    while True:
        yield from loader


batches = endless()
for _ in range(4):
    next(batches)
ms = []
for _ in range(args.rounds):
    start = time.perf_counter()
    for _ in range(args.steps):
        next(batches)
    ms.append((time.perf_counter() - start) / args.steps * 1e3)
print(json.dumps({
    "peer": f"torchvision {torchvision.__version__}", "mode": "load", "recipe": args.recipe, "workers": args.workers,
    "batch": args.batch, "steps": args.steps, "ms": [min(ms), statistics.median(ms), max(ms)],
    "per_s": round(args.batch / statistics.median(ms) * 1e3, 1)}))
