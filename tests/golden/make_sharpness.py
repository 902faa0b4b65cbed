#!/usr/bin/env python3
"""Writes the parameters, running statistics and losses of ten steps of sharpness-aware minimization that PyTorch computes:
tests/golden/sharpness/golden.json.

  make_sharpness.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/sharpness/net.ini defines the training; this script defines
the same for PyTorch, and begins with Tenon's initial weights. The two passes are those of the papers (Foret et al., 2021;
Kwon et al., 2021): the running statistics and the losses are those of the first pass. The name of a case is its options
of [optimizer]. Needs torch, timm and safetensors.
"""
import json, os, sys
import timm.optim as timm
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel
from small_net import images, initial_weights, labels, BATCH, SAMPLES

STEPS, EMA = 10, 0.8
T = torch.optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 2, padding=1, bias=False), nn.BatchNorm2d(4), nn.Linear(48, 3)

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv(x))).flatten(1))


def perturb(parameters, rho, scale):
    """Adds rho t^2 g / |t g| to the parameters, with t = scale(w), and returns what was added."""
    with torch.no_grad():
        scales = [scale(p) for p in parameters]
        norm = torch.stack([(t * p.grad).norm() for p, t in zip(parameters, scales)]).norm()
        added = [t * t * p.grad * (rho / (norm + 1e-12)) for p, t in zip(parameters, scales)]
        torch._foreach_add_(parameters, added)
    return added


def sam(parameters, rho):
    return perturb(parameters, rho, torch.ones_like)


def asam(parameters, rho, eta):
    return perturb(parameters, rho, lambda p: p.abs() + eta)



def ema(average, value, n):
    decay = min(EMA, (1 + n.item()) / (10 + n.item()))
    return decay * average + (1 - decay) * value


SGD = dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
OPTIMIZERS = {
    "type=sgd lr=0.1 momentum=0.9 nesterov=yes weight_decay=1e-3": lambda p: T.SGD(p, **SGD),
    "type=adamw lr=0.01": lambda p: T.AdamW(p, lr=0.01),
    "type=lion lr=0.003": lambda p: timm.Lion(p, lr=0.003),
    "type=sgd lr=0.1 momentum=0.9 lookahead=3": lambda p: timm.Lookahead(T.SGD(p, lr=0.1, momentum=0.9), k=3, alpha=0.5),
    "type=lamb lr=0.01 weight_decay=0.01": lambda p: timm.Lamb(p, lr=0.01, max_grad_norm=None, weight_decay=0.01),
}
PERTURBATIONS = {
    "sharpness=0.05": lambda p: sam(p, 0.05),
    "sharpness=0.5 sharpness_adaptive=yes": lambda p: asam(p, 0.5, 0.01),
    "sharpness=1 sharpness_adaptive=yes sharpness_eta=0": lambda p: asam(p, 1.0, 0.0),
}


def train(weights, make, ascend, clip=0, average=False):
    net = Net()
    net.load_state_dict(weights, strict=False)
    parameters = list(net.parameters())
    optimizer, averaged = make(parameters), AveragedModel(net, avg_fn=ema, use_buffers=True)
    x, y, losses = images.float().view(SAMPLES, 1, 2, 3) / 255, labels.long(), []

    def differentiate(at):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x[at:at + BATCH]), y[at:at + BATCH])
        loss.backward()
        return loss.item()
    for step in range(STEPS):
        at = step * BATCH % SAMPLES
        net.bn.momentum = 0.1
        losses.append(differentiate(at))
        added = ascend(parameters)
        net.bn.momentum = 0
        differentiate(at)
        torch._foreach_sub_([p.data for p in parameters], added)
        if clip:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        averaged.update_parameters(net)
    state = (averaged.module if average else net).state_dict()
    return {"losses": losses, "tensors": {k: v.flatten().tolist() for k, v in state.items() if v.dtype == torch.float32}}


weights = initial_weights(os.path.abspath(sys.argv[1]), "sharpness")
cases = {f"{name} {sharp}": train(weights, make, ascend) for name, make in OPTIMIZERS.items() for sharp, ascend in PERTURBATIONS.items()}
plain = next(iter(OPTIMIZERS))
for sharp, ascend in PERTURBATIONS.items():
    cases[f"{plain} {sharp} clip=0.3"] = train(weights, OPTIMIZERS[plain], ascend, clip=0.3)
    cases[f"{plain} {sharp} ema={EMA}"] = train(weights, OPTIMIZERS[plain], ascend, average=True)
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    out.write("{\n" + ",\n".join(f' "{name}": {json.dumps(case)}' for name, case in cases.items()) + "\n}\n")
