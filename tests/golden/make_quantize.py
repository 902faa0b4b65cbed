#!/usr/bin/env python3
"""Writes the parameters and ranges of ten steps of training for 8 bits that PyTorch computes: tests/golden/quantize/golden.json, and
tables.json, of a table and a transposed convolution.

  make_quantize.py TENON OUT

TENON is the program, OUT the folder of both files. net.ini and tables.ini of tests/golden/quantize define the trainings; this script
defines the same for PyTorch by the modules of torch.ao.quantization, and begins with Tenon's initial weights. A case is named by its
keys of [quantize]. Needs torch and safetensors.
"""
import os, shutil, struct, subprocess, sys, tempfile
import torch
import torch.nn.functional as F
from torch import nn
from safetensors.torch import load_file
from torch.ao.quantization import FakeQuantize, MinMaxObserver, MovingAverageMinMaxObserver, PerChannelMinMaxObserver
from peers import write_lines
from small_net import images, initial_weights, labels, BATCH, HERE, SAMPLES

STEPS = 10


def input_rounding(keys):
    kind, given = MovingAverageMinMaxObserver, {"averaging_constant": float(keys.get("averaging", 0.01))}
    if keys.get("observer") == "minmax":
        kind, given = MinMaxObserver, {}
    return FakeQuantize(kind, 0, 2 ** int(keys.get("input_bits", 8)) - 1, dtype=torch.quint8, qscheme=torch.per_tensor_affine, **given)


def weight_rounding(keys, axis=0):
    most = 2 ** (int(keys.get("weight_bits", 8)) - 1) - 1
    return FakeQuantize(PerChannelMinMaxObserver, -most, most, dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=axis)


def rounded(fake, x):
    """x, rounded. A quotient next to a tie would depend on the last bits of earlier sums."""
    y, dims = fake(x), [1] * x.dim()
    if fake.scale.numel() > 1:
        dims[fake.ch_axis] = -1
    quotient = x.detach().double() / fake.scale.double().view(dims if fake.scale.numel() > 1 else ())
    if not ((quotient % 1 - 0.5).abs().min() > 2e-5):
        raise SystemExit("a quotient is next to a tie: choose other numbers for the case")
    return y


class Quantized(nn.Module):
    """A layer with a rounded input and weight. The range of the weight is that of the step."""
    def __init__(self, layer, keys):
        super().__init__()
        self.layer, self.input, self.weight = layer, input_rounding(keys), weight_rounding(keys)

    def forward(self, x):
        self.weight.activation_post_process.reset_min_max_vals()
        x, w = rounded(self.input, x), rounded(self.weight, self.layer.weight)
        if isinstance(self.layer, nn.Conv2d):
            return F.conv2d(x, w, self.layer.bias, padding=1)
        return F.linear(x, w, self.layer.bias)


class Net(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 2, padding=1, bias=False), nn.BatchNorm2d(4), nn.Linear(48, 3)
        names = [keys["match"]] if "match" in keys else ["conv", "fc"]
        self.by = nn.ModuleDict({name: Quantized(getattr(self, name), keys) for name in names})

    def apply_layer(self, name, x):
        return self.by[name](x) if name in self.by else getattr(self, name)(x)

    def forward(self, x):
        return self.apply_layer("fc", F.relu(self.bn(self.apply_layer("conv", x))).flatten(1))


def train(weights, name):
    keys = dict(word.split("=") for word in name.split())
    net = Net(keys)
    net.load_state_dict(weights, strict=False)
    optimizer = torch.optim.SGD([*net.conv.parameters(), *net.bn.parameters(), *net.fc.parameters()], lr=0.1, momentum=0.9)
    x, y = images.float().view(SAMPLES, 1, 2, 3) / 255 - 0.25, labels.long()
    for step in range(STEPS):
        if step == int(keys.get("observe", -1)):
            for layer in net.by.values():
                layer.input.disable_observer()
        at = step * BATCH % SAMPLES
        optimizer.zero_grad()
        F.cross_entropy(net(x[at:at + BATCH]), y[at:at + BATCH]).backward()
        optimizer.step()
    tensors = {k: v for k, v in net.state_dict().items() if k.split(".")[0] in ("conv", "bn", "fc") and v.dtype == torch.float32}
    for layer, rounded in net.by.items():
        observer = rounded.input.activation_post_process
        tensors[f"{layer}.input_min"], tensors[f"{layer}.input_max"] = observer.min_val, observer.max_val
    return {k: v.flatten().tolist() for k, v in tensors.items()}


WORDS = torch.tensor([[(i * 7 + k * k + i * k) % 5 for k in range(4)] for i in range(SAMPLES)])


class Tables(nn.Module):
    """A table, of which each row has a range, and a transposed convolution, whose output channels are dimension 1."""
    def __init__(self, keys):
        super().__init__()
        self.wte, self.up, self.fc = nn.Embedding(5, 6), nn.ConvTranspose1d(4, 6, 2, stride=2, groups=2), nn.Linear(72, 3)
        self.by = nn.ModuleDict({"fc": Quantized(self.fc, keys)})
        self.table, self.input, self.weight = weight_rounding(keys), input_rounding(keys), weight_rounding(keys, axis=1)

    def forward(self, words):
        for fake in self.table, self.weight:
            fake.activation_post_process.reset_min_max_vals()
        x = F.embedding(words, rounded(self.table, self.wte.weight))
        x, w = rounded(self.input, x), rounded(self.weight, self.up.weight)
        x = F.conv_transpose1d(x, w, self.up.bias, stride=2, groups=2)
        return self.by["fc"](F.relu(x).flatten(1))


def initial_tables(tenon):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(HERE, "quantize", "tables.ini"), os.path.join(folder, "net.ini"))
        for name, values in ("words", WORDS), ("label", labels):
            numbers = values.flatten().tolist()
            open(os.path.join(folder, name + ".bin"), "wb").write(struct.pack(f"<{len(numbers)}i", *numbers))
        subprocess.run([tenon, "train", "net.ini", "--quiet", "--set", "run.epochs=0"], cwd=folder, check=True)
        return load_file(os.path.join(folder, "runs", "net", "checkpoints", "last", "model.safetensors"))


def train_tables(weights, name):
    net = Tables(dict(word.split("=") for word in name.split()))
    net.load_state_dict(weights, strict=False)
    parameters = [*net.wte.parameters(), *net.up.parameters(), *net.fc.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    for step in range(STEPS):
        part = slice(step * BATCH % SAMPLES, step * BATCH % SAMPLES + BATCH)
        optimizer.zero_grad()
        F.cross_entropy(net(WORDS[part]), labels[part].long()).backward()
        optimizer.step()
    tensors = {k: v for k, v in net.state_dict().items() if k.split(".")[0] in ("wte", "up", "fc") and v.dtype == torch.float32}
    for layer, fake in ("up", net.input), ("fc", net.by["fc"].input):
        tensors[f"{layer}.input_min"] = fake.activation_post_process.min_val
        tensors[f"{layer}.input_max"] = fake.activation_post_process.max_val
    return {k: v.flatten().tolist() for k, v in tensors.items()}


CASES = ("", "averaging=0.25", "observer=minmax", "observe=4 averaging=0.4", "match=fc", "input_bits=4 weight_bits=3")
tenon = os.path.abspath(sys.argv[1])
weights = initial_weights(tenon, "quantize")
write_lines(sys.argv[2], "golden.json", {name: train(weights, name) for name in CASES})
tables = initial_tables(tenon)
write_lines(sys.argv[2], "tables.json", {name: train_tables(tables, name) for name in ("", "averaging=0.25", "weight_bits=5")})
