#!/usr/bin/env python3
"""Writes the parameters that optimizers reach in ten updates with states in bf16 and in 8 bits: tests/golden/state_dtypes/golden.json.

  make_state_dtypes.py OUT

OUT is the folder of golden.json. tests/golden/state_dtypes/net.ini defines the model, and
tests/integration/cli/state_dtypes_test.c writes the gradients by the same formula. This script rounds and quantizes by other means
than core/step/update/state_dtypes.c: bf16 by the bits of a number, 8 bits by a search in the sorted list of the 256 numbers. Every
97th element of a parameter is stored. Needs numpy.
"""
import json, os, sys
import numpy as np

f32, u32, u64 = np.float32, np.uint32, np.uint64
UPDATES, SEED, STRIDE, BLOCK, LEAST, MASK = 10, 7, 97, 256, 4096, 2**64 - 1
SHAPES = {"w": 64 * 64, "m": 65 * 64, "s": 8}
START = {"w": 0.5, "m": -0.25, "s": 1.0}
# A parameter that is updated in groups of its blocks: large.ini.
LARGE = {"w": 1025 * 640}
LARGE_UPDATES, LARGE_STRIDE = 3, 9973


def gradient(name, update, n):
    """Magnitudes over 13 powers of two, so that a block has numbers of several decades."""
    i = np.arange(n, dtype=np.int64) + (0, 3, 7)["wms".index(name)]
    row = (((update * 37 + i * 11 + update * i * 5) % 251) / 64 - 2) * 2.0 ** -(i % 13)
    return row.astype(f32) * f32(1 / n)


# ---- 8 bits: dynamic tree quantization (Dettmers et al., ICLR 2022) ----

def numbers(positive):
    some = [10.0**(i - 6) * (0.1 + 0.9 * (k + 0.5) / 2**(i + positive)) for i in range(7) for k in range(2**(i + positive))]
    return np.array(sorted(([] if positive else [-x for x in some]) + [0.0] + some + [1.0]))


def quantized(x, positive):
    table = numbers(positive)
    assert len(table) == 256
    rows = np.zeros(-(-len(x) // BLOCK) * BLOCK, f32)
    rows[:len(x)] = x
    rows = rows.reshape(-1, BLOCK)
    most = np.abs(rows).max(axis=1, keepdims=True)
    part = np.divide(rows, most, out=np.zeros_like(rows), where=most > 0)
    codes = np.searchsorted((table[1:] + table[:-1]) / 2, part.astype(np.float64))
    return (table[codes].astype(f32) * most).reshape(-1)[:len(x)]


# ---- bf16: random numbers as include/tenon/random.h and the streams of layers have them ----

def fnv(data):
    h = 14695981039346656037
    for byte in data:
        h = (h ^ byte) * 1099511628211 & MASK
    return h


def mix(a, b):
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def uniform(stream, iteration, n):
    """Philox 4x32-10."""
    lo = np.arange((n + 3) // 4, dtype=u64)
    c = [lo & u64(0xFFFFFFFF), lo >> u64(32), np.full_like(lo, iteration), np.zeros_like(lo)]
    k0, k1 = stream & 0xFFFFFFFF, stream >> 32
    for _ in range(10):
        p0, p1 = u64(0xD2511F53) * c[0], u64(0xCD9E8D57) * c[2]
        c = [(p1 >> u64(32)) ^ c[1] ^ u64(k0), p1 & u64(0xFFFFFFFF), (p0 >> u64(32)) ^ c[3] ^ u64(k1), p0 & u64(0xFFFFFFFF)]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    words = np.stack(c, axis=1).reshape(-1)[:n]
    return (words >> u64(8)).astype(np.float64) * 2.0**-24


def rounded(x, random):
    """The bf16 below or above a magnitude, whichever is nearer, or with the probability of the distance to it the other one."""
    bits = x.astype(f32).view(u32)
    rest = (bits & u32(0xFFFF)).astype(np.int64)
    nearest_is_up = (rest > 0x8000) | ((rest == 0x8000) & ((bits >> u32(16)) & u32(1) == 1))
    other = random * 65536 < np.where(nearest_is_up, 65536 - rest, rest)
    up = nearest_is_up != other
    return ((bits & u32(0xFFFF0000)) + np.where(up, u32(0x10000), u32(0))).astype(u32).view(f32)


# ---- optimizers ----

def adamw(p, g, s, t):
    m = f32(0.9) * s["exp_avg"] + f32(1 - 0.9) * g
    v = f32(0.999) * s["exp_avg_sq"] + f32(1 - 0.999) * (g * g)
    root = np.sqrt(v) / f32(np.sqrt(1 - 0.999**t)) + f32(1e-8)
    return p * f32(1 - 0.001 * 0.01) - f32(0.001 / (1 - 0.9**t)) * m / root, {"exp_avg": m, "exp_avg_sq": v}


def sgd(p, g, s, t):
    m = s["momentum"] * f32(0.9) + g
    return p - m * f32(0.1), {"momentum": m}


def lion(p, g, s, t):
    step = np.sign(f32(0.9) * s["exp_avg"] + f32(0.1) * g)
    return p - f32(1e-4) * step, {"exp_avg": f32(0.99) * s["exp_avg"] + f32(1 - 0.99) * g}


def lamb(p, g, s, t):
    m = f32(0.9) * s["exp_avg"] + f32(1 - 0.9) * g
    v = f32(0.999) * s["exp_avg_sq"] + f32(1 - 0.999) * (g * g)
    root = np.sqrt(v) / f32(np.sqrt(1 - 0.999**t)) + f32(1e-6)
    step = m / f32(1 - 0.9**t) / root + f32(0.01) * p
    trust = f32(np.linalg.norm(p.astype(np.float64)) / np.linalg.norm(step.astype(np.float64)))
    return p - f32(0.001) * trust * step, {"exp_avg": m, "exp_avg_sq": v}


POSITIVE = {"exp_avg_sq"}
CASES = {"adamw": (adamw, False), "sgd lr=0.1 momentum=0.9": (sgd, False), "lion": (lion, False), "lamb": (lamb, True)}


def offsets():
    """Where the parameters begin in the vector of all, in the order in which their gradients are ready, each at a multiple of 16."""
    at, starts = 0, {}
    for name in ("s", "m", "w"):
        starts[name] = at
        at += -(-SHAPES[name] // 16) * 16
    return starts


def keep(dtype, name, state, x, update, starts, whole):
    """A state as it is after it was stored. Elements of all parameters are numbered together, unless each has its own update."""
    if dtype == "int8":
        return quantized(x, state in POSITIVE) if len(x) >= LEAST else x
    prefix, first, n = (name, 0, len(x)) if whole else ("", starts[name], starts[name] + len(x))
    stream = mix(SEED, fnv((prefix + "/" + state).encode()))
    return rounded(x, uniform(stream, update, n)[first:])


def train(dtype, update, whole, shapes=SHAPES, updates=UPDATES, stride=STRIDE):
    starts = offsets()
    out = {}
    for name, n in shapes.items():
        p = np.full(n, START[name], f32)
        states = {}
        for t in range(updates):
            zeros = {k: np.zeros(n, f32) for k in ("exp_avg", "exp_avg_sq", "momentum")}
            p, fresh = update(p, gradient(name, t, n), {**zeros, **states}, t + 1)
            states = {k: keep(dtype, name, k, x, t, starts, whole) for k, x in fresh.items()}
        out[name] = [float(x) for x in p[::stride]]
    return out


with open(os.path.join(sys.argv[1], "golden.json"), "w") as out:
    cases = {f"{key} state_dtype={dtype}": train(dtype, *case) for dtype in ("bf16", "int8") for key, case in CASES.items()}
    cases["large"] = train("int8", adamw, False, LARGE, LARGE_UPDATES, LARGE_STRIDE)
    out.write("{\n" + ",\n".join(f' "{name}": {json.dumps(case)}' for name, case in cases.items()) + "\n}\n")
