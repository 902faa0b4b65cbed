#!/usr/bin/env python3
"""Writes the goldens of ops that are composed of other ops: norms, attention with masks and biases, rotary
positions; and those at ties and other kinks. The files are those of make_goldens.py, which describes them.

    python3 tests/golden/make_composites.py [FOLDER]
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

from make_goldens import draw, flag, tensor, write_family


def norms(f, dtype):
    """Norms that are composed of other ops."""
    for shape, trailing in (((4, 6), 1), ((2, 3, 4), 2)):
        row = shape[len(shape) - trailing:]
        x, w = draw(*shape, dtype=dtype), draw(*row, dtype=dtype)
        f.case(f"y = rms_norm(x, w, epsilon=1e-6, trailing={trailing})", lambda x, w: F.rms_norm(x, row, w, 1e-6),
               x=x, w=w)
        f.case(f"y = rms_norm(x, epsilon=0.1, trailing={trailing})", lambda x: F.rms_norm(x, row, None, 0.1), x=x)
    for shape, groups in (((2, 6, 3, 2), 3), ((3, 8), 2), ((2, 4, 5), 4), ((2, 3, 2, 2), 1)):
        x, w, c = draw(*shape, dtype=dtype), draw(shape[1], dtype=dtype), draw(shape[1], dtype=dtype)
        f.case(f"y = group_norm(x, w, c, groups={groups})", lambda x, w, c: F.group_norm(x, groups, w, c),
               x=x, w=w, c=c)
        f.case(f"y = group_norm(x, groups={groups}, epsilon=0.1)", lambda x: F.group_norm(x, groups, eps=0.1), x=x)
    f.case("y = group_norm(x, w, c, groups=3)", lambda x, w, c: F.instance_norm(x, weight=w, bias=c),
           x=draw(2, 3, 4, dtype=dtype), w=draw(3, dtype=dtype), c=draw(3, dtype=dtype))
    for shape, size in (((2, 6, 3), 5), ((1, 4, 2, 2), 4), ((2, 3, 2), 7)):
        x = draw(*shape, dtype=dtype)
        f.case(f"y = local_response_norm(x, size={size})", lambda x: F.local_response_norm(x, size), x=x)
        f.case(f"y = local_response_norm(x, size={size}, alpha=0.5, beta=0.6, k=2)",
               lambda x: F.local_response_norm(x, size, 0.5, 0.6, 2.0), x=x)


def scores(f, dtype):
    """Attention with masked, biased and bounded scores."""
    hidden = torch.rand(2, 1, 3, 5) < 0.6
    hidden[0, 0, 1] = False  # a query that sees no key

    def attend(q, k, v, mask, scale=None, softcap=0, bias=0):
        s = (q @ k.mT) * (scale or 1 / math.sqrt(q.shape[-1]))
        s = (softcap * torch.tanh(s / softcap) if softcap else s) + bias
        visible = s.masked_fill(~mask, -math.inf)
        return torch.where(mask.any(-1, keepdim=True), visible, 0).softmax(-1).masked_fill(~mask, 0) @ v

    def case(options, function, queries=3, keys=5, heads=2, **mask):
        operands = {"q": draw(2, heads, queries, 4, dtype=dtype), "k": draw(2, heads, keys, 4, dtype=dtype),
                    "v": draw(2, heads, keys, 3, dtype=dtype), **mask}
        f.case(f"y = general_attention({', '.join(operands)}{options})", function, **operands)
    case("", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), m=hidden)
    case("", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), m=draw(3, 5, dtype=dtype))
    infinite = torch.where(torch.rand(2, 1, 1, 5) < 0.5, 0.0, -math.inf).to(dtype)
    infinite[..., 2] = 0
    case(", scale=0.7", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.7))
    past = torch.ones(3, 5, dtype=torch.bool).tril(2)
    case(", causal=yes", lambda q, k, v, m: attend(q, k, v, past & torch.isfinite(m), bias=m), m=infinite)
    query, key = torch.arange(6)[:, None], torch.arange(6)
    for causal in (False, True):
        near = ((query - key).abs() < 3) & (key <= query if causal else True)
        case(f", causal={flag(causal)}, window=3",
             lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=near), 6, 6)
    everything = torch.ones(3, 5, dtype=torch.bool)
    case(", softcap=0.8, scale=2", lambda q, k, v: attend(q, k, v, everything, 2, 0.8))
    for heads, slopes in ((4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]), (3, [1 / 16, 1 / 256, 1 / 4])):
        bias = -tensor(slopes, torch.float64)[:, None, None] * (query - key).abs()
        near = bias.to(dtype)[None]
        case(", alibi=yes", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=near), 6, 6, heads)


def rotary(f, dtype):
    """The two forms of Llama: halves of a head, as of transformers, and neighbours, as complex numbers."""
    def halves(x, heads, base, start):
        width = x.shape[2] // heads
        speed = 1 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = torch.outer(torch.arange(start, start + x.shape[1], dtype=torch.float64), speed)
        angle = torch.cat((angle, angle), -1)[:, None].to(dtype)
        x = x.unflatten(2, (heads, width))
        first, second = x.chunk(2, -1)
        return (x * angle.cos() + torch.cat((-second, first), -1) * angle.sin()).flatten(2)

    def neighbours(x, heads, base, start):
        width = x.shape[2] // heads
        speed = 1 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = torch.outer(torch.arange(start, start + x.shape[1], dtype=torch.float64), speed).to(dtype)
        turn = torch.polar(torch.ones_like(angle), angle)[:, None]
        z = torch.view_as_complex(x.unflatten(2, (heads, width // 2, 2)))
        return torch.view_as_real(z * turn).flatten(2)
    for shape, heads, base in (((2, 5, 8), 2, 10000), ((1, 3, 12), 2, 500.0), ((1, 4, 2), 1, 10000)):
        for interleaved, function in ((False, halves), (True, neighbours)):
            x = draw(*shape, dtype=dtype)
            text = f"heads={heads}, base={base}, interleaved={flag(interleaved)}"
            f.case(f"y = rotary(x, {text})", lambda x: function(x, heads, base, 0), x=x)
            f.case(f"y = rotary(x, start, {text})", lambda x, start: function(x, heads, base, int(start)), x=x,
                   start=torch.tensor(7))


def kinks(f, dtype):
    """Gradients at ties and at points without a slope, and operands without elements."""
    ties, other = tensor([1.0, 1.0, -2.0, 0.5], dtype), tensor([1.0, 2.0, -2.0, -0.5], dtype)
    for op, function in {"fmax": torch.fmax, "fmin": torch.fmin}.items():
        f.case(f"y = {op}(a, b)", function, a=ties, b=other)
    points = tensor([-1.0, 0.0, 1.0, 2.0, 3.0], dtype)
    for low, high in ((0.0, 2.0), (1.0, 1.0), (2.0, 0.0)):
        f.case("y = clamp(x, low, high)", torch.clamp, x=points, low=tensor(low, dtype), high=tensor(high, dtype))
    f.case("z = atan2(x, y)", torch.atan2, outputs="z", x=tensor([0.0, -0.0, 0.0, 1.0], dtype), y=tensor([0.0, 0.0, -1.0, 0.0], dtype))
    f.case("y = trigamma(x)", lambda x: torch.polygamma(1, x), x=tensor([1.0, 2.0, 0.5, 3.5], dtype))
    f.case("y = std(x, axes=[1])", lambda x: x.std(1), x=torch.ones(2, 3, dtype=dtype))
    f.case("y = std(x, correction=0)", lambda x: x.std(correction=0), x=draw(1, dtype=dtype))
    f.case("y = norm(x, p=0.5, axes=[1])", lambda x: torch.linalg.vector_norm(x, 0.5, 1), x=tensor([[0.0, 1.0], [2.0, -3.0]], dtype))
    f.case("y = logsumexp(x, axes=[1])", lambda x: x.logsumexp(1), x=draw(2, 0, 3, dtype=dtype))
    equal = tensor([[1.0, 3.0, 3.0], [3.0, 3.0, 0.0], [0.0, 3.0, 3.0]], dtype)[None, None]

    def placed(found):
        return found[0], found[1].to(torch.int32)
    f.case("y, index = adaptive_max_pool(x, size=[2, 2])", lambda x: placed(F.adaptive_max_pool2d(x, 2, True)), outputs="y index", x=equal)
    f.case("y, index = adaptive_max_pool(x, size=[2])", lambda x: placed(F.adaptive_max_pool1d(x, 2, True)), outputs="y index",
           x=torch.ones(1, 2, 5, dtype=dtype))
    f.case("y = local_response_norm(x, size=3)", lambda x: F.local_response_norm(x, 3), x=draw(0, 4, 5, dtype=dtype))
    f.case("y = alignment(x, skip, steps, states)", lambda x, *_: x.sum((1, 2)), grad=[], x=tensor([[[math.nan]], [[2.0]]], dtype),
           skip=tensor([[False]] * 2, torch.bool), steps=tensor([1, 1], torch.int32), states=tensor([1, 1], torch.int32))
    empty = {name: draw(0, 2, n, 4, dtype=dtype) for name, n in (("q", 3), ("k", 5), ("v", 5))}
    f.case("y = general_attention(q, k, v)", F.scaled_dot_product_attention, **empty)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for family in (norms, scores, rotary, kinks):
        torch.manual_seed(0)
        write_family(family, folder)


if __name__ == "__main__":
    main()
