#!/usr/bin/env python3
"""Prints goldens.h: the results of Pillow (u8) and torch (f32) for the picture of transforms_test.c.
Needs torch, torchvision and Pillow; the tests need only the header."""
import numpy as np, torch
from PIL import Image
from torchvision.transforms import functional as F

H, W = 7, 10
plane = lambda k: np.array([(i * 37 + i * i * 11 + k * 101) % 256 for i in range(H * W)], np.uint8).reshape(H, W)
picture = np.stack([plane(k) for k in range(3)])
SIZES = [(3, 4), (9, 13), (7, 5), (14, 10), (1, 1)]

def show(name, kind, values, form):
    text = ", ".join(form(v) for v in values)
    print(f"static const {kind} {name}[] = {{{text}}};")

print("/* tests/unit/plugins/transforms/goldens.h: written by goldens.py. */")
print("/* clang-format off */")
for h, w in SIZES:
    u8 = np.asarray(Image.fromarray(picture.transpose(1, 2, 0)).resize((w, h), Image.BILINEAR)).transpose(2, 0, 1)
    show(f"resized_u8_{h}x{w}", "uint8_t", u8.reshape(-1), str)
    f32 = F.resize(torch.tensor(picture).float() / 255, [h, w], antialias=True)
    show(f"resized_f32_{h}x{w}", "float", f32.reshape(-1), lambda v: f"{float(v):.9g}f" if "." in f"{float(v):.9g}" else f"{float(v):.1f}f")
x = F.normalize(torch.tensor(picture).float().div(255), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
show("normalized", "float", x[:, 0, :].reshape(-1), lambda v: f"{float(v):.9g}f")
print("/* clang-format on */")
