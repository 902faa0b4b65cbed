#!/usr/bin/env python3
"""Writes the averages of parameters and running statistics that PyTorch's torch.optim.swa_utils makes in a training:
tests/golden/averages/golden.json.

  make_averages.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/averages/net.ini defines the training; this script
defines the same for PyTorch. It begins with Tenon's initial weights, which `tenon train` with run.epochs=0 writes. Each
case has the averages, the trained values, and the losses of the averages over all samples after every epoch. Needs torch
and safetensors.
"""
import json, os, sys
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel
from small_net import Net, images, initial_weights, labels, BATCH, SAMPLES

EPOCHS = 5
EMA, SWA_FROM = 0.8, 3


def loss_of(net, x, y):
    net.eval()
    with torch.no_grad():
        return F.cross_entropy(net(x), y).item()


def train(weights, average, every_update):
    """`average` makes an AveragedModel of the net; it is updated after every update, or after epochs from SWA_FROM on."""
    net = Net()
    net.load_state_dict(weights, strict=False)
    averaged = average(net)
    x, y = images.float() / 255, labels.long()
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-3)
    losses = []
    for epoch in range(1, EPOCHS + 1):
        net.train()
        for first in range(0, SAMPLES, BATCH):
            opt.zero_grad()
            F.cross_entropy(net(x[first:first + BATCH]), y[first:first + BATCH]).backward()
            opt.step()
            if every_update:
                averaged.update_parameters(net)
        if not every_update and epoch >= SWA_FROM:
            averaged.update_parameters(net)
        evaluated = averaged.module if averaged.n_averaged > 0 else net
        losses.append(loss_of(evaluated, x, y))
    flat = lambda model: {k: v.flatten().tolist() for k, v in model.state_dict().items() if v.dtype == torch.float32}
    return {"average": flat(averaged.module), "trained": flat(net), "losses": losses}


def ema(average, value, n):
    decay = min(EMA, (1 + n.item()) / (10 + n.item()))
    return decay * average + (1 - decay) * value


weights = initial_weights(os.path.abspath(sys.argv[1]), "averages")
cases = {"ema": train(weights, lambda net: AveragedModel(net, avg_fn=ema, use_buffers=True), True),
         "swa": train(weights, lambda net: AveragedModel(net, use_buffers=True), False)}
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    lines = [f' "{case}.{part}": {json.dumps(value)}' for case, parts in cases.items() for part, value in parts.items()]
    out.write("{\n" + ",\n".join(lines) + "\n}\n")
