#!/usr/bin/env python3
"""Compares exported models and ops with onnxruntime: docs/examples, and the drawn cases of every op.

    python3 tests/golden/compare_exported.py BUILD [--cases N] [--report FILE] [--only WORD]

Each example gets random weights, is exported, checked by onnx.checker, run by onnxruntime (and by OpenVINO, where it is
installed), and compared with `tenon predict`. Ops are those of draw_goldens.py in f32 and whole numbers: export_cases
writes a file of ONNX for each case. A difference is relative to the largest number of the output. Ends with 1 where one is
above 1e-4. Needs the packages onnx, onnxruntime, safetensors, and torch for the ops.
"""
import argparse
import collections
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import safetensors
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4
OPSET = 20
SMALL, LARGE = 60 << 20, 200 << 20  # bytes of weights: below, a model is exported in every way; above, only if it is named
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}
onnxruntime.set_default_logger_severity(3)
try:
    import openvino
except ImportError:
    openvino = None


class Options(ctypes.Structure):
    """tn_session_options."""
    _fields_ = [("struct_size", ctypes.c_uint32), ("train", ctypes.c_int32), ("eval", ctypes.c_int32), ("infer", ctypes.c_int32),
                ("batch", ctypes.c_int64), ("steps", ctypes.c_int64), ("steps_per_epoch", ctypes.c_int64), ("weights", ctypes.c_char_p)]


def initial_weights(build, ini, path):
    """Writes the initial weights of a configuration, by a session."""
    lib = ctypes.CDLL(str(build / "libtenon.so"))
    context, run, session = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    lib.tn_error_text.restype = ctypes.c_char_p

    def call(status, handle):
        if status != 0:
            raise SystemExit(f"{ini}: {lib.tn_error_text(handle).decode()}")

    call(lib.tn_context_open(None, ctypes.byref(context)), context)
    call(lib.tn_run_open(context, str(ini).encode(), None, ctypes.byref(run)), context)
    options = Options(ctypes.sizeof(Options), 0, 0, 1, 1, 0, 0, b"")
    call(lib.tn_session_open(run, ctypes.byref(options), ctypes.byref(session)), run)
    call(lib.tn_session_save(session, str(path).encode()), session)
    lib.tn_session_close(session)
    lib.tn_run_close(run)
    lib.tn_context_close(context)


def randomize(path):
    """Moves every weight, so that no bias is zero and no variance is one."""
    rng = np.random.default_rng(1)
    weights = load_file(path)
    for name, w in weights.items():
        if w.dtype == np.float32:
            move = rng.standard_normal(w.shape).astype(np.float32)
            weights[name] = np.abs(w + 0.3 * move) + 0.5 if name.endswith("running_var") else w + 0.03 * move
            if name.endswith((".input_min", ".input_max")):
                weights[name] = 3 * np.abs(1 + move) * np.float32(-1 if name.endswith("min") else 1)
    save_file({name: np.asarray(w) for name, w in weights.items()}, path)  # NumPy makes a number of an array of rank 0


def operand(info, batch):
    """Random numbers for an input of a file; whole ones are small."""
    rng = np.random.default_rng(2)
    tensor = info.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else batch for d in tensor.shape.dim]
    dtype = TYPES[tensor.elem_type]
    if dtype in (np.float32, np.float64, np.float16):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype) if dtype == np.bool_ else rng.integers(1, 4, shape).astype(dtype)


def difference(found, expected):
    """Of the largest finite number; NaN and infinities must be equal."""
    found, expected = np.asarray(found).astype(np.float64), np.asarray(expected).astype(np.float64)
    if found.shape != expected.shape:
        return float("inf")
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    finite = np.isfinite(expected)
    apart = np.where(same, 0, np.abs(found - expected))
    largest = np.abs(expected[finite]).max() if finite.any() else 1
    worst = float(np.nan_to_num(apart, nan=np.inf).max()) if apart.size else 0.0
    return worst / max(largest, 1e-6)


class Models:
    """The examples, exported in several ways."""

    def __init__(self, build, folder, only):
        self.build, self.folder, self.only, self.rows, self.failed = build, folder, only, [], []

    def tenon(self, *words):
        return subprocess.run([self.build / "tools/tenon", *map(str, words)], capture_output=True, text=True, cwd=self.folder)

    def predict(self, ini, weights, inputs, out):
        arrays = self.folder / "in.safetensors"
        save_file(inputs, arrays)
        done = self.tenon("predict", ini, "--weights", weights, "--input", arrays, "--output", out, "--set", "backend.use=cpu", "--set", "precision.policy=fp32")
        if done.returncode != 0:
            raise ValueError(done.stderr.strip())
        return load_file(out)

    def openvino(self, path, inputs, names, rounded):
        if openvino is None:
            return None
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: list(array.shape) for name, array in inputs.items()})  # behind a symbolic batch its LSTM reads no sequence_lens
        as_written = {"LP_TRANSFORMS_MODE": False} if rounded else {}
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", **as_written})
        results = compiled(inputs)
        return [results[compiled.output(name)] for name in names]

    def compare(self, ini, weights, words):
        path, out = self.folder / "model.onnx", self.folder / "out.safetensors"
        for old in (path, self.folder / "model.onnx.data", out):
            old.unlink(missing_ok=True)
        done = self.tenon("export", ini, "--weights", weights, "-o", path, *words)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip().replace("tenon: ", ""))
        onnx.checker.check_model(str(path), full_check=True)
        model = onnx.load(path)
        inputs = {i.name: operand(i, 3) for i in model.graph.input}
        names = [o.name for o in model.graph.output]
        expected = self.predict(ini, weights, inputs, out)
        rounded, options = any(n.op_type == "QuantizeLinear" for n in model.graph.node), onnxruntime.SessionOptions()
        if rounded:  # layers of whole numbers round elsewhere, so such a file is computed as it is written
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        found = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(names, inputs)
        worst = max(difference(f, expected[n]) for f, n in zip(found, names))
        other = self.openvino(path, inputs, names, rounded)
        other = None if other is None else max(difference(f, expected[n]) for f, n in zip(other, names))
        return worst, other, model

    def run(self):
        examples = sorted([*(ROOT / "docs/examples").glob("*.ini"), *(ROOT / "docs/examples/models").glob("*.ini")])
        ways = (("--opset", "17"), ("--opset", "13"), ("--opset", "23"), ("--fold", "yes"), ("--external", "yes"))
        for ini in examples:
            if self.only and self.only not in ini.name:
                continue
            weights = self.folder / "weights.safetensors"
            weights.unlink(missing_ok=True)
            initial_weights(self.build, ini, weights)
            randomize(weights)
            if weights.stat().st_size > LARGE and not self.only:
                continue
            small = weights.stat().st_size < SMALL
            for way in ways if small else ways[:1]:
                self.one(ini, weights, way)

    def one(self, ini, weights, way):
        try:
            worst, other, model = self.compare(ini, weights, way)
            text = f"{worst:.1e}"
            beside = "-" if other is None else f"{other:.1e}"
            nodes = len(model.graph.node)
            if not worst <= TOLERANCE:
                self.failed.append((ini.name, way))
        except ValueError as error:  # the reason is a line of the report
            text, beside, nodes = re.sub("^.*nothing is written: +", "", str(error).replace("\n", " ")), "-", "-"
            if "random numbers" not in text:
                self.failed.append((ini.name, way))
        print(ini.name, *way, nodes, text, beside, flush=True)
        self.rows.append((ini.name, " ".join(way), nodes, text, beside))


class Ops:
    """The drawn cases of ops."""

    def __init__(self, build, folder, cases):
        self.build, self.folder, self.cases = build, folder, cases
        self.passed, self.failed, self.without = collections.Counter(), collections.defaultdict(list), collections.Counter()
        self.worst, self.elsewhere, self.infinite, self.silent = collections.defaultdict(float), 0, 0, 0

    def draw(self):
        import contextlib
        import io
        import draw_goldens
        self.arguments = argparse.Namespace(folder=self.folder, cases=self.cases, seed="0")
        with contextlib.redirect_stdout(io.StringIO()):
            draw_goldens.write_all(self.arguments, draw_goldens.ROWS)
        return sorted(self.folder.glob("*.safetensors"))

    def run(self, opset):
        warnings.simplefilter("ignore")
        for file in self.draw():
            cases = self.folder / "cases"
            cases.mkdir(exist_ok=True)
            for old in cases.glob("*"):
                old.unlink()
            done = subprocess.run([self.build / "tests/golden/export_cases", file, cases, str(opset)], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"export_cases {file}: {done.stderr}")
            for line in done.stdout.splitlines():
                self.without[(file.stem, line.split(": ", 1)[1])] += 1
            with safetensors.safe_open(file, "numpy") as tensors:
                for path in sorted(cases.glob("*.onnx")):
                    self.case(file.stem, tensors, path)

    def evaluate(self, model, path, names, inputs):
        """onnxruntime; ONNX's own evaluator where that has no kernel for a type."""
        try:
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            return session.run(names, inputs)
        except Exception as error:
            if not any(reason in str(error) for reason in UNABLE):
                raise
        try:
            found = onnx.reference.ReferenceEvaluator(model).run(names, inputs)
        except Exception:
            self.silent += 1
            return None
        self.elsewhere += 1
        return found

    def case(self, op, tensors, path):
        name = path.stem.replace("@", "/")
        try:
            model = onnx.load(path)
            onnx.checker.check_model(model, full_check=True)
            inputs = {i.name: tensors.get_tensor(f"{name}/in/{i.name}") for i in model.graph.input}
            names = [o.name for o in model.graph.output]
            if any(i.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for i in [*model.graph.input, *model.graph.output]):
                self.silent += 1  # NumPy has no bfloat16
                return
            found = self.evaluate(model, path, names, inputs)
            if found is None:
                return
            worst = max(difference(f, tensors.get_tensor(f"{name}/out/{n}")) for f, n in zip(found, names))
        except Exception as error:
            self.failed[op].append((name, str(error).replace("\n", " ")[:300]))
            return
        if not all(np.isfinite(v).all() for v in inputs.values() if v.dtype.kind == "f"):
            self.infinite += 1
            return
        if op == "recurrence" and not inputs.get("length", np.ones(1)).all():
            self.infinite += 1  # DIFFERENCES
            return
        self.worst[op] = max(self.worst[op], worst)
        if worst <= TOLERANCE:
            self.passed[op] += 1
        else:
            self.failed[op].append((name, f"differs by {worst:.1e}"))


UNABLE = ("NOT_IMPLEMENTED", "INVALID_GRAPH")  # in messages of onnxruntime
DIFFERENCES = (
    "NaN and infinities: ONNX leaves results of many operators open, so these draws are not compared.",
    "`recurrence`: behind a sequence without steps the last state is the first one; onnxruntime gives zeros.",
    "OpenVINO gets the sizes of the inputs: where the batch of an LSTM is symbolic, it takes no notice of `sequence_lens`.",
)


def report(models, ops, arguments):
    versions = f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"
    if openvino is not None:
        versions += f", OpenVINO {openvino.__version__.split('-')[0]}"
    lines = ["# Exported models and ops", "", "<!-- Written by `tests/golden/compare_exported.py BUILD --report FILE`. -->", "",
             "`tenon export` against `tenon predict` on the backend `cpu`: the largest difference, relative to the largest number of",
             f"the output. Weights are random, the batch is 3. {versions}.", "",
             "Files with QuantizeLinear are computed as they are written: with layers of whole numbers, which round elsewhere,",
             "digits_int8.ini differs by up to 2.3e-02 (onnxruntime, folded) and 2.5e-01 (OpenVINO) on an AVX2 processor.", "",
             "| model | options | nodes | onnxruntime | OpenVINO |", "|---|---|---|---|---|",
             *(f"| {name} | {way} | {nodes} | {text} | {beside} |" for name, way, nodes, text, beside in models.rows), "",
             "Models whose graph draws random numbers, as ddpm and vae do for their losses, are refused.", "", "## Ops", "",
             f"Drawn cases of every op (tests/golden/drawn) as files of ONNX, opset {OPSET}, against PyTorch:", "",
             f"- {sum(ops.passed.values())} cases of {len(ops.passed)} ops within {TOLERANCE:g}, the worst {max(ops.worst.values()):.1e};",
             f"- {sum(map(len, ops.failed.values()))} cases beyond it;",
             f"- {ops.elsewhere} of them by ONNX's own evaluator, as onnxruntime has no kernel for their types; {ops.silent} cases that neither runs;",
             f"- {ops.infinite} cases with numbers that are not finite, which are not compared.", "",
             "Ops that cannot be written, in some of their uses:", "", "| op | cases | reason |", "|---|---|---|"]
    for (op, reason), n in sorted(ops.without.items()):
        lines.append(f"| `{op}` | {n} | {re.sub('^.*nothing is written: +', '', reason)} |")
    lines += ["", "## Differences", "", *(f"- {d}" for d in DIFFERENCES)]
    arguments.report.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--ops", action="store_true")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        models = Models(arguments.build, pathlib.Path(folder), arguments.only)
        if not arguments.ops:
            models.run()
        ops = Ops(arguments.build, pathlib.Path(folder), arguments.cases)
        if arguments.ops or not arguments.only:
            ops.run(OPSET)
    for op, cases in sorted(ops.failed.items()):
        print(op, len(cases), "failed of", len(cases) + ops.passed[op], cases[0])
    for (op, reason), n in sorted(ops.without.items()):
        print(op, n, reason)
    print(sum(ops.passed.values()), "cases passed", sum(map(len, ops.failed.values())), "failed", sum(ops.without.values()), "refused", ops.elsewhere, "by onnx.reference", ops.silent, "by none", ops.infinite, "not finite")
    if arguments.report:
        report(models, ops, arguments)
    return 1 if models.failed or ops.failed else 0


if __name__ == "__main__":
    sys.exit(main())
