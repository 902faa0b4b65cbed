#!/usr/bin/env python3
"""Writes the parameters that PyTorch has after trainings with each of the losses: tests/golden/losses/steps.json, ten steps of a layer
of scores, and golden.json, those of a distillation and of two losses with learned weights.

  make_losses.py TENON OUT

TENON is the program, OUT the folder of both files. tests/golden/losses/steps.ini defines the ten steps; the layer begins with zeros, so
that the first step has the gradient at a score of 0. The name of a case is the loss of that file, behind the kind of its targets:
parts of each class where it has none, else TARGETS, or the layer. tests/integration/recipes/losses.c writes the arrays by the same formulas.
net.ini and distill.ini define the others, which begin with Tenon's initial weights, as `tenon train` with run.epochs=0 writes them.
Needs torch, torchvision and safetensors.
"""
import os, struct, subprocess, sys, tempfile
import torch
from torch import nn
import torch.nn.functional as F
from safetensors.torch import load_file
from torchvision.ops import sigmoid_focal_loss
from peers import with_version, write_lines
from small_net import Net, images, initial_weights, labels, BATCH, HERE, SAMPLES

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


def judged(x, like):
    return F.binary_cross_entropy_with_logits(x, torch.full_like(x, like))


def squared(x, like):
    return F.mse_loss(x, torch.full_like(x, like))


def cosine_distance(a, b):
    return 1 - F.cosine_similarity(a, b)


def ctc(blank):
    """Four steps, whose scores are those of the layer and the elements of x; targets of two classes above or below the blank."""
    loss = nn.CTCLoss(blank=blank)
    return lambda s, y, x: loss((s[:, None] + x.view(-1, 4, 3)).log_softmax(-1).transpose(0, 1), y - int(blank == 2),
                                torch.full((len(y),), 4), torch.full((len(y),), 2))


WEIGHTS = torch.tensor([0.5, 2, 1])

# Each a module of torch.nn, or a peer and a function of scores and targets, which may take the inputs, too.
LOSSES = {
    "l1": nn.L1Loss(),
    "mse": nn.MSELoss(),
    "huber": nn.HuberLoss(),
    "huber(delta=0.3)": nn.HuberLoss(delta=0.3),
    "smooth_l1(beta=0.3)": nn.SmoothL1Loss(beta=0.3),
    "quantile_loss(q=0.8)": ("formula", lambda x, y: torch.maximum(0.8 * (y - x), -0.2 * (y - x)).mean()),
    "poisson_nll": nn.PoissonNLLLoss(),
    "poisson_nll(full=yes) <- fc2, label * 3":
        ("torch.nn.PoissonNLLLoss", lambda x, y: F.poisson_nll_loss(x, 3 * y, full=True)),
    "poisson_nll(log_input=no) <- sigmoid(fc2), label":
        ("torch.nn.PoissonNLLLoss", lambda x, y: F.poisson_nll_loss(x.sigmoid(), y, log_input=False)),
    "gaussian_nll(full=yes) <- fc2, label, sigmoid(fc2)":
        ("torch.nn.GaussianNLLLoss", lambda x, y: F.gaussian_nll_loss(x, y, x.sigmoid(), full=True)),
    "binary_cross_entropy": nn.BCEWithLogitsLoss(),
    "binary_cross_entropy(positive=2.5)": nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.5)),
    "binary_cross_entropy <- fc2, label": nn.MultiLabelSoftMarginLoss(),
    "bce <- sigmoid(fc2), label": ("torch.nn.BCELoss", lambda x, y: F.binary_cross_entropy(x.sigmoid(), y)),
    "focal": ("torchvision.ops.sigmoid_focal_loss", lambda x, y: sigmoid_focal_loss(x, y, reduction="mean")),
    "focal(alpha=-1, gamma=1.5)":
        ("torchvision.ops.sigmoid_focal_loss", lambda x, y: sigmoid_focal_loss(x, y, -1, 1.5, reduction="mean")),
    "soft_margin <- fc2, label * 2 - 1": ("torch.nn.SoftMarginLoss", lambda x, y: F.soft_margin_loss(x, 2 * y - 1)),
    "hinge_embedding(margin=0.5) <- fc2, label * 2 - 1":
        ("torch.nn.HingeEmbeddingLoss", lambda x, y: F.hinge_embedding_loss(x, 2 * y - 1, margin=0.5)),
    "hinge <- fc2, label * 2 - 1": ("formula", lambda x, y: (1 - (2 * y - 1) * x).clamp(min=0).mean()),
    "margin_ranking(margin=0.2) <- fc2, 0.1 - fc2, label * 2 - 1":
        ("torch.nn.MarginRankingLoss", lambda x, y: F.margin_ranking_loss(x, 0.1 - x, 2 * y - 1, margin=0.2)),
    "triplet_margin(margin=0.5) <- fc2, label, fc2 * 0.5 + 0.1":
        ("torch.nn.TripletMarginLoss", lambda x, y: F.triplet_margin_loss(x, y, x * 0.5 + 0.1, margin=0.5)),
    "triplet_margin(p=3, swap=yes) <- fc2, label, fc2 * 0.5 + 0.1":
        ("torch.nn.TripletMarginLoss", lambda x, y: F.triplet_margin_loss(x, y, x * 0.5 + 0.1, p=3, swap=True)),
    "value <- relu(1 - cosine_similarity(fc2 + 0.1, label + 0.2) + cosine_similarity(fc2 + 0.1, 0.5 - label))":
        ("torch.nn.TripletMarginWithDistanceLoss", lambda x, y: F.triplet_margin_with_distance_loss(
            x + 0.1, y + 0.2, 0.5 - y, distance_function=cosine_distance)),
    "cosine_embedding(margin=0.2) <- fc2 + 0.1, label + 0.2, label[:, 0] * 2 - 1":
        ("torch.nn.CosineEmbeddingLoss", lambda x, y: F.cosine_embedding_loss(x + 0.1, y + 0.2, y[:, 0] * 2 - 1, margin=0.2)),
    "info_nce(temperature=0.8) <- fc2 + label, label + 0.5": ("formula", lambda x, y: info_nce(x + y, y + 0.5, 0.8)),
    "tversky(alpha=0.3, beta=0.7) <- sigmoid(fc2), label": ("formula", lambda x, y: tversky(x.sigmoid(), y, 0.3, 0.7)),
    "kl_div <- log_softmax(fc2), label * 0.8 + 0.1":
        ("torch.nn.KLDivLoss", lambda x, y: F.kl_div(x.log_softmax(-1), y * 0.8 + 0.1)),
    "kl_div(log_target=yes) <- log_softmax(fc2), log(label * 0.8 + 0.1)":
        ("torch.nn.KLDivLoss", lambda x, y: F.kl_div(x.log_softmax(-1), (y * 0.8 + 0.1).log(), log_target=True)),
    "distill(temperature=3) <- fc2, label * 2 - 0.5": ("formula", lambda x, y: distill(x, y * 2 - 0.5, 3)),
    "cross_entropy": nn.CrossEntropyLoss(),
    "cross_entropy(weights=[0.5, 2, 1])": nn.CrossEntropyLoss(WEIGHTS),
    "cross_entropy(weights=[0.5, 2, 1], label_smoothing=0.1)": nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.1),
    "value <- (fc2 - label) * (fc2 - label), label + 1":
        ("formula", lambda x, y: ((x - y) ** 2 * (y + 1)).sum() / (y + 1).sum()),
    "gan_real <- fc2": ("torch.nn.BCEWithLogitsLoss", lambda x, y: judged(x, 1)),
    "gan_fake <- fc2": ("torch.nn.BCEWithLogitsLoss", lambda x, y: judged(x, 0)),
    "gan_generator <- fc2": ("torch.nn.BCEWithLogitsLoss", lambda x, y: judged(x, 1)),
    "gan_real(kind=least_squares) <- fc2": ("torch.nn.MSELoss", lambda x, y: squared(x, 1)),
    "gan_fake(kind=least_squares) <- fc2 + 0.5": ("torch.nn.MSELoss", lambda x, y: squared(x + 0.5, 0)),
    "gan_generator(kind=hinge) <- fc2": ("formula", lambda x, y: -x.mean()),
    "gan_real(kind=hinge) <- fc2": ("formula", lambda x, y: (1 - x).clamp(min=0).mean()),
    "gan_fake(kind=wasserstein) <- fc2": ("formula", lambda x, y: x.mean()),
    "classes: cross_entropy": nn.CrossEntropyLoss(),
    "classes: cross_entropy(label_smoothing=0.1)": nn.CrossEntropyLoss(label_smoothing=0.1),
    "classes: cross_entropy(weights=[0.5, 2, 1])": nn.CrossEntropyLoss(WEIGHTS),
    "classes: cross_entropy(weights=[0.5, 2, 1], label_smoothing=0.1)": nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.1),
    "classes: cross_entropy(weights=[0.5, 2, 1], ignore=2)": nn.CrossEntropyLoss(WEIGHTS, ignore_index=2),
    "classes: cross_entropy(weights=[0.5, 2, 1], ignore=1) <- log_softmax(fc2), label":
        ("torch.nn.NLLLoss", lambda x, y: F.nll_loss(x.log_softmax(-1), y, WEIGHTS, ignore_index=1)),
    "classes: cross_entropy(z_loss=0.01)": ("formula", with_z(nn.CrossEntropyLoss(), 0.01)),
    "classes: cross_entropy(z_loss=0.01, label_smoothing=0.1, ignore=2)":
        ("formula", with_z(nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=2), 0.01, 2)),
    "classes: multi_margin": nn.MultiMarginLoss(),
    "classes: multi_margin(p=2, margin=0.5)": nn.MultiMarginLoss(p=2, margin=0.5),
    "classes: distill(temperature=3, alpha=0.7) <- fc2, iota([1, 3], axis=1, dtype=f32) * cast(label, to=f32)[:, None], label":
        ("formula", lambda x, y: 0.7 * distill(x, torch.arange(3.) * y[:, None], 3) + 0.3 * F.cross_entropy(x, y)),
    "adaptive_log_softmax(8, cutoffs=[3, 5], div_value=2, head_bias=yes): cross_entropy":
        nn.AdaptiveLogSoftmaxWithLoss(12, 8, [3, 5], div_value=2, head_bias=True),
    "labels: multi_label_margin": nn.MultiLabelMarginLoss(),
    "sequence: ctc <- fc2[:, None] + reshape(x, dims=[4, 3]), label": ("torch.nn.CTCLoss", ctc(0)),
    "sequence: ctc(blank=2) <- fc2[:, None] + reshape(x, dims=[4, 3]), label - 1": ("torch.nn.CTCLoss", ctc(2)),
}

ROWS, ROWS_BATCH = 20, 4
rows = torch.tensor([[((i * 37 + j * 11 + i * j * 5) % 251) / 256 - 0.5 for j in range(12)] for i in range(ROWS)])
classes = torch.tensor([(i * i + i // 3) % 3 for i in range(ROWS)])
TARGETS = {
    "": F.one_hot(classes, 3).float(),
    "classes": classes,
    "labels": torch.tensor([[k, (k + 1) % 3 if i % 2 else -1, -1] for i, k in enumerate(classes.tolist())]),
    # Each batch has each cluster: PyTorch's momentum leaves out a weight that has no gradient.
    "adaptive_log_softmax": torch.tensor([[i // 4 % 3, 3 + i // 8 % 2, 5 + i // 4 % 3, i * 5 % 8][i % 4] for i in range(ROWS)]),
    "sequence": torch.tensor([[1 + k % 2, 1 + i // 2 % 2] for i, k in enumerate(classes.tolist())]),
}


def initial_layer(tenon, layer):
    """The weights that Tenon gives a layer in the place of that of steps.ini."""
    changes = {"linear(3, init=zeros, bias_init=zeros)": layer, "parts.bin f32[3]": "adaptive.bin i32[]", "label: f32[3]": "label: i32[]",
               "loss = l1": "loss = cross_entropy"}
    text = open(os.path.join(HERE, "losses", "steps.ini")).read()
    for old, new in changes.items():
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "net.ini"), "w").write(text)
        open(os.path.join(folder, "x.bin"), "wb").write(struct.pack(f"<{rows.numel()}f", *rows.flatten().tolist()))
        open(os.path.join(folder, "adaptive.bin"), "wb").write(struct.pack(f"<{ROWS}i", *TARGETS["adaptive_log_softmax"].tolist()))
        subprocess.run([tenon, "train", "net.ini", "--quiet", "--set", "run.epochs=0"], cwd=folder, check=True)
        return load_file(os.path.join(folder, "runs", "net", "checkpoints", "last", "model.safetensors"))


def begin(tenon, kind, case):
    """The peer, the layer, and the loss of a batch."""
    if kind.startswith("adaptive_log_softmax"):
        case.load_state_dict({name.removeprefix("fc2."): value for name, value in initial_layer(tenon, kind).items()})
        return "torch.nn.AdaptiveLogSoftmaxWithLoss", case, lambda x, y: case(x, y).loss
    net = nn.Linear(12, 3)
    nn.init.zeros_(net.weight)
    nn.init.zeros_(net.bias)
    peer, function = case if isinstance(case, tuple) else ("torch.nn." + type(case).__name__, case)
    takes_inputs = kind == "sequence"
    return peer, net, lambda x, y: function(net(x), y, *((x,) if takes_inputs else ()))


def ten_steps(tenon, name, case):
    """The layer after two epochs of five steps."""
    kind, _, _ = name.rpartition(": ")
    peer, net, loss = begin(tenon, kind, case)
    y = TARGETS[kind.split("(")[0]]
    opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    for first in [*range(0, ROWS, ROWS_BATCH)] * 2:
        part = slice(first, first + ROWS_BATCH)
        opt.zero_grad()
        loss(rows[part], y[part]).backward()
        opt.step()
    return {"peer": with_version(peer)} | {"fc2." + k: v.flatten().tolist() for k, v in net.state_dict().items()}


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


tenon = os.path.abspath(sys.argv[1])
weights = initial_weights(tenon, "losses")
teacher = train(weights, nn.CrossEntropyLoss(), labels.long())
write_lines(sys.argv[2], "golden.json", {"learned": learned(weights), "student": student(teacher)})
write_lines(sys.argv[2], "steps.json", {name: ten_steps(tenon, name, case) for name, case in LOSSES.items()})
