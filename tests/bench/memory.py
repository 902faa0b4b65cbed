"""memory.py TENON FOLDER [PART...]: plans of ResNet-50 (224 x 224, batch 64) and GPT-2 124M (1024 tokens, batch 8) under parts of the memory
that they need without a limit, for the described devices in tests/devices; plans of GPT-2 1.5B for 12 GB; and
PyTorch's checkpointing (memory_peer.py); trainings under the same parts (memory_train.py), which take a minute to more than an hour each.
Prints the tables of docs/results/memory.md. FOLDER: for temporary files. PART: limits, large, stream, peer, train; all but train without one.
stream: predictions of a decoder of 6.7 billion parameters, whose weights are streamed."""
import json
import pathlib
import re
import subprocess
import sys

tenon, folder = sys.argv[1], pathlib.Path(sys.argv[2])
parts = sys.argv[3:] or ["limits", "large", "stream", "peer"]
root = pathlib.Path(__file__).resolve().parents[2]
MIB = 1 << 20
MODELS = {
    "ResNet-50": ("imagenet_resnet50.ini", "source = random\nshape = 3, 224, 224\nclasses = 1000\nsamples = 128\nbatch = 64\n"
                  "[data.train]\ntransforms =\n[data.valid]\ntransforms =\nsource = random\n"),
    "GPT-2 124M": ("gpt2_124m.ini", "batch = 8\n"),
}
DEVICES = {"H200": "made_up_h200.json", "desktop, 12 GB": "made_up_desktop.json"}
LINKS = {"H200": 5.1e10, "desktop, 12 GB": 2.5e10}  # PCI Express 5 and 4, 16 lanes, 0.8 of the wires' rate
HOSTS = {"H200": 3.0e11, "desktop, 12 GB": 6.0e10}  # twelve channels of DDR5-4800 and two of DDR5-5600, 0.65 of the wires' rate


def describe(device):
    json_text = json.loads((root / "tests/devices" / DEVICES[device]).read_text())
    json_text["link_bytes_per_s"] = LINKS[device]
    json_text["host_bytes_per_s"] = HOSTS[device]
    path = folder / DEVICES[device]
    path.write_text(json.dumps(json_text))
    return path


def plan(model, device, *more):
    example, data = MODELS[model]
    ini = folder / "memory.ini"
    ini.write_text(f"include = {root}/docs/examples/{example}\n[data]\n{data}")
    return plan_file(ini, device, *more)


def plan_file(ini, device, *more):
    command = [tenon, "plan", str(ini), "--device", str(describe(device)), "--json", *more]
    run = subprocess.run(command, capture_output=True, text=True)
    return (json.loads(run.stdout), "") if run.returncode == 0 else (None, run.stderr)


def limited(model, device, free, percent, offload, place):
    limit = free["peak_bytes"] * percent // 100
    found, error = plan(model, device, "--set", f"run.memory_limit={limit}", "--set", f"run.offload={offload}",
                        "--set", f"optimizer.place={place}")
    if found is None:
        needed = re.search(r"at least ([0-9.]+) MiB", error)
        return None, needed.group(1) if needed else "?"
    return found, ""


def row(model, device, free, percent):
    cells = [f"{percent} %", f"{free['peak_bytes'] * percent // 100 / MIB:.0f}"]
    for offload, place in (("no", "device"), ("auto", "device"), ("auto", "auto")):
        found, needed = limited(model, device, free, percent, offload, place)
        cells.append(f"needs {needed} MiB" if found is None else f"{found['offload']['step_ms'] / free['cost_ms']:.3f}")
    if found is None:
        cells += ["-"] * 5
    else:
        o = found["offload"]
        hidden = 100 * (1 - o["exposed_ms"] / o["copy_ms"]) if o["copy_ms"] > 0 else 100
        cells += [f"{o['step_ms']:.2f}", f"{found['recomputed_ms']:.2f}", f"{found['offloaded_bytes'] / MIB:.0f}",
                  f"{o['copy_ms']:.1f}, {hidden:.0f} %" if o["copy_ms"] > 0 else "-",
                  f"{o['host_ms']:.0f}, {o['host_exposed_ms']:.0f}" if o["host_ms"] > 0 else "-"]
    print("| " + " | ".join(cells) + " |", flush=True)


GPT2_XL = {"gpt(768, heads=12, depth=12)": "gpt(1600, heads=25, depth=48)"}
GPT_7B = {"gpt(768, heads=12, depth=12)": "gpt(4096, heads=32, depth=32)"}  # the shape of GPT-3 6.7B


def write_gpt(sizes):
    text = (root / "docs/examples/gpt2_124m.ini").read_text()
    for old, new in sizes.items():
        assert old in text
        text = text.replace(old, new)
    ini = folder / "large.ini"
    ini.write_text(text)
    return ini


def large(device, limit, *more):
    return plan_file(write_gpt(GPT2_XL), device, "--set", f"run.memory_limit={limit}", "--set", "optimizer.place=auto", *more)


def large_row(device, limit, policy, clip):
    found, error = large(device, limit, "--set", f"precision.policy={policy}", "--set", f"optimizer.clip={clip}")
    if found is None:
        needed = re.search(r"at least ([0-9.]+) MiB.*?\((.*)\)", error, re.S)
        print(f"| {policy}, {clip} | needs {needed.group(1)} MiB | {needed.group(2).split(';')[0]} |" if needed else error, flush=True)
        return
    o = found["offload"]
    print(f"| {policy}, {clip} | {found['peak_bytes'] / MIB:.0f} | {found['state_bytes'] / MIB:.0f} | {found['arena_bytes'] / MIB:.0f} | "
          f"{found['placed_bytes'] / MIB:.0f} | {(found['offloaded_bytes'] - found['placed_bytes']) / MIB:.0f} | {o['step_ms']:.0f} | "
          f"{found['recomputed_ms']:.0f} | {o['host_ms']:.0f}, {o['host_exposed_ms']:.0f} | {o['copy_ms']:.0f}, {o['exposed_ms']:.0f} |", flush=True)


def stream_row(device, limit, policy, batch):
    found, error = plan_file(write_gpt(GPT_7B), device, "--mode", "infer", "--batch", str(batch), "--set", f"run.memory_limit={limit}",
                             "--set", f"precision.policy={policy}")
    if found is None:
        sys.exit(error)
    o, s = found["offload"], found["offload"]["streamed"]
    hidden = f"{100 * (1 - s['exposed_ms'] / s['copy_ms']):.0f} %" if s["copy_ms"] > 0 else "-"
    print(f"| {device} | {limit // MIB} | {policy} | {batch} | {found['peak_bytes'] / MIB:.0f} | {found['state_bytes'] / MIB:.0f} | "
          f"{s['bytes'] / MIB:.0f} in {s['copies']} | {s['copy_ms']:.0f}, {hidden} | {o['step_ms']:.0f} | {o['unlimited_ms']:.0f} | "
          f"{o['step_ms'] / o['unlimited_ms']:.2f} |", flush=True)


if "stream" in parts:
    print("### Predictions of a decoder of 6.7 billion parameters, 1024 tokens a sample\n\n| device | limit, MiB | policy | batch | MiB of the device | "
          "weights there | streamed MiB, copies | copies ms, hidden | run ms | without a limit | times |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for device, limit in (("desktop, 12 GB", 11500 * MIB), ("H200", 8192 * MIB)):
        for policy in ("fp32", "bf16"):
            for batch in (1, 2, 4):
                stream_row(device, limit, policy, batch)
if "large" in parts:
    print("### GPT-2 1.5B, batch 1, desktop, 12 GB\n\n| policy, `clip` | MiB of the device | state | arena | optimizer on the host | other values there | "
          "step ms | computed again | host ms, exposed | copies ms, exposed |\n|---|---|---|---|---|---|---|---|---|---|")
    for policy in ("fp32", "bf16"):
        for clip in (1, 0):
            large_row("desktop, 12 GB", 11500 * MIB, policy, clip)

for model in MODELS if "limits" in parts else ():
    for device in DEVICES:
        free, error = plan(model, device)
        if free is None:
            sys.exit(error)
        print(f"\n### {model}, {device}\n\n{free['peak_bytes'] / MIB:.0f} MiB and {free['cost_ms']:.2f} ms a step without a limit; "
              f"state {free['state_bytes'] / MIB:.0f} MiB.\n")
        print("| limit | MiB | `offload = no` | `auto` | `place = auto` | step ms | computed again, ms | MiB on the host | copies ms, hidden | host ms, exposed |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for percent in (75, 50, 35, 25):
            row(model, device, free, percent)
if "train" in parts:
    subprocess.run([sys.executable, str(root / "tests/bench/memory_train.py"), tenon, str(folder)], check=True)
if "peer" not in parts:
    sys.exit()
print("\n### PyTorch's checkpointing\n\n| model | kept, MiB | of none | step, of none |\n|---|---|---|---|")
for model in ("resnet50", "gpt2"):
    base = None
    for way in ("none", "blocks"):
        out = subprocess.run([sys.executable, str(root / "tests/bench/memory_peer.py"), model, way], capture_output=True, text=True)
        if out.returncode != 0:
            sys.exit(out.stderr)
        got = json.loads(out.stdout.strip().splitlines()[-1])
        base = base or got
        print(f"| {model}, {way} | {got['kept_bytes'] / MIB:.0f} | {100 * got['kept_bytes'] / base['kept_bytes']:.0f} % | "
              f"{got['step_s'] / base['step_s']:.3f} |", flush=True)
