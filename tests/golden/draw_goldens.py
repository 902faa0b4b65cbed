#!/usr/bin/env python3
"""Draws uses of every op, evaluates PyTorch's function of each, and writes goldens of both, as make_goldens.py.

    python3 tests/golden/draw_goldens.py FOLDER [--cases N] [--seed SEED] [--file NAME] [OP...]

The tables are in tests/golden/drawn: a line for each op has a draw and a function. An op without a line is an error. PyTorch
computes in f64, values and gradients, and the results of cases of f32 are rounded. A draw that PyTorch refuses is drawn
again. FOLDER gets a file for each op, or one called NAME; the same SEED draws the same cases. compare_ops.py draws cases
and runs them. The file drawn.safetensors has the ops that no other file of goldens has:

    python3 tests/golden/draw_goldens.py tests/golden --cases 2 --file drawn attention_grad conv3d_grad_input \\
        conv3d_grad_weight cumulative gelu_grad layer_norm_grad max_pool2d_grad detach fake_quantize fake_quantize_channels
"""
import argparse
import pathlib
import re

import torch

from drawn import elementwise, indices, layers, shapes
from drawn.draws import Draw
from drawn.shapes import TO
from make_goldens import NAMES, File, draw

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROWS = {**elementwise.ROWS, **shapes.ROWS, **indices.ROWS, **layers.ROWS}
DTYPES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64, "f32": torch.float32,
          "f64": torch.float64}
FLOATS = (torch.float32, torch.float64)
NAMES_OF_RESULTS = ("r", "s", "t", "u")


# Ops that PyTorch has no function for.
WITHOUT = {
    "all_reduce": "between devices: tests/integration/distributed compares them over several",
    "all_gather": "between devices: tests/integration/distributed compares them over several",
    "reduce_scatter": "between devices: tests/integration/distributed compares them over several",
    "dropout": "random bits are Tenon's: the tests of random ops compare their distribution",
    "random_uniform": "random bits are Tenon's: the tests of random ops compare their distribution",
    "random_normal": "random bits are Tenon's: the tests of random ops compare their distribution",
    "recurrence_grad": "reads what recurrence stores: compared as the gradient of recurrence",
}


class Drawn(File):
    """A file whose results and gradients are computed in f64 and rounded to the dtype of the case."""

    def record(self, name, text, operands, results, function, d):
        """text: the use, operands: tensors by name, results: the dtypes of the schema."""
        leaves = {k: (x.double() if x.dtype in FLOATS else x.clone()) for k, x in operands.items()}
        for x in leaves.values():
            x.requires_grad_(x.dtype is torch.float64 and not d.special)
        values = function(leaves)
        values = dict(zip(NAMES_OF_RESULTS, values if isinstance(values, (tuple, list)) else [values]))
        tensors = {f"{name}/in/{k}": x.contiguous() for k, x in operands.items()}
        loss = 0
        for (n, y), dtype in zip(values.items(), results):
            tensors[f"{name}/out/{n}"] = narrow(y.detach(), dtype, d.dtype)
            if y.requires_grad:
                tensors[f"{name}/dout/{n}"] = dout = draw(*y.shape, dtype=d.dtype)
                loss = loss + (y * dout.double()).sum()
        if torch.is_tensor(loss):
            loss.backward()
            for k, x in leaves.items():
                if x.requires_grad:
                    tensors[f"{name}/grad/{k}"] = (torch.zeros_like(x) if x.grad is None else x.grad).to(operands[k].dtype)
        lines = [f"{k}: {NAMES[x.dtype][0]}{list(x.shape)} = input(name={k})" for k, x in operands.items()]
        lines += [f"{', '.join(NAMES_OF_RESULTS[:len(results)])} = {text}"] + [f"output {n} = {n}" for n in values]
        self.graphs[name] = "\n".join(lines) + "\n"
        self.tensors.update((k, x.clone(memory_format=torch.contiguous_format)) for k, x in tensors.items())


def narrow(y, schema, dtype):
    """A result in the dtype that its schema says, or that of the case where PyTorch computed in f64."""
    if schema in TO:
        return y.to(TO[schema])
    return y.to(dtype) if schema != "any" or y.dtype is torch.float64 and dtype in FLOATS else y


def schemas():
    """Of each op: the dtypes of T, those of its results, and the names of its operands."""
    page = (ROOT / "docs/reference/ops.md").read_text()
    found = {}
    for section in page.split("\n## ")[1:]:
        name, schema = section.split("\n")[0], re.search(r"Schema: `(.*?)`", section).group(1)
        operands = [o.split(":") for o in re.findall(r"[\w?*]+:\w+", schema.split("->")[0])]
        results = [o.split(":")[1] for o in re.findall(r"\w+:\w+", schema.split("->")[1].split(";")[0])]
        given = re.search(r"; T in ([^;]*)", schema)
        found[name] = (re.findall(r"\b[biuf]\w*\d\b|bool", re.sub(r" as \w+", "", given.group(1))) if given else [*DTYPES, "f16", "bf16"], operands, results)
    return found


def option(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"[{', '.join(map(option, value))}]" if isinstance(value, list) else str(value)


def call(op, operands, options, schema):
    """The text of a use. Absent operands are _."""
    names = list(operands)
    if any(o.endswith("?") for o, _ in schema):
        names = [o.rstrip("?") if o.rstrip("?") in operands else "_" for o, _ in schema]
        while names and names[-1] == "_":
            names.pop()
    return f"{op}({', '.join(names + [f'{k}={option(v)}' for k, v in options.items()])})"


def usable(schema):
    """The dtypes of cases: of floats, and others."""
    dtypes, operands, _ = schema
    if operands and "T" not in [t for _, t in operands]:  # and, embedding: bool, or T is that of another operand
        dtypes = [t for _, t in operands if t == "bool"] or ["f32", "f64"]
    dtypes = [DTYPES[t] for t in dtypes if t in DTYPES]
    return [t for t in dtypes if t in FLOATS], [t for t in dtypes if t not in FLOATS]


def draw_op(f, op, schema, arguments):
    """Adds cases of an op to a file, and returns how many draws PyTorch refused."""
    floats, others = usable(schema)
    refused = 0
    for i in range(arguments.cases):
        pool = others if others and (i % 4 == 3 or not floats) else floats
        for attempt in range(50):
            d = Draw(f"{arguments.seed}/{op}/{i}/{attempt}", pool[i // 4 % len(pool)], i % 5 == 4 and op not in layers.ROWS)
            d.wraps = op in elementwise.ROWS and d.flag()
            try:
                draw_case(f, f"{op}.{i}", op, schema, d)
                break
            except (RuntimeError, IndexError, ValueError) as error:
                refused, reason = refused + 1, error
        else:
            raise SystemExit(f"{op}: PyTorch refused 50 draws, the last with: {reason}")
    return refused


def write_all(arguments, ops):
    """Writes a file for each op, and returns how many draws PyTorch refused."""
    every, refused = schemas(), 0
    missing = sorted(set(every) ^ (set(ROWS) | set(WITHOUT)))
    if missing:
        raise SystemExit(f"tests/golden/drawn has no line for {missing}, or one for an op that is not in docs/reference/ops.md")
    for op in ops:
        f = Drawn(op, **({} if op in elementwise.ROWS else {"errors": "tensor"}))
        refused += draw_op(f, op, every[op], arguments)
        f.write(arguments.folder)
    return refused


def write_one(arguments):
    """Writes one file for several ops."""
    every, f = schemas(), Drawn(arguments.file, errors="tensor")
    for op in arguments.ops:
        draw_op(f, op, every[op], arguments)
    f.write(arguments.folder)


def draw_case(f, name, op, schema, d):
    drawing, function = ROWS[op]
    _, operands, results = schema
    given, options = drawing(d)
    results = [options["to"]] if "to" in options else results
    if isinstance(given, dict):
        f.record(name, call(op, given, options, operands), given, results, lambda v: function(**v, **options), d)
        return
    names = "abcdefgh" if any(o.endswith("*") for o, _ in operands) else [o.rstrip("?") for o, _ in operands]
    given = dict(zip(names, given))
    f.record(name, call(op, given, options, operands), given, results, lambda v: function(*v.values(), **options), d)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--file")
    parser.add_argument("ops", nargs="*")
    arguments = parser.parse_intermixed_args()
    if arguments.file:
        write_one(arguments)
    else:
        write_all(arguments, arguments.ops or ROWS)


if __name__ == "__main__":
    main()
