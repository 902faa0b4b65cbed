#!/usr/bin/env python3
"""Training steps of PyTorch on the models of tests/bench/models, with their optimizers: the weight decay is that of all parameters,
as in the files. Prints a line of JSON for each model and variant. The batch lies on the device.

--variant eager, channels_last, compile, or graph: the whole step as one CUDA graph."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn

import peer_timing

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


def make_optimizer(net, model, variant):
    if model == "gpt_char":
        return torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, fused=True,
                                 capturable=variant == "graph")
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)


def make_batch(a, model, shape, classes):
    if model == "gpt_char":
        x = torch.randint(classes, (a.batch, *shape), device=a.device)
        return x, torch.randint(classes, (x.numel(),), device=a.device)
    return torch.randn(a.batch, *shape, device=a.device), torch.randint(classes, (a.batch,), device=a.device)


def make_step(a, model, variant):
    net, shape, classes = build(model)
    net = net.to(a.device).train()
    x, y = make_batch(a, model, shape, classes)
    if variant == "channels_last":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(a.dtype)
    optimizer = make_optimizer(net, model, variant)
    scaler = torch.amp.GradScaler(a.device, enabled=a.dtype == "fp16")

    def forward(x, y):
        with torch.autocast(a.device, dtype=low or torch.bfloat16, enabled=low is not None):
            return F.cross_entropy(net(x), y)
    if variant == "compile":
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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", nargs="+", default=["resnet18"], choices=MODELS)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--dtype", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
    p.add_argument("--variant", nargs="+", default=["eager"], choices=["eager", "channels_last", "compile", "graph"])
    peer_timing.add_options(p, steps=20)
    a = p.parse_args()
    if "graph" in a.variant and a.dtype == "fp16":
        p.error("--variant graph --dtype fp16: the scaler reads its result on the host; expected fp32, tf32 or bf16")
    if "graph" in a.variant and a.device != "cuda":
        p.error("--variant graph --device %s: expected --device cuda, which alone has graphs" % a.device)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high" if a.dtype == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = a.dtype == "tf32"
    for model in a.model:
        for variant in a.variant:
            step = make_step(a, model, variant)
            rounds = peer_timing.measure(a, capture(step) if variant == "graph" else step)
            peer_timing.report(a, rounds, model=model, dtype=a.dtype, variant=variant)


main()
