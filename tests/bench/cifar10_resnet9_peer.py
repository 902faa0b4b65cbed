#!/usr/bin/env python3
"""Trains docs/examples/cifar10_resnet9.ini in PyTorch: the same layers, initial distributions, augmentation, loss,
optimizer, schedule, average of weights and validation. Prints a JSON object for each step, each epoch and the end.

  cifar10_resnet9_peer.py FOLDER [--epochs N] [--seed N] [--threads N] [--variant eager|channels_last|compile|both]
                          [--loader folder|memory] [--max-steps N] [--weights FILE] [--eval FILE]
                          [--epoch N] [--ema DECAY] [--sharpness RHO] [--adaptive] [--optimizer sgd|muon] [--products bf16|f32] [--width N]

FOLDER has train/ and test/, each with a folder of pictures per class. --loader folder reads by torchvision's ImageFolder
and a DataLoader with two workers, which decode each picture in each epoch; memory decodes all pictures before the first
step and augments whole batches as tensors. --max-steps is for measurements: the run ends there, without validation.
--epoch is [data.train] epoch: so many pictures an epoch, the next ones in the next. --sharpness and --adaptive are those of [optimizer], with
eta = 0.01: both passes have the same batch, and the running statistics are those of the first. --optimizer muon is that of `muon` with
adjust=match_rms_adamw lr=0.004 weight_decay=0.05 for the convolutions, as matrices, and AdamW for all else; PyTorch's products are bf16. --width is the number of
channels of the first convolution.
--weights begins with a checkpoint of Tenon (model.safetensors); --eval only validates one. Needs torch, torchvision; for checkpoints safetensors.
"""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torchvision import transforms

LR, BATCH = 0.1, 128
MUON_LR, MUON_DECAY = 0.004, 0.05
MEASURED = 64 * BATCH  # pictures that a measurement decodes
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Unit(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(inputs, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a, self.b = Unit(channels, channels), Unit(channels, channels)

    def forward(self, x):
        return x + self.b(self.a(x))


class ResNet9(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.prep = Unit(3, n)
        self.layer1 = nn.Sequential(Unit(n, 2 * n), nn.MaxPool2d(2), Residual(2 * n))
        self.layer2 = nn.Sequential(Unit(2 * n, 4 * n), nn.MaxPool2d(2))
        self.layer3 = nn.Sequential(Unit(4 * n, 8 * n), nn.MaxPool2d(2), Residual(8 * n))
        self.fc = nn.Linear(8 * n, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.prep(x))))
        return self.fc(F.max_pool2d(x, 4).flatten(1))


def average(most):
    """Tenon's rule of `ema`; AveragedModel copies the values of the first update itself."""
    def update(averages, values, n):
        if averages[0].is_floating_point():
            decay = min(most, (1 + n.item()) / (10 + n.item()))
            torch._foreach_lerp_(averages, values, 1 - decay)
        else:
            torch._foreach_copy_(averages, values)
    return update


# ---- optimizers ----


class Muon:
    """Convolutions by torch.optim.Muon, which takes matrices alone: the first dimension, and all others; the rest by AdamW."""

    def __init__(self, net, products):
        self.products = products
        self.convolutions = [p for p in net.parameters() if p.dim() == 4]
        self.matrices = [nn.Parameter(p.data.view(len(p), -1)) for p in self.convolutions]
        self.parts = [torch.optim.Muon(self.matrices, lr=MUON_LR, weight_decay=MUON_DECAY, adjust_lr_fn="match_rms_adamw"),
                      torch.optim.AdamW([p for p in net.parameters() if p.dim() != 4], lr=MUON_LR, weight_decay=MUON_DECAY)]

    def step(self):
        for matrix, p in zip(self.matrices, self.convolutions):
            matrix.grad = p.grad.reshape(len(p), -1)
        torch.bfloat16, narrow = self.products, torch.bfloat16
        for part in self.parts:
            part.step()
        torch.bfloat16 = narrow


def perturb(parameters, rho, adaptive):
    """Adds rho t^2 g / |t g| to the parameters, t = 1 or |w| + 0.01, and returns what was added."""
    with torch.no_grad():
        scales = [p.abs() + 0.01 if adaptive else torch.ones_like(p) for p in parameters]
        norm = torch.stack([(t * p.grad).norm() for p, t in zip(parameters, scales)]).norm()
        added = [t * t * p.grad * (rho / (norm + 1e-12)) for p, t in zip(parameters, scales)]
        torch._foreach_add_(parameters, added)
    return added


def set_momentum(net, momentum):
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = momentum


def differentiate(args, net, forward, x, y):
    """The loss of a batch, and its gradients, or those at the perturbed parameters."""
    net.zero_grad()
    loss = forward(x, y)
    loss.backward()
    if args.sharpness:
        parameters = list(net.parameters())
        added = perturb(parameters, args.sharpness, args.adaptive)
        net.zero_grad()
        set_momentum(net, 0)
        forward(x, y).backward()
        set_momentum(net, 0.1)
        torch._foreach_sub_([p.data for p in parameters], added)
    return loss


# ---- pictures ----


class Memory:
    """All pictures, or a number of them drawn at random, as one tensor of u8; batches are augmented as tensors."""

    def __init__(self, folder, training, number=0, epoch=0):
        data = torchvision.datasets.ImageFolder(folder, transforms.PILToTensor())
        chosen = torch.randperm(len(data))[:number].tolist() if number else range(len(data))
        self.images = torch.stack([data[i][0] for i in chosen])
        self.labels = torch.tensor([data.targets[i] for i in chosen])
        self.training, self.epoch, self.order = training, epoch or len(self.labels), torch.empty(0, dtype=torch.long)
        self.mean, self.std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))

    def __len__(self):
        return self.epoch // BATCH if self.training else -(-len(self.labels) // BATCH)

    def augmented(self, images):
        n = len(images)
        images = F.pad(images, (4, 4, 4, 4))
        y, x = torch.randint(0, 9, (n, 1)) + torch.arange(32), torch.randint(0, 9, (n, 1)) + torch.arange(32)
        x = torch.where(torch.rand(n, 1) < 0.5, x.flip(1), x)
        return images[torch.arange(n)[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)

    def __iter__(self):
        if self.training and len(self.order) < self.epoch:
            self.order = torch.cat([self.order, torch.randperm(len(self.labels))])
        order = self.order[:self.epoch] if self.training else torch.arange(len(self.labels))
        self.order = self.order[self.epoch:]
        for step in range(len(self)):
            chosen = order[step * BATCH:(step + 1) * BATCH]
            images = self.augmented(self.images[chosen]) if self.training else self.images[chosen]
            yield (images.float() / 255 - self.mean) / self.std, self.labels[chosen]


def folder_loader(folder, training, number=0, epoch=0):
    first = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()] if training else []
    chain = transforms.Compose([*first, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    return torch.utils.data.DataLoader(torchvision.datasets.ImageFolder(folder, chain), BATCH, shuffle=training,
                                       num_workers=2, drop_last=training, persistent_workers=True)


# ---- training ----


def load(net, path):
    from safetensors.torch import load_file
    missing, unexpected = net.load_state_dict(load_file(path), strict=False)
    assert not unexpected and all(m.endswith("num_batches_tracked") for m in missing), (missing, unexpected)


def validate(net, batches, layout):
    """Mean loss and share of pictures whose class is found."""
    net.eval()
    loss = right = n = 0
    with torch.inference_mode():
        for x, y in batches:
            scores = net(x.to(memory_format=layout))
            loss += F.cross_entropy(scores, y, label_smoothing=0.1, reduction="sum").item()
            right += (scores.argmax(1) == y).sum().item()
            n += len(y)
    return {"loss": loss / n, "accuracy": right / n, "samples": n}


def say(**values):
    print(json.dumps(values), flush=True)


def train(args, net, training, validation, layout):
    averaged = AveragedModel(net, multi_avg_fn=average(args.ema), use_buffers=True)
    muon = args.optimizer == "muon"
    opt = Muon(net, torch.bfloat16 if args.products == "bf16" else torch.float32) if muon else torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9, nesterov=True, weight_decay=5e-4)
    parts = opt.parts if muon else [opt]
    schedules = [torch.optim.lr_scheduler.OneCycleLR(part, MUON_LR if muon else LR, total_steps=args.epochs * len(training),
                                                     pct_start=0.2, cycle_momentum=False) for part in parts]

    def forward(x, y):
        return F.cross_entropy(net(x), y, label_smoothing=0.1)
    if args.variant in ("compile", "both"):
        forward = torch.compile(forward)
    start, step = time.perf_counter(), 0
    for epoch in range(1, args.epochs + 1):
        net.train()
        total = 0.0
        for x, y in training:
            lr = parts[0].param_groups[0]["lr"]
            loss = differentiate(args, net, forward, x.to(memory_format=layout), y)
            opt.step()
            for schedule in schedules:
                schedule.step()
            averaged.update_parameters(net)
            step += 1
            total += loss.item()
            say(event="step", step=step, seconds=round(time.perf_counter() - start, 4), lr=lr, loss=loss.item())
            if step == args.max_steps:
                return
        if args.max_steps:
            continue
        valid = validate(averaged.module, validation, layout)
        say(event="epoch", epoch=epoch, step=step, seconds=round(time.perf_counter() - start, 3),
            train_loss=total / len(training), valid=valid)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--variant", choices=["eager", "channels_last", "compile", "both"], default="both")
    parser.add_argument("--loader", choices=["folder", "memory"], default="folder")
    parser.add_argument("--max-steps", type=int, default=0)
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--ema", type=float, default=0.999)
    parser.add_argument("--sharpness", type=float, default=0)
    parser.add_argument("--adaptive", action="store_true")
    parser.add_argument("--optimizer", choices=["sgd", "muon"], default="sgd")
    parser.add_argument("--products", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--weights")
    parser.add_argument("--eval")
    args = parser.parse_args()
    if args.epoch and args.loader != "memory":
        parser.error("--epoch needs --loader memory")
    if args.optimizer == "muon" and args.variant in ("channels_last", "both"):
        parser.error("--optimizer muon needs --variant eager or compile: it sees convolutions as matrices of rows")
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    layout = torch.channels_last if args.variant in ("channels_last", "both") else torch.contiguous_format
    net = ResNet9(args.width)
    if args.weights or args.eval:
        load(net, args.weights or args.eval)
    net = net.to(memory_format=layout)
    make = Memory if args.loader == "memory" else folder_loader
    validation = None if args.max_steps else make(os.path.join(args.folder, "test"), False)
    say(event="start", peer="torch " + torch.__version__, torchvision=torchvision.__version__, threads=torch.get_num_threads(),
        **{k: v for k, v in vars(args).items() if k not in ("folder", "threads", "weights", "eval")},
        parameters=sum(p.numel() for p in net.parameters()))
    if args.eval:
        say(event="eval", valid=validate(net, validation, layout))
    else:
        train(args, net, make(os.path.join(args.folder, "train"), True, MEASURED if args.max_steps else 0, args.epoch), validation, layout)


if __name__ == "__main__":
    main()
