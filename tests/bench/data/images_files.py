#!/usr/bin/env python3
"""Writes COUNT JPEG files of 500 x 375 pixels to FOLDER/train/0 to 9: clouds of several sizes, which pack as photographs do.

  images_files.py FOLDER COUNT"""
import pathlib
import sys

import numpy as np
from PIL import Image

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(1)
for i in range(count):
    pixels = np.zeros((375, 500, 3), np.float32)
    for size in (4, 16, 64, 250):
        noise = Image.fromarray(random.integers(0, 256, (size * 3 // 4, size, 3), dtype=np.uint8))
        pixels += np.asarray(noise.resize((500, 375), Image.BICUBIC), np.float32) / size**0.5
    pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min()) * 255
    path = folder / "train" / str(i % 10) / f"{i}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path, quality=90)
