#!/usr/bin/env python3
"""Writes the parameters that the optimizers of PyTorch, timm and schedulefree reach in ten updates by given gradients:
tests/golden/optimizers/golden.json; and the factors of learning rates that timm gives the layers of two models: layers.json.

  make_optimizers.py OUT

OUT is the folder of both files. tests/golden/optimizers/net.ini defines the model, and tests/integration/recipes/optimizers.c
writes the gradients by the same formula. The name of a case is its options, of [optimizer] where no section is named. Needs
torch, timm and schedulefree.
"""
import json, math, os, sys
import torch
import schedulefree
import timm as models
import timm.optim as timm
from timm.optim._param_groups import param_groups_layer_decay
from timm.utils import adaptive_clip_grad
from peers import peer_of, write_lines

UPDATES = 10
gradients = torch.tensor([[((t * 37 + i * 11 + t * i * 5) % 251) / 64 - 2 for i in range(16)] for t in range(UPDATES)]) / 8
T = torch.optim


class free:
    """The average is what a checkpoint has."""
    def __init__(self, kind, parameters, **options):
        self.optimizer = kind(parameters, **options)

    def step(self):
        self.optimizer.train()
        self.optimizer.step()
        self.optimizer.eval()


class muon:
    """Matrices by Muon, with its iteration in bf16 or f32; vectors by AdamW."""
    def __init__(self, parameters, lr, weight_decay, products=torch.bfloat16, **options):
        self.products = products
        self.parts = [T.Muon([p for p in parameters if p.dim() == 2], lr=lr, weight_decay=weight_decay, **options),
                      T.AdamW([p for p in parameters if p.dim() < 2], lr=lr, weight_decay=weight_decay)]

    def step(self):
        torch.bfloat16, narrow = self.products, torch.bfloat16
        for part in self.parts:
            part.step()
        torch.bfloat16 = narrow


class scheduled:
    """A schedule moves the options of the optimizer after each update."""
    def __init__(self, optimizer, schedule):
        self.optimizer, self.schedule = optimizer, schedule(optimizer)

    def step(self):
        self.optimizer.step()
        self.schedule.step()


class moved:
    """A schedule that PyTorch lacks: `options(update, group)` are those of an update of a group."""
    def __init__(self, optimizer, options):
        self.optimizer, self.options, self.update = optimizer, options, 0

    def step(self):
        for i, group in enumerate(self.optimizer.param_groups):
            group.update(self.options(self.update, i))
        self.optimizer.step()
        self.update += 1


def cosine(update):
    return 0.5 + 0.5 * math.cos(math.pi * update / UPDATES)


def one_cycle(optimizer):
    return T.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=UPDATES)


SCHEDULE = ("schedule.type=one_cycle schedule.{0}.type=one_cycle schedule.{0}.div_factor=0 schedule.{0}.toward=0.95")
class ademamix:
    """A second mean (Pagliardini, Ablin, Grangier, 2025, algorithm 1), with the rise of alpha and of beta3 that its authors publish."""
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999, 0.9999), alpha=5.0, alpha_steps=0, beta3_steps=0, weight_decay=0.0):
        self.parameters, self.lr, self.betas, self.alpha, self.weight_decay = parameters, lr, betas, alpha, weight_decay
        self.alpha_steps, self.beta3_steps, self.count = alpha_steps, beta3_steps, 0
        self.states = [[torch.zeros_like(p) for _ in range(3)] for p in parameters]

    def slow(self):
        if self.count >= self.beta3_steps:
            return self.betas[2]
        first, last = (math.log(0.5) / math.log(beta + 1e-8) - 1 for beta in (self.betas[0], self.betas[2]))
        part = self.count / self.beta3_steps
        return 0.5 ** (1 / ((1 - part) * first + part * last + 1))

    @torch.no_grad()
    def step(self):
        self.count += 1
        (beta1, beta2, _), beta3 = self.betas, self.slow()
        alpha = self.alpha * min(self.count / self.alpha_steps, 1) if self.alpha_steps else self.alpha
        for p, (fast, slow, square) in zip(self.parameters, self.states):
            fast.mul_(beta1).add_(p.grad, alpha=1 - beta1)
            slow.mul_(beta3).add_(p.grad, alpha=1 - beta3)
            square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
            root = (square.sqrt() / math.sqrt(1 - beta2 ** self.count)).add_(1e-8)
            update = (fast.div(1 - beta1 ** self.count) + alpha * slow) / root
            p.add_(update.add_(p, alpha=self.weight_decay), alpha=-self.lr)


def ahead(optimizer, k, alpha=0.5):
    return timm.Lookahead(optimizer, k=k, alpha=alpha)


class limited:
    """Limits the gradients before each step."""
    def __init__(self, optimizer, limit):
        self.optimizer, self.limit = optimizer, limit

    def step(self):
        self.limit()
        self.optimizer.step()


def norm(parameters, most):
    torch.nn.utils.clip_grad_norm_(parameters, most)


def rates(parameters, *options):
    """A group for each of the two parameters."""
    return [dict(params=[p], **of) for p, of in zip(parameters, options)]


CASES = {
    "sgd lr=0.1": lambda p: T.SGD(p, lr=0.1),
    "sgd lr=0.1 momentum=0.9 weight_decay=0.1": lambda p: T.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "sgd lr=0.1 momentum=0.9 dampening=0.5 weight_decay=0.01":
        lambda p: T.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "sgd lr=0.1 momentum=0.8 nesterov=yes": lambda p: T.SGD(p, lr=0.1, momentum=0.8, nesterov=True),
    "adam": lambda p: T.Adam(p),
    "adam lr=0.01 beta1=0.8 beta2=0.95 epsilon=1e-6 weight_decay=0.1 amsgrad=yes":
        lambda p: T.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1, amsgrad=True),
    "adamw": lambda p: T.AdamW(p),
    "adamw lr=0.01 beta1=0.8 beta2=0.95 epsilon=1e-6 weight_decay=0.1 amsgrad=yes":
        lambda p: T.AdamW(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1, amsgrad=True),
    "nadam": lambda p: T.NAdam(p),
    "nadam lr=0.01 weight_decay=0.1 momentum_decay=0.1": lambda p: T.NAdam(p, lr=0.01, weight_decay=0.1, momentum_decay=0.1),
    "nadamw lr=0.01 weight_decay=0.1":
        lambda p: T.NAdam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda p: T.RAdam(p),
    "radam lr=0.01 beta2=0.8 weight_decay=0.1": lambda p: T.RAdam(p, lr=0.01, betas=(0.9, 0.8), weight_decay=0.1),
    "radamw lr=0.01 beta2=0.9 weight_decay=0.1":
        lambda p: T.RAdam(p, lr=0.01, betas=(0.9, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
    "adamax": lambda p: T.Adamax(p),
    "adamax lr=0.02 weight_decay=0.1": lambda p: T.Adamax(p, lr=0.02, weight_decay=0.1),
    "adagrad": lambda p: T.Adagrad(p),
    "adagrad lr=0.1 lr_decay=0.1 weight_decay=0.1 initial_accumulator_value=0.5":
        lambda p: T.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5),
    "adadelta": lambda p: T.Adadelta(p),
    "adadelta lr=0.5 rho=0.8 weight_decay=0.1": lambda p: T.Adadelta(p, lr=0.5, rho=0.8, weight_decay=0.1),
    "rmsprop": lambda p: T.RMSprop(p),
    "rmsprop lr=0.02 alpha=0.9 momentum=0.8 centered=yes weight_decay=0.1":
        lambda p: T.RMSprop(p, lr=0.02, alpha=0.9, momentum=0.8, centered=True, weight_decay=0.1),
    "rmsprop_tf": lambda p: timm.RMSpropTF(p),
    "rmsprop_tf lr=0.02 momentum=0.8 centered=yes weight_decay=0.1":
        lambda p: timm.RMSpropTF(p, lr=0.02, momentum=0.8, centered=True, weight_decay=0.1),
    "rprop": lambda p: T.Rprop(p),
    "rprop lr=0.02 eta_minus=0.4 eta_plus=1.5 step_max=0.03":
        lambda p: T.Rprop(p, lr=0.02, etas=(0.4, 1.5), step_sizes=(1e-6, 0.03)),
    "asgd": lambda p: T.ASGD(p),
    "asgd lr=0.1 lambd=0.1 alpha=0.5 t0=3 weight_decay=0.1":
        lambda p: T.ASGD(p, lr=0.1, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1),
    "lion": lambda p: timm.Lion(p),
    "lion lr=0.01 beta1=0.8 beta2=0.9 weight_decay=0.1": lambda p: timm.Lion(p, lr=0.01, betas=(0.8, 0.9), weight_decay=0.1),
    "adan": lambda p: timm.Adan(p),
    "adan lr=0.01 weight_decay=0.1": lambda p: timm.Adan(p, lr=0.01, weight_decay=0.1),
    "adanw lr=0.01 weight_decay=0.1": lambda p: timm.Adan(p, lr=0.01, weight_decay=0.1, no_prox=True),
    "adopt": lambda p: timm.Adopt(p, clip_exp=0.25),
    "adopt lr=0.01 beta2=0.9 clip_exp=0.333 weight_decay=0.1":
        lambda p: timm.Adopt(p, lr=0.01, betas=(0.9, 0.9), weight_decay=0.1, decoupled=True),
    "adabelief": lambda p: timm.AdaBelief(p, rectify=False),
    "adabelief lr=0.01 epsilon=1e-8 weight_decay=0.1 amsgrad=yes":
        lambda p: timm.AdaBelief(p, lr=0.01, eps=1e-8, weight_decay=0.1, amsgrad=True, rectify=False),
    "radabelief lr=0.01 beta2=0.9 weight_decay=0.1":
        lambda p: timm.AdaBelief(p, lr=0.01, betas=(0.9, 0.9), weight_decay=0.1),
    "ademamix": lambda p: ademamix(p),
    "ademamix lr=0.01 beta3=0.999 alpha=8 alpha_steps=20 beta3_steps=6 weight_decay=0.1":
        lambda p: ademamix(p, lr=0.01, betas=(0.9, 0.999, 0.999), alpha=8, alpha_steps=20, beta3_steps=6, weight_decay=0.1),
    "madgrad": lambda p: timm.MADGRAD(p),
    "madgrad lr=0.05 momentum=0 weight_decay=0.1": lambda p: timm.MADGRAD(p, lr=0.05, momentum=0, weight_decay=0.1),
    "madgradw lr=0.05 momentum=0.8 weight_decay=0.1":
        lambda p: timm.MADGRAD(p, lr=0.05, momentum=0.8, weight_decay=0.1, decoupled_decay=True),
    "mars": lambda p: timm.Mars(p),
    "mars lr=0.01 gamma=0.2 beta1=0.8 weight_decay=0.1 optimize_1d=yes":
        lambda p: timm.Mars(p, lr=0.01, gamma=0.2, betas=(0.8, 0.99), weight_decay=0.1, optimize_1d=True),
    "novograd": lambda p: timm.NvNovoGrad(p),
    "novograd lr=0.01 weight_decay=0.1 grad_averaging=yes amsgrad=yes":
        lambda p: timm.NvNovoGrad(p, lr=0.01, weight_decay=0.1, grad_averaging=True, amsgrad=True),
    "novogradw lr=0.01 beta2=0.8 weight_decay=0.1":
        lambda p: timm.NvNovoGrad(p, lr=0.01, betas=(0.95, 0.8), weight_decay=0.1, decoupled_decay=True),
    "sgdw lr=0.1 momentum=0.9 nesterov=yes weight_decay=0.1":
        lambda p: timm.SGDW(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "sgdw lr=0.1 momentum=0.9 weight_decay=0.1 cautious=yes":
        lambda p: timm.SGDW(p, lr=0.1, momentum=0.9, weight_decay=0.1, caution=True),
    "rmsprop_tfw lr=0.02 momentum=0.8 weight_decay=0.1":
        lambda p: timm.RMSpropTF(p, lr=0.02, momentum=0.8, weight_decay=0.1, decoupled_decay=True),
    "lamb lr=0.1 decoupled=yes weight_decay=0.1":
        lambda p: timm.Lamb(p, lr=0.1, max_grad_norm=None, weight_decay=0.1, decoupled_decay=True),
    "adamp lr=0.01 weight_decay=0.1": lambda p: timm.AdamP(p, lr=0.01, weight_decay=0.1),
    "adamp lr=0.01 delta=4 nesterov=yes weight_decay=0.1": lambda p: timm.AdamP(p, lr=0.01, delta=4, nesterov=True, weight_decay=0.1),
    "adamp lr=0.01 delta=1.2 wd_ratio=0.5 weight_decay=0.1":
        lambda p: timm.AdamP(p, lr=0.01, delta=1.2, wd_ratio=0.5, weight_decay=0.1),
    "sgdp lr=0.05 momentum=0.9 dampening=0.2 delta=1.2 weight_decay=0.1":
        lambda p: timm.SGDP(p, lr=0.05, momentum=0.9, dampening=0.2, delta=1.2, weight_decay=0.1),
    "sgdp lr=0.05 momentum=0.9 delta=4 nesterov=yes weight_decay=0.1":
        lambda p: timm.SGDP(p, lr=0.05, momentum=0.9, delta=4, nesterov=True, weight_decay=0.1),
    "adafactor_bv lr=0.1 weight_decay=0.1":
        lambda p: timm.AdafactorBigVision(p, lr=0.1, weight_decay=0.1, momentum_dtype=torch.float32),
    "adafactor_bv lr=0.1 min_dim_size_to_factor=2 momentum=0.8 clipping_threshold=0.7 unscaled_wd=yes weight_decay=0.01":
        lambda p: timm.AdafactorBigVision(p, lr=0.1, min_dim_size_to_factor=2, momentum=0.8, clipping_threshold=0.7,
                                          unscaled_wd=True, weight_decay=0.01, momentum_dtype=torch.float32),
    "adafactor_bv lr=0.1 min_dim_size_to_factor=2 momentum=0":
        lambda p: timm.AdafactorBigVision(p, lr=0.1, min_dim_size_to_factor=2, momentum=None),
    # timm's older forms, and its corrected weight decay: that of lr ** 2, which a schedule of weight_decay gives
    "nadam lr=0.01": lambda p: timm.NAdamLegacy(p, lr=0.01),
    "radam lr=0.01": lambda p: timm.RAdamLegacy(p, lr=0.01),
    "adamw lr=0.1 weight_decay=0.1 schedule.type=cosine schedule.weight_decay.type=cosine":
        lambda p: moved(timm.AdamWLegacy(p, lr=0.1, weight_decay=0.1, corrected_weight_decay=True), lambda t, g: {"lr": 0.1 * cosine(t)}),
    "laprop": lambda p: timm.LaProp(p),
    "laprop lr=0.01 weight_decay=0.1": lambda p: timm.LaProp(p, lr=0.01, weight_decay=0.1),
    "adafactor": lambda p: T.Adafactor(p),
    "adafactor lr=0.1 beta2_decay=-0.5 epsilon2=0.1 d=1.5 weight_decay=0.1":
        lambda p: T.Adafactor(p, lr=0.1, beta2_decay=-0.5, eps=(None, 0.1), d=1.5, weight_decay=0.1),
    "muon lr=0.02": lambda p: muon(p, lr=0.02, weight_decay=0.1),
    "muon lr=0.02 nesterov=no momentum=0.8 steps=3 adjust=match_rms_adamw weight_decay=0.01":
        lambda p: muon(p, lr=0.02, weight_decay=0.01, nesterov=False, momentum=0.8, ns_steps=3, adjust_lr_fn="match_rms_adamw"),
    "muon lr=0.02 products=f32": lambda p: muon(p, lr=0.02, weight_decay=0.1, products=torch.float32),
    "muon lr=0.02 products=f32 nesterov=no momentum=0.8 steps=3 adjust=match_rms_adamw weight_decay=0.01":
        lambda p: muon(p, lr=0.02, weight_decay=0.01, products=torch.float32, nesterov=False, momentum=0.8, ns_steps=3,
                       adjust_lr_fn="match_rms_adamw"),
    "muon lr=0.02 adamw=yes weight_decay=0.1": lambda p: T.AdamW(p, lr=0.02, weight_decay=0.1),
    "schedule_free_adamw lr=0.02 weight_decay=0.1": lambda p: free(schedulefree.AdamWScheduleFree, p, lr=0.02, weight_decay=0.1),
    "schedule_free_adamw beta1=0.8 weight_power=1":
        lambda p: free(schedulefree.AdamWScheduleFree, p, betas=(0.8, 0.999), weight_lr_power=1.0),
    "schedule_free_sgd lr=0.1 momentum=0.8 weight_decay=0.1":
        lambda p: free(schedulefree.SGDScheduleFree, p, lr=0.1, momentum=0.8, weight_decay=0.1),
    "lamb": lambda p: timm.Lamb(p, max_grad_norm=None, weight_decay=0.01),
    "lamb lr=0.1 trust_clip=yes always_adapt=yes weight_decay=0":
        lambda p: timm.Lamb(p, lr=0.1, max_grad_norm=None, trust_clip=True, always_adapt=True, weight_decay=0),
    "lars": lambda p: timm.Lars(p),
    "lars lr=0.5 momentum=0.9 nesterov=yes weight_decay=0.01":
        lambda p: timm.Lars(p, lr=0.5, momentum=0.9, nesterov=True, weight_decay=0.01),
    # Words with a dot are keys of other sections.
    "sgd lr=0.1 momentum=0.85 nesterov=yes " + SCHEDULE.format("momentum"):
        lambda p: scheduled(T.SGD(p, lr=0.1, momentum=0.9, nesterov=True), one_cycle),
    "adamw lr=0.1 beta1=0.85 " + SCHEDULE.format("beta1"): lambda p: scheduled(T.AdamW(p, lr=0.1), one_cycle),
    "rmsprop lr=0.1 momentum=0.85 " + SCHEDULE.format("momentum"):
        lambda p: scheduled(T.RMSprop(p, lr=0.1, momentum=0.9), one_cycle),
    "adamw lr=0.02 weight_decay=0.04 schedule.weight_decay.type=cosine schedule.weight_decay.toward=0.4":
        lambda p: moved(T.AdamW(p, lr=0.02), lambda t, g: {"weight_decay": 0.4 - 0.36 * cosine(t)}),
    "adamw lr=0.02 group.m.match=m group.m.lr=0.05 schedule.type=cosine schedule.lr.m.type=exponential "
    "schedule.lr.m.gamma=0.7 schedule.lr.m.unit=steps":
        lambda p: moved(T.AdamW([{"params": p[:1]}, {"params": p[1:]}]),
                        lambda t, g: {"lr": 0.05 * 0.7 ** t if g else 0.02 * cosine(t)}),
    "sgd lr=0.1 momentum=0.9 group.m.match=m schedule.momentum.m.type=linear schedule.momentum.m.end_factor=0.5":
        lambda p: moved(T.SGD([{"params": p[:1]}, {"params": p[1:]}], lr=0.1, momentum=0.9),
                        lambda t, g: {"momentum": 0.9 * (1 - 0.05 * t) if g else 0.9}),
    "sgd lr=0.1 momentum=0.9 clip=0.3": lambda p: limited(T.SGD(p, lr=0.1, momentum=0.9), lambda: norm(p, 0.3)),
    "sgd lr=0.1 momentum=0.9 clip_layer=0.3":
        lambda p: limited(T.SGD(p, lr=0.1, momentum=0.9), lambda: [norm([one], 0.3) for one in p]),
    "sgd lr=0.1 momentum=0.9 clip_value=0.1 group.head.match=m group.head.clip_value=0.05 group.head.clip_layer=0.07":
        lambda p: limited(T.SGD(p, lr=0.1, momentum=0.9), lambda: [torch.nn.utils.clip_grad_value_(p[:1], 0.1),
                          torch.nn.utils.clip_grad_value_(p[1:], 0.05), norm(p[1:], 0.07)]),
    "sgd lr=0.1 momentum=0.9 clip_adaptive=0.1":
        lambda p: limited(T.SGD(p, lr=0.1, momentum=0.9), lambda: adaptive_clip_grad(p, 0.1)),
    "lamb lr=0.1 clip_adaptive=0.5 clip_epsilon=0.4 weight_decay=0.01":
        lambda p: limited(timm.Lamb(p, lr=0.1, max_grad_norm=None, weight_decay=0.01), lambda: adaptive_clip_grad(p, 0.5, eps=0.4)),
    "adamw lr=0.01 clip_adaptive=0.1 group.head.match=m group.head.clip_adaptive=0":
        lambda p: limited(T.AdamW(p, lr=0.01), lambda: adaptive_clip_grad(p[:1], 0.1)),
    "adamw lr=0.01 weight_decay=0.1 layer_decay=0.5 no_decay=yes":
        lambda p: T.AdamW(rates(p, dict(lr=0.005, weight_decay=0), dict(lr=0.01, weight_decay=0.1))),
    "adamw lr=0.01 layer_decay=0.5 no_decay=yes group.a.match=* group.a.weight_decay=0.2 group.a.lr_scale=3":
        lambda p: T.AdamW(rates(p, dict(lr=0.015, weight_decay=0.2), dict(lr=0.03, weight_decay=0.2))),
    "lars lr=0.5 momentum=0.9 weight_decay=0.01 layer_decay=0.5 no_decay=yes group.a.match=m group.a.depth=0 group.a.lr=0.7":
        lambda p: timm.Lars(rates(p, dict(lr=0.25, weight_decay=0), dict(lr=0.35)), momentum=0.9, weight_decay=0.01),
    "sgd lr=0.1 momentum=0.9 lookahead=3": lambda p: ahead(T.SGD(p, lr=0.1, momentum=0.9), 3),
    "adamw lr=0.01 weight_decay=0.1 lookahead=2 lookahead_alpha=0.8": lambda p: ahead(T.AdamW(p, lr=0.01, weight_decay=0.1), 2, 0.8),
    "lamb lr=0.1 lookahead=5 weight_decay=0.01":
        lambda p: ahead(timm.Lamb(p, lr=0.1, max_grad_norm=None, weight_decay=0.01), 5),
    "adamw lr=0.01 weight_decay=0.1 cautious=yes": lambda p: timm.AdamWLegacy(p, lr=0.01, weight_decay=0.1, caution=True),
    "lion lr=0.01 weight_decay=0.1 cautious=yes": lambda p: timm.Lion(p, lr=0.01, weight_decay=0.1, caution=True),
    "laprop lr=0.01 weight_decay=0.1 cautious=yes": lambda p: timm.LaProp(p, lr=0.01, weight_decay=0.1, caution=True),
    "adopt lr=0.01 weight_decay=0.1 cautious=yes":
        lambda p: timm.Adopt(p, lr=0.01, weight_decay=0.1, decoupled=True, clip_exp=0.25, caution=True),
    "rmsprop_tf lr=0.02 momentum=0.8 weight_decay=0.1 cautious=yes":
        lambda p: timm.RMSpropTF(p, lr=0.02, momentum=0.8, weight_decay=0.1, caution=True),
    "sgd lr=0.1 momentum=0.8 nesterov=yes cautious=yes":
        lambda p: timm.SGDW(p, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0, caution=True),
    "muon lr=0.02 adamw=yes weight_decay=0.1 cautious=yes": lambda p: timm.AdamWLegacy(p, lr=0.02, weight_decay=0.1, caution=True),
}


def layers(name, **options):
    """The factor of the learning rate of each parameter, in the order of the model."""
    model = models.create_model(name, **options)
    groups = param_groups_layer_decay(model, layer_decay=0.75)
    factors = {id(p): group["lr_scale"] for group in groups for p in group["params"]}
    return {path: factors[id(p)] for path, p in model.named_parameters()}


def peer(optimizer):
    """That of matrices, where vectors have another; inside of what moves or limits it."""
    if isinstance(optimizer, ademamix):
        return "formula"
    while not isinstance(optimizer, T.Optimizer):
        optimizer = optimizer.parts[0] if hasattr(optimizer, "parts") else optimizer.optimizer
    return peer_of(optimizer)


def train(make):
    w, m = torch.nn.Parameter(torch.full((8,), 0.5)), torch.nn.Parameter(torch.full((2, 4), -0.25))
    optimizer = make([w, m])
    for row in gradients:
        w.grad, m.grad = row[:8].clone(), row[8:].view(2, 4).clone()
        optimizer.step()
    return {"peer": peer(optimizer), "w": w.flatten().tolist(), "m": m.flatten().tolist()}


write_lines(sys.argv[1], "golden.json", {name: train(make) for name, make in CASES.items()})

with open(os.path.join(sys.argv[1], "layers.json"), "w") as out:
    json.dump({"vit": layers("vit_tiny_patch16_224", depth=3), "resnet": layers("resnet18")}, out, indent=1)
    out.write("\n")
