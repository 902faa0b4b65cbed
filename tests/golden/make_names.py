#!/usr/bin/env python3
"""Writes the expected names and shapes of the examples' models: tests/golden/names/*.txt.

  make_names.py OUT

resnet18 and resnet50 are the state dicts of torchvision, without num_batches_tracked, which is unused if momentum
is a number. gpt2 is the state dict of Hugging Face's GPT2LMHeadModel (the model "gpt2"); its depth determines the
names. Its Conv1D stores weights as (in, out), linear as (out, in); the list has the shapes of linear.
lm_head.weight is tied to transformer.wte.weight and listed once, under the latter name. Needs torch and
torchvision.
"""
import os, sys


def torchvision_names(name):
    import torchvision
    net = getattr(torchvision.models, name)()
    return [(key, tuple(value.shape)) for key, value in net.state_dict().items()
            if not key.endswith("num_batches_tracked")]


def gpt2_names(width=768, depth=12, tokens=1024, vocabulary=50257):
    def norm(name):
        return [(name + ".weight", (width,)), (name + ".bias", (width,))]

    def linear(name, inputs, outputs):
        return [(name + ".weight", (outputs, inputs)), (name + ".bias", (outputs,))]

    names = [("transformer.wte.weight", (vocabulary, width)), ("transformer.wpe.weight", (tokens, width))]
    for layer in range(depth):
        h = f"transformer.h.{layer}."
        names += norm(h + "ln_1") + linear(h + "attn.c_attn", width, 3 * width) + linear(h + "attn.c_proj", width, width)
        names += norm(h + "ln_2") + linear(h + "mlp.c_fc", width, 4 * width) + linear(h + "mlp.c_proj", 4 * width, width)
    return names + norm("transformer.ln_f")


def main():
    out = sys.argv[1]
    lists = {"resnet18": torchvision_names("resnet18"), "resnet50": torchvision_names("resnet50"), "gpt2": gpt2_names()}
    for model, names in lists.items():
        with open(os.path.join(out, model + ".txt"), "w") as f:
            if model == "gpt2":
                f.write("# c_attn, c_proj and c_fc are (in, out) in Hugging Face's files, (out, in) here; lm_head.weight is wte's.\n")
            for name, shape in names:
                f.write(name + " " + "x".join(map(str, shape)) + "\n")


main()
