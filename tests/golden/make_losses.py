#!/usr/bin/env python3
"""Writes the parameters that PyTorch has after trainings with each of the losses: tests/golden/losses/golden.json.

  make_losses.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/losses/net.ini defines the training; this script defines
the same for PyTorch; where a case begins with "classes: ", the targets are class numbers. It begins with Tenon's initial weights, which `tenon train` with run.epochs=0 writes. The last
layer begins at zero, so the first step has the gradient at a score of 0. Needs torch and safetensors.
"""
import json, os, sys
import torch
from torch import nn
import torch.nn.functional as F
from small_net import Net, images, initial_weights, labels, BATCH, SAMPLES

EPOCHS = 3
LOSSES = {"l1": nn.L1Loss(), "huber(delta=0.3)": nn.HuberLoss(delta=0.3), "huber": nn.HuberLoss(), "mse": nn.MSELoss(),
          "binary_cross_entropy": nn.BCEWithLogitsLoss(),
          "binary_cross_entropy(positive=2.5)": nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.5)),
          "cross_entropy(weights=[0.5, 2, 1])": nn.CrossEntropyLoss(torch.tensor([0.5, 2, 1])),
          "cross_entropy(weights=[0.5, 2, 1], label_smoothing=0.1)":
              nn.CrossEntropyLoss(torch.tensor([0.5, 2, 1]), label_smoothing=0.1)}
CLASS_LOSSES = {name: loss for name, loss in LOSSES.items() if name.startswith("cross_entropy")}
CLASS_LOSSES |= {"cross_entropy(weights=[0.5, 2, 1], ignore=2)": nn.CrossEntropyLoss(torch.tensor([0.5, 2, 1]), ignore_index=2)}


def train(weights, loss, y):
    net = Net()
    net.load_state_dict(weights, strict=False)
    x = images.float() / 255
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-3)
    net.train()
    for _ in range(EPOCHS):
        for first in range(0, SAMPLES, BATCH):
            opt.zero_grad()
            loss(net(x[first:first + BATCH]), y[first:first + BATCH]).backward()
            opt.step()
    return {k: v.flatten().tolist() for k, v in net.state_dict().items() if v.dtype == torch.float32}


weights = initial_weights(os.path.abspath(sys.argv[1]), "losses")
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    parts = F.one_hot(labels.long(), 3).float()
    lines = [f' "{name}": {json.dumps(train(weights, loss, parts))}' for name, loss in LOSSES.items()]
    lines += [f' "classes: {name}": {json.dumps(train(weights, loss, labels.long()))}' for name, loss in CLASS_LOSSES.items()]
    out.write("{\n" + ",\n".join(lines) + "\n}\n")
