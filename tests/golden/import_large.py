#!/usr/bin/env python3
"""Imports a model of ONNX whose weights lie in a file of 2 GB beside it, and prints the largest memory of the process.

    python3 tests/golden/import_large.py TENON FOLDER [LAYERS]

The model has LAYERS matrices of 4096 x 4096 (64 MB each; 32 of them unless told). FOLDER takes 4 GB, which are removed. The weights
are transposed on the way, so that each is read and written. Needs the package onnx, and /usr/bin/time.
"""
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH = 4096


def tensor(i):
    t = TensorProto(name=f"fc{i}.weight", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "large.bin"), ("offset", i * WIDTH * WIDTH * 4), ("length", WIDTH * WIDTH * 4)):
        t.external_data.add(key=key, value=str(value))
    return t


def write(folder, layers):
    rng = np.random.default_rng(1)
    with open(folder / "large.bin", "wb") as file:
        for _ in range(layers):
            file.write(rng.standard_normal((WIDTH, WIDTH), np.float32).tobytes())
    nodes = [helper.make_node("MatMul", [f"x{i}", f"fc{i}.weight"], [f"x{i + 1}"]) for i in range(layers)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "large", [info("x0", TensorProto.FLOAT, ["n", WIDTH])], [info(f"x{layers}", TensorProto.FLOAT, ["n", WIDTH])],
                              [tensor(i) for i in range(layers)])
    (folder / "large.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    layers = int(sys.argv[3]) if len(sys.argv) > 3 else 32
    try:
        write(folder, layers)
        command = ["/usr/bin/time", "--format=%M", program, "import", folder / "large.onnx", "--output", folder / "large.ini"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        print(done.stderr, end="")
        peak = int(done.stderr.split()[-1]) / 1024
        size = (folder / "large.safetensors").stat().st_size / 2**20 if done.returncode == 0 else 0
        print(f"{layers * WIDTH * WIDTH * 4 / 2**20:.0f} MB of weights, {size:.0f} MB written, largest memory {peak:.0f} MB")
    finally:
        for name in ("large.bin", "large.onnx", "large.ini", "large.safetensors"):
            (folder / name).unlink(missing_ok=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
