#!/usr/bin/env python3
"""Writes the parameters and ranges of ten steps of training for 8 bits that PyTorch computes: tests/golden/quantize/golden.json.

  make_quantize.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/quantize/net.ini defines the training; this script defines the
same for PyTorch by the modules of torch.ao.quantization, and begins with Tenon's initial weights. A case is named by its keys of
[quantize]. Needs torch and safetensors.
"""
import json, os, sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.ao.quantization import FakeQuantize, MinMaxObserver, MovingAverageMinMaxObserver, PerChannelMinMaxObserver
from small_net import images, initial_weights, labels, BATCH, SAMPLES

STEPS = 10


def input_rounding(keys):
    kind, given = MovingAverageMinMaxObserver, {"averaging_constant": float(keys.get("averaging", 0.01))}
    if keys.get("observer") == "minmax":
        kind, given = MinMaxObserver, {}
    return FakeQuantize(kind, 0, 2 ** int(keys.get("input_bits", 8)) - 1, dtype=torch.quint8, qscheme=torch.per_tensor_affine, **given)


def weight_rounding(keys):
    most = 2 ** (int(keys.get("weight_bits", 8)) - 1) - 1
    return FakeQuantize(PerChannelMinMaxObserver, -most, most, dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)


def rounded(fake, x):
    """x, rounded. A quotient next to a tie would depend on the last bits of earlier sums."""
    y = fake(x)
    scale = fake.scale.double().view(-1, *[1] * (x.dim() - 1)) if fake.scale.numel() > 1 else fake.scale.double()
    quotient = x.detach().double() / scale
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


CASES = ("", "averaging=0.25", "observer=minmax", "observe=4 averaging=0.4", "match=fc", "input_bits=4 weight_bits=3")
weights = initial_weights(os.path.abspath(sys.argv[1]), "quantize")
with open(os.path.join(sys.argv[2], "golden.json"), "w") as out:
    out.write("{\n" + ",\n".join(f' "{name}": {json.dumps(train(weights, name))}' for name in CASES) + "\n}\n")
