#!/usr/bin/env python3
"""Compares adapters of low rank ([adapt] type = lora and dora) with PEFT's on GPT-2.

    python3 tests/golden/compare_lora.py TENON [--report docs/results/lora.md] [--layers 12]

GPT-2 124M of transformers' GPT2Config begins with random weights and is saved as model.safetensors with Hugging Face's
names. Tenon makes a run with adapters of all projections of attention; PEFT opens its checkpoint, so that both begin with the
same adapters, and trains them by AdamW on the same windows of tokens. Ends with 1 where a loss, or a logit after the
steps, differs by more than 1e-5 of its size.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import peft
import torch
import transformers
from safetensors.torch import load_file

STEPS, TOKENS, BATCH, TOLERANCE = 10, 64, 2, 1e-5
RATE, DECAY, RANK, ALPHA = 1e-3, 0.01, 8, 16
MATCH = "h.*.attn.c_attn, h.*.attn.c_proj"
TYPES = ("lora", "dora")


def write_base(folder, layers):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=layers, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(folder / "base")
    return model


def write_tokens(folder):
    draw = np.random.default_rng(0)
    ids = draw.integers(0, 50257, STEPS * BATCH * TOKENS + 1, dtype=np.uint16)
    (folder / "tokens").mkdir()
    for name in ("train.bin", "val.bin"):
        ids.tofile(folder / "tokens" / name)
    return torch.from_numpy(ids.astype(np.int64))


def write_ini(folder, layers):
    zoo = pathlib.Path(__file__).resolve().parents[2] / "docs" / "zoo"
    text = (zoo / "gpt2.ini").read_text()
    text = text.replace("i32[1024]", f"i32[{TOKENS}]").replace("* 12", f"* {layers}").replace("parts/", f"{zoo}/parts/")
    text = text.replace("[weights]\n", "[weights]\nfile = base/model.safetensors\nprefix = transformer.\n")
    (folder / "full.ini").write_text(text)
    for kind in TYPES:
        adapt = f"\n[adapt]\ntype = {kind}\nrank = {RANK}\nalpha = {ALPHA}\nmatch = {MATCH}\n"
        (folder / f"{kind}.ini").write_text(text + adapt)


SETTINGS = {"run.max_steps": STEPS, "run.epochs": 1, "run.limit_valid": 1, "run.observers": "jsonl", "run.output": "runs",
            "data.folder": "tokens", "data.tokens": TOKENS, "data.batch": BATCH, "data.shuffle": "no",
            "optimizer.type": "adamw", "optimizer.lr": RATE, "optimizer.weight_decay": DECAY, "optimizer.clip": 0,
            "schedule.type": "constant", "schedule.warmup": 0, "precision.policy": "fp32"}


class Tenon:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, *words, **changes):
        sets = {**SETTINGS, **{k.replace("__", "."): v for k, v in changes.items()}}
        command = [self.program, *words] + [f"--set={k}={v}" for k, v in sets.items()]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def losses(self, run):
        lines = [json.loads(line) for line in open(self.folder / "runs" / run / "metrics.jsonl")]
        return [line["train"]["loss"] for line in lines if line.get("event") == "step"]

    def logits(self, ini, weights, windows):
        np.save(self.folder / "x.npy", windows.numpy().astype(np.int32))
        out = self.folder / "out.safetensors"
        out.unlink(missing_ok=True)
        subprocess.run([self.program, "predict", ini, "--input", "tokens=x.npy", "--weights", weights, "--output", str(out), "--quiet"], cwd=self.folder,
                       check=True, capture_output=True)
        return next(iter(load_file(out).values())).float()


def train_peer(model, ids):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=DECAY)
    losses = []
    model.train()
    for step in range(STEPS):
        at = [TOKENS * (step * BATCH + i) for i in range(BATCH)]
        x = torch.stack([ids[a:a + TOKENS] for a in at])
        y = torch.stack([ids[a + 1:a + TOKENS + 1] for a in at])
        loss = torch.nn.functional.cross_entropy(model(input_ids=x).logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, sum(p.numel() for p in trained)


def distance(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


def compare(tenon, folder, kind, base, ids):
    ini, merged = f"{kind}.ini", f"merged_{kind}.safetensors"
    tenon("train", ini, run__name="start_" + kind, run__max_steps=0, run__epochs=0)
    tenon("train", ini, run__name=kind, weights__file="runs/start_" + kind)
    peer = peft.PeftModel.from_pretrained(base, folder / f"runs/start_{kind}/checkpoints/last", is_trainable=True)
    losses, trained = train_peer(peer, ids)
    x = ids[:2 * TOKENS].reshape(2, TOKENS)
    peer.eval()
    with torch.no_grad():
        logits = peer(input_ids=x).logits
    last = f"runs/{kind}/checkpoints/last"
    subprocess.run([tenon.program, "checkpoint", "merge", last, merged], cwd=folder, check=True, capture_output=True)
    peer.unload()  # the base, for the next adapters
    plan = json.loads(tenon("plan", ini, "--json"))
    return {"trained": (plan["parameters"], trained), "plan": plan, "losses": list(zip(tenon.losses(kind), losses)),
            "adapters": distance(tenon.logits(ini, last, x), logits),
            "merged": distance(tenon.logits("full.ini", merged, x), logits),
            "checkpoint": (folder / last / "model.safetensors").stat().st_size}


PAGE = """# Adapters of low rank

<!-- Written by `tests/golden/compare_lora.py TENON --report`. -->

GPT-2 124M ([docs/zoo/gpt2.ini](../zoo/gpt2.ini)) with random weights and `[adapt] rank = {rank}, alpha = {alpha}, match = {match}`, beside
PEFT {peft} with torch {torch}: AdamW, lr {rate}, weight decay {decay}, batch {batch} of {tokens} tokens. PEFT begins with the adapters of Tenon's
checkpoint, which it opens itself; those of `type = dora` with `use_dora=True`.

| | lora | dora | all parameters |
|---|---|---|---|
| parameters trained | {lora[trained]:,} | {dora[trained]:,} | {full[parameters]:,} |
| parameters that PEFT trains | {lora[theirs]:,} | {dora[theirs]:,} | |
| memory of the plan, MiB | {lora[mib]:.1f} | {dora[mib]:.1f} | {full_mib:.1f} |
| parameters in a checkpoint's model.safetensors, MiB | {lora[file_mib]:.1f} | {dora[file_mib]:.1f} | {full_file_mib:.1f} |
| greatest difference of a logit after the steps from PEFT's, as a part of the largest: with the adapters | {lora[adapters]:.1e} | {dora[adapters]:.1e} | |
| with the file of `tenon checkpoint merge` | {lora[merged]:.1e} | {dora[merged]:.1e} | |

{steps}
"""

STEPS_OF = """## type = {kind}

| step | loss, Tenon | loss, PEFT | difference |
|---|---|---|---|
{steps}
"""


def facts(found):
    return dict(found, trained=found["trained"][0], theirs=found["trained"][1], mib=found["plan"]["peak_bytes"] / 2**20,
                file_mib=found["checkpoint"] / 2**20)


def page(found, full):
    tables = []
    for kind in TYPES:
        rows = [f"| {i + 1} | {a:.6f} | {b:.6f} | {abs(a - b) / b:.1e} |" for i, (a, b) in enumerate(found[kind]["losses"])]
        tables.append(STEPS_OF.format(kind=kind, steps="\n".join(rows)))
    return PAGE.format(rank=RANK, alpha=ALPHA, match=MATCH, rate=RATE, decay=DECAY, batch=BATCH, tokens=TOKENS, peft=peft.__version__,
                       torch=torch.__version__, lora=facts(found["lora"]), dora=facts(found["dora"]), full=full,
                       full_mib=full["peak_bytes"] / 2**20, full_file_mib=full["parameters"] / 2**18, steps="\n".join(tables).rstrip())


def check(kind, found):
    wrong = [abs(a - b) / b for a, b in found["losses"] if abs(a - b) / b > TOLERANCE]
    if len(found["losses"]) != STEPS or found["trained"][0] != found["trained"][1] or wrong:
        sys.exit(f"{kind}: losses or numbers of parameters differ")
    if max(found["adapters"], found["merged"]) > TOLERANCE:
        sys.exit(f"{kind}: logits differ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--report")
    parser.add_argument("--layers", type=int, default=12)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tenon = Tenon(str(pathlib.Path(given.tenon).resolve()), folder)
        base, ids = write_base(folder, given.layers), write_tokens(folder)
        write_ini(folder, given.layers)
        found = {kind: compare(tenon, folder, kind, base, ids) for kind in TYPES}
        full = json.loads(tenon("plan", "full.ini", "--json"))
    text = page(found, full)
    print(text)
    if given.report:
        pathlib.Path(given.report).write_text(text)
    for kind in TYPES:
        check(kind, found[kind])


if __name__ == "__main__":
    main()
