#!/usr/bin/env python3
"""Writes the weights of trainings in which layers thaw at an epoch, as PyTorch has them: tests/golden/thaw/golden.json.

  make_thaw.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/thaw/net.ini defines the net, and thaw_test.c the
groups and optimizers of the cases below. All parameters are in the optimizer from the start. Those of a frozen layer have
requires_grad = False, so that they have no gradient, the optimizer skips them, and their state begins at the thaw; a
frozen BatchNorm is in eval mode. Needs torch and safetensors.
"""
import json, os, sys
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel
from small_net import Net, images, initial_weights, labels, BATCH, SAMPLES

EPOCHS = 5
EMA = 0.8


class ThawNet(Net):
    """The bias of fc1 has a gradient, which it would not have in front of the normalization."""

    def forward(self, x):
        return self.fc2(self.bn(F.relu(self.fc1(x))))


def adamw(groups):
    return torch.optim.AdamW(groups, weight_decay=0.01)


def sgd(groups):
    return torch.optim.SGD(groups, momentum=0.9, weight_decay=1e-3)


def ema(average, value, n):
    decay = min(EMA, (1 + n.item()) / (10 + n.item()))
    return decay * average + (1 - decay) * value


def train(weights, optimizer, layers, clip=0):
    """`layers` has for each layer the last epoch in which it is frozen, and its learning rate."""
    net = ThawNet()
    net.load_state_dict(weights, strict=False)
    x, y = images.float() / 255, labels.long()
    opt = optimizer([{"params": getattr(net, name).parameters(), "lr": lr} for name, (_, lr) in layers.items()])
    averaged = AveragedModel(net, avg_fn=ema, use_buffers=True)
    for epoch in range(1, EPOCHS + 1):
        net.train()
        for name, (until, _) in layers.items():
            getattr(net, name).requires_grad_(epoch > until)
            getattr(net, name).train(epoch > until)
        for first in range(0, SAMPLES, BATCH):
            opt.zero_grad()
            F.cross_entropy(net(x[first:first + BATCH]), y[first:first + BATCH]).backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            opt.step()
            averaged.update_parameters(net)
    flat = lambda model: {k: v.flatten().tolist() for k, v in model.state_dict().items() if v.dtype == torch.float32}
    return {"trained": flat(net), "average": flat(averaged.module)}


weights = initial_weights(os.path.abspath(sys.argv[1]), "thaw")
cases = {
    "adamw": train(weights, adamw, {"fc1": (2, 0.003), "bn": (2, 0.003), "fc2": (0, 0.01)}),
    "sgd": train(weights, sgd, {"fc1": (3, 0.1), "bn": (3, 0.1), "fc2": (0, 0.2)}),
    "gradual": train(weights, adamw, {"fc1": (3, 0.005), "bn": (1, 0.02), "fc2": (0, 0.01)}, clip=0.1),
}
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    lines = [f' "{case}.{part}": {json.dumps(value)}' for case, parts in cases.items() for part, value in parts.items()]
    out.write("{\n" + ",\n".join(lines) + "\n}\n")
