#!/usr/bin/env python3
"""Trains docs/examples/cifar10_resnet9.ini in PyTorch: the same layers, initial distributions, augmentation, loss,
optimizer, schedule, average of weights and validation. Prints a JSON object for each step, each epoch and the end.

  cifar10_resnet9_peer.py FOLDER [--epochs N] [--seed N] [--threads N] [--variant eager|channels_last|compile|both]
                          [--loader folder|memory] [--max-steps N] [--weights FILE] [--eval FILE]

FOLDER has train/ and test/, each with a folder of pictures per class. --loader folder reads by torchvision's ImageFolder
and a DataLoader with two workers, which decode each picture in each epoch; memory decodes all pictures before the first
step and augments whole batches as tensors. --max-steps is for measurements: the run ends there, without validation.
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

LR, EMA, BATCH = 0.1, 0.999, 128
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
    def __init__(self):
        super().__init__()
        self.prep = Unit(3, 32)
        self.layer1 = nn.Sequential(Unit(32, 64), nn.MaxPool2d(2), Residual(64))
        self.layer2 = nn.Sequential(Unit(64, 128), nn.MaxPool2d(2))
        self.layer3 = nn.Sequential(Unit(128, 256), nn.MaxPool2d(2), Residual(256))
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.prep(x))))
        return self.fc(F.max_pool2d(x, 4).flatten(1))


def average(averages, values, n):
    """Tenon's rule of `ema`; AveragedModel copies the values of the first update itself."""
    if averages[0].is_floating_point():
        decay = min(EMA, (1 + n.item()) / (10 + n.item()))
        torch._foreach_lerp_(averages, values, 1 - decay)
    else:
        torch._foreach_copy_(averages, values)


# ---- pictures ----


class Memory:
    """All pictures, or a number of them drawn at random, as one tensor of u8; batches are augmented as tensors."""

    def __init__(self, folder, training, number=0):
        data = torchvision.datasets.ImageFolder(folder, transforms.PILToTensor())
        chosen = torch.randperm(len(data))[:number].tolist() if number else range(len(data))
        self.images = torch.stack([data[i][0] for i in chosen])
        self.labels = torch.tensor([data.targets[i] for i in chosen])
        self.training = training
        self.mean, self.std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))

    def __len__(self):
        return len(self.labels) // BATCH if self.training else -(-len(self.labels) // BATCH)

    def augmented(self, images):
        n = len(images)
        images = F.pad(images, (4, 4, 4, 4))
        y, x = torch.randint(0, 9, (n, 1)) + torch.arange(32), torch.randint(0, 9, (n, 1)) + torch.arange(32)
        x = torch.where(torch.rand(n, 1) < 0.5, x.flip(1), x)
        return images[torch.arange(n)[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)

    def __iter__(self):
        order = torch.randperm(len(self.labels)) if self.training else torch.arange(len(self.labels))
        for step in range(len(self)):
            chosen = order[step * BATCH:(step + 1) * BATCH]
            images = self.augmented(self.images[chosen]) if self.training else self.images[chosen]
            yield (images.float() / 255 - self.mean) / self.std, self.labels[chosen]


def folder_loader(folder, training, number=0):
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
    averaged = AveragedModel(net, multi_avg_fn=average, use_buffers=True)
    opt = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, LR, total_steps=args.epochs * len(training), pct_start=0.2,
                                                   cycle_momentum=False)

    def forward(x, y):
        return F.cross_entropy(net(x), y, label_smoothing=0.1)
    if args.variant in ("compile", "both"):
        forward = torch.compile(forward)
    start, step = time.perf_counter(), 0
    for epoch in range(1, args.epochs + 1):
        net.train()
        total = 0.0
        for x, y in training:
            lr = opt.param_groups[0]["lr"]
            loss = forward(x.to(memory_format=layout), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
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
    parser.add_argument("--weights")
    parser.add_argument("--eval")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    layout = torch.channels_last if args.variant in ("channels_last", "both") else torch.contiguous_format
    net = ResNet9()
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
        train(args, net, make(os.path.join(args.folder, "train"), True, MEASURED if args.max_steps else 0), validation, layout)


if __name__ == "__main__":
    main()
