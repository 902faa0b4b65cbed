#!/usr/bin/env python3
"""Writes the parameters that PyTorch has after trainings with each of the losses: tests/golden/losses/golden.json.

  make_losses.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/losses/net.ini defines the training; this script defines
the same for PyTorch; where a case begins with "classes: ", the targets are class numbers. It begins with Tenon's initial weights, which `tenon train` with run.epochs=0 writes. The last
layer begins at zero, so the first step has the gradient at a score of 0. Needs torch, torchvision and safetensors.
"""
import json, os, sys
import torch
from torch import nn
import torch.nn.functional as F
from torchvision.ops import sigmoid_focal_loss
from small_net import Net, images, initial_weights, labels, BATCH, SAMPLES

EPOCHS = 3


def info_nce(a, b, temperature):
    scores = F.normalize(a) @ F.normalize(b).T / temperature
    own = torch.arange(len(a))
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2


def tversky(p, t, alpha, beta):
    both = (p * t).sum(1)
    return (1 - (both + 1) / (both + alpha * (p.sum(1) - both) + beta * (t.sum(1) - both) + 1)).mean()


def distill(x, teacher, temperature):
    """Hinton, Vinyals, Dean, 2015."""
    return temperature ** 2 * F.kl_div(F.log_softmax(x / temperature, -1), F.softmax(teacher / temperature, -1),
                                       reduction="batchmean")


def with_z(loss, z, ignore=-100):
    """loss + z log(sum(exp(x)))^2, a mean over the targets that count."""
    return lambda x, y: loss(x, y) + z * (x.logsumexp(-1)[y != ignore] ** 2).mean()


LOSSES = {"l1": nn.L1Loss(), "huber(delta=0.3)": nn.HuberLoss(delta=0.3), "huber": nn.HuberLoss(), "mse": nn.MSELoss(),
          "binary_cross_entropy": nn.BCEWithLogitsLoss(),
          "binary_cross_entropy(positive=2.5)": nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.5)),
          "cross_entropy(weights=[0.5, 2, 1])": nn.CrossEntropyLoss(torch.tensor([0.5, 2, 1])),
          "cross_entropy(weights=[0.5, 2, 1], label_smoothing=0.1)":
              nn.CrossEntropyLoss(torch.tensor([0.5, 2, 1]), label_smoothing=0.1)}
LOSSES |= {
    "smooth_l1(beta=0.3)": nn.SmoothL1Loss(beta=0.3),
    "quantile_loss(q=0.8)": lambda x, y: torch.maximum(0.8 * (y - x), -0.2 * (y - x)).mean(),
    "poisson_nll": nn.PoissonNLLLoss(),
    "poisson_nll(full=yes) <- fc2, label * 3": lambda x, y: F.poisson_nll_loss(x, 3 * y, full=True),
    "poisson_nll(log_input=no) <- sigmoid(fc2), label": lambda x, y: F.poisson_nll_loss(x.sigmoid(), y, log_input=False),
    "gaussian_nll(full=yes) <- fc2, label, sigmoid(fc2)": lambda x, y: F.gaussian_nll_loss(x, y, x.sigmoid(), full=True),
    "bce <- sigmoid(fc2), label": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y),
    "focal": lambda x, y: sigmoid_focal_loss(x, y, reduction="mean"),
    "focal(alpha=-1, gamma=1.5)": lambda x, y: sigmoid_focal_loss(x, y, -1, 1.5, reduction="mean"),
    "soft_margin <- fc2, label * 2 - 1": lambda x, y: F.soft_margin_loss(x, 2 * y - 1),
    "hinge_embedding(margin=0.5) <- fc2, label * 2 - 1": lambda x, y: F.hinge_embedding_loss(x, 2 * y - 1, margin=0.5),
    "hinge <- fc2, label * 2 - 1": lambda x, y: (1 - (2 * y - 1) * x).clamp(min=0).mean(),
    "margin_ranking(margin=0.2) <- fc2, 0.1 - fc2, label * 2 - 1":
        lambda x, y: F.margin_ranking_loss(x, 0.1 - x, 2 * y - 1, margin=0.2),
    "triplet_margin(margin=0.5) <- fc2, label, fc2 * 0.5 + 0.1":
        lambda x, y: F.triplet_margin_loss(x, y, x * 0.5 + 0.1, margin=0.5),
    "triplet_margin(p=3, swap=yes) <- fc2, label, fc2 * 0.5 + 0.1":
        lambda x, y: F.triplet_margin_loss(x, y, x * 0.5 + 0.1, p=3, swap=True),
    "cosine_embedding(margin=0.2) <- fc2 + 0.1, label + 0.2, label[:, 0] * 2 - 1":
        lambda x, y: F.cosine_embedding_loss(x + 0.1, y + 0.2, y[:, 0] * 2 - 1, margin=0.2),
    "info_nce(temperature=0.8) <- fc2 + label, label + 0.5": lambda x, y: info_nce(x + y, y + 0.5, 0.8),
    "tversky(alpha=0.3, beta=0.7) <- sigmoid(fc2), label": lambda x, y: tversky(x.sigmoid(), y, 0.3, 0.7),
    "kl_div <- log_softmax(fc2), label * 0.8 + 0.1": lambda x, y: F.kl_div(x.log_softmax(-1), y * 0.8 + 0.1),
    "kl_div(log_target=yes) <- log_softmax(fc2), log(label * 0.8 + 0.1)":
        lambda x, y: F.kl_div(x.log_softmax(-1), (y * 0.8 + 0.1).log(), log_target=True),
    "distill(temperature=3) <- fc2, label * 2 - 0.5": lambda x, y: distill(x, y * 2 - 0.5, 3),
}
CLASS_LOSSES = {name: loss for name, loss in LOSSES.items() if name.startswith("cross_entropy")}
CLASS_LOSSES |= {"multi_margin": nn.MultiMarginLoss(), "multi_margin(p=2, margin=0.5)": nn.MultiMarginLoss(p=2, margin=0.5)}
CLASS_LOSSES |= {"cross_entropy(weights=[0.5, 2, 1], ignore=2)": nn.CrossEntropyLoss(torch.tensor([0.5, 2, 1]), ignore_index=2)}
CLASS_LOSSES |= {
    "cross_entropy(z_loss=0.01)": with_z(nn.CrossEntropyLoss(), 0.01),
    "cross_entropy(z_loss=0.01, label_smoothing=0.1, ignore=2)":
        with_z(nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=2), 0.01, 2),
    "distill(temperature=3, alpha=0.7) <- fc2, iota([1, 3], axis=1, dtype=f32) * cast(label, to=f32)[:, None], label":
        lambda x, y: 0.7 * distill(x, torch.arange(3.) * y[:, None], 3) + 0.3 * F.cross_entropy(x, y)}


def student(weights):
    """Two epochs of tests/golden/losses/distill.ini: the teacher has `weights`, and is in eval mode; the student begins at 0."""
    teacher, net = Net(), nn.Linear(6, 3)
    teacher.load_state_dict({k: torch.tensor(v).view(teacher.state_dict()[k].shape) for k, v in weights.items()}, strict=False)
    teacher.eval()
    nn.init.zeros_(net.weight)
    nn.init.zeros_(net.bias)
    x, y = images.float() / 255, labels.long()
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for _ in range(2):
        for first in range(0, SAMPLES, BATCH):
            part = slice(first, first + BATCH)
            opt.zero_grad()
            with torch.no_grad():
                scores = teacher(x[part])
            (0.9 * distill(net(x[part]), scores, 4) + 0.1 * F.cross_entropy(net(x[part]), y[part])).backward()
            opt.step()
    return {"student." + k: v.flatten().tolist() for k, v in net.state_dict().items()}


def learned(weights):
    """Two losses with learned weights, each as exp(-s) loss + s (Kendall et al., 2018); s has no weight decay."""
    net, s = Net(), torch.zeros(2, requires_grad=True)
    net.load_state_dict(weights, strict=False)
    x, y = images.float() / 255, F.one_hot(labels.long(), 3).float()
    opt = torch.optim.SGD([{"params": net.parameters(), "weight_decay": 1e-3}, {"params": [s]}], lr=0.2, momentum=0.9)
    for _ in range(EPOCHS):
        for first in range(0, SAMPLES, BATCH):
            part = slice(first, first + BATCH)
            opt.zero_grad()
            scores = net(x[part])
            a, b = F.mse_loss(scores, y[part]), F.binary_cross_entropy_with_logits(scores, y[part])
            (torch.exp(-s[0]) * a + s[0] + torch.exp(-s[1]) * b + s[1]).backward()
            opt.step()
    tensors = {k: v.flatten().tolist() for k, v in net.state_dict().items() if v.dtype == torch.float32}
    return tensors | {"near.log_variance": [s[0].item()], "right.log_variance": [s[1].item()]}


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
CLASS_LOSSES |= {"cross_entropy": nn.CrossEntropyLoss()}
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    parts = F.one_hot(labels.long(), 3).float()
    lines = [f' "{name}": {json.dumps(train(weights, loss, parts))}' for name, loss in LOSSES.items()]
    lines += [f' "classes: {name}": {json.dumps(train(weights, loss, labels.long()))}' for name, loss in CLASS_LOSSES.items()]
    teacher = train(weights, CLASS_LOSSES["cross_entropy"], labels.long())
    lines.append(f' "learned": {json.dumps(learned(weights))}')
    lines.append(f' "student": {json.dumps(student(teacher))}')
    out.write("{\n" + ",\n".join(lines) + "\n}\n")
