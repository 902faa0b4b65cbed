#!/usr/bin/env python3
"""Prints geometry_goldens.h: the results of torchvision's v2 transforms for the picture of rig.h with a mask, boxes
and points. Needs torch and torchvision; the test needs only the header."""
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

H, W = 7, 10
i = torch.arange(H * W)
image = tv_tensors.Image(torch.stack([((i * 37 + i * i * 11 + k * 101) % 256).reshape(H, W) for k in range(3)]).to(torch.uint8))
mask = tv_tensors.Mask((i * i // 3 % 7).reshape(H, W).to(torch.int32))
boxes = tv_tensors.BoundingBoxes([[1.0, 2.0, 4.0, 6.0], [0.0, 0.0, 10.0, 7.0], [6.5, 0.25, 9.75, 3.5]], format="XYXY",
                                 canvas_size=(H, W))
SMOOTH = v2.InterpolationMode.BILINEAR


def show(name, x):
    values = x.reshape(-1)
    if x.dtype == torch.float32:
        text, kind = ", ".join(f"{float(v):.8e}f" for v in values), "float"
    else:
        text, kind = ", ".join(str(int(v)) for v in values), "uint8_t" if x.dtype == torch.uint8 else "int32_t"
    print(f"static const {kind} {name}[] = {{{text}}};")


def case(name, call, fields=(image, mask, boxes)):
    for kind, x in zip(("image", "mask", "boxes"), fields):
        if x is not None:
            show(f"{name}_{kind}", torch.as_tensor(call(x)))


# torchvision weighs a smooth pixel at the border with `fill` twice, so the smooth ones are without.
def affine(smooth):
    return lambda x: F.affine(x, 25.0, [2, -1], 1.25, [12.0, -7.0], interpolation=SMOOTH if smooth else v2.InterpolationMode.NEAREST,
                              fill=None if smooth or isinstance(x, tv_tensors.Mask) else [9.0])


print("/* tests/unit/plugins/transforms/geometry_goldens.h: written by geometry_goldens.py. */")
print("/* clang-format off */")
case("flip", lambda x: F.horizontal_flip(x), (image[:1], mask, boxes))
case("flip_down", lambda x: F.vertical_flip(x), (None, mask, boxes))
case("resize", lambda x: F.resize(x, [5, 13]), (None, mask, boxes))
case("resize_short", lambda x: F.resize(x, [5]), (None, mask, boxes))
case("center", lambda x: F.center_crop(x, [4, 6]), (None, mask, boxes))
case("pad", lambda x: F.pad(x, [3, 1, 2, 4], fill=2 if isinstance(x, tv_tensors.Mask) else 50), (image[:1], mask, boxes))
for mode in ("edge", "reflect", "symmetric"):
    case(f"pad_{mode}", lambda x: F.pad(x, [3, 1, 2, 4], padding_mode=mode), (image[:1], mask, None))
case("rotate", lambda x: F.rotate(x, 30.0), (None, mask, boxes))
case("affine", affine(False), (image[:1], mask, boxes))
case("affine_smooth", affine(True), (image[:1], None, None))
corners = [[0, 0], [W - 1, 0], [W - 1, H - 1], [0, H - 1]]
moved = [[1, 3], [W - 3, 0], [W - 1, H - 2], [3, H - 1]]
case("perspective", lambda x: F.perspective(x, corners, moved, interpolation=v2.InterpolationMode.NEAREST), (image[:1], mask, boxes))
case("perspective_smooth", lambda x: F.perspective(x, corners, moved, interpolation=SMOOTH), (image[:1], None, None))
y, x = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
way = torch.stack([1.5 * torch.sin(x + 2.0 * y), 1.25 * torch.cos(2.0 * x - y)], -1)
show("elastic_way", way.permute(2, 0, 1))
displacement = (way * 2 / torch.tensor([W, H]))[None]
case("elastic", lambda t: F.elastic(t, displacement, interpolation=v2.InterpolationMode.NEAREST), (image[:1], mask, boxes))
case("elastic_smooth", lambda t: F.elastic(t, displacement, interpolation=SMOOTH), (image[:1], None, None))
case("letterbox", lambda t: F.pad(F.resize(t, [10, 14]), [0, 3, 0, 3], fill=0 if isinstance(t, tv_tensors.Mask) else 114), (image[:1], mask, boxes))
case("jpeg", lambda t: F.jpeg(t, 60), (image, None, None))
print("/* clang-format on */")
