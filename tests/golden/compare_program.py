#!/usr/bin/env python3
"""Compares `tenon export --c` with sessions: examples as programs in C, compiled, run, and timed.

    python3 tests/golden/compare_program.py BUILD [--report FILE] [--only WORD]

Each example gets random weights and becomes a program, which gcc and clang compile with all warnings as errors. Its output
is compared with `tenon predict`, relative to the largest number, and its time with `tenon bench`. valgrind runs the
programs, where it is installed. Ends with 1 where a difference is above 1e-5. Needs the packages numpy and
safetensors.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

from compare_exported import ROOT, difference, initial_weights, randomize

TOLERANCE = 1e-5
EXAMPLES = ("mnist_lenet", "cifar10_resnet18", "mnist_mlp", "models/bert")
ROUNDS = 20
FLAGS = (("-O3",), ("-O3", "-march=native", "-ffp-contract=fast"))
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "NAME.h"

static void *read_file(const char *path, size_t bytes) {
  char *data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  FILE *file = fopen(path, "rb");
  if (data == NULL || file == NULL || fread(data, 1, bytes, file) != bytes) exit(2);
  fclose(file);
  return data;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  void *weights = read_file("NAME.weights", NAME_weight_bytes);
  void *arena = aligned_alloc(64, (NAME_arena_bytes + 63) / 64 * 64);
BUFFERS
  double best = 1e9;
  for (int i = 0; i < rounds; i++) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    NAME_run(weights, arenaARGUMENTS);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
    best = ms < best ? ms : best;
  }
  printf("%.4f\\n", best);
WRITES
  return 0;
}
"""
TYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "bool": np.bool_, "u8": np.uint8}


def run(words, folder, check=True):
    done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise ValueError((done.stderr or done.stdout).strip().replace("\n", " ")[:400])
    return done.stdout


class Program:
    """A program in C of an example, in a folder of its own."""

    def __init__(self, build, example, folder):
        self.tenon, self.folder = build / "tools/tenon", folder
        self.ini, self.weights = ROOT / f"docs/examples/{example}.ini", folder / "w.safetensors"
        initial_weights(build, self.ini, self.weights)
        randomize(self.weights)
        run([self.tenon, "export", self.ini, "--weights", self.weights, "--c", "--output", folder], folder)
        self.name = next(folder.glob("*.h")).stem
        header = (folder / f"{self.name}.h").read_text()
        arguments = re.search(r"_run\(const void \*weights, void \*arena(.*)\)", header).group(1)
        inputs = re.findall(r"const [\w ]+ \*(\w+)", arguments)
        self.fields = {n: (TYPES[d], [int(v) for v in s.split(",")] if s else []) for n, d, s in re.findall(r"(\w+) is (\w+)\[([^]]*)\]", header)}
        self.inputs, self.outputs = inputs, [n for n in self.fields if n not in inputs]
        self.bytes = {k: int(re.search(rf"_{k}_bytes = (\d+)", header).group(1)) for k in ("weight", "arena")}

    def write_main(self):
        buffers, writes = [], []
        for name, (dtype, shape) in self.fields.items():
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            given = f'read_file("{name}.bin", {size})' if name in self.inputs else f"malloc({size})"
            buffers.append(f"  void *{name} = {given};")
            if name in self.outputs:
                writes.append(f'  FILE *f_{name} = fopen("{name}.bin", "wb");\n  fwrite({name}, 1, {size}, f_{name});\n  fclose(f_{name});')
        text = MAIN.replace("BUFFERS", "\n".join(buffers)).replace("WRITES", "\n".join(writes)).replace("NAME", self.name)
        (self.folder / "main.c").write_text(text.replace("ARGUMENTS", "".join(f", {n}" for n in [*self.inputs, *self.outputs])))

    def compile(self, compiler, *flags):
        source = [f"{self.name}.c"]
        run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", *flags, "-c", *source], self.folder)
        run([compiler, "-O2", "-D_POSIX_C_SOURCE=200809L", "-o", "model", "main.c", f"{self.name}.o", "-lm"], self.folder)

    def draw(self):
        rng, arrays = np.random.default_rng(3), {}
        for name in self.inputs:
            dtype, shape = self.fields[name]
            arrays[name] = rng.standard_normal(shape).astype(dtype) if dtype == np.float32 else rng.integers(1, 2 if dtype == np.bool_ else 4, shape).astype(dtype)
            arrays[name].tofile(self.folder / f"{name}.bin")
        save_file(arrays, self.folder / "in.safetensors")

    def session(self):
        run([self.tenon, "predict", self.ini, "--weights", self.weights, "--input", "in.safetensors", "--output", "out.safetensors", "--set",
             "backend.use=cpu"], self.folder)
        return load_file(self.folder / "out.safetensors")

    def differs(self, expected):
        worst = 0
        for name in self.outputs:
            dtype, shape = self.fields[name]
            worst = max(worst, difference(np.fromfile(self.folder / f"{name}.bin", dtype).reshape(shape), expected[name]))
        return worst

    def bench(self):
        text = run([self.tenon, "bench", self.ini, "--mode", "infer", "--batch", 1, "--json", "--set", "run.threads=1"], self.folder)
        return min(json.loads(text)["ms"])


def column(compiler, flags):
    return f"{compiler} {' '.join(flags)}"


def compare(build, example, folder):
    p = Program(build, example, folder)
    p.write_main()
    p.draw()
    expected = p.session()
    row = {"example": example, "weights": p.bytes["weight"], "arena": p.bytes["arena"], "worst": 0.0}
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler) is None:
            continue
        for flags in FLAGS:
            p.compile(compiler, *flags)
            row[column(compiler, flags)] = float(run(["./model", ROUNDS], folder))
            row["worst"] = max(row["worst"], p.differs(expected))
    row["object"] = os.path.getsize(folder / f"{p.name}.o")
    if shutil.which("valgrind"):
        p.compile("gcc", "-O1")
        run(["valgrind", "-q", "--error-exitcode=9", "./model"], folder)
        row["valgrind"] = "clean"
    row["session"] = p.bench()
    return row


def report(rows, path):
    columns = [column(compiler, flags) for compiler in ("gcc", "clang") for flags in FLAGS]
    lines = ["# Programs in C", "", "<!-- Written by `tests/golden/compare_program.py BUILD --report FILE`. -->", "",
             "`tenon export --c` of examples with random weights, batch 1: the largest difference from a session on the backend `cpu`,",
             "relative to the largest number of the output; sizes; and milliseconds of a call beside a session of one thread on the",
             "default backend, the best of 20. Both compilers take the programs with -Wall -Wextra -Werror.", "",
             "| model | difference | weights MiB | arena MiB | object KiB | valgrind | " + " | ".join(columns) + " | session |",
             "|---|---|---|---|---|---|" + "---|" * (len(columns) + 1)]
    for r in rows:
        times = " | ".join(f"{r[c]:.3f}" if c in r else "-" for c in columns)
        lines.append(f"| {r['example']} | {r['worst']:.1e} | {r['weights'] / 2**20:.2f} | {r['arena'] / 2**20:.2f} | {r['object'] / 1024:.0f} | "
                     f"{r.get('valgrind', '-')} | {times} | {r['session']:.3f} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    rows, failed = [], 0
    for example in EXAMPLES:
        if arguments.only not in example:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(compare(arguments.build.resolve(), example, pathlib.Path(folder)))
                print(rows[-1], flush=True)
                failed += not rows[-1]["worst"] <= TOLERANCE
            except ValueError as error:
                print(example, error, flush=True)
                failed += 1
    if arguments.report:
        report(rows, arguments.report)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
