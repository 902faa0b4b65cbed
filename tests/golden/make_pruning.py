#!/usr/bin/env python3
"""Writes the parameters of ten steps of pruned trainings that PyTorch computes: tests/golden/pruning/golden.json.

  make_pruning.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/pruning/net.ini defines the training; this script defines the
same for PyTorch by torch.nn.utils.prune, and begins with Tenon's initial weights. A masked weight is set to zero after each
step, so that optimizers which read norms of weights see it so. Needs torch, timm and safetensors.
"""
import json, os, sys
import timm.optim as timm
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from small_net import images, initial_weights, labels, BATCH, SAMPLES

STEPS = 10
T = torch.optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 2, padding=1, bias=False), nn.BatchNorm2d(4), nn.Linear(48, 3)

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv(x))).flatten(1))


def least(values, share):
    mask = prune.L1Unstructured(amount=round(share * values.numel())).compute_mask(values, torch.ones_like(values))
    return mask


def each(weights, share):
    return [least(w, share) for w in weights]


def together(weights, share):
    masks = least(torch.cat([w.flatten() for w in weights]), share)
    return [m.view_as(w) for m, w in zip(masks.split([w.numel() for w in weights]), weights)]


def two_of_four(weights, share):
    groups = weights[1].abs().view(-1, 4)
    mask = torch.zeros_like(groups).scatter(1, groups.topk(2, dim=1).indices, 1)
    return [torch.ones_like(weights[0]), mask.view_as(weights[1])]


def cubic(step, first, last, initial, final):
    return final if last <= first else final + (initial - final) * (1 - (step - first) / (last - first)) ** 3


OPTIMIZERS = {
    "sgd": ("type=sgd lr=0.1 momentum=0.9 weight_decay=1e-3", lambda p: T.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3)),
    "adamw": ("type=adamw lr=0.01 weight_decay=0.1", lambda p: T.AdamW(p, lr=0.01, weight_decay=0.1)),
    "lamb": ("type=lamb lr=0.01 weight_decay=0.01", lambda p: timm.Lamb(p, lr=0.01, max_grad_norm=None, weight_decay=0.01)),
}
CASES = [
    ("sgd", "sparsity=0.5 first=3", dict(first=3, last=0, final=0.5), each),
    ("adamw", "sparsity=0.75 initial=0.25 first=2 last=8 every=3", dict(first=2, last=8, every=3, initial=0.25, final=0.75), each),
    ("adamw", "sparsity=0.6 scope=global", dict(first=0, last=0, final=0.6), together),
    ("sgd", "pattern=2:4 first=4 match=fc.*", dict(first=4, last=0, final=0), two_of_four),
    ("lamb", "sparsity=0.8 first=0 last=9 every=2", dict(first=0, last=9, every=2, final=0.8), each),
]


def train(weights, make, choose, first, last, final, every=1, initial=0.0, clip=0.0):
    net = Net()
    net.load_state_dict(weights, strict=False)
    layers = [net.conv, net.fc]
    optimizer = make(list(net.parameters()))
    for layer in layers:
        prune.identity(layer, "weight")

    def clear():
        with torch.no_grad():
            for layer in layers:
                layer.weight_orig.mul_(layer.weight_mask)
    x, y = images.float().view(SAMPLES, 1, 2, 3) / 255, labels.long()
    for step in range(STEPS):
        due = step == first or (first < step <= last and ((step - first) % every == 0 or step == last))
        if due:
            masks = choose([layer.weight_orig.detach() for layer in layers], cubic(step, first, last, initial, final))
            for layer, mask in zip(layers, masks):
                layer.weight_mask.copy_(mask)
            clear()
        at = step * BATCH % SAMPLES
        optimizer.zero_grad()
        F.cross_entropy(net(x[at:at + BATCH]), y[at:at + BATCH]).backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        clear()
    for layer in layers:
        prune.remove(layer, "weight")
    state = net.state_dict()
    zeros = sum(int((layer.weight == 0).sum()) for layer in layers)
    return {"zeros": zeros, "tensors": {k: v.flatten().tolist() for k, v in state.items() if v.dtype == torch.float32}}


weights = initial_weights(os.path.abspath(sys.argv[1]), "pruning")
cases = {}
for optimizer, keys, how, choose in CASES:
    words, make = OPTIMIZERS[optimizer]
    cases[f"{words}|{keys}"] = train(weights, make, choose, **how)
    cases[f"{words} clip=0.3|{keys}"] = train(weights, make, choose, clip=0.3, **how)
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    out.write("{\n" + ",\n".join(f' "{name}": {json.dumps(case)}' for name, case in cases.items()) + "\n}\n")
