#!/usr/bin/env python3
"""Writes the small files of the tests of the sources arrays and tokens, and the seeds of their fuzz target, as NumPy,
safetensors and llm.c's data_common.py write them.

  make_files.py FILES SEEDS

FILES is tests/unit/plugins/sources/files, SEEDS is tests/fuzz/seeds/arrays. A seed is a file behind a byte that says its
format: 0 .npy, 1 .npz, 2 .safetensors, 3 tokens. Needs numpy and safetensors.
"""
import os, struct, sys, zlib
import numpy as np
from safetensors.numpy import save_file

files, seeds = sys.argv[1:]
os.makedirs(files, exist_ok=True)
os.makedirs(seeds, exist_ok=True)


def path(name):
    return os.path.join(files, name)


rows = 10
x = np.arange(rows * 6, dtype=np.float32).reshape(rows, 2, 3)
y = (np.arange(rows) * 7 % 4).astype(np.int64)
mask = (np.arange(rows * 4).reshape(rows, 4) % 3).astype(np.uint8)
np.save(path("x.npy"), x)
np.save(path("x_big.npy"), x.astype(">f4"))
np.save(path("x_fortran.npy"), np.asfortranarray(x))
np.save(path("x_half.npy"), (x / 4).astype(np.float16))
np.save(path("y.npy"), y)
np.save(path("y_i16_big.npy"), (y - 2).astype(">i2"))
np.save(path("objects.npy"), np.array([{"a": 1}] * rows, dtype=object))
np.save(path("short.npy"), x[:7])
np.save(path("wide.npy"), np.array([1, 2**40] * 5, dtype=np.int64))
np.savez(path("all.npz"), x=x, y=y, mask=mask)
np.savez_compressed(path("packed.npz"), x=x, y=y, mask=mask)
save_file({"mask": mask, "y": y.astype(np.int32), "flag": y > 1}, path("all.safetensors"))
with open(path("x.raw"), "wb") as out:
    out.write(b"sixteen bytes..." + mask.tobytes())



def zip64(name, content):
    """A stored member whose sizes and offset are in 64 bits, as those of archives above 4 GiB are."""
    name, crc, n = name.encode(), zlib.crc32(content), len(content)
    wide = struct.pack("<HHQQQ", 1, 24, n, n, 0)
    local = struct.pack("<IHHHHHIIIHH", 0x04034b50, 45, 0, 0, 0, 0, crc, 2**32 - 1, 2**32 - 1, len(name), 20) + name
    local += struct.pack("<HHQQ", 1, 16, n, n) + content
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 45, 45, 0, 0, 0, 0, crc, 2**32 - 1, 2**32 - 1, len(name),
                        len(wide), 0, 0, 0, 0, 2**32 - 1) + name + wide
    at = len(local)
    end = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, 1, 1, len(entry), at)
    locator = struct.pack("<IIQI", 0x07064b50, 0, at + len(entry), 1)
    return local + entry + end + locator + struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)


with open(path("y.npy"), "rb") as file, open(path("zip64.npz"), "wb") as out:
    out.write(zip64("y.npy", file.read()))
assert (np.load(path("zip64.npz"))["y"] == y).all()

text = [0, 5, 6, 7, 0, 8, 9, 0, 0, 3, 4, 5, 6, 7, 8, 9, 11]


def llm(magic, version, tokens, dtype):
    header = np.zeros(256, dtype=np.int32)
    header[:3] = magic, version, len(tokens)
    return header.tobytes() + np.array(tokens, dtype=dtype).tobytes()


with open(path("plain.bin"), "wb") as out:
    out.write(np.array(text, dtype=np.uint16).tobytes())
with open(path("gpt2.bin"), "wb") as out:
    out.write(llm(20240520, 1, text, np.uint16))
with open(path("llama3.bin"), "wb") as out:
    out.write(llm(20240801, 7, text, np.uint32))
np.save(path("tokens.npy"), np.array(text, dtype=np.uint16))

kinds = {"x.npy": 0, "x_big.npy": 0, "y.npy": 0, "all.npz": 1, "packed.npz": 1, "zip64.npz": 1, "all.safetensors": 2, "gpt2.bin": 3,
         "llama3.bin": 3, "tokens.npy": 0}
for name, kind in kinds.items():
    with open(path(name), "rb") as file, open(os.path.join(seeds, name), "wb") as out:
        out.write(struct.pack("B", kind) + file.read())
