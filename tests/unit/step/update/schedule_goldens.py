#!/usr/bin/env python3
"""Prints schedule_goldens.h: the factors of torch.optim.lr_scheduler in a run of 100 steps, 10 in an epoch.
Those that PyTorch has not are transformers' and timm's. Needs torch, transformers and timm; the test needs only the header."""
import torch
from timm.scheduler import CosineLRScheduler, TanhLRScheduler
from torch.optim import lr_scheduler as s
from transformers import get_inverse_sqrt_schedule, get_wsd_schedule

STEPS, EPOCH = 100, 10


def factors(make, by_step=True, fraction=False):
    """The factor of each step. A schedule is stepped after every step or every epoch, as its users do."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = make(optimizer)
    values = []
    for step in range(STEPS):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if fraction:
            schedule.step((step + 1) / EPOCH)
        elif by_step or (step + 1) % EPOCH == 0:
            schedule.step()
    return values


def timm_factors(make):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = make(optimizer)
    return [schedule._get_lr(step)[0] for step in range(STEPS)]


cases = {
    "one_cycle": factors(lambda o: s.OneCycleLR(o, 1.0, total_steps=STEPS, cycle_momentum=False)),
    "one_cycle_linear": factors(lambda o: s.OneCycleLR(o, 1.0, total_steps=STEPS, cycle_momentum=False, pct_start=0.125,
                                                       div_factor=10, final_div_factor=100, anneal_strategy="linear")),
    "one_cycle_falls": factors(lambda o: s.OneCycleLR(o, 1.0, total_steps=STEPS, cycle_momentum=False, pct_start=0.0)),
    "exponential": factors(lambda o: s.ExponentialLR(o, 0.7), by_step=False),
    "exponential_steps": factors(lambda o: s.ExponentialLR(o, 0.97)),
    "polynomial": factors(lambda o: s.PolynomialLR(o, STEPS, power=2.5)),
    "polynomial_short": factors(lambda o: s.PolynomialLR(o, 40)),
    "multistep": factors(lambda o: s.MultiStepLR(o, [3, 6, 8], gamma=0.2), by_step=False),
    "multistep_steps": factors(lambda o: s.MultiStepLR(o, [1, 33, 99])),
    "restarts": factors(lambda o: s.CosineAnnealingWarmRestarts(o, 2), fraction=True),
    "constant": factors(lambda o: s.ConstantLR(o, 0.25, total_iters=40)),
    "linear": factors(lambda o: s.LinearLR(o, 0.2, 0.9, total_iters=40)),
    "cyclic": factors(lambda o: s.CyclicLR(o, 0.1, 1.0, step_size_up=13, cycle_momentum=False)),
    "cyclic_halves": factors(lambda o: s.CyclicLR(o, 0.25, 1.0, step_size_up=7, step_size_down=12, mode="triangular2",
                                                  cycle_momentum=False)),
    "cyclic_range": factors(lambda o: s.CyclicLR(o, 0.1, 1.0, step_size_up=10, step_size_down=5, mode="exp_range", gamma=0.97,
                                                 cycle_momentum=False)),
    "inverse_sqrt": factors(lambda o: get_inverse_sqrt_schedule(o, 0, timescale=30)),
    "wsd": factors(lambda o: get_wsd_schedule(o, 0, 20, num_training_steps=STEPS, min_lr_ratio=0.1, decay_type="linear")),
    "wsd_cosine": factors(lambda o: get_wsd_schedule(o, 0, 40, num_training_steps=STEPS, decay_type="cosine")),
    "wsd_sqrt": factors(lambda o: get_wsd_schedule(o, 0, 25, num_training_steps=STEPS, decay_type="1-sqrt")),
    "tanh": timm_factors(lambda o: TanhLRScheduler(o, STEPS, lb=-6, ub=3, lr_min=0.05, t_in_epochs=False)),
    "restarts_steps": factors(lambda o: s.CosineAnnealingWarmRestarts(o, 7, T_mult=2, eta_min=0.01)),
}
def one_cycle_momentum(make):
    """The momentum at each step."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9)
    schedule = make(optimizer)
    values = []
    for step in range(STEPS):
        values.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    return values


cases |= {
    "sequential": factors(lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, total_iters=20),
                                                       s.CosineAnnealingLR(o, 50, eta_min=0.05), s.ExponentialLR(o, 0.9)],
                                                   [20, 70])),
    "chained": factors(lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, total_iters=30), s.ExponentialLR(o, 0.97),
                                                     s.MultiStepLR(o, [50, 80], gamma=0.5)])),
    "warm_linear": factors(lambda o: s.LinearLR(o, 0.25, 1.0, total_iters=40)),
    "warm_constant": factors(lambda o: s.ConstantLR(o, 0.25, total_iters=40)),
    "lambda": factors(lambda o: s.LambdaLR(o, lambda epoch: 0.95 ** epoch), by_step=False),
    "multiplicative": factors(lambda o: s.MultiplicativeLR(o, lambda epoch: 0.8), by_step=False),
    "momentum": one_cycle_momentum(lambda o: s.OneCycleLR(o, 1.0, total_steps=STEPS, base_momentum=0.85, max_momentum=0.95)),
    "momentum_cyclic": one_cycle_momentum(lambda o: s.CyclicLR(o, 0.1, 1.0, step_size_up=13, base_momentum=0.8,
                                                               max_momentum=0.9)),
    "timm_restarts": timm_factors(lambda o: CosineLRScheduler(o, 20, lr_min=0.01, cycle_mul=1.5, cycle_decay=0.5, cycle_limit=2,
                                                              k_decay=1.5, t_in_epochs=False)),
    "timm_warm": timm_factors(lambda o: CosineLRScheduler(o, 90, lr_min=0.01, warmup_t=10, warmup_lr_init=0.1,
                                                          warmup_prefix=True, k_decay=0.7, t_in_epochs=False)),
    "cosine": factors(lambda o: s.CosineAnnealingLR(o, STEPS, eta_min=0.1)),
}
losses = [max(3 / (1 + 0.3 * i), 0.5) + 0.4 * ((i * i * 7 + i) % 11) / 11 for i in range(60)]


def plateau(mode="min", **options):
    """The factor after each epoch."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = s.ReduceLROnPlateau(optimizer, mode, **options)
    values = []
    for loss in losses:
        schedule.step(loss)
        values.append(optimizer.param_groups[0]["lr"])
    return values


cases["plateau_losses"] = losses
cases["plateau"] = plateau()
cases["plateau_cooldown"] = plateau(factor=0.5, patience=1, threshold=0.05, cooldown=2, eps=0)
cases["plateau_absolute"] = plateau(factor=0.5, patience=2, threshold=0.02, threshold_mode="abs", min_lr=0.1)
cases["plateau_larger"] = plateau("max", factor=0.5, patience=0, threshold=0.01, eps=0)
print("/* tests/unit/step/update/schedule_goldens.h: written by schedule_goldens.py. */")
print("/* clang-format off */")
for name, values in cases.items():
    print(f"static const double torch_{name}[] = {{{', '.join(repr(float(v)) for v in values)}}};")
print("/* clang-format on */")
