#!/usr/bin/env python3
"""Encodes the lines of a text by Hugging Face's tokenizers on one thread, and takes batches of windows of a file of ids.

  tokens_peer.py TEXT TOKENIZER IDS
  tokens_peer.py versions encode|windows"""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import numpy as np
import tokenizers

BATCH, WINDOW, STEPS = 12, 1024, 2000
if sys.argv[1] == "versions":
    print(f"tokenizers {tokenizers.__version__}, encode_batch_fast" if sys.argv[2] == "encode" else f"numpy {np.__version__}, memmap")
    sys.exit()
text, tokenizer, ids = sys.argv[1:]
with open(text, encoding="utf-8", newline="") as f:
    lines = f.read().removesuffix("\n").split("\n")
made = tokenizers.Tokenizer.from_file(tokenizer)
start = time.perf_counter()
count = 0
for at in range(0, len(lines), 1000):
    count += sum(len(e.ids) for e in made.encode_batch_fast(lines[at:at + 1000], add_special_tokens=False))
seconds = time.perf_counter() - start
print("encode", os.path.getsize(text) / 1e6 / seconds)
print("tokens", count)
data = np.memmap(ids, dtype=np.uint16, mode="r")
random = np.random.default_rng(1)


def batch():
    places = random.integers(0, len(data) - WINDOW, BATCH)
    inputs = np.stack([data[i:i + WINDOW].astype(np.int64) for i in places])
    return inputs, np.stack([data[i + 1:i + 1 + WINDOW].astype(np.int64) for i in places])


for _ in range(100):
    batch()
start = time.perf_counter()
for _ in range(STEPS):
    batch()
print("windows", BATCH * STEPS / (time.perf_counter() - start))
