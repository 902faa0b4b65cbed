#!/usr/bin/env python3
"""Measures batches of pictures of torchvision's ImageFolder and torch's DataLoader in the way of
`tenon bench --mode load`: 4 batches to warm up, then rounds of 40 measured batches. Prints one JSON object.

  loader_peer.py FOLDER cifar224|cifar32|imagenet [--v2] [--workers N] [--batch N] [--steps N] [--rounds N]

FOLDER has a folder of pictures per class. --v2: the transforms are torchvision.transforms.v2, on tensors of bytes."""
import argparse
import json
import statistics
import time

import torch
import torchvision
from torchvision import transforms
from torchvision.transforms import v2

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder")
parser.add_argument("recipe", choices=["cifar224", "cifar32", "imagenet"])
parser.add_argument("--v2", action="store_true")
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--rounds", type=int, default=1)
args = parser.parse_args()

kind = v2 if args.v2 else transforms
first = {
    "cifar224": lambda: kind.Resize(224),
    "cifar32": lambda: kind.RandomCrop(32, padding=4),
    "imagenet": lambda: kind.RandomResizedCrop(224),
}[args.recipe]()
to_float = [v2.ToDtype(torch.float32, scale=True)] if args.v2 else [transforms.ToTensor()]
chain = kind.Compose(([v2.ToImage()] if args.v2 else []) + [
    first,
    kind.RandomHorizontalFlip(),
    *to_float,
    kind.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
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
