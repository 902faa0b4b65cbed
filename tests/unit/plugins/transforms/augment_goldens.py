#!/usr/bin/env python3
"""Prints augment_goldens.h: the results of torchvision for the picture of rig.h, and for one with few levels.
Needs torch and torchvision; the test needs only the header."""
import numpy as np, torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

H, W = 7, 10
plane = lambda k: np.array([(i * 37 + i * i * 11 + k * 101) % 256 for i in range(H * W)], np.uint8).reshape(H, W)
color = torch.tensor(np.stack([plane(k) for k in range(3)]))
gray = color[:1]
floats = color.float() / 255
many = torch.tensor([[i * i * 7 % 97 + 40 for i in range(20 * 24)]], dtype=torch.uint8).reshape(1, 20, 24)
augment = v2.RandAugment()


def op(x, name, magnitude, interpolation=v2.InterpolationMode.NEAREST):
    return augment._apply_image_or_video_transform(x, name, magnitude, interpolation, {torch.Tensor: None})


def show(name, x):
    if x.dtype == torch.uint8:
        print(f"static const uint8_t {name}[] = {{{', '.join(str(int(v)) for v in x.reshape(-1))}}};")
    else:
        text = ", ".join(f"{float(v):.9e}f" for v in x.reshape(-1))
        print(f"static const float {name}[] = {{{text}}};")


print("/* tests/unit/plugins/transforms/augment_goldens.h: written by augment_goldens.py. */")
print("/* clang-format off */")
for kind, x in (("color", color), ("gray", gray)):
    show(f"{kind}_brightness", F.adjust_brightness(x, 1.4))
    show(f"{kind}_darker", F.adjust_brightness(x, 0.3))
    show(f"{kind}_contrast", F.adjust_contrast(x, 1.7))
    show(f"{kind}_flat", F.adjust_contrast(x, 0.2))
    show(f"{kind}_saturation", F.adjust_saturation(x, 1.9))
    show(f"{kind}_pale", F.adjust_saturation(x, 0.25))
    show(f"{kind}_hue", F.adjust_hue(x, 0.3))
    show(f"{kind}_hue_back", F.adjust_hue(x, -0.45))
    show(f"{kind}_sharp", F.adjust_sharpness(x, 1.8))
    show(f"{kind}_soft", F.adjust_sharpness(x, 0.1))
    show(f"{kind}_posterize", F.posterize(x, 3))
    show(f"{kind}_solarize", F.solarize(x, 255 * 0.4))
    show(f"{kind}_autocontrast", F.autocontrast(x // 2 + 20))
    show(f"{kind}_gray3", F.rgb_to_grayscale(x, 3))
    show(f"{kind}_blur", F.gaussian_blur(x, [5, 3], [1.3, 1.3]))
    show(f"{kind}_rotated", F.rotate(x, 30.0))
    show(f"{kind}_rotated_smooth", F.rotate(x, -17.0, interpolation=v2.InterpolationMode.BILINEAR))
    for name, magnitude in (("ShearX", 0.23), ("ShearY", -0.31), ("TranslateX", -3.9), ("TranslateY", 2.2),
                            ("Rotate", 77.0), ("Brightness", -0.37), ("Color", 0.62), ("Contrast", -0.55),
                            ("Sharpness", 0.44), ("Posterize", 5), ("Solarize", 0.71), ("AutoContrast", 0.0)):
        show(f"{kind}_op_{name}", op(x, name, magnitude))
show("color_gray1", F.rgb_to_grayscale(color))
show("float_gray1", F.rgb_to_grayscale(floats))
show("float_blur", F.gaussian_blur(floats, [3, 7], [0.9, 0.9]))
show("float_rotated", F.rotate(floats, 30.0))
show("float_rotated_smooth", F.rotate(floats, -17.0, interpolation=v2.InterpolationMode.BILINEAR))
show("many_equalized", F.equalize(many))
show("rotated_by_90", F.rotate(color[:, :, :7].contiguous(), 90.0).contiguous())
print("/* clang-format on */")
