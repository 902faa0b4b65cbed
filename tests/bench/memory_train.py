"""memory_train.py TENON FOLDER [--model resnet50|gpt2] [--device sim|cuda] [--size full|small] [--percent 75,50,35,25] [--jobs 1]: trains two steps without
a limit of memory and under parts of the bytes that the plan takes without one, on simulated devices and on the double of CUDA
(BUILD/tests/fakecuda/lib), and compares checkpoints bit by bit and measured bytes with planned ones. Prints the table of docs/results/memory.md.
FOLDER: for temporary files; --jobs: trainings at once, for which the times are no measure. Full: ResNet-50 at 224 x 224 and batch 64, GPT-2 124M at 1024 tokens and batch 8; ResNet-50 takes a minute a row on the simulated device of two processors, GPT-2 four;
on the double of CUDA, which runs the threads of a kernel one after the other, ResNet-50 takes six and GPT-2 more than an hour."""
import argparse
import concurrent.futures
import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

MIB = 1 << 20
root = pathlib.Path(__file__).resolve().parents[2]


def resnet50(batch, side):
    shape = f"3, {side}, {side}"
    return (f"include = {root}/docs/examples/imagenet_resnet50.ini\n[run]\nname = net\n[data]\nsource = random\nshape = {shape}\nclasses = 1000\n"
            f"samples = {2 * batch}\nbatch = {batch}\n[data.train]\ntransforms =\n[data.valid]\ntransforms =\nsource = random\nsamples = {batch}\n"
            f"[model]\ninputs = image: f32[{shape}]\n", f"ResNet-50, {side} x {side}, batch {batch}")


def gpt2(batch, tokens):
    return (f"include = {root}/docs/examples/gpt2_124m.ini\n[run]\nname = net\n[data]\nbatch = {batch}\ntokens = {tokens}\nsamples = {2 * batch}\n"
            f"[model]\ninputs = tokens: i32[{tokens}]\ntargets = next: i32[{tokens}]\n", f"GPT-2 124M, {tokens} tokens, batch {batch}")


CASES = {
    ("resnet50", "full"): lambda device: resnet50(64, 224),
    ("gpt2", "full"): lambda device: gpt2(8, 1024),
    ("resnet50", "small"): lambda device: resnet50(16, 224) if device == "sim" else resnet50(16, 96),
    ("gpt2", "small"): lambda device: gpt2(1, 128) if device == "sim" else gpt2(8, 256),
}


def options(tenon, device):
    common = ["run.max_steps=2", "run.deterministic=yes", "backend.autotune=no", "optimizer.place=auto"]
    if device == "sim":
        return [*common, "backend.use=sim", "backend.sim.link=1e9", f"backend.sim.threads={os.cpu_count()}"]
    doubles = tenon.parents[1] / "tests/fakecuda/lib"
    return [*common, "backend.use=cuda", f"backend.cuda.libraries={doubles}", "backend.cuda.link=2.5e10"]


class Runs:
    def __init__(self, tenon, folder, ini, settings):
        self.tenon, self.folder, self.ini = tenon, folder, ini
        self.settings = [word for setting in settings for word in ("--set", setting)]

    def call(self, command, *more):
        words = [self.tenon, command, self.ini, "--json", *self.settings, *more]
        run = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        return (json.loads(run.stdout), "") if run.returncode == 0 else (None, run.stderr)

    def train(self, output, *more):
        shutil.rmtree(output, ignore_errors=True)  # of a measurement that was stopped: the run would get another name beside it
        begin = time.monotonic()
        found, error = self.call("train", "--output", str(output), *more)
        if found is None:
            sys.exit(error)
        return found, time.monotonic() - begin


def same_bits(a, b):
    files = ("model.safetensors", "optimizer.safetensors")
    return all(filecmp.cmp(a / "net/checkpoints/last" / f, b / "net/checkpoints/last" / f, shallow=False) for f in files)


class Row:
    """A training under a part of the bytes `peak`; it begins when the row is made, if it can be planned."""

    def __init__(self, runs, percent, peak, pool):
        self.limit = peak * percent // 100
        self.cells = [f"{percent} %", f"{self.limit / MIB:.0f}"]
        self.folder = runs.folder / f"limit{percent}"
        setting = ["--set", f"run.memory_limit={self.limit}"]
        self.plan, self.error = runs.call("plan", *setting)
        self.training = pool.submit(runs.train, self.folder, *setting) if self.plan else None


def print_row(row, free, seconds):
    cells, plan = row.cells, row.plan
    if plan is None:
        needed = re.search(r"at least ([0-9.]+) MiB", row.error)
        print("| " + " | ".join([*cells, f"needs {needed.group(1)} MiB" if needed else row.error] + ["-"] * 6) + " |", flush=True)
        return True
    found, took = row.training.result()
    same = same_bits(free, row.folder)
    shutil.rmtree(row.folder)
    planned, measured = found["planned_peak_bytes"], found["measured_peak_bytes"]
    cells += ["host" if plan["placed_bytes"] else "device", f"{planned / MIB:.1f}", f"{measured / MIB:.1f}", f"{plan['recomputed_flops'] / 1e9:.1f}",
              f"{plan['offloaded_bytes'] / MIB:.0f}",
              "same" if same else "DIFFERENT", f"{took / seconds:.2f}"]
    print("| " + " | ".join(cells) + " |", flush=True)
    return same and planned == measured and measured <= row.limit


def measure(tenon, folder, model, device, size, percents, pool):
    ini, title = CASES[model, size](device)
    (folder / "net.ini").write_text(ini)
    runs = Runs(tenon, folder, folder / "net.ini", options(tenon, device))
    plan, error = runs.call("plan")
    if plan is None:
        sys.exit(error)
    free = folder / "free"
    unlimited = pool.submit(runs.train, free)
    rows = [Row(runs, percent, plan["peak_bytes"], pool) for percent in percents]
    found, seconds = unlimited.result()
    print(f"\n### {title}, {'simulated device' if device == 'sim' else 'double of CUDA'}\n\n{plan['peak_bytes'] / MIB:.1f} MiB without a limit, "
          f"measured {found['measured_peak_bytes'] / MIB:.1f}; two steps and the checkpoint take {seconds:.0f} s.\n")
    print("| limit | MiB | optimizer | planned MiB | measured MiB | computed again, GFLOP | MiB on the host | checkpoint | seconds |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    good = [print_row(row, free, seconds) for row in rows]
    shutil.rmtree(free)
    return all(good)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("tenon", type=pathlib.Path)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--model", choices=["resnet50", "gpt2"])
parser.add_argument("--device", choices=["sim", "cuda"])
parser.add_argument("--size", choices=["full", "small"], default="full")
parser.add_argument("--percent", default="75,50,35,25")
parser.add_argument("--jobs", type=int, default=1)
args = parser.parse_args()
pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
done = True
for name in [args.model] if args.model else ["resnet50", "gpt2"]:
    for where in [args.device] if args.device else ["sim", "cuda"]:
        done &= measure(args.tenon.resolve(), args.folder.resolve(), name, where, args.size, [int(p) for p in args.percent.split(",")], pool)
sys.exit(0 if done else 1)
