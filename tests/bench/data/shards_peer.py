#!/usr/bin/env python3
"""Reads the archives of shards_make.py by WebDataset, as its guide does: shards divided among workers, a buffer of
1000 samples, batches made by the workers.

  shards_peer.py versions
  shards_peer.py small|large FOLDER WORKERS BATCHES

Prints `first`, the seconds to the first batch, and `rate`, the pictures a second of the batches behind 4 of them."""
import sys
import time

import torch
import torchvision
import webdataset
from torchvision import transforms

if sys.argv[1] == "versions":
    print(f"WebDataset {webdataset.__version__}, PyTorch {torch.__version__.split('+')[0]}, torchvision "
          f"{torchvision.__version__.split('+')[0]}")
    sys.exit()
size, folder, workers, batches = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
chain = ([transforms.Resize((224, 224))] if size == "large" else []) + [transforms.RandomHorizontalFlip(), transforms.ToTensor()]
start = time.perf_counter()
data = (webdataset.WebDataset(folder + "/{0..7}.tar", shardshuffle=8, resampled=False).shuffle(1000).decode("pil")
        .to_tuple("jpg", "cls").map_tuple(transforms.Compose(chain), lambda c: c).batched(128, partial=False))
loader = webdataset.WebLoader(data, batch_size=None, num_workers=workers, persistent_workers=True)


def endless():
    while True:
        yield from loader


stream = endless()
next(stream)
print("first", time.perf_counter() - start)
for _ in range(3):
    next(stream)
start = time.perf_counter()
for _ in range(batches):
    next(stream)
print("rate", 128 * batches / (time.perf_counter() - start))
