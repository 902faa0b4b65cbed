#!/usr/bin/env python3
"""Measures PyTorch on models of single layers: lstm, group_norm, conv_transpose, interpolate and gather of models/. Options and
result are those of torch_peer.py, which lacks these models."""
import argparse
import json
import subprocess
import sys
import time

T0 = time.perf_counter()
VARIANTS = ["eager", "channels_last", "compile", "compile_channels_last"]
MODELS = ["lstm", "group_norm", "conv_transpose", "interpolate", "gather"]


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("what", choices=["one", "best"])
    p.add_argument("--model", default="lstm", choices=MODELS)
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


# The network, and its inputs for a batch of n.
def build(model, n):
    import torch
    from torch import nn
    torch.manual_seed(0)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.all, self.fc = nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.fc(self.all(x)[1][0][0])

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.node, self.next, self.fc = nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 10)

        def forward(self, x, neighbour):
            for layer in (self.node, self.next):
                h = layer(x)
                taken = torch.gather(h, 1, neighbour.unsqueeze(2).expand(-1, -1, 64))
                x = torch.relu(h + taken.reshape(-1, 512, 4, 64).sum(2))
            return self.fc(x.mean(1))

    def head(channels):
        return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)

    if model == "lstm":
        return Lstm(), (torch.randn(n, 128, 128),)
    if model == "group_norm":
        norms = [layer for _ in range(3) for layer in (nn.GroupNorm(8, 64), nn.SiLU())]
        return nn.Sequential(*norms, *head(64)), (torch.randn(n, 64, 64, 64),)
    if model == "conv_transpose":
        return nn.Sequential(nn.ConvTranspose2d(64, 32, 2, 2), nn.ReLU(), nn.ConvTranspose2d(32, 16, 2, 2), nn.ReLU(),
                             nn.ConvTranspose2d(16, 16, 4, 2, 1), *head(16)), (torch.randn(n, 64, 16, 16),)
    if model == "interpolate":
        return nn.Sequential(nn.Conv2d(64, 32, 1), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(32, 16, 1),
                             nn.Upsample(scale_factor=2, mode="nearest"), *head(16)), (torch.randn(n, 64, 32, 32),)
    return Graph(), (torch.randn(n, 512, 32), torch.randint(512, (n, 2048)))


def step_of(a):
    import torch
    if a.threads:
        torch.set_num_threads(a.threads)
    net, inputs = build(a.model, a.batch)
    net.train(a.mode == "train")
    y = torch.randint(10, (a.batch,))
    if "channels_last" in a.variant:
        if inputs[0].dim() != 4:
            raise SystemExit("the model has no images")
        net, inputs = net.to(memory_format=torch.channels_last), (inputs[0].to(memory_format=torch.channels_last),)
    call = torch.compile(net) if "compile" in a.variant else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=a.fused or None)

    def train():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(call(*inputs), y).backward()
        optimizer.step()

    def infer():
        with torch.inference_mode():
            call(*inputs)
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
