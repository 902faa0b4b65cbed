#!/usr/bin/env python3
"""Measures PyTorch on models/lstm.ini, with the options and the result of torch_peer.py, which lacks this model."""
import argparse
import json
import subprocess
import sys
import time

T0 = time.perf_counter()
VARIANTS = ["eager", "compile"]


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("what", choices=["one", "best"])
    p.add_argument("--model", default="lstm", choices=["lstm"])
    p.add_argument("--mode", default="train", choices=["train", "infer"])
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--dtype", default="fp32", choices=["fp32"])
    p.add_argument("--optimizer", default="sgd", choices=["sgd"])
    p.add_argument("--variant", default="eager", choices=VARIANTS)
    p.add_argument("--threads", type=int, default=0)
    for name, default in (("steps", 3), ("rounds", 5), ("warmup", 1)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--fused", action="store_true")
    return p.parse_args()


def step_of(a):
    import torch
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.all, self.fc = torch.nn.LSTM(128, 256, batch_first=True), torch.nn.Linear(256, 10)

        def forward(self, x):
            return self.fc(self.all(x)[1][0][0])

    net = Classifier().train(a.mode == "train")
    x, y = torch.randn(a.batch, 128, 128), torch.randint(10, (a.batch,))
    call = torch.compile(net) if a.variant == "compile" else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=a.fused or None)

    def train():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(call(x), y).backward()
        optimizer.step()

    def infer():
        with torch.inference_mode():
            call(x)
    return (train if a.mode == "train" else infer), "torch " + torch.__version__


def one(a):
    step, peer = step_of(a)
    step()
    first = time.perf_counter() - T0
    for _ in range(a.warmup):
        step()
    rounds = []
    for _ in range(a.rounds):
        start = time.perf_counter()
        for _ in range(a.steps):
            step()
        rounds.append((time.perf_counter() - start) / a.steps * 1e3)
    rounds.sort()
    resident = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    print(json.dumps({"peer": peer, "model": a.model, "mode": a.mode, "batch": a.batch, "dtype": a.dtype,
                      "variant": a.variant, "ms": [round(rounds[i], 4) for i in (0, len(rounds) // 2, -1)],
                      "peak_rss_mib": round(resident / 1024), "first_step_s": round(first, 3)}), flush=True)


def best():
    for variant in VARIANTS:
        run = subprocess.run([sys.executable, __file__, "one", *sys.argv[2:], "--variant", variant], capture_output=True,
                             text=True)
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        print(*lines or [f"{variant}: {run.stderr.strip().splitlines()[-1:]}"], file=sys.stderr, flush=True)


if __name__ == "__main__":
    arguments = options()
    one(arguments) if arguments.what == "one" else best()
