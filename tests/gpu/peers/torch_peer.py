#!/usr/bin/env python3
"""Training steps of PyTorch on the models of tests/bench/models. Prints a line of JSON: ms of a step (min, median, max over
rounds) and samples a second. The batch lies on the device, and each round waits once.

--variant eager, channels_last, compile, or graph: the whole step as one CUDA graph."""
import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn

MODELS = ["mlp", "lenet", "gpt_char", "resnet18", "resnet50"]
TOKENS, SYMBOLS, WIDTH, HEADS, LAYERS = 64, 65, 128, 4, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(self.ln_1(x)).split(WIDTH, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.h, self.ln_f = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.ln_f(self.h(x))).flatten(0, 1)


def build(name):
    """The model, the shape of a sample, and the number of classes."""
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (1, 28, 28), 10
    if name == "lenet":
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                             nn.Linear(84, 10)), (1, 28, 28), 10
    if name == "gpt_char":
        return GPT(), (TOKENS,), SYMBOLS
    import torchvision
    return getattr(torchvision.models, name)(num_classes=1000), (3, 224, 224), 1000


def make_optimizer(a, net):
    more = {"fused": a.fused, "capturable": True} if a.variant == "graph" and a.model == "gpt_char" else {"fused": a.fused}
    if a.model == "gpt_char":
        return torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, **more)
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, **more)


def make_step(a, net, x, y):
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(a.dtype)
    optimizer = make_optimizer(a, net)
    scaler = torch.amp.GradScaler(a.device, enabled=a.dtype == "fp16")

    def forward(x, y):
        with torch.autocast(a.device, dtype=low or torch.bfloat16, enabled=low is not None):
            return F.cross_entropy(net(x), y)
    if a.variant == "compile":
        forward = torch.compile(forward)

    def step():
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(forward(x, y)).backward()
        scaler.step(optimizer)
        scaler.update()
    return step


def capture(step):
    """The step as a graph. PyTorch asks for warm-up on a stream beside the default one."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure(a, step):
    wait = torch.cuda.synchronize if a.device == "cuda" else (lambda: None)
    for _ in range(a.warmup):
        step()
    rounds = []
    for _ in range(a.rounds):
        wait()
        began = time.perf_counter()
        for _ in range(a.steps):
            step()
        wait()
        rounds.append((time.perf_counter() - began) / a.steps * 1e3)
    return sorted(rounds)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="resnet18", choices=MODELS)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--dtype", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
    p.add_argument("--variant", default="eager", choices=["eager", "channels_last", "compile", "graph"])
    p.add_argument("--device", default="cuda")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--fused", action="store_true")
    a = p.parse_args()
    if a.variant == "graph" and a.dtype == "fp16":
        p.error("--variant graph --dtype fp16: the scaler reads its result on the host; expected fp32, tf32 or bf16")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high" if a.dtype == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = a.dtype == "tf32"
    net, shape, classes = build(a.model)
    net = net.to(a.device).train()
    tokens = a.model == "gpt_char"
    x = torch.randint(classes, (a.batch, *shape), device=a.device) if tokens else torch.randn(a.batch, *shape, device=a.device)
    y = torch.randint(classes, (a.batch * (shape[0] if tokens else 1),), device=a.device)
    if a.variant == "channels_last":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    step = make_step(a, net, x, y)
    rounds = measure(a, capture(step) if a.variant == "graph" else step)
    middle = rounds[len(rounds) // 2]
    print(json.dumps(dict(peer="torch " + torch.__version__, model=a.model, batch=a.batch, dtype=a.dtype, variant=a.variant,
                          ms=[round(v, 4) for v in (rounds[0], middle, rounds[-1])], per_s=round(a.batch / middle * 1e3, 2))))


main()
