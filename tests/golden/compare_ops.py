#!/usr/bin/env python3
"""Compares every op with PyTorch's functions on drawn operands: draw_goldens.py writes the cases, golden_test runs them.

    python3 tests/golden/compare_ops.py BUILD [--cases N] [--seed SEED] [--report FILE]

SEED is 0 unless given; every other one draws other cases. FILE gets the counts, and the ops that PyTorch has no function
for. Ends with 1 if a case fails.
"""
import argparse
import contextlib
import io
import pathlib
import tempfile
import warnings

import torch

import draw_goldens
from compare import Comparison

# Where Tenon's results differ by intent, the draws keep away, or the table has Tenon's rule.
DIFFERENCES = (
    ("sign", "NaN stays NaN, as in NumPy; PyTorch's result is 0"),
    ("cast", "numbers outside of an integer type become its nearest number; PyTorch's result depends on the machine"),
    ("full, masked_fill", "a number outside of an integer type becomes its nearest number, as by cast; PyTorch's wraps"),
    ("cdist", "p=inf: equal distances share the gradient, as in norm; PyTorch gives each all of it"),
    ("max_pool1d, max_pool2d", "of several NaN in a window the index is that of the first, PyTorch's that of the last"),
    ("conv_transpose1d, 2d, 3d", "output_padding is less than the stride, where PyTorch's may reach the dilation; a result without elements is an error"),
    ("var, std", "a correction beyond the number of elements gives NaN and its gradient; PyTorch's gradient is a number"),
    ("interpolate", "a scale that leaves the size as it is still moves the positions; PyTorch copies on CPUs. Its filters with antialias read wrong rows where the result is one column wide"),
    ("pixel_unshuffle", "an empty image has its channels; PyTorch's keeps the shape of x"),
    ("interpolate, adaptive_avg_pool, grid_sample, convolutions", "an infinite element makes results NaN that reach it with weight 0"),
    ("moments", "the mean of infinite elements is NaN, as the variance; PyTorch's is infinite"),
)


def report(comparison, arguments, refused):
    ops = len(draw_goldens.ROWS)
    lines = ["# Ops compared with PyTorch", "",
             "<!-- Written by `tests/golden/compare_ops.py BUILD --report`. -->", "",
             f"{ops} of {ops + len(draw_goldens.WITHOUT)} ops on {arguments.cases} draws each (seed {arguments.seed}): values and gradients, over drawn",
             "shapes, broadcasts, empty dimensions and those of size 1, ties, and numbers that are not finite. PyTorch",
             f"{torch.__version__.split('+')[0]} computed in f64. `tests/golden/drawn` has a line for each op with its function in PyTorch.", "",
             "The tolerances are those of torch.testing.assert_close; for ops that add up terms they are relative to the largest",
             f"element of the tensor. PyTorch refused {refused} draws, which were drawn again.", "",
             *comparison.table(), "", "## Without a function in PyTorch", "", "| op | |", "|---|---|",
             *(f"| `{op}` | {why} |" for op, why in sorted(draw_goldens.WITHOUT.items())), "", "## Differences by intent", "", "| op | |", "|---|---|",
             *(f"| {op} | {what} |" for op, what in DIFFERENCES)]
    arguments.report.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--report", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of PyTorch, about draws at the limits of its functions
    comparison = Comparison(arguments.build)
    with tempfile.TemporaryDirectory() as folder:
        arguments.folder = pathlib.Path(folder)
        with contextlib.redirect_stdout(io.StringIO()):  # the sizes of the files
            refused = draw_goldens.write_all(arguments, draw_goldens.ROWS)
        comparison.run(sorted(arguments.folder.glob("*.safetensors")))
    print(f"{len(draw_goldens.ROWS)} ops, {arguments.cases} cases each, seed {arguments.seed}: {len(comparison.failed())} cases failed")
    if arguments.report:
        report(comparison, arguments, refused)
    return 1 if comparison.failed() else 0


if __name__ == "__main__":
    raise SystemExit(main())
