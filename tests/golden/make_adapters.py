#!/usr/bin/env python3
"""Writes the adapters that PEFT has after ten steps: tests/golden/adapters/golden.json.

  make_adapters.py TENON OUT

TENON is the program, OUT the folder of golden.json. tests/golden/adapters/net.ini defines the model, and adapt_test.c the
arrays and [adapt] of each case by the same words. PEFT opens the checkpoint that Tenon writes before the first step, so that both begin
with the same adapters; the norms that it begins with are those of its own. Needs torch, peft and safetensors.
"""
import os, shutil, struct, subprocess, sys, tempfile
import peft
import torch
from safetensors.torch import load_file
from torch import nn
from peers import write_lines

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, BATCH, EPOCHS = 20, 4, 2
ADAPT = {"lora": "type = lora\nmatch = wte, conv, fc1\nrank = 2\nalpha = 4\ntrain = fc2.*",
         "dora": "type = dora\nmatch = wte, conv, fc1\nrank = 2\nalpha = 4\ntrain = fc2.*"}

classes = torch.tensor([(i * i + i // 3) % 3 for i in range(ROWS)])
words = torch.tensor([[(i + k) % 4, i // 2 % 4] for i, k in enumerate(classes.tolist())])
images = torch.tensor([[((i * 37 + j * 11 + i * j * 5) % 251) / 256 - 0.5 for j in range(12)] for i in range(ROWS)]).view(-1, 1, 3, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.conv = nn.Embedding(4, 6), nn.Conv2d(1, 4, 2)
        self.fc1, self.fc2 = nn.Linear(36, 8), nn.Linear(8, 3)

    def forward(self, words, image):
        both = torch.cat([self.wte(words).flatten(1), self.conv(image).relu().flatten(1)], 1)
        return self.fc2(self.fc1(both).relu())


def train(tenon, kind):
    with tempfile.TemporaryDirectory() as folder:
        text = open(os.path.join(HERE, "adapters", "net.ini")).read()
        open(os.path.join(folder, "base.ini"), "w").write(text)
        open(os.path.join(folder, "net.ini"), "w").write(f"{text}[weights]\nfile = base/net\n[adapt]\n{ADAPT[kind]}\n")
        for name, values, form in ("words", words, "i"), ("image", images, "f"), ("label", classes, "i"):
            numbers = values.flatten().tolist()
            open(os.path.join(folder, name + ".bin"), "wb").write(struct.pack(f"<{len(numbers)}{form}", *numbers))
        for ini, output in ("base.ini", "base"), ("net.ini", "start"):
            subprocess.run([tenon, "train", ini, "--quiet", "--output", output, "--set", "run.epochs=0"], cwd=folder, check=True)
        net, last = Net(), os.path.join(folder, "start", "net", "checkpoints", "last")
        net.load_state_dict(load_file(os.path.join(folder, "base", "net", "checkpoints", "last", "model.safetensors")))
        expect_norms(net, os.path.join(last, "adapter_model.safetensors"))
        model = peft.PeftModel.from_pretrained(net, last, is_trainable=True)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02, weight_decay=0.01)
    model.train()
    for first in [*range(0, ROWS, BATCH)] * EPOCHS:
        part = slice(first, first + BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(words[part], images[part]), classes[part]).backward()
        optimizer.step()
    state = peft.get_peft_model_state_dict(model)
    return {name.removeprefix("base_model.model."): tensor.flatten().tolist() for name, tensor in sorted(state.items())}


def expect_norms(net, path):
    """Those of the first checkpoint are the ones that PEFT computes."""
    fresh = peft.get_peft_model(Net(), peft.LoraConfig(target_modules=["wte", "conv", "fc1"], r=2, use_dora=True))
    for name in "wte", "conv", "fc1":
        weight = getattr(net, name).weight.detach()
        axes = (0,) if name == "wte" else tuple(range(1, weight.dim()))
        found = load_file(path).get(f"base_model.model.{name}.lora_magnitude_vector")
        shape = getattr(fresh.base_model.model, name).lora_magnitude_vector["default"].weight.shape
        if found is not None and not (found.shape == shape and torch.allclose(found.flatten(), torch.linalg.vector_norm(weight, dim=axes), rtol=1e-6)):
            sys.exit(f"{name}: {found}, expected {shape} of {torch.linalg.vector_norm(weight, dim=axes)}")


write_lines(sys.argv[2], "golden.json", {kind: train(os.path.abspath(sys.argv[1]), kind) for kind in ADAPT})
