#!/usr/bin/env python3
"""Writes the training curves that Tenon's are held against: PyTorch, from the same initial weights.

  make_curves.py TENON DATA OUT

TENON is the built program, DATA a folder with text/tinyshakespeare.txt and cifar10-jpeg.tar.gz, OUT the
folder for the .json files (tests/golden/curves). Tenon's initial weights are a pure function of seed and
configuration, so the weights themselves need not be kept: both sides start from `tenon train` with
run.epochs=0. Needs torch, torchvision, safetensors, numpy, pillow.
"""
import json, os, subprocess, sys, tarfile, tempfile
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "docs", "examples")


def initial_weights(tenon, ini, *sets):
    folder = tempfile.mkdtemp()
    args = [tenon, "train", os.path.join(EXAMPLES, ini), "--json", "--output", folder, "--set", "run.epochs=0"]
    for s in sets:
        args += ["--set", s]
    run = json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)["run"]
    return load_file(os.path.join(run, "checkpoints", "last", "model.safetensors"))


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in self.qkv(self.ln_1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(y)
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class CharTransformer(nn.Module):
    def __init__(self, vocabulary=65, tokens=64, d=128, heads=4, depth=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(tokens, d)
        self.h = nn.Sequential(*[Attention(d, heads) for _ in range(depth)])
        self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids):
        return self.head(self.ln_f(self.h(self.wte(ids) + self.wpe(torch.arange(ids.shape[1])))))


def shakespeare(tenon, data, steps=200, batch=12, tokens=64):
    path = os.path.join(data, "text", "tinyshakespeare.txt")
    sets = ["data.file=" + path, "data.shuffle=no", "run.seed=1"]
    net = CharTransformer()
    net.load_state_dict(initial_weights(tenon, "shakespeare_char.ini", *sets), strict=True)
    text = open(path, encoding="utf-8").read()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[c] for c in text])
    no_decay = [p for n, p in net.named_parameters() if n.endswith(".bias") or "ln_" in n]
    chosen = set(map(id, no_decay))
    groups = [{"params": [p for p in net.parameters() if id(p) not in chosen]}, {"params": no_decay, "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
    losses = []
    for step in range(steps):
        starts = [(step * batch + i) * tokens for i in range(batch)]
        x = torch.stack([ids[s:s + tokens] for s in starts])
        y = torch.stack([ids[s + 1:s + tokens + 1] for s in starts])
        loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    return losses


def cifar_resnet18(tenon, data, steps=20, batch=32):
    import torchvision
    folder = tempfile.mkdtemp()
    with tarfile.open(os.path.join(data, "cifar10-jpeg.tar.gz")) as tar:
        tar.extractall(folder)
    sets = ["data.folder=" + folder, "data.shuffle=no", "run.seed=1", "data.batch=32",
            "data.train.transforms=to_float, normalize(mean=[0.4914, 0.4822, 0.4465], std=[0.2470, 0.2435, 0.2616])"]
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    weights = initial_weights(tenon, "cifar10_resnet18.ini", *sets)
    missing, unexpected = net.load_state_dict(weights, strict=False)
    assert not unexpected and all(m.endswith("num_batches_tracked") for m in missing), (missing, unexpected)
    T = torchvision.transforms
    images = torchvision.datasets.ImageFolder(os.path.join(folder, "train"), T.Compose(
        [T.ToTensor(), T.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))]))
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    losses = []
    net.train()
    for step in range(steps):
        samples = [images[step * batch + i] for i in range(batch)]
        x, y = torch.stack([s[0] for s in samples]), torch.tensor([s[1] for s in samples])
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def main():
    tenon, data, out = sys.argv[1:4]
    torch.set_num_threads(2)
    for name, fn in (("shakespeare_char", shakespeare), ("cifar10_resnet18", cifar_resnet18)):
        losses = fn(tenon, data)
        with open(os.path.join(out, name + ".json"), "w") as f:
            json.dump({"peer": "torch " + torch.__version__, "losses": [round(v, 7) for v in losses]}, f)
            f.write("\n")
        print(name, losses[0], losses[-1])


main()
