#!/usr/bin/env python3
"""Imports the models of ONNX's backend tests and compares their results.

    python3 tests/golden/compare_onnx_import.py BUILD [--report FILE] [--only TEXT] [--say]

Each case of the package onnx is written as a file, imported as `tenon import` does, and run by a session with the inputs of the
case. Inputs that the importer wants to know are given as constants, as its message says; where that does not suffice, all inputs but
the first are, since the cases have weights as inputs. Results are compared as the runner of the package does (relative 1e-3,
absolute 1e-7), as elements of the type of the case: the importer makes f32 of all floats. Results of 16 bits may differ by one
rounding of the largest element, since the cases round in between. FILE gets a table. Ends with 1 if a
case fails. Needs the package onnx.
"""
import argparse
import collections
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto

from tenon_library import Library, Refused, plain

TRAINING = {"Adagrad", "Adam", "Momentum", "Gradient"}
CONTAINERS = {"SequenceMap", "SequenceInsert", "SplitToSequence", "SequenceConstruct", "SequenceAt", "SequenceEmpty", "SequenceErase",
              "SequenceLength", "ConcatFromSequence", "OptionalGetElement", "OptionalHasElement", "Optional"}
TEXTS = {"StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "LabelEncoder", "ImageDecoder"}
SPACING = {"bfloat16": 2.0**-7, "float16": 2.0**-10}  # of the largest element: the results are rounded
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


class Case:
    def __init__(self, kind, case):
        self.kind, self.name, self.rtol, self.atol = kind, case.name, case.rtol, case.atol
        self.case = case

    def load(self):
        """The model, its inputs and its outputs."""
        if self.case.model is not None:
            return self.case.model, *([self.array(v) for v in values] for values in self.case.data_sets[0])
        folder = pathlib.Path(self.case.model_dir)
        sets = sorted(folder.glob("test_data_set_*")) or [None]
        return onnx.load(folder / "model.onnx"), self.arrays(sets[0], "input"), self.arrays(sets[0], "output")

    @staticmethod
    def array(value):
        if isinstance(value, np.generic):
            return np.asarray(value)
        return onnx.numpy_helper.to_array(value) if isinstance(value, TensorProto) else value

    @staticmethod
    def arrays(folder, role):
        files = sorted(folder.glob(f"{role}_*.pb"), key=lambda p: int(re.search(r"_(\d+)", p.stem)[1]))
        return [onnx.numpy_helper.to_array(TensorProto.FromString(f.read_bytes())) for f in files]


def collect():
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.loader import load_model_tests
    arguments, sys.argv = sys.argv, sys.argv[:1]
    cases = [Case("node", case) for case in collect_testcases(None)]
    sys.argv = arguments
    for kind in KINDS[1:]:
        cases += [Case(kind, case) for case in load_model_tests(kind=kind)]
    return cases


def operator_of(case, model):
    """The operator that a case is about; a case that has it as a function of others is named after it."""
    ops = {node.op_type for node in model.graph.node}
    return ops.pop() if len(ops) == 1 else "graphs of several operators" if case.kind == "node" else case.kind


def group_of(case, model, values):
    ops = {node.op_type for node in model.graph.node}
    types = [v.type.WhichOneof("value") for v in list(model.graph.input) + list(model.graph.output)]
    if ops & TRAINING or "training" in case.name or any(d.domain == "ai.onnx.preview.training" for d in model.opset_import):
        return "training"
    if ops & CONTAINERS or any(t not in ("tensor_type", None) for t in types):
        return "sequences, maps and optionals"
    if ops & TEXTS or any(v.dtype.kind in "OSU" for v in values if isinstance(v, np.ndarray)):
        return "texts"
    return "forward"


class Trial:
    """The import of one case in a folder of its own, and its run."""

    def __init__(self, library, folder, model, inputs):
        self.library, self.folder, self.inputs = library, folder, inputs
        self.path = folder / "model.onnx"
        onnx.save(model, self.path)
        given = {t.name for t in model.graph.initializer}
        self.names = [v.name for v in model.graph.input]
        self.free = [n for n in self.names if n not in given]
        self.value = dict(zip(self.names if len(inputs) == len(self.names) else self.free, inputs))

    def constant(self, name):
        path = self.folder / f"constant_{self.names.index(name)}.npy"
        np.save(path, plain(self.value[name]))
        return f"{name}={path}"

    def attempt(self, known):
        for file in ("model.ini", "model.safetensors"):
            (self.folder / file).unlink(missing_ok=True)
        constants = [self.constant(n) for n in self.free if n in known and n in self.value]
        return self.library.import_onnx(self.path, self.folder / "model.ini", constants)

    def import_model(self):
        """Gives inputs as constants until the import succeeds."""
        known, tries = set(), [set(self.free[1:]), set(self.free)]
        while True:
            try:
                return self.attempt(known), known
            except Refused as refusal:
                wanted = set(re.findall(r"--constant (\S+)=FILE", str(refusal))) - known
                if wanted & set(self.free):
                    known |= wanted
                    continue
                left = [t for t in tries if not t <= known and len(t) < len(self.free)]
                if not left:
                    raise
                known |= left[0]

    def run(self, result, known):
        arrays = [plain(self.value[n]) for n in self.free if n not in known and n in self.value]
        arrays = [a[None] if result["whole"] else a for a in arrays]
        with self.library.open(self.folder / "model.ini", len(arrays[0])) as session:
            return [y[0] if result["whole"] else y for y in session.infer(arrays)]


def difference(is_, expected, case):
    """Why a result is not the expected one; None: it is."""
    if is_.shape != expected.shape:
        return f"the shape is {is_.shape}, expected {expected.shape}"
    if expected.dtype.kind in "iub":
        is_ = is_.astype(expected.dtype)
    if expected.dtype.kind in "iub" and not np.array_equal(is_, expected):
        return f"{int((is_ != expected).sum())} of {is_.size} elements differ"
    if expected.dtype.kind in "iub":
        return None
    name = expected.dtype.name
    rtol = max(case.rtol, SPACING.get(name, 0))
    is_, expected = (v.astype(expected.dtype).astype(np.float64) for v in (is_, expected))
    finite = np.abs(expected[np.isfinite(expected)])
    atol = max(case.atol, SPACING.get(name, 0) * finite.max(initial=0))
    if np.allclose(is_, expected, rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"differs by {np.nanmax(np.abs(is_ - expected)):.3g}, the largest is {np.nanmax(np.abs(expected)):.3g}"


def judge(library, case, model, inputs, outputs):
    """"passed", "failed" or "unsupported", and the reason."""
    with tempfile.TemporaryDirectory() as folder:
        if any(v.dtype == np.float64 and np.isfinite(v).all() and not np.isfinite(plain(v)).all() for v in inputs + outputs):
            return "unsupported", "doubles that f32 cannot hold"
        try:
            trial = Trial(library, pathlib.Path(folder), model, inputs)
            result, known = trial.import_model()
        except Refused as refusal:
            lines = [line.strip() for line in str(refusal).split("\n")]
            return "unsupported", re.sub(r"^.*model\.onnx: ", "", lines[0]) if len(lines) == 1 else "; ".join(lines[1:])
        try:
            results = trial.run(result, known)
        except Refused as refusal:
            return "failed", re.sub(r"/\S*/", "", str(refusal))
        named = [(o.name, y) for o, y in zip([o for o in model.graph.output if o.name], outputs)]
        if len(results) != len(named):
            return "failed", f"{len(results)} outputs, expected {len(named)}"
        reasons = [f"{name}: {why}" for y, (name, expected) in zip(results, named) if (why := difference(y, expected, case))]
        return ("failed", "; ".join(reasons)) if reasons else ("passed", "")


def short(reason):
    """A reason without the numbers and names of its case."""
    return re.sub(r"\s+", " ", reason).replace("|", "\\|")[:150]


def table_of_groups(counts):
    lines = ["| kind | cases | passed | failed | unsupported | passed of the forward ones |", "|---|---|---|---|---|---|"]
    for kind in KINDS:
        rows = {group: counts[kind, group] for group in ("forward", "training", "sequences, maps and optionals", "texts")}
        total = sum(rows.values(), collections.Counter())
        forward = rows["forward"]
        lines.append(f"| {kind} | {total.total()} | {total['passed']} | {total['failed']} | {total['unsupported']} | "
                     f"{forward['passed']} of {forward.total()}, {100 * forward['passed'] / max(forward.total(), 1):.1f} % |")
    return lines


def report(path, counts, operators, reasons):
    others = collections.Counter()
    for (_, group), n in counts.items():
        others[group] += n.total()
    lines = ["# Import of ONNX's backend tests", "", "<!-- Written by `tests/golden/compare_onnx_import.py BUILD --report`. -->", "",
             f"The models of the backend tests of onnx {onnx.__version__}, imported and run. Cases of optimizers ({others['training']}), of",
             f"sequences, maps and optionals ({others['sequences, maps and optionals']}) and of texts ({others['texts']}) are among the",
             "unsupported ones, beside the forward operators on tensors.", "", *table_of_groups(counts), "",
             "| operator | passed | failed | unsupported | reasons |", "|---|---|---|---|---|"]
    for op in sorted(operators):
        n = operators[op]
        why = "; ".join(f"{reason} ({k})" for reason, k in reasons[op].most_common(4))
        lines.append(f"| {op} | {n['passed']} | {n['failed']} | {n['unsupported']} | {why} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--say", action="store_true", help="a line for each case that does not pass")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of NumPy, about the vectors of infinite numbers
    library = Library(arguments.build)
    counts, operators, reasons = (collections.defaultdict(collections.Counter) for _ in range(3))
    for case in collect():
        if not re.search(arguments.only, case.name):
            continue
        model, inputs, outputs = case.load()
        group, op = group_of(case, model, inputs + outputs), operator_of(case, model)
        verdict, reason = ("unsupported", group) if group != "forward" else judge(library, case, model, inputs, outputs)
        counts[case.kind, group][verdict] += 1
        operators[op][verdict] += 1
        if reason:
            reasons[op][short(reason)] += 1
        if arguments.say and verdict != "passed":
            print(f"{verdict}\t{case.kind}\t{op}\t{case.name}\t{reason}", flush=True)
    print("\n".join(table_of_groups(counts)))
    if arguments.report:
        report(arguments.report, counts, operators, reasons)
    return 1 if any(n["failed"] for n in counts.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
