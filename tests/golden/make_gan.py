#!/usr/bin/env python3
"""Writes the losses of ten steps of a small DCGAN, and its weights after them, as PyTorch has them:
tests/golden/gan/golden.json.

  make_gan.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/gan/net.ini defines the net, and penalty.ini that of the case
"penalty", a WGAN-GP (Gulrajani et al., NeurIPS 2017); gan_test.c has the samples and
the cases below. The loop is that of PyTorch's DCGAN tutorial: the discriminator's step sees real samples and detached
generated ones, and the generator's step the updated discriminator. Needs torch and safetensors.
"""
import json, os, shutil, struct, subprocess, sys, tempfile
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, BATCH, NOISE, PIXELS = 40, 8, 6, 64

noise = [((i * 37 + j * 11 + i * j * 5) % 251) / 128 - 1 for i in range(SAMPLES) for j in range(NOISE)]
images = [((i * 13 + j * 7 + i * j * 3) % 127) / 64 - 1 for i in range(SAMPLES) for j in range(PIXELS)]


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NOISE, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, x):
        return self.main(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2),
            nn.Conv2d(8, 1, 4, bias=False), nn.Flatten())

    def forward(self, x):
        return self.main(x)


def initial_weights(tenon, ini="net.ini"):
    folder = tempfile.mkdtemp()
    shutil.copy(os.path.join(HERE, "gan", ini), folder)
    for name, values in ("noise", noise), ("images", images):
        with open(os.path.join(folder, name + ".bin"), "wb") as f:
            f.write(struct.pack("<%df" % len(values), *values))
    subprocess.run([tenon, "train", ini, "--quiet", "--set", "run.epochs=0"], cwd=folder, check=True)
    return load_file(os.path.join(folder, "runs", "net", "checkpoints", "last", "model.safetensors"))


LOSSES = {
    "bce": (lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)),
            lambda x: F.binary_cross_entropy_with_logits(x, torch.zeros_like(x)),
            lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x))),
    "least_squares": (lambda x: ((x - 1) ** 2).mean(), lambda x: (x ** 2).mean(), lambda x: ((x - 1) ** 2).mean()),
    "hinge": (lambda x: F.relu(1 - x).mean(), lambda x: F.relu(1 + x).mean(), lambda x: -x.mean()),
    "wasserstein": (lambda x: -x.mean(), lambda x: x.mean(), lambda x: -x.mean()),
}


def train(weights, kind, every=1, generator_sgd=False):
    """The generator has its turn in the steps `every`, 2 `every` ..."""
    net_g, net_d = Generator(), Discriminator()
    net_g.load_state_dict({k[len("generator."):]: v for k, v in weights.items() if k.startswith("generator.")}, strict=False)
    net_d.load_state_dict({k[len("discriminator."):]: v for k, v in weights.items() if k.startswith("discriminator.")},
                          strict=False)
    opt_d = torch.optim.Adam(net_d.parameters(), lr=2e-3, betas=(0.5, 0.999))
    opt_g = torch.optim.SGD(net_g.parameters(), lr=0.01, momentum=0.9) if generator_sgd else \
        torch.optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.5, 0.999))
    real_loss, fake_loss, made_loss = LOSSES[kind]
    x = torch.tensor(images).view(SAMPLES, 1, 8, 8)
    z = torch.tensor(noise).view(SAMPLES, NOISE, 1, 1)
    steps, before = [], [torch.zeros(8), torch.ones(8)]
    for epoch in range(2):
        for first in range(0, SAMPLES, BATCH):
            net_d.zero_grad()
            real = real_loss(net_d(x[first:first + BATCH]))
            made = net_g(z[first:first + BATCH])
            fake = fake_loss(net_d(made.detach()))
            (real + fake).backward()
            opt_d.step()
            statistics = {k: v.clone() for k, v in net_d.state_dict().items()}
            losses = {"real": real.item(), "fake": fake.item()}
            if (len(steps) + 1) % every == 0:
                net_g.zero_grad()
                loss = made_loss(net_d(made))
                loss.backward()
                opt_g.step()
                losses["made"] = loss.item()
                net_d.load_state_dict(statistics)  # the generator's step leaves the discriminator's statistics alone
            else:  # and a discriminator's step those of the generator
                for layer in net_g.main:
                    if isinstance(layer, nn.BatchNorm2d):
                        layer.running_mean.copy_(before[0])
                        layer.running_var.copy_(before[1])
            before = [net_g.main[1].running_mean.clone(), net_g.main[1].running_var.clone()]
            steps.append(losses)
    flat = lambda net, name: {name + "." + k: v.flatten().tolist() for k, v in net.state_dict().items()
                              if v.dtype == torch.float32}
    return {"steps": steps, "weights": {**flat(net_g, "generator"), **flat(net_d, "discriminator")}}


def train_with_penalty(weights):
    """WGAN-GP: the norm of the critic's gradient by mixed samples is drawn to 1."""
    net_g = nn.Sequential(nn.ConvTranspose2d(NOISE, 8, 4, bias=False), nn.ReLU(),
                          nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh())
    net_c = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4, bias=False), nn.Flatten())
    for net, name in (net_g, "generator.main."), (net_c, "critic.main."):
        net.load_state_dict({k[len(name):]: v for k, v in weights.items() if k.startswith(name)})
    opt_c = torch.optim.Adam(net_c.parameters(), lr=2e-3, betas=(0.5, 0.999))
    opt_g = torch.optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.5, 0.999))
    x, z = torch.tensor(images).view(SAMPLES, 1, 8, 8), torch.tensor(noise).view(SAMPLES, NOISE, 1, 1)
    steps = []
    for epoch in range(2):
        for first in range(0, SAMPLES, BATCH):
            part = slice(first, first + BATCH)
            made, mix = net_g(z[part]).detach(), z[part][:, :1] * 0.5 + 0.5
            mixed = (x[part] * mix + made * (1 - mix)).requires_grad_()
            slope, = torch.autograd.grad(net_c(mixed).sum(), mixed, create_graph=True)
            penalty = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
            real, fake = -net_c(x[part]).mean(), net_c(made).mean()
            opt_c.zero_grad()
            (real + fake + 10 * penalty).backward()
            opt_c.step()
            opt_g.zero_grad()
            loss = -net_c(net_g(z[part])).mean()
            loss.backward()
            opt_g.step()
            steps.append({"real": real.item(), "fake": fake.item(), "penalty": penalty.item(), "made": loss.item()})
    flat = lambda net, name: {name + k: v.flatten().tolist() for k, v in net.state_dict().items()}
    return {"steps": steps, "weights": {**flat(net_g, "generator.main."), **flat(net_c, "critic.main.")}}


weights = initial_weights(os.path.abspath(sys.argv[1]))
cases = {kind: train(weights, kind) for kind in LOSSES}
cases["critic"] = train(weights, "wasserstein", every=5, generator_sgd=True)
cases["penalty"] = train_with_penalty(initial_weights(os.path.abspath(sys.argv[1]), "penalty.ini"))
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    lines = [f' "{name}": {json.dumps(case)}' for name, case in cases.items()]
    out.write("{\n" + ",\n".join(lines) + "\n}\n")
