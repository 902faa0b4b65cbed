#!/usr/bin/env python3
"""Writes the parameters after ten steps, and the learning rate of each, under the schedules of PyTorch, timm and transformers:
tests/golden/schedules/golden.json.

  make_schedules.py OUT

OUT is the folder of golden.json. tests/golden/schedules/net.ini defines the training: two steps in an epoch.
tests/integration/recipes/schedules.c writes the rows by the same formula. The name of a case is its type, and keys of
[schedule]. Needs torch, timm and transformers.
"""
import sys
import torch
from timm.scheduler import CosineLRScheduler, TanhLRScheduler
from torch.nn.functional import mse_loss
from torch.optim import lr_scheduler as s
from transformers import get_inverse_sqrt_schedule, get_wsd_schedule
from peers import peer_of, with_version, write_lines

ROWS, BATCH, EPOCHS, STEPS, RATE = 8, 4, 5, 10, 0.1
numbers = torch.tensor([[((i * 37 + j * 11 + i * j * 5) % 251) / 128 - 1 for j in range(12)] for i in range(ROWS)])
x, y = numbers[:, :8], numbers[:, 8:]


def by_step(make, name=None):
    """A schedule that follows each step; `name`: the function that makes it, where its class is another."""
    def begin(optimizer):
        schedule = make(optimizer)
        return with_version(name) if name else peer_of(schedule), lambda step, valid: schedule.step()
    return begin


def by_epoch(make):
    def begin(optimizer):
        schedule = make(optimizer)
        return peer_of(schedule), lambda step, valid: (step + 1) % (STEPS // EPOCHS) == 0 and schedule.step()
    return begin


def by_validation(make):
    def begin(optimizer):
        schedule = make(optimizer)
        return peer_of(schedule), lambda step, valid: (step + 1) % (STEPS // EPOCHS) == 0 and schedule.step(valid())
    return begin


def by_timm(make):
    """timm's schedules take the number of the update that follows."""
    def begin(optimizer):
        schedule = make(optimizer)
        schedule.step_update(0)
        return peer_of(schedule), lambda step, valid: schedule.step_update(step + 1)
    return begin


CASES = {
    "constant factor=0.25 steps=4": by_step(lambda o: s.ConstantLR(o, 0.25, total_iters=4)),
    "constant warmup=4 warmup_start=0.25": by_step(lambda o: s.LinearLR(o, 0.25, 1.0, total_iters=4)),
    "linear start_factor=0.2 end_factor=0.9 steps=6": by_step(lambda o: s.LinearLR(o, 0.2, 0.9, total_iters=6)),
    "cosine floor=0.1": by_step(lambda o: s.CosineAnnealingLR(o, STEPS, eta_min=0.1 * RATE)),
    "cosine floor=0.1 k_decay=1.5":
        by_timm(lambda o: CosineLRScheduler(o, STEPS, lr_min=0.1 * RATE, k_decay=1.5, t_in_epochs=False)),
    "cosine_restarts t_0=3 t_mult=2 floor=0.01 unit=steps":
        by_step(lambda o: s.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.01 * RATE)),
    "cosine_restarts t_0=3 t_mult=1.5 decay=0.5 cycles=2 floor=0.01 unit=steps":
        by_timm(lambda o: CosineLRScheduler(o, 3, lr_min=0.01 * RATE, cycle_mul=1.5, cycle_decay=0.5, cycle_limit=2,
                                            t_in_epochs=False)),
    "polynomial power=2.5": by_step(lambda o: s.PolynomialLR(o, STEPS, power=2.5)),
    "step every_epochs=2 gamma=0.5": by_epoch(lambda o: s.StepLR(o, 2, gamma=0.5)),
    "step every_steps=3 gamma=0.5": by_step(lambda o: s.StepLR(o, 3, gamma=0.5)),
    "multistep milestones=[1,3] gamma=0.2": by_epoch(lambda o: s.MultiStepLR(o, [1, 3], gamma=0.2)),
    "exponential gamma=0.7": by_epoch(lambda o: s.ExponentialLR(o, 0.7)),
    "exponential gamma=0.9 unit=steps": by_step(lambda o: s.ExponentialLR(o, 0.9)),
    "cyclic floor=0.2 steps_up=3":
        by_step(lambda o: s.CyclicLR(o, 0.2 * RATE, RATE, step_size_up=3, cycle_momentum=False)),
    "cyclic floor=0.2 steps_up=2 steps_down=3 mode=triangular2":
        by_step(lambda o: s.CyclicLR(o, 0.2 * RATE, RATE, step_size_up=2, step_size_down=3, mode="triangular2",
                                     cycle_momentum=False)),
    "cyclic floor=0.2 steps_up=2 mode=exp_range gamma=0.9":
        by_step(lambda o: s.CyclicLR(o, 0.2 * RATE, RATE, step_size_up=2, mode="exp_range", gamma=0.9, cycle_momentum=False)),
    "one_cycle": by_step(lambda o: s.OneCycleLR(o, RATE, total_steps=STEPS, cycle_momentum=False)),
    "one_cycle pct_start=0.4 anneal=linear":
        by_step(lambda o: s.OneCycleLR(o, RATE, total_steps=STEPS, pct_start=0.4, anneal_strategy="linear", cycle_momentum=False)),
    "wsd decay=0.4 floor=0.1":
        by_step(lambda o: get_wsd_schedule(o, 0, 4, num_training_steps=STEPS, min_lr_ratio=0.1, decay_type="linear"),
                "transformers.get_wsd_schedule"),
    "wsd decay=0.5 shape=cosine":
        by_step(lambda o: get_wsd_schedule(o, 0, 5, num_training_steps=STEPS, decay_type="cosine"), "transformers.get_wsd_schedule"),
    "inverse_sqrt timescale=3":
        by_step(lambda o: get_inverse_sqrt_schedule(o, 0, timescale=3), "transformers.get_inverse_sqrt_schedule"),
    "tanh lb=-6 ub=3 floor=0.05":
        by_timm(lambda o: TanhLRScheduler(o, STEPS, lb=-6, ub=3, lr_min=0.05 * RATE, t_in_epochs=False)),
    "plateau patience=0 threshold=0.9 gamma=0.5":
        by_validation(lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=0, threshold=0.9)),
    "sequential schedules=[linear(0.1,1),exponential(0.9,unit=steps)] milestones=[4] unit=steps":
        by_step(lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, total_iters=4), s.ExponentialLR(o, 0.9)], [4])),
    "chained schedules=[constant(0.1,3),exponential(0.9,unit=steps)]":
        by_step(lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, total_iters=3), s.ExponentialLR(o, 0.9)])),
}


def train(begin):
    net = torch.nn.Linear(8, 4)
    torch.nn.init.zeros_(net.weight)
    torch.nn.init.zeros_(net.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9)
    peer, follow = begin(optimizer)
    rates = []

    def valid():
        with torch.no_grad():
            return mse_loss(net(x), y).item()

    for step in range(STEPS):
        part = slice(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        mse_loss(net(x[part]), y[part]).backward()
        optimizer.step()
        follow(step, valid)
    return {"peer": peer, "lr": rates, "fc.weight": net.weight.flatten().tolist(), "fc.bias": net.bias.tolist()}


write_lines(sys.argv[1], "golden.json", {name: train(begin) for name, begin in CASES.items()})
