#!/usr/bin/env python3
"""Reads a table by pandas or polars and gives shuffled batches as NumPy arrays, as csv.ini has them: numbers filled by their
means and standardized, words as numbers of sorted categories. Prints the seconds to the first batch, the seconds of an
epoch of batches behind it, the peak memory in MiB, and with `versions` the peer's name and version.

  csv_peer.py pandas-c|pandas-pyarrow|polars FILE|versions"""
import resource
import sys
import time

import numpy as np

reader, path = sys.argv[1:]
if reader == "polars":
    import polars
else:
    import pandas
if path == "versions":
    print(f"polars {polars.__version__}" if reader == "polars" else f"pandas {pandas.__version__}")
    sys.exit()
BATCH = 1024


def columns_of_pandas():
    frame = pandas.read_csv(path, engine=reader.removeprefix("pandas-"))
    return ([frame[name].to_numpy(dtype=np.float64) for name in NUMBERS],
            [frame[name].astype("category").cat.codes.to_numpy(dtype=np.int32) for name in WORDS],
            frame["y"].to_numpy(dtype=np.float64))


def columns_of_polars():
    frame = polars.read_csv(path)
    return ([frame[name].cast(polars.Float64).fill_null(float("nan")).to_numpy() for name in NUMBERS],
            [(frame[name].rank("dense") - 1).cast(polars.Int32).to_numpy() for name in WORDS],
            frame["y"].to_numpy())


def standardized(v):
    mean, deviation = np.nanmean(v), np.nanstd(v)
    return ((np.where(np.isnan(v), mean, v) - mean) / deviation).astype(np.float32)


NUMBERS = [f"n{i}" for i in range(10)] + ["i0", "i1"]
WORDS = ["c0", "c1", "c2"]
start = time.perf_counter()
numbers, words, y = columns_of_polars() if reader == "polars" else columns_of_pandas()
numbers = np.stack([standardized(v) for v in numbers], axis=1)
y = standardized(y)


def batches(random):
    order = random.permutation(len(y))
    for at in range(0, len(y) - BATCH + 1, BATCH):
        rows = order[at:at + BATCH]
        yield numbers[rows], [w[rows] for w in words], y[rows]


random = np.random.default_rng(1)
next(batches(random))
print("first", time.perf_counter() - start)
start = time.perf_counter()
for batch in batches(random):
    pass
print("epoch", time.perf_counter() - start)
print("memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
