#!/usr/bin/env python3
"""Measures models of the zoo in Tenon, PyTorch, onnxruntime and OpenVINO, in turn on one machine, and writes docs/results/zoo_times.md.

  zoo_times.py BUILD --rows FILE [--threads N] [--rounds N] [--variants LIST] [--works LIST]
               [--report PAGE] [NAME...]

The works are inference of one sample and of 16, and a training step of 16 (--works infer:1,infer:16,train:16): forward, a loss, backward,
SGD with momentum. All are in f32.
The models and inputs are those of tests/golden/compare_zoo.py, so the largest ones have fewer and narrower layers. A round is a second of
steps of each framework, one after the other, and the median of the rounds counts: what else the machine does meets all of them. Steps of
more than four seconds have one round. PyTorch has images with channels innermost (channels_last), and all else in its own order (eager).
FILE gets a line of JSON for each model and work, with the processor and the commit; a later line of the same processor takes the place of
an earlier one. PAGE has a table for each processor in FILE, and the text there below `<!-- by hand -->` is kept. This is a measurement, not
a test.
"""
import argparse
import contextlib
import datetime
import functools
import gc
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/golden"))
WORKS = (("infer", 1), ("infer", 16), ("train", 16))
ROUND_S, MOST_STEPS, LONG_STEP_S = 1.0, 50, 4.0
BY_HAND = "<!-- by hand -->"
OPTIMIZER = "\n[optimizer]\ntype = sgd\nlr = 1e-4\nmomentum = 0.9\n"


# ---- the peers: each is a function that computes a step ----

def whole(model, row, names):
    """The model as a function of tensors alone, for an export."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            return tuple(row.run(self.model, dict(zip(names, inputs))).values())
    return Module()


def exported(module, inputs):
    import torch
    file = io.BytesIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # the exporter prints graphs that it refuses
        torch.onnx.export(module, tuple(inputs.values()), file, dynamo=False, input_names=list(inputs))
    return file.getvalue()


def in_onnxruntime(file, inputs, threads):
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    arrays = {name: value.numpy() for name, value in inputs.items()}
    return lambda: session.run(None, arrays)


def in_openvino(file, inputs, threads):
    import openvino
    core = openvino.Core()
    # The table is of f32: OpenVINO would multiply in bf16 where the processor can.
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(file), "CPU", settings).create_infer_request()
    arrays = {name: value.numpy() for name, value in inputs.items()}
    return lambda: request.infer(arrays)


def in_torch(module, inputs, mode, variant):
    import torch
    values = [v.contiguous(memory_format=torch.channels_last) if variant == "channels_last" and v.dim() == 4 else v for v in inputs.values()]
    module = module.to(memory_format=torch.channels_last if variant == "channels_last" else torch.contiguous_format)
    forward = torch.compile(module) if variant == "compile" else module
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-4, momentum=0.9) if mode == "train" else None

    def infer():
        with torch.inference_mode():
            return forward(*values)

    def train():
        optimizer.zero_grad()
        forward(*values)[0].square().mean().backward()
        optimizer.step()
    return train if mode == "train" else infer


def peers(row, mode, batch, options):
    """Pairs of a name and a function that makes the peer's step: a peer that cannot run the model fails there."""
    import torch
    torch.manual_seed(0)
    model = row.build()
    inputs = {name: value[:1].repeat(batch, *[1] * (value.dim() - 1)) for name, value in row.inputs().items()}
    module = whole(model, row, list(inputs)).train(mode == "train")  # whole: an export restores the mode of the outer module in all parts
    images = any(value.dim() == 4 for value in inputs.values())
    file = functools.cache(lambda: exported(module, inputs))
    for variant in options.variants:
        if variant in ("eager", "channels_last", "compile"):
            if variant != ("eager" if images else "channels_last"):
                yield variant, lambda v=variant: in_torch(module, inputs, mode, v)
        elif mode == "infer":
            make = {"onnxruntime": in_onnxruntime, "openvino": in_openvino}[variant]
            yield variant, lambda m=make: m(file(), inputs, options.threads)


def seconds_of(step, n):
    start = time.perf_counter()
    for _ in range(n):
        step()
    return (time.perf_counter() - start) / n


def built_peers(row, mode, batch, options):
    """The steps of the peers, each after its first one, and the seconds of one."""
    built = {}
    for name, make in peers(row, mode, batch, options):
        try:
            step = make()
            first = seconds_of(step, 1)
            built[name] = step, first if first > LONG_STEP_S else seconds_of(step, 1)
        except Exception as error:  # such as an op that an exporter refuses
            print(f"  {name}: {(str(error) or type(error).__name__).splitlines()[0][:150]}", file=sys.stderr)
    return built


# ---- Tenon ----

def written(tenon, name, row, folder):
    """The model, in the form that is compared, with the optimizer of the peers in place of its recipe."""
    file = folder / "model.ini"
    subprocess.run([tenon, "init", f"zoo:{name}", "--output", str(file)], check=True, capture_output=True)
    text = file.read_text()
    for pattern, new in row.changes:
        text = re.sub(pattern, new, text)
    sections = re.split(r"(?m)^(?=\[)", text)
    kept = [s for s in sections if not s.startswith(("[optimizer", "[group", "[schedule"))]
    file.write_text("".join(kept) + OPTIMIZER)
    return file


def tenon_seconds(tenon, ini, mode, batch, steps, threads):
    done = subprocess.run([tenon, "bench", str(ini), "--mode", mode, "--batch", str(batch), "--steps", str(steps), "--rounds", "1", "--warmup", "1",
                           "--threads", str(threads), "--json", "--quiet", "--set", "data.source=random"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)["ms"][1] / 1e3


# ---- a work of a model ----

def steps_of_a_round(seconds):
    return max(1, min(MOST_STEPS, round(ROUND_S / max(seconds, 1e-9))))


def measure(tenon, ini, row, mode, batch, options):
    """Milliseconds by framework."""
    built = built_peers(row, mode, batch, options)
    first = tenon_seconds(tenon, ini, mode, batch, 1, options.threads)
    rounds = options.rounds if first < LONG_STEP_S else 1
    times = {name: [] for name in ("tenon", *built)}
    for _ in range(rounds):
        times["tenon"].append(tenon_seconds(tenon, ini, mode, batch, steps_of_a_round(first), options.threads))
        for name, (step, seconds) in built.items():
            times[name].append(seconds_of(step, steps_of_a_round(seconds)))
    return {name: round(1e3 * statistics.median(values), 3) for name, values in times.items()}


def processor():
    name = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{name.group(1) if name else os.uname().machine}, {os.cpu_count()} processors"


def commit():
    return subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()


def measure_model(tenon, name, options):
    import compare_zoo
    row = compare_zoo.ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        ini = written(tenon, name, row, pathlib.Path(folder))
        for mode, batch in options.works:
            try:
                ms = measure(tenon, ini, row, mode, batch, options)
            except SystemExit as error:
                print(f"{name}, {mode} {batch}: {error}", file=sys.stderr, flush=True)
                continue
            line = {"model": name, "mode": mode, "batch": batch, "reduced": bool(row.changes), "processor": processor(), "commit": commit(), "ms": ms}
            print(json.dumps(line), flush=True)
            with open(options.rows, "a") as rows:
                rows.write(json.dumps(line) + "\n")
            gc.collect()


# ---- the page ----

def ratio(ms):
    others = [value for name, value in ms.items() if name != "tenon"]
    return ms["tenon"] / min(others) if others else None


def table(lines, columns):
    text = ["| model | work and batch | Tenon | " + " | ".join(columns) + " | ratio |", "|---" * (len(columns) + 4) + "|"]
    for line in lines:
        ms, r = line["ms"], ratio(line["ms"])
        cells = [f"{ms[c]:.2f}" if c in ms else "" for c in columns]
        text.append(f"| {line['model']}{'*' if line['reduced'] else ''} | {line['mode']} {line['batch']} | {ms['tenon']:.2f} | {' | '.join(cells)} | "
                    f"{'' if r is None else f'{r:.2f}'} |")
    return text


def versions(tenon):
    import onnxruntime
    import openvino
    import torch
    version = subprocess.run([tenon, "--version"], capture_output=True, text=True).stdout.split()[1]
    return (f"{datetime.date.today()}, Tenon {version}, PyTorch {torch.__version__}, onnxruntime {onnxruntime.__version__}, "
            f"OpenVINO {openvino.__version__.split('-')[0]}.")


def latest_lines(rows):
    """The last line of each model and work on each processor, in the order of the table."""
    latest = {}
    for text in pathlib.Path(rows).read_text().splitlines():
        line = json.loads(text)
        latest[line["processor"], line["model"], line["mode"], line["batch"]] = line
    order = {work: i for i, work in enumerate(WORKS)}
    return sorted(latest.values(), key=lambda l: (l["processor"], l["model"], order[l["mode"], l["batch"]]))


def section(name, lines, columns):
    ratios = [r for r in (ratio(l["ms"]) for l in lines) if r is not None]
    return [f"## {name}", "", f"Commits {', '.join(sorted({l['commit'] for l in lines}))}. {len({l['model'] for l in lines})} models, {len(ratios)} works: "
            f"the median of the ratios is {statistics.median(ratios):.2f}, and {sum(r <= 1.1 for r in ratios)} are at most 1.10.", "", *table(lines, columns), ""]


def write_page(tenon, options):
    lines = latest_lines(options.rows)
    columns = [c for c in ("eager", "channels_last", "compile", "onnxruntime", "openvino") if any(c in l["ms"] for l in lines)]
    page = pathlib.Path(options.report)
    kept = page.read_text().partition(BY_HAND)[2] if page.exists() else "\n"
    text = ["# Times of the zoo", "", "<!-- Written by `tests/bench/zoo_times.py --report`, but for the text below `by hand`. -->", "", versions(tenon),
            f"Milliseconds of inference, and of a training step with SGD and momentum, in f32 with {options.threads} threads: medians of rounds of one",
            "second, in turn. `ratio` is that of Tenon to the best peer; below 1 Tenon is faster. A star: in the changed form of [zoo.md](zoo.md).", ""]
    for name in sorted({line["processor"] for line in lines}):
        text += section(name, [line for line in lines if line["processor"] == name], columns)
    page.write_text("\n".join([*text, BY_HAND]) + kept)


def works_of(text):
    return tuple((mode, int(batch)) for mode, batch in (work.split(":") for work in text.split(",")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variants", type=lambda text: text.split(","), default=["eager", "channels_last", "onnxruntime", "openvino"])
    parser.add_argument("--works", type=works_of, default=WORKS)
    parser.add_argument("--report")
    options = parser.parse_intermixed_args()
    tenon = str(pathlib.Path(options.build).resolve() / "tools/tenon")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    warnings.simplefilter("ignore")
    if options.names:
        import torch
        torch.set_num_threads(options.threads)
    for name in options.names:
        measure_model(tenon, name, options)
    if options.report:
        write_page(tenon, options)


if __name__ == "__main__":
    main()
