#!/usr/bin/env python3
"""One process of a training by DistributedDataParallel with gloo, on random data, for tests/bench/mpi_ddp.sh.

  ddp_peer.py MODEL --batch N --steps N --skip N [--threads N] [--bucket MIB] [--channels-last] [--variant compile]

The data are made before the first step, and each step is waited for, as in `tenon bench`. MODEL is gpt_char or
resnet18_32 (tests/bench/models). RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are torchrun's variables. --batch is that
of each process. Rank 0 prints the milliseconds of each step after the first `skip`.
"""
import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from make_curves import CharTransformer  # noqa: E402


class Basic(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = nn.Identity()
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.down(x))


def resnet18_32():
    blocks, cin = [], 64
    for cout, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        blocks.append(Basic(cin, cout, stride))
        cin = cout
    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def work(args):
    if args.model == "gpt_char":
        net, data = CharTransformer(), torch.randint(65, (args.batch, 65))
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
        return net, opt, data[:, :-1], data[:, 1:]
    net, data = resnet18_32(), torch.randn(args.batch, 3, 32, 32)
    if args.channels_last:
        net, data = net.to(memory_format=torch.channels_last), data.to(memory_format=torch.channels_last)
    return net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9), data, torch.randint(10, (args.batch,))


def main(args):
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    net, opt, x, y = work(args)
    if args.variant == "compile":
        net.compile()
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=args.bucket, gradient_as_bucket_view=True)
    for step in range(args.skip + args.steps):
        start = time.perf_counter()
        loss = F.cross_entropy(ddp(x).flatten(0, -2), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss.item()
        if dist.get_rank() == 0 and step >= args.skip:
            print(f"{1e3 * (time.perf_counter() - start):.2f}", flush=True)
    dist.destroy_process_group()
    # The interpreter's end takes torch's modules apart, where some of the processes abort ("terminate called without an
    # active exception", PyTorch 2.15). All steps are measured by now.
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("gpt_char", "resnet18_32"))
    for option, default in (("batch", 12), ("steps", 20), ("skip", 5), ("threads", 1), ("bucket", 25)):
        parser.add_argument("--" + option, type=int, default=default)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--variant", choices=("eager", "compile"), default="eager")
    main(parser.parse_args())
