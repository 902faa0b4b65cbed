#!/usr/bin/env python3
"""Makes the files of tokens.sh: a text of BYTES bytes, a tokenizer that is trained on it, and ten times as many ids as u16.

  tokens_files.py BYTES TEXT TOKENIZER IDS"""
import pathlib
import random
import sys

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

size, (text, tokenizer, ids) = int(sys.argv[1]), sys.argv[2:]
ROOT = pathlib.Path(__file__).resolve().parents[3]
RANGES = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x627, 0x64A), (0x905, 0x939),
          (0xE01, 0xE2E), (0x3041, 0x3096), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F), (0x1D400, 0x1D4FF)]
random.seed(1)


def words():
    """Words of every script with the frequencies of a language: few of them are most of a text."""
    for low, high in RANGES:
        kinds = ["".join(chr(random.randint(low, high)) for _ in range(random.randint(1, 9))) for _ in range(3000)]
        yield kinds, [1 / (i + 1) for i in range(len(kinds))]


def lines():
    tables = list(words())
    files = sorted(ROOT.glob("core/**/*.c")) + sorted(ROOT.glob("docs/**/*.md"))
    own = [line for file in files for line in file.read_text().split("\n") if line]
    while True:
        kinds, weights = random.choice(tables)
        yield " ".join(random.choices(kinds, weights, k=random.randint(3, 20))) + random.choice([".", "?", "!", ", 1234", ""])
        for _ in range(3):
            yield random.choice(own)
        yield f"<p class=\"c{random.randint(0, 99)}\">&nbsp;{random.random()}</p>"


written = 0
with open(text, "w", encoding="utf-8") as f:
    for line in lines():
        f.write(line + "\n")
        written += len(line.encode()) + 1
        if written >= size:
            break
made = Tokenizer(models.BPE())
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = decoders.ByteLevel()
with open(text, encoding="utf-8") as f:
    made.train_from_iterator((line for _, line in zip(range(50000), f)), trainers.BpeTrainer(
        vocab_size=8000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
made.save(tokenizer)
np.random.default_rng(1).integers(0, 8000, 10 * size, dtype=np.uint16).tofile(ids)
