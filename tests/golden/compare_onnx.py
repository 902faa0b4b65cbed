#!/usr/bin/env python3
"""Compares ops with the vectors of ONNX's backend tests: the cases of single nodes that the package onnx makes.

    python3 tests/golden/compare_onnx.py BUILD [--report FILE]

onnx_rows.py, onnx_layers.py and onnx_quantized.py have a line for each op of ONNX: a graph of Tenon's ops for a node. Cases are written as
files of goldens, which golden_test runs. FILE gets how many passed and why the others have no counterpart. Ends with 1 if
a case fails. Needs the packages onnx and torch.
"""
import argparse
import collections
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch

import onnx_layers
import onnx_quantized
import onnx_rows
from compare import Comparison
from draw_goldens import schemas
from make_goldens import File, NAMES
from onnx_rows import Without

ROWS = {**onnx_rows.ROWS, **onnx_layers.ROWS, **onnx_quantized.ROWS}
DTYPES = {"bool": "bool", "uint8": "u8", "int8": "i8", "int32": "i32", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
          "float64": "f64"}
OTHERS = (
    (("Attention", "FlexAttention", "LinearAttention", "CausalConvWithState", "RotaryEmbedding", "SwiGLU"), "composites of newer models, whose parts are compared"),
    (("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Dropout", "Bernoulli"), "a loss or a layer, not an op: compared with PyTorch"),
    (("Adagrad", "Adam", "Momentum"), "an optimizer: compared with PyTorch"),
    (("BitCast",), "no op reads the bits of an element as another type"),
    (("If", "Loop", "Scan", "SequenceMap", "SequenceInsert", "SplitToSequence", "OptionalGetElement", "OptionalHasElement"), "control flow and sequences of tensors"),
    (("Compress", "NonZero", "Unique", "NonMaxSuppression"), "the shape of the result depends on the elements"),
    (("Shape", "Size", "Constant"), "known before a run: `dims(x)`, numbers"),
    (("DFT", "STFT", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"), "no spectra"),
    (("GatherND", "ScatterND", "TensorScatter", "ReverseSequence"), "no indices of several dimensions"),
    (("DeformConv", "RoiAlign", "Det"), "no op computes it"),
    (("ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "LabelEncoder",
      "ArrayFeatureExtractor", "Binarizer", "TreeEnsemble"), "text, pictures and trees"),
)
DIGITS = {"test_averagepool_2d_ceil_last_window_starts_on_pad": "the vector has 4 digits",
          "test_dynamicquantizelinear": "f32 rounds a quotient to 25.5, which the reference has in f64"}
SCHEMAS = schemas()
WITHOUT = {op: why for ops, why in OTHERS for op in ops}


def tensor(v):
    """A tensor of PyTorch, which has bfloat16 where NumPy has it by another package."""
    if v.dtype.name == "bfloat16":
        return torch.from_numpy(v.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(v)).reshape(v.shape)


def array(v):
    """A vector of the package, which has element types that NumPy lacks as protocol buffers."""
    if isinstance(v, np.generic):
        return np.asarray(v)
    return onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v


class Node:
    """A node of ONNX with its vectors, and the graph of Tenon's that its row emits."""

    def __init__(self, node, inputs, outputs):
        self.node, self.inputs, self.outputs = node, inputs, outputs
        self.count, self.results = len(node.input), len(outputs)
        self.operands, self.lines, self.made = {}, [], 0

    # ---- the node ----

    def attribute(self, name, default):
        for a in self.node.attribute:
            if a.name == name:
                v = onnx.helper.get_attribute_value(a)
                return v.decode() if isinstance(v, bytes) else onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v
        return default

    def has(self, i):
        return i < self.count and self.node.input[i] != "" and self.inputs.get(self.node.input[i]) is not None

    def named(self, i):
        return i < len(self.node.output) and self.node.output[i] != ""

    def raw(self, i):
        return self.inputs[self.node.input[i]]

    def constant(self, i):
        return np.asarray(self.raw(i))

    def raw_outputs(self):
        return list(self.outputs)

    def raw_output(self, i):
        return self.outputs[i]

    def shape(self, i):
        return self.raw(i).shape

    def dtype(self, i):
        return self.type_of(self.raw(i))

    def dtype_of_result(self, i):
        return self.type_of(self.outputs[i])

    def is_float(self, i):
        return self.dtype(i) in ("f16", "bf16", "f32", "f64")

    @staticmethod
    def type_of(v):
        if not isinstance(v, np.ndarray) or v.dtype.name not in DTYPES:
            raise Without(f"no {v.dtype.name if isinstance(v, np.ndarray) else 'sequences'}")
        return DTYPES[v.dtype.name]

    # ---- the graph ----

    def x(self, i):
        if not self.has(i):
            raise Without("an operand that is absent")
        self.type_of(self.raw(i))
        self.operands[f"x{i}"] = tensor(self.raw(i))
        return f"x{i}"

    def given(self, v):
        """An operand that the row computed from a constant."""
        self.type_of(np.asarray(v))
        name = f"c{len(self.operands)}"
        self.operands[name] = tensor(np.asarray(v))
        return name

    def number(self, v, i):
        """A number of the element type of operand i."""
        return self.emit("full", value=v, dtype=self.dtype(i))

    def whole(self, v, dtype):
        return self.emit("full", value=v, dtype=dtype)

    def as_type(self, v, dtype):
        return self.emit("cast", v, to=dtype)

    def part(self, i, index, axis=0):
        """Slice `index` of operand i along an axis, without it."""
        return self.emit("select", self.x(i), axis=axis, index=index) if axis else self.select_first(i, index)

    def select_first(self, i, index):
        name = f"x{i}p{index}"
        self.type_of(self.raw(i))
        self.operands[name] = tensor(self.raw(i)[index])
        return name

    def shape_of(self, v):
        """Of an operand, or of a slice of a vector."""
        return list(self.operands[v].shape) if v in self.operands else [10**9]

    def emit_all(self, op, results, *operands, **options):
        first = next((str(NAMES[self.operands[o].dtype][0]) for o in operands if o in self.operands), None)
        if first and first not in SCHEMAS[op][0] and "T" in [t for _, t in SCHEMAS[op][1]]:
            raise Without(f"{op} does not compute {first}")
        names = [f"v{self.made + i}" for i in range(results)]
        self.made += results
        arguments = list(operands)
        while arguments and arguments[-1] == "_":
            arguments.pop()
        arguments += [f"{k}={self.option(v)}" for k, v in options.items()]
        self.lines.append(f"{', '.join(names)} = {op}({', '.join(arguments)})")
        return names

    def emit(self, op, *operands, **options):
        return self.emit_all(op, 1, *operands, **options)[0]

    @staticmethod
    def option(v):
        if isinstance(v, bool):
            return "yes" if v else "no"
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(Node.option(e) for e in v) + "]"
        return repr(float(v)) if isinstance(v, (float, np.floating)) else str(v)


def convert(case, files):
    """Adds a case to the file of its op, or raises Without."""
    graph = case.model.graph
    if "_expanded" in case.name:
        raise Without("the same vectors, with the op as a function of others")
    if len(graph.node) != 1:
        raise Without("a graph of several nodes")
    if case.name in DIGITS:
        raise Without(DIGITS[case.name])
    node, (inputs, outputs) = graph.node[0], case.data_sets[0]
    if node.op_type in WITHOUT:
        raise Without(WITHOUT[node.op_type])
    inputs, outputs = ([array(v) for v in values] for values in (inputs, outputs))
    named = {v.name: x for v, x in zip(graph.input, inputs)}
    n = Node(node, named, outputs)
    for y in outputs:
        n.type_of(y)
    values = ROWS[node.op_type](n)
    values = values if isinstance(values, list) else [values]
    f = files[node.op_type]
    lines = [f"{k}: {NAMES[v.dtype][0]}{list(v.shape)} = input(name={k})" for k, v in n.operands.items()]
    lines += n.lines + [f"output y{i} = {v}" for i, v in enumerate(values)]
    f.graphs[case.name] = "\n".join(lines) + "\n"
    f.tensors.update({f"{case.name}/in/{k}": v.clone(memory_format=torch.contiguous_format) for k, v in n.operands.items()})
    f.tensors.update({f"{case.name}/out/y{i}": tensor(y).clone() for i, y in enumerate(outputs[:len(values)])})


def collect():
    """The cases of single nodes, in memory: the package has them as code."""
    from onnx.backend.test.case.node import collect_testcases
    arguments, sys.argv = sys.argv, sys.argv[:1]
    cases = collect_testcases(None)
    sys.argv = arguments
    return cases


def op_of(case):
    """The op that a case is about; that of functions of other ops has the name in front of _expanded."""
    ops = {node.op_type for node in case.model.graph.node}
    return ops.pop() if len(ops) == 1 else "functions of several ops"


def report(path, comparison, compared, without):
    failed, total = comparison.failed(), sum(compared.values()) + sum(len(v) for v in without.values())
    lines = ["# Vectors of ONNX", "", "<!-- Written by `tests/golden/compare_onnx.py BUILD --report`. -->", "",
             f"The {total} cases of single nodes of the backend tests of onnx {onnx.__version__}: {sum(compared.values()) - len(failed)} passed, {len(failed)} failed,",
             f"{sum(len(v) for v in without.values())} have no counterpart. `tests/golden/onnx_rows.py`, `onnx_layers.py` and `onnx_quantized.py` have a line for each op. The tolerances are",
             "those of torch.testing.assert_close, relative to the largest element of the tensor.", "", *comparison.table(), "",
             "| op of ONNX | compared | without a counterpart | |", "|---|---|---|---|"]
    for op in sorted(set(compared) | set(without)):
        reasons = collections.Counter(without.get(op, []))
        why = "; ".join(f"{reason} ({n})" if len(reasons) > 1 else reason for reason, n in reasons.most_common())
        lines.append(f"| {op} | {compared.get(op, 0)} | {sum(reasons.values())} | {why} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of NumPy, about the vectors of infinite numbers
    files = {}
    compared, without = collections.Counter(), collections.defaultdict(list)
    comparison = Comparison(arguments.build)
    for case in collect():
        op = op_of(case)
        files.setdefault(op, File(f"onnx_{op}", errors="tensor"))
        try:
            convert(case, files)
            compared[op] += 1
        except Without as reason:
            without[op].append(str(reason))
    with tempfile.TemporaryDirectory() as folder:
        used = [f for f in files.values() if f.graphs]
        for f in used:
            f.write(folder)
        comparison.run([pathlib.Path(folder) / f"{f.name}.safetensors" for f in used])
    failed = comparison.failed()
    print(f"onnx {onnx.__version__}: {sum(compared.values()) - len(failed)} cases passed, {len(failed)} failed, "
          f"{sum(len(v) for v in without.values())} without a counterpart")
    if arguments.report:
        report(arguments.report, comparison, compared, without)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
