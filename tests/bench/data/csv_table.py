#!/usr/bin/env python3
"""Writes a table of so many MB: ten columns of real numbers, some of them missing, two of whole numbers, three of words
(5, 50 and 1000 different ones), and a target. The same numbers in every run.

  csv_table.py FILE MEGABYTES"""
import os
import sys

import numpy as np
import polars as pl

path, limit = sys.argv[1], int(float(sys.argv[2]) * 1e6)
random = np.random.default_rng(1)
words = [np.array([f"{letter}{i:0{width}d}" for i in range(n)]) for letter, width, n in
         (("kind", 1, 5), ("place_", 2, 50), ("item ", 4, 1000))]


def rows(n):
    columns = {}
    for i in range(10):
        v = np.round(random.normal(10.0 ** (i % 4), 10.0 ** (i % 3), n), 2 + i % 5)
        columns[f"n{i}"] = pl.Series(v, dtype=pl.Float64)
        if i % 3 == 0:
            columns[f"n{i}"] = pl.Series([None if m else x for x, m in zip(v.tolist(), random.random(n) < 0.02)])
    columns["i0"] = pl.Series(random.integers(0, 100, n))
    columns["i1"] = pl.Series(random.integers(-10 ** 9, 10 ** 9, n))
    for i, list_ in enumerate(words):
        columns[f"c{i}"] = pl.Series(list_[random.integers(0, len(list_), n)].tolist())
    columns["y"] = pl.Series(np.round(random.normal(0, 1, n), 4))
    return pl.DataFrame(columns)


part = path + ".part"
with open(part, "wb") as file:
    while file.tell() < limit:
        rows(100000).write_csv(file, include_header=file.tell() == 0)
os.rename(part, path)
