#!/usr/bin/env python3
"""Prints docs/results/recipes.md: for each optimizer the golden cases, trainings in bf16 and fp16 with skipped updates, the launches of an
update and ranks with a divided state.

  recipes.py TENON

TENON is the program. Launches are those of tests/golden/optimizers/net.ini, a vector of 8 numbers and a matrix of 2 x 4; half.ini
beside it, a network of two layers, is trained. Needs no package.
"""
import json, math, os, struct, subprocess, sys, tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TENON = os.path.abspath(sys.argv[1])
GOLDEN = json.load(open(os.path.join(ROOT, "tests/golden/optimizers/golden.json")))
BACKENDS = ("cpu", "onednn")
TWO = ["backend.use=sim", "backend.sim.devices=2", "distributed.devices=2"]
UPDATES = 10


def write_data():
    for name, first in (("x", 0), ("y", 8)):
        rows = [((t * 37 + i * 11 + t * i * 5) % 251) / 64 - 2 for t in range(UPDATES) for i in range(first, first + 8)]
        open(name + ".bin", "wb").write(struct.pack(f"<{len(rows)}f", *rows))
    for name in ("net.ini", "half.ini"):
        open(name, "w").write(open(os.path.join(ROOT, "tests/golden/optimizers", name)).read())


def run(*words):
    done = subprocess.run([TENON, *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def options(sets):
    return [word for one in sets for word in ("--set", one)]


runs = 0


def train(*sets):
    """The last weights and the skipped updates; None: the training failed."""
    global runs
    runs += 1
    if run("train", "half.ini", "--quiet", *options([f"run.name={runs}", *sets])) is None:
        return None
    data = open(f"runs/{runs}/checkpoints/last/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    weights = []
    for name in ("fc.weight", "fc.bias", "out.weight", "out.bias"):
        at, end = header[name]["data_offsets"]
        weights += struct.unpack(f"<{(end - at) // 4}f", data[8 + n + at:8 + n + end])
    lines = [json.loads(line) for line in open(f"runs/{runs}/metrics.jsonl")]
    skipped = sum(line.get("skipped", 0) for line in lines if line["event"] == "epoch")
    return weights, skipped


def fine(result):
    return result is not None and all(map(math.isfinite, result[0]))


def launches(*sets):
    return json.loads(run("plan", "net.ini", "--json", *options(sets)))["launches"]


def policies(kind, backend):
    use = f"backend.use={backend}"
    low = train(kind, use, "precision.policy=bf16")
    half = train(kind, use, "precision.policy=fp16", "precision.init_scale=1e9")
    return f"{'yes' if fine(low) else 'no'}, {half[1]:.0f} skipped" if fine(half) else "no"


def ranks(kind):
    one, whole = train(kind), train(kind, *TWO)
    divided = train(kind, *TWO, "distributed.shard=optimizer")
    return " | ".join("no" if not fine(r) else f"{max(abs(a - b) for a, b in zip(one[0], r[0])):.0e}" for r in (whole, divided))


def row(name):
    kind = f"optimizer.type={name}"
    cases = sum(key.split()[0] == name for key in GOLDEN)
    # the launch of numbers alone, such as the count of updates, is that of nadam's momenta, too
    of_update = max(1, launches(kind) - base + 1)
    policy = " | ".join(policies(kind, backend) for backend in BACKENDS)
    return f"| `{name}` | {cases} | {policy} | {of_update} | {ranks(kind)} |"


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    write_data()
    base = launches("optimizer.type=adamw")
    names = sorted({key.split()[0] for key in GOLDEN})
    print(f"""# Coverage of optimizers

{len(names)} optimizers; written by `tests/bench/recipes.py`.

| column | |
|---|---|
| goldens | cases of ten updates equal to PyTorch, timm or schedulefree within 1e-6 |
| cpu, onednn | *yes*: a training in bf16 and one in fp16 have finite weights; the updates of 20 that loss scaling skips in fp16, whose first scale is 1e9 |
| launches | of an update of two parameters: one where it is elementwise |
| two devices, divided | the greatest difference of a weight to one device after 20 updates in f32, without and with a divided state; *no*: refused |

| optimizer | goldens | cpu | onednn | launches | two devices | divided |
|---|---|---|---|---|---|---|""")
    for name in names:
        print(row(name), flush=True)
