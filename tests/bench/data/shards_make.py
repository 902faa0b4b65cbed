#!/usr/bin/env python3
"""Writes eight tar archives for shards.sh, and a file `batches` with the number of batches of 128.

  shards_make.py small|large FOLDER PERCENT CIFAR

small: the JPEGs of the training part in CIFAR, a .tar.gz. large: pictures of 400 x 300, made of the first ones."""
import io
import os
import random
import sys
import tarfile

from PIL import Image

size, folder, percent, cifar = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
count = (50000 if size == "small" else 6400) * percent // 100


def enlarge(jpeg):
    picture = Image.open(io.BytesIO(jpeg)).resize((400, 300), Image.BICUBIC)
    noise = Image.effect_noise((400, 300), 30)
    picture = Image.blend(picture, Image.merge("RGB", (noise, noise, noise)), 0.15)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue()


samples = []
with tarfile.open(cifar) as archive:
    for member in archive:
        parts = member.name.split("/")
        if not member.isfile() or "train" not in parts or not member.name.lower().endswith((".jpg", ".jpeg")):
            continue
        samples.append((parts[-2], archive.extractfile(member).read()))
names = sorted({name for name, _ in samples})
random.Random(1).shuffle(samples)
work = folder + ".part"
os.makedirs(work, exist_ok=True)
samples = samples[:count]
for shard in range(8):
    with tarfile.open(f"{work}/{shard}.tar", "w") as out:
        for i in range(shard, len(samples), 8):
            name, jpeg = samples[i]
            for ending, content in (("jpg", enlarge(jpeg) if size == "large" else jpeg), ("cls", str(names.index(name)).encode())):
                info = tarfile.TarInfo(f"{i:06d}.{ending}")
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
with open(f"{work}/batches", "w") as out:
    print(len(samples) // 128 - 8, file=out)
os.rename(work, folder)
