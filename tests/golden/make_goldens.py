#!/usr/bin/env python3
"""Writes values and gradients that PyTorch computes for Tenon's ops, as small safetensors files.

Each file holds cases, listed in the metadata "cases". A case NAME is a graph in Tenon's text form
(metadata NAME) and the tensors NAME/in/x, NAME/out/y, NAME/dout/y (the gradient with respect to y) and
NAME/grad/x. The script writes the same bytes in every run. Only this script needs PyTorch; the tests do not.

all_reduce, reduce_scatter and all_gather have no goldens: on one device they copy, and tests/integration/distributed
compares them over several.

    python3 tests/golden/make_goldens.py [FOLDER]
"""
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

NAMES = {torch.bool: ("bool", "BOOL"), torch.uint8: ("u8", "U8"), torch.int8: ("i8", "I8"), torch.int32: ("i32", "I32"),
         torch.int64: ("i64", "I64"), torch.float16: ("f16", "F16"), torch.bfloat16: ("bf16", "BF16"),
         torch.float32: ("f32", "F32"), torch.float64: ("f64", "F64")}
FLOATS = (torch.float32, torch.float64)


class File:
    """A file of goldens under construction."""

    def __init__(self, name, **metadata):
        self.name, self.tensors, self.graphs, self.counts, self.metadata = name, {}, {}, {}, metadata

    def case(self, body, function, outputs="y", grad=None, **inputs):
        """Records a case: body, statements of graph text, and the results of function(**inputs)."""
        op = body.split("(")[0].split("=")[-1].strip()
        index = self.counts[op] = self.counts.get(op, -1) + 1
        dtype = next((x.dtype for x in inputs.values() if x.dtype in FLOATS), None)
        name = f"{op}.{index}" + (f".{NAMES[dtype][0]}" if dtype else "")
        names = outputs.split()
        results = self.differentiate(name, function, names, grad, inputs)
        lines = [f"{k}: {NAMES[x.dtype][0]}{list(x.shape)} = input(name={k})" for k, x in inputs.items()]
        lines += body.split("; ") + [f"output {n} = {n}" for n in names]
        self.graphs[name] = "\n".join(lines) + "\n"
        for kind, tensors in (("in", inputs), ("out", dict(zip(names, results)))):
            for k, x in tensors.items():
                self.tensors[f"{name}/{kind}/{k}"] = x.detach().clone().contiguous()

    def differentiate(self, name, function, names, grad, inputs):
        wanted = [k for k, x in inputs.items() if x.dtype in FLOATS] if grad is None else grad
        leaves = {k: x.detach().clone().requires_grad_(k in wanted) for k, x in inputs.items()}
        results = function(*leaves.values())
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        loss = 0
        for n, y in zip(names, results):
            if y.requires_grad:
                dout = draw(*y.shape, dtype=y.dtype)
                self.tensors[f"{name}/dout/{n}"] = dout
                loss = loss + (y * dout).sum()
        if torch.is_tensor(loss):
            loss.backward()
            for k in wanted:
                g = leaves[k].grad
                self.tensors[f"{name}/grad/{k}"] = torch.zeros_like(leaves[k]).detach() if g is None else g
        return results

    def write(self, folder):
        metadata = {"cases": "\n".join(self.graphs), **self.graphs, **self.metadata}
        header, offset, blobs = {"__metadata__": metadata}, 0, []
        for k, x in sorted(self.tensors.items()):
            raw = x.contiguous().flatten().view(torch.uint8).numpy().tobytes() if x.numel() else b""
            header[k] = {"dtype": NAMES[x.dtype][1], "shape": list(x.shape), "data_offsets": [offset, offset + len(raw)]}
            offset += len(raw)
            blobs.append(raw)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        path = pathlib.Path(folder) / f"{self.name}.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
        print(f"{path}: {len(self.graphs)} cases, {path.stat().st_size} bytes")


def draw(*shape, dtype=torch.float64, low=-2.0, high=2.0):
    return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).to(dtype)


def draw_away(*shape, dtype=torch.float64):
    x = draw(*shape, dtype=dtype)
    return torch.where(x < 0, x - 0.1, x + 0.1)


def tensor(values, dtype):
    return torch.tensor(values, dtype=dtype)


def ints(values):
    return "[" + ", ".join(str(int(v)) for v in values) + "]"


def flag(value):
    return "yes" if value else "no"


# ---- families ---------------------------------------------------------------------------------------


def pointwise(f, dtype):
    special = tensor([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, 30.0, -30.0], dtype)
    positive = draw(3, 4, dtype=dtype, low=0.05, high=3)
    for op, function in {"neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "tanh": torch.tanh,
                         "sigmoid": torch.sigmoid, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
                         "sign": torch.sign, "floor": torch.floor, "relu": F.relu, "silu": F.silu}.items():
        for x in (draw(3, 1, 5, dtype=dtype), special if op != "exp" else special / 10, draw(dtype=dtype)):
            f.case(f"y = {op}(x)", function, x=x)
    for op, function in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal}.items():
        f.case(f"y = {op}(x)", function, x=positive)
    f.case("y = reciprocal(x)", torch.reciprocal, x=draw_away(7, dtype=dtype))
    for mode in ("none", "tanh"):
        for x in (draw(4, 5, dtype=dtype), special):
            f.case(f"y = gelu(x, approximate={mode})", lambda x: F.gelu(x, approximate=mode), x=x)
    for x in (draw(4, 3, dtype=dtype), special):
        f.case("y = leaky_relu(x, slope=0.2)", lambda x: F.leaky_relu(x, 0.2), x=x)
    f.case("y = affine(x, scale=-1.5, shift=0.25)", lambda x: x * -1.5 + 0.25, x=draw(2, 3, dtype=dtype))
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 1, 4), (3, 1)), ((), (2, 2)), ((4,), (3, 1)), ((0, 3), (1,))]
    binary = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum,
              "minimum": torch.minimum}
    compare = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
    for op, function in {**binary, **compare}.items():
        for s, t in shapes if op in binary else shapes[1:2]:
            f.case(f"y = {op}(a, b)", lambda a, b: function(a, b), a=draw(*s, dtype=dtype), b=draw_away(*t, dtype=dtype))
    ties = tensor([1.0, 2.0, 2.0, -1.0], dtype), tensor([1.0, 1.0, 3.0, -1.0], dtype)
    for op, function in {"maximum": torch.maximum, "minimum": torch.minimum, **compare}.items():
        f.case(f"y = {op}(a, b)", lambda a, b: function(a, b), a=ties[0], b=ties[1])
    for s, t in shapes:
        f.case("y = pow(a, b)", torch.pow, a=draw(*s, dtype=dtype, low=0.1), b=draw(*t, dtype=dtype))
    f.case("y = pow(a, b)", torch.pow, a=tensor([0.0, 0.0, 2.0, 3.0], dtype), b=tensor([0.0, 2.0, 0.0, 1.0], dtype))
    for s, t in shapes:
        c = torch.rand(torch.broadcast_shapes(s, t)) < 0.5
        f.case("y = where(c, a, b)", torch.where, c=c, a=draw(*s, dtype=dtype), b=draw(*t, dtype=dtype))
    odd = tensor([math.inf, -math.inf, math.nan, 0.0, 1.0], dtype)
    f.case("y = is_finite(x)", torch.isfinite, grad=[], x=odd)
    f.case("y = all_finite(x)", lambda x: torch.isfinite(x).all(), grad=[], x=odd)
    f.case("y = all_finite(x)", lambda x: torch.isfinite(x).all(), grad=[], x=draw(3, 3, dtype=dtype))
    for to in (torch.int32, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        grad = ["x"] if to in FLOATS else []
        f.case(f"y = cast(x, to={NAMES[to][0]})", lambda x: x.to(to), grad=grad, x=draw_away(3, 4, dtype=dtype))
    f.case("y = broadcast(x, dims=[2, 3, 4])", lambda x: x.expand(2, 3, 4), x=draw(3, 1, dtype=dtype))
    f.case("y = broadcast(x, dims=[2, 2])", lambda x: x.expand(2, 2), x=draw(dtype=dtype))
    f.case("y = spread(v, starts=[0, 2, 2, 5], index=[1, 0, 2, 1], count=7)",
           lambda v: v[torch.tensor([1, 1, 2, 2, 2, 1, 1])], v=draw(3, dtype=dtype))


def whole(f):
    a, b = tensor([[1, -2, 3], [4, 5, -6]], torch.int32), tensor([2, -2, 7], torch.int32)
    for dtype in (torch.int32, torch.int64):
        x, y = a.to(dtype), b.to(dtype)
        for op, function in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum,
                             "eq": torch.eq, "lt": torch.lt}.items():
            f.case(f"y = {op}(a, b)", lambda a, b: function(a, b), a=x, b=y)
        f.case("y = reduce_sum(x, axes=[1])", lambda x: x.sum(1).to(x.dtype), x=x)
        f.case("y = reduce_max(x)", lambda x: x.amax(), x=x)
    p, q = tensor([True, True, False, False], torch.bool), tensor([True, False, True, False], torch.bool)
    f.case("y = and(a, b)", torch.logical_and, a=p, b=q)
    f.case("y = or(a, b)", torch.logical_or, a=p, b=q)
    f.case("y = not(a)", torch.logical_not, a=p)
    f.case("y = iota(dims=[2, 3], axis=-1, dtype=i32)", lambda: torch.arange(3, dtype=torch.int32).expand(2, 3))
    f.case("y = full(dims=[2, 3], value=-1.5, dtype=f64)", lambda: torch.full((2, 3), -1.5, dtype=torch.float64))
    for diagonal in (-2, 0, 1):
        f.case(f"y = triangular_mask(rows=3, columns=4, diagonal={diagonal})",
               lambda: torch.ones(3, 4, dtype=torch.bool).tril(diagonal))


def reduce(f, dtype):
    def over(function, x, axes, keep):
        return function(x, dim=axes if axes else tuple(range(x.dim())), keepdim=keep)
    ties = tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], dtype)
    for op, function in {"reduce_sum": torch.sum, "reduce_mean": torch.mean, "reduce_max": torch.amax,
                         "reduce_min": torch.amin}.items():
        for shape, axes in (((2, 3, 4), (1,)), ((2, 3, 4), (0, -1)), ((3, 1, 2), ()), ((5,), (0,))):
            for keep in (False, True):
                f.case(f"y = {op}(x, axes={ints(axes)}, keep={flag(keep)})",
                       lambda x: over(function, x, axes, keep), x=draw(*shape, dtype=dtype))
        f.case(f"y = {op}(x, axes=[1])", lambda x: over(function, x, (1,), False), x=ties)
        f.case(f"y = {op}(x)", lambda x: over(function, x, (), False), x=ties)
    f.case("y = reduce_sum(x, axes=[0])", lambda x: x.sum(0), x=draw(0, 3, dtype=dtype))
    for axis in (0, 1, -1):
        f.case(f"y = argmax(x, axis={axis})", lambda x: x.argmax(axis).to(torch.int32), grad=[],
               x=draw(3, 4, 2, dtype=dtype))
    f.case("m, v = moments(x, axes=[0, 2])",
           lambda x: (x.mean((0, 2)), x.var((0, 2), correction=0)), outputs="m v",
           x=draw(3, 2, 4, dtype=dtype))
    f.case("s, q = norm_grad_sums(dy, x, mean, rstd, axes=[0, 2])",
           lambda dy, x, mean, rstd: (dy.sum((0, 2)), (dy * (x - mean[:, None]) * rstd[:, None]).sum((0, 2))),
           outputs="s q", dy=draw(3, 2, 4, dtype=dtype), x=draw(3, 2, 4, dtype=dtype), mean=draw(2, dtype=dtype),
           rstd=draw(2, dtype=dtype, low=0.5))


def matmul(f, dtype):
    def product(a, b, bias=None, ta=False, tb=False):
        y = (a.mT if ta else a) @ (b.mT if tb else b)
        return y if bias is None else y + bias
    for batch_a, batch_b in (((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((2,), (2,)), ((0,), ())):
        for ta in (False, True):
            for tb in (False, True) if batch_a == batch_b else (ta,):
                a = draw(*batch_a, *((4, 3) if ta else (3, 4)), dtype=dtype)
                b = draw(*batch_b, *((2, 4) if tb else (4, 2)), dtype=dtype)
                attributes = f"transpose_a={flag(ta)}, transpose_b={flag(tb)}"
                f.case(f"y = matmul(a, b, {attributes})", lambda a, b: product(a, b, None, ta, tb), a=a, b=b)
                if ta == tb:
                    f.case(f"y = matmul(a, b, c, {attributes})", lambda a, b, c: product(a, b, c, ta, tb), a=a, b=b,
                           c=draw(2, dtype=dtype))
    f.case("y = matmul(a, b)", product, a=draw(2, 0, dtype=dtype), b=draw(0, 3, dtype=dtype))


def conv(f, dtype):
    for batch, channels, size, out, kernel, stride, padding, dilation, groups in (
            (2, 2, (4, 5), 3, (3, 3), (1, 1), (1, 1), (1, 1), 1), (1, 2, (7, 5), 2, (3, 2), (2, 1), (0, 1), (1, 1), 1),
            (1, 4, (6, 5), 4, (2, 3), (2, 2), (1, 2), (2, 1), 2), (1, 3, (5, 5), 3, (3, 3), (1, 1), (2, 2), (2, 2), 3),
            (2, 3, (4, 4), 5, (1, 1), (2, 2), (0, 0), (1, 1), 1), (1, 1, (8, 3), 1, (3, 1), (3, 1), (1, 0), (1, 1), 1)):
        window = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        text = f"stride={ints(stride)}, padding={ints(padding)}, dilation={ints(dilation)}, groups={groups}"
        x, w = draw(batch, channels, *size, dtype=dtype), draw(out, channels // groups, *kernel, dtype=dtype)
        f.case(f"y = conv2d(x, w, c, {text})", lambda x, w, c: F.conv2d(x, w, c, **window), x=x, w=w,
               c=draw(out, dtype=dtype))
        if groups == 1 and out == 1:
            f.case(f"y = conv2d(x, w, _, {text})", lambda x, w: F.conv2d(x, w, **window), x=x, w=w)
        dy = draw(*F.conv2d(x, w, **window).shape, dtype=dtype)
        f.case(f"y = conv2d_grad_input(dy, w, {text}, dims={ints(x.shape)})",
               lambda dy, w: torch.nn.grad.conv2d_input(x.shape, w, dy, **window), dy=dy, w=w)
        f.case(f"y = conv2d_grad_weight(x, dy, {text}, dims={ints(w.shape)})",
               lambda x, dy: torch.nn.grad.conv2d_weight(x, w.shape, dy, **window), x=x, dy=dy)


def pool(f, dtype):
    for shape, kernel, stride, padding in (((2, 2, 4, 3), (2, 2), (2, 2), (0, 0)), ((1, 2, 5, 6), (3, 3), (2, 2), (1, 1)),
                                           ((1, 1, 4, 5), (3, 2), (1, 3), (1, 0)), ((1, 1, 5, 6), (2, 3), (3, 2), (1, 1))):
        for ceil in (False, True):
            text = f"kernel={ints(kernel)}, stride={ints(stride)}, padding={ints(padding)}, ceil={flag(ceil)}"
            x = draw(*shape, dtype=dtype)

            def maximum(x):
                y, index = F.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil, return_indices=True)
                return y, index.to(torch.int32)
            f.case(f"y, index = max_pool2d(x, {text})", maximum, outputs="y index", x=x)
            for include in (False, True):
                def average(x):
                    return F.avg_pool2d(x, kernel, stride, padding, ceil_mode=ceil, count_include_pad=include)
                f.case(f"y = avg_pool2d(x, {text}, include_pad={flag(include)})", average, x=x)
                y = average(x)
                dy = draw(*y.shape, dtype=dtype)
                f.case(f"y = avg_pool2d_grad(dy, {text}, include_pad={flag(include)}, dims={ints(shape)})",
                       lambda dy: torch.autograd.functional.vjp(average, x, dy, create_graph=True)[1], dy=dy)
    equal = torch.ones(1, 1, 4, 4, dtype=dtype)
    f.case("y, index = max_pool2d(x, kernel=[2, 2])",
           lambda x: [t if t.is_floating_point() else t.to(torch.int32) for t in F.max_pool2d(x, 2, return_indices=True)],
           outputs="y index", x=equal)
    f.case("y = global_avg_pool(x)", lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), x=draw(2, 3, 4, 5, dtype=dtype))


def norm(f, dtype):
    def batch(x, w=None, c=None):
        axes = [i for i in range(x.dim()) if i != 1]
        return F.batch_norm(x, None, None, w, c, True, 0, 1e-5), x.mean(axes), x.var(axes, unbiased=False)
    for shape in ((6, 3), (4, 3, 5), (2, 3, 4, 2), (2, 2, 2, 3, 2)):
        x, w, c = draw(*shape, dtype=dtype), draw(shape[1], dtype=dtype), draw(shape[1], dtype=dtype)
        f.case("y, m, v = batch_norm(x, w, c)", batch, outputs="y m v", x=x, w=w, c=c)
        f.case("y, m, v = batch_norm(x)", batch, outputs="y m v", x=x)
        f.case("y = batch_norm_apply(x, m, v, w, c, epsilon=0.001)",
               lambda x, m, v, w, c: apply_statistics(x, m, v, w, c, 1e-3), x=x, m=draw(shape[1], dtype=dtype),
               v=draw(shape[1], dtype=dtype, low=0.2), w=w, c=c)
    for shape, trailing in (((4, 6), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((5,), 1)):
        row = shape[len(shape) - trailing:]

        def layer(x, w=None, c=None):
            y, mean, rstd = torch.native_layer_norm(x, row, w, c, 1e-5)
            axes = list(range(x.dim() - trailing, x.dim()))
            mean, variance = x.mean(axes), x.var(axes, unbiased=False)
            return y, mean, torch.rsqrt(variance + 1e-5)
        x = draw(*shape, dtype=dtype)
        f.case(f"y, m, r = layer_norm(x, w, c, trailing={trailing})", layer, outputs="y m r", x=x,
               w=draw(*row, dtype=dtype), c=draw(*row, dtype=dtype))
        f.case(f"y, m, r = layer_norm(x, trailing={trailing})", layer, outputs="y m r", x=x)


def apply_statistics(x, m, v, w, c, epsilon):
    """PyTorch's batch_norm for evaluation, as single ops, since it has no gradient for its statistics."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = (x - m.view(shape)) * torch.rsqrt(v.view(shape) + epsilon) * w.view(shape) + c.view(shape)
    same = F.batch_norm(*(t.detach() for t in (x, m, v, w, c)), False, 0, epsilon)
    torch.testing.assert_close(y.detach(), same)
    return y


def loss(f, dtype):
    for shape, axis in (((3, 5), -1), ((2, 4, 3), 1), ((6,), 0), ((0, 3), 1)):
        x = draw(*shape, dtype=dtype, low=-5, high=5)
        f.case(f"y = softmax(x, axis={axis})", lambda x: x.softmax(axis), x=x)
        f.case(f"y = log_softmax(x, axis={axis})", lambda x: x.log_softmax(axis), x=x)
    large = tensor([[1000.0, 999.0, -1000.0], [-5e4, -5e4, -5e4]], dtype)
    f.case("y = softmax(x)", lambda x: x.softmax(-1), x=large)
    f.case("y = log_softmax(x)", lambda x: x.log_softmax(-1), x=large)
    for integer in (torch.int32, torch.int64):
        for shape, axis in (((4, 5), -1), ((2, 4, 2), 1)) if integer == torch.int32 else (((2, 3, 2, 2), 1),):
            rows = [s for i, s in enumerate(shape) if i != axis % len(shape)]
            target = torch.randint(0, shape[axis], rows)
            for ignore, smoothing in ((-100, 0.0), (-100, 0.1), (2, 0.0), (2, 0.3), (-1, 1.0)):
                t = target.clone()
                if ignore < 0:
                    t.view(-1)[0] = ignore

                def entropy(x, t):
                    value = F.cross_entropy(x, t.long(), reduction="none", ignore_index=ignore, label_smoothing=smoothing)
                    return value, x.logsumexp(axis)
                f.case(f"y, z = cross_entropy(x, t, axis={axis}, ignore={ignore}, smoothing={smoothing})", entropy,
                       outputs="y z", x=draw(*shape, dtype=dtype, low=-4, high=4), t=t.to(integer))


def attention(f, dtype):
    for batch, heads, queries, keys, width, values in ((2, 2, 4, 4, 3, 3), (1, 3, 3, 5, 4, 2), (1, 1, 1, 6, 2, 2)):
        for causal in (False, True):
            for scale in (None, 0.7):
                mask = torch.ones(queries, keys, dtype=torch.bool)
                mask = mask.tril(keys - queries) if causal else mask

                def attend(q, k, v):
                    s = (q @ k.mT) * (scale or 1 / math.sqrt(width))
                    lse = s.masked_fill(~mask, -math.inf).logsumexp(-1)
                    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale), lse
                f.case(f"y, z = attention(q, k, v, causal={flag(causal)}, scale={scale or 0})", attend, outputs="y z",
                       q=draw(batch, heads, queries, width, dtype=dtype), k=draw(batch, heads, keys, width, dtype=dtype),
                       v=draw(batch, heads, keys, values, dtype=dtype))


def decoding(f, dtype):
    for batch, heads, tokens, room, position, width, values in ((1, 2, 1, 6, 3, 4, 4), (2, 1, 3, 5, 0, 2, 3), (1, 1, 2, 4, 2, 3, 1)):
        for scale in (None, 0.7):
            mask = torch.ones(tokens, room, dtype=torch.bool).tril(position)

            def attend(q, k, v, keys, values, p):
                at = int(p)
                keys = torch.cat((keys[:, :, :at], k, keys[:, :, at + tokens:]), 2)
                values = torch.cat((values[:, :, :at], v, values[:, :, at + tokens:]), 2)
                return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, scale=scale), keys, values
            f.case(f"y, a, b = cached_attention(q, k, v, keys, values, p, scale={scale or 0})", attend, outputs="y a b",
                   q=draw(batch, heads, tokens, width, dtype=dtype), k=draw(batch, heads, tokens, width, dtype=dtype),
                   v=draw(batch, heads, tokens, values, dtype=dtype), keys=draw(batch, heads, room, width, dtype=dtype),
                   values=draw(batch, heads, room, values, dtype=dtype), p=torch.tensor(position))


def embedding(f, dtype):
    for integer in (torch.int32, torch.int64):
        for shape in ((4,), (2, 3), ()):
            ids = torch.randint(0, 5, shape).to(integer)
            f.case("y = embedding(ids, table)", lambda ids, table: F.embedding(ids.long(), table), ids=ids,
                   table=draw(5, 3, dtype=dtype))
            f.case("y = embedding_grad(ids, dy, rows=5)",
                   lambda ids, dy: torch.zeros(5, 3, dtype=dtype).index_add(0, ids.long().view(-1), dy.reshape(-1, 3)),
                   ids=ids, dy=draw(*shape, 3, dtype=dtype))


def recurrence(f, dtype):
    """Sequences of several lengths by PyTorch's packed ones; an input matrix of ones and zeros hands x over as it is."""
    def along(module, reverse, lengths):
        def run(x, w, bias, h, c=None):
            module.double() if dtype == torch.float64 else module.float()
            values = {"weight_ih_l0": torch.eye(x.shape[2], dtype=dtype), "weight_hh_l0": w,
                      "bias_ih_l0": torch.zeros_like(bias), "bias_hh_l0": bias}
            # both directions have values, since PyTorch has no reverse direction alone
            named = dict(values)
            if reverse:
                named.update({k + "_reverse": v for k, v in values.items()})
                h, c = torch.stack([h, h]), None if c is None else torch.stack([c, c])
            else:
                h, c = h[None], None if c is None else c[None]
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            state = h if c is None else (h, c)
            y, last = torch.func.functional_call(module, named, (packed, state))
            y = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]
            units = w.shape[1]
            last = last if c is not None else (last,)
            return (y[:, :, -units:],) + tuple(s[-1] for s in last)
        return run

    lengths = torch.tensor([5, 2, 4], dtype=torch.int32)
    for name, cell, gates in (("LSTM", "lstm", 4), ("GRU", "gru", 3), ("RNN", "tanh", 1)):
        for reverse in (False, True):
            units = 3
            module = getattr(torch.nn, name)(gates * units, units, batch_first=True, bidirectional=reverse)
            operands = {"x": draw(3, 5, gates * units, dtype=dtype), "w": draw(gates * units, units, dtype=dtype),
                        "bias": draw(gates * units, dtype=dtype), "h": draw(3, units, dtype=dtype)}
            if cell == "lstm":
                operands["c"] = draw(3, units, dtype=dtype)
            run = along(module, reverse, lengths.long())
            given = "h, c" if cell == "lstm" else "h, _"
            results = "y last cell" if cell == "lstm" else "y last"
            f.case(f"y, last, cell, stored = recurrence(x, w, bias, {given}, length, cell={cell}, reverse={flag(reverse)})",
                   lambda *v: run(*v[:-1]), outputs=results, **operands, length=lengths)


def movement(f, dtype):
    x = draw(2, 3, 4, dtype=dtype)
    f.case("y = reshape(x, dims=[6, -1])", lambda x: x.reshape(6, -1), x=x)
    f.case("y = transpose(x, order=[2, 0, 1])", lambda x: x.permute(2, 0, 1), x=x)
    f.case("y = slice(x, starts=[0, 1, 0], stops=[2, 3, 4], steps=[1, 1, 3])", lambda x: x[0:2, 1:3, 0:4:3], x=x)
    f.case("y = slice(x, starts=[1, 0, 2], stops=[1, 3, 4])", lambda x: x[1:1, :, 2:], x=x)
    f.case("y = pad(x, low=[0, 1, 0], high=[1, 0, 2])", lambda x: F.pad(x, (0, 2, 1, 0, 0, 1)), x=x)

    def between(x):
        y = torch.zeros(4, 9, dtype=x.dtype)
        y[1:4:2, 0:9:4] = x
        return y
    f.case("y = pad(x, low=[1, 0], high=[0, 0], inner=[1, 3])", between, x=draw(2, 3, dtype=dtype))
    f.case("y = concat(a, b, c, axis=-2)", lambda a, b, c: torch.cat((a, b, c), -2), a=draw(2, 1, 3, dtype=dtype),
           b=draw(2, 0, 3, dtype=dtype), c=draw(2, 4, 3, dtype=dtype))
    f.case("y = copy(x)", torch.clone, x=x)
    f.case("y = reorder(x)", torch.clone, x=x)

    def pack(a, b):
        zero = torch.zeros(1, dtype=a.dtype)
        return torch.cat((zero, a.reshape(-1), zero, zero, b.reshape(-1), zero))
    f.case("y = pack(a, b, offsets=[1, 7], count=12)", pack, a=draw(2, 2, dtype=dtype), b=draw(4, dtype=dtype))


def crop(f, dtype):
    """A part of each picture: of the picture with zeros around it, so that a part may begin or end outside."""
    def part(height, width):
        def of_one(x, start, mirror):
            around = 8
            (top, left), (rows, columns) = start, mirror
            wide = F.pad(x, (around,) * 4)
            y = wide[..., around + top:around + top + height, around + left:around + left + width]
            return torch.flip(y, [d for d, m in ((-2, rows), (-1, columns)) if m])

        def of_all(x, start=None, mirror=None):
            none = [[0, 0]] * x.shape[0]
            starts, mirrors = (none if v is None else v.tolist() for v in (start, mirror))
            return torch.stack([of_one(*v) for v in zip(x, starts, mirrors)])
        return of_all

    pictures, flat = draw(4, 2, 5, 6, dtype=dtype), draw(2, 3, 4, dtype=dtype)
    inside = tensor([[0, 0], [1, 2], [2, 3], [1, 0]], torch.int32)
    across = tensor([[-2, 1], [3, -1], [4, 5], [-1, -2]], torch.int32)
    mirrors = tensor([[0, 0], [0, 1], [1, 0], [1, 1]], torch.int32)
    f.case("y = crop(x, start, mirror, size=[3, 3])", part(3, 3), x=pictures, start=inside, mirror=mirrors)
    f.case("y = crop(x, start, mirror, size=[4, 3])", part(4, 3), x=pictures, start=across.long(),
           mirror=mirrors.long())
    f.case("y = crop(x, start, size=[7, 8])", part(7, 8), x=pictures, start=across)
    f.case("y = crop(x, _, mirror, size=[5, 6])", lambda x, mirror: part(5, 6)(x, None, mirror), x=pictures,
           mirror=mirrors)
    f.case("y = crop(x, size=[2, 3])", part(2, 3), x=flat)
    outside = tensor([[-7, 0], [1, 7]], torch.int32)
    f.case("y = crop(x, start, size=[2, 2])", part(2, 2), x=flat, start=outside)


# ops of pointwise.c, elementwise.c and activations.c: their functions in PyTorch, and the interval of operands
UNARY = {"tan": (torch.tan, -1.4, 1.4), "asin": (torch.asin, -1, 1), "acos": (torch.acos, -1, 1), "atan": torch.atan,
         "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh, "acosh": (torch.acosh, 1.1, 4),
         "atanh": (torch.atanh, -0.95, 0.95), "exp2": torch.exp2, "expm1": torch.expm1, "log2": (torch.log2, 0.05, 4),
         "log10": (torch.log10, 0.05, 4), "log1p": (torch.log1p, -0.9, 4), "erfc": torch.erfc,
         "lgamma": (torch.lgamma, 0.2, 6), "digamma": (torch.digamma, -3.9, 6), "trigamma": (lambda x: torch.polygamma(1, x), 0.2, 6),
         "ceil": torch.ceil, "trunc": torch.trunc, "round": torch.round, "frac": torch.frac, "square": torch.square,
         "erfinv": (torch.erfinv, -0.99, 0.99), "logit": (torch.logit, 0.02, 0.98), "sinc": torch.sinc,
         "deg2rad": torch.deg2rad, "rad2deg": torch.rad2deg, "mish": F.mish, "softsign": F.softsign,
         "tanhshrink": F.tanhshrink, "log_sigmoid": F.logsigmoid, "relu6": F.relu6, "hardsigmoid": F.hardsigmoid,
         "hardswish": F.hardswish, "selu": F.selu, "elu": F.elu, "celu": F.celu, "softplus": F.softplus,
         "softshrink": F.softshrink, "hardshrink": F.hardshrink, "hardtanh": F.hardtanh, "silu": F.silu, "relu": F.relu,
         "clip": lambda x: torch.clamp(x, -math.inf, math.inf), "nan_to_num": torch.nan_to_num}
TESTS = {"is_nan": torch.isnan, "is_inf": torch.isinf, "is_pos_inf": torch.isposinf, "is_neg_inf": torch.isneginf,
         "is_finite": torch.isfinite, "sign_bit": torch.signbit, "logical_not": torch.logical_not}
OPTIONS = {"elu(x, alpha=0.5)": lambda x: F.elu(x, 0.5), "celu(x, alpha=2)": lambda x: F.celu(x, 2.0),
           "softplus(x, beta=2, threshold=3)": lambda x: F.softplus(x, 2, 3),
           "softshrink(x, lambda=1)": lambda x: F.softshrink(x, 1.0),
           "hardshrink(x, lambda=1)": lambda x: F.hardshrink(x, 1.0),
           "hardtanh(x, min=-0.5, max=2.5)": lambda x: F.hardtanh(x, -0.5, 2.5),
           "threshold(x, threshold=0.5, value=-7)": lambda x: F.threshold(x, 0.5, -7.0),
           "logit(x, eps=0.1)": lambda x: torch.logit(x, 0.1), "clip(x, min=-1, max=0.5)": lambda x: torch.clamp(x, -1, 0.5),
           "clip(x, min=2, max=1)": lambda x: torch.clamp(x, 2, 1),
           "nan_to_num(x, nan=3, posinf=4, neginf=-5)": lambda x: torch.nan_to_num(x, 3.0, 4.0, -5.0)}
BINARY = {"atan2": torch.atan2, "hypot": torch.hypot, "copysign": torch.copysign, "logaddexp": torch.logaddexp,
          "logaddexp2": torch.logaddexp2, "xlogy": torch.xlogy, "fmod": torch.fmod, "remainder": torch.remainder,
          "fmax": torch.fmax, "fmin": torch.fmin, "prelu": lambda x, y: torch.where(x > 0, x, y * x)}
COMPARE = {"floor_divide": torch.floor_divide, "logical_and": torch.logical_and, "logical_or": torch.logical_or,
           "logical_xor": torch.logical_xor, "is_close": torch.isclose}
TERNARY = {"lerp": torch.lerp, "addcmul": torch.addcmul, "addcdiv": torch.addcdiv, "clamp": torch.clamp}
BITS = {"bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor}
WHOLE = {**BITS, "shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift,
         "quotient": lambda x, y: torch.div(x, y, rounding_mode="trunc"), "fmod": torch.fmod,
         "floor_divide": torch.floor_divide, "remainder": torch.remainder, "logical_xor": torch.logical_xor}


def elementwise(f, dtype):
    """Values and gradients at random numbers and kinks; values at infinities, NaN and zeros."""
    kinks = tensor([0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, 2.5, -25.0, 25.0], dtype)
    edges = tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 90.0, -90.0], dtype)
    for op, row in UNARY.items():
        function, low, high = row if isinstance(row, tuple) else (row, -3, 3)
        f.case(f"y = {op}(x)", function, x=draw(2, 3, dtype=dtype, low=low, high=high))
        if not isinstance(row, tuple):
            f.case(f"y = {op}(x)", function, x=kinks)
        # of large numbers libraries differ in f64, too, and PyTorch's trigamma is finite at -1
        near = edges[:7] if op in ("sinh", "cosh", "tan") else edges[:6] if op == "trigamma" else edges
        f.case(f"y = {op}(x)", function, grad=[], x=near)
    for text, function in OPTIONS.items():
        f.case(f"y = {text}", function, x=kinks)
    for op, function in TESTS.items():
        f.case(f"y = {op}(x)", function, grad=[], x=edges)
    grid = edges[:7, None], edges[None, :7]
    for op, function in {**BINARY, **COMPARE}.items():
        low = 0.1 if op == "xlogy" else -2
        if op in BINARY:
            f.case(f"y = {op}(a, b)", function, a=draw(2, 1, 3, dtype=dtype), b=draw(2, 1, dtype=dtype, low=low))
        f.case(f"y = {op}(a, b)", function, grad=[], a=grid[0], b=grid[1])
    for op, function in TERNARY.items():
        f.case(f"y = {op}(a, b, c)", function, a=draw(2, 3, dtype=dtype), b=draw(3, dtype=dtype), c=draw_away(2, 1, dtype=dtype))
    f.case("y = clamp(a, b, c)", torch.clamp, a=kinks[:5], b=tensor([-0.5], dtype), c=tensor([0.5], dtype))
    f.case("y = masked_fill(x, m, value=2.5)", lambda x, m: x.masked_fill(m, 2.5), x=draw(2, 3, dtype=dtype),
           m=tensor([True, False, True], torch.bool))
    f.case("y = is_close(a, b, rtol=0.1, equal_nan=1)", lambda a, b: torch.isclose(a, b, rtol=0.1, equal_nan=True), grad=[],
           a=edges, b=edges * 1.05)


def elementwise_whole(f):
    for dtype in (torch.int32, torch.int64):
        a, b = tensor([[-7], [7], [6], [-1], [0]], dtype), tensor([[1, 2, 3, 5]], dtype)
        for op, function in WHOLE.items():
            f.case(f"y = {op}(a, b)", function, a=a, b=b if "shift" in op else b * tensor([1, -1, 1, -1], dtype))
        f.case("y = bitwise_not(a)", torch.bitwise_not, a=a)
        f.case("y = square(a)", torch.square, a=a)
        f.case("y = clip(a, min=-2, max=5)", lambda a: torch.clamp(a, -2, 5), a=a)
    p, q = tensor([True, True, False, False], torch.bool), tensor([True, False, True, False], torch.bool)
    for op, function in {**BITS, "logical_xor": torch.logical_xor}.items():
        f.case(f"y = {op}(a, b)", function, a=p, b=q)
    f.case("y = bitwise_not(a)", torch.bitwise_not, a=p)


def write_elementwise(folder):
    f = File("elementwise")
    elementwise(f, torch.float64)  # in f32 kernels are compared with the reference: tests/conformance
    f.case("y = nan_to_num(x)", torch.nan_to_num, grad=[], x=tensor([math.inf, -math.inf, math.nan, 1.5], torch.float32))
    elementwise_whole(f)
    f.write(folder)
def conv_ranks(f, dtype):
    """Convolutions over one and three dimensions, transposed ones, and padding that differs on both sides."""
    plain, transposed = (F.conv1d, F.conv2d, F.conv3d), (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
    for batch, channels, size, out, kernel, stride, padding, dilation, groups in (
            (2, 2, (7,), 3, (3,), (2,), (1,), (1,), 1), (1, 4, (8,), 2, (2,), (1,), (2,), (3,), 2),
            (1, 2, (4, 5, 3), 2, (3, 2, 2), (1, 2, 1), (1, 0, 1), (1, 1, 1), 1),
            (2, 2, (5, 4, 4), 2, (2, 2, 3), (2, 1, 3), (2, 1, 1), (2, 1, 1), 2), (1, 1, (3, 3, 3), 2, (1, 1, 1), (2, 2, 2), (0, 0, 0), (1, 1, 1), 1)):
        window = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        text = f"stride={ints(stride)}, padding={ints(padding)}, dilation={ints(dilation)}, groups={groups}"
        rank = len(size)
        f.case(f"y = conv{rank}d(x, w, c, {text})", lambda x, w, c: plain[rank - 1](x, w, c, **window),
               x=draw(batch, channels, *size, dtype=dtype), w=draw(out, channels // groups, *kernel, dtype=dtype),
               c=draw(out, dtype=dtype))
    for batch, channels, size, out, kernel, stride, padding, more, dilation, groups in (
            (2, 2, (4,), 3, (3,), (2,), (1,), (1,), (1,), 1), (1, 2, (3, 4), 3, (3, 2), (2, 1), (1, 0), (1, 0), (1, 2), 1),
            (1, 4, (3, 3), 4, (4, 4), (2, 2), (1, 1), (0, 0), (1, 1), 2),
            (1, 2, (2, 3, 2), 2, (2, 3, 2), (3, 1, 2), (0, 1, 1), (2, 0, 1), (1, 1, 2), 1)):
        rank = len(size)
        text = (f"stride={ints(stride)}, padding={ints(padding)}, dilation={ints(dilation)}, groups={groups}, "
                f"output_padding={ints(more)}")
        f.case(f"y = conv_transpose{rank}d(x, w, c, {text})",
               lambda x, w, c: transposed[rank - 1](x, w, c, stride, padding, more, groups, dilation),
               x=draw(batch, channels, *size, dtype=dtype), w=draw(channels, out // groups, *kernel, dtype=dtype),
               c=draw(out, dtype=dtype))
    f.case("y = conv2d(x, w, padding=[1, 0, 2, 3])", lambda x, w: F.conv2d(F.pad(x, (0, 3, 1, 2)), w),
           x=draw(1, 2, 3, 4, dtype=dtype), w=draw(2, 2, 2, 3, dtype=dtype))
    f.case("y = conv3d(x, w, padding=[1, 0, 2, 0, 1, 0])", lambda x, w: F.conv3d(F.pad(x, (2, 0, 0, 1, 1, 0)), w),
           x=draw(1, 1, 2, 3, 2, dtype=dtype), w=draw(2, 1, 2, 2, 3, dtype=dtype))


def pool_ranks(f, dtype):
    """Pooling over one and three dimensions, to a given size and over all of an image."""
    for shape, kernel, stride, padding in (((2, 2, 7), (3,), (2,), (1,)), ((1, 1, 5, 4, 4), (2, 3, 2), (2, 1, 2), (1, 1, 0))):
        rank = len(kernel)
        for ceil in (False, True):
            text = f"kernel={ints(kernel)}, stride={ints(stride)}, padding={ints(padding)}, ceil={flag(ceil)}"

            def maximum(x):
                y, index = (F.max_pool1d, None, F.max_pool3d)[rank - 1](x, kernel, stride, padding, ceil_mode=ceil,
                                                                        return_indices=True)
                return y, index.to(torch.int32)
            f.case(f"y, index = max_pool{rank}d(x, {text})", maximum, outputs="y index", x=draw(*shape, dtype=dtype))
            for include in (False, True):
                f.case(f"y = avg_pool{rank}d(x, {text}, include_pad={flag(include)})",
                       lambda x: (F.avg_pool1d, None, F.avg_pool3d)[rank - 1](x, kernel, stride, padding, ceil, include),
                       x=draw(*shape, dtype=dtype))
    average = F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d
    largest = F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d

    def place(found):
        return found[0], found[1].to(torch.int32)
    for shape, size in (((2, 2, 7), (3,)), ((1, 2, 4, 6), (2, 3)), ((1, 2, 5, 3), (3, 7)), ((1, 1, 3, 5, 4), (2, 2, 3))):
        rank = len(size)
        f.case(f"y = adaptive_avg_pool(x, size={ints(size)})", lambda x: average[rank - 1](x, size), x=draw(*shape, dtype=dtype))
        f.case(f"y, index = adaptive_max_pool(x, size={ints(size)})",
               lambda x: place(largest[rank - 1](x, size, return_indices=True)), outputs="y index", x=draw(*shape, dtype=dtype))
    norm = F.lp_pool1d, F.lp_pool2d, F.lp_pool3d
    for shape, kernel, p, ceil in (((2, 1, 7), 3, 2.0, True), ((1, 2, 4, 5), (2, 3), 3.0, False), ((1, 1, 4, 4, 2), 2, 1.5, False)):
        rank = len(shape) - 2
        window = ints(kernel if isinstance(kernel, tuple) else (kernel,) * rank)
        f.case(f"y = lp_pool{rank}d(x, kernel={window}, ceil={flag(ceil)}, p={p})",
               lambda x: norm[rank - 1](x, p, kernel, ceil_mode=ceil), x=draw(*shape, dtype=dtype, low=0.1))
    index = F.max_pool2d(draw(1, 2, 4, 5), 2, return_indices=True)[1]
    f.case("y = max_unpool2d(x, i, kernel=[2, 2], size=[4, 5])", lambda x, i: F.max_unpool2d(x, i.long(), 2, output_size=(4, 5)),
           x=draw(1, 2, 2, 2, dtype=dtype), i=index.to(torch.int32))
    f.case("y = global_max_pool(x)", lambda x: x.amax((2, 3, 4)), x=draw(2, 2, 2, 3, 2, dtype=dtype))
    f.case("y = global_avg_pool(x)", lambda x: x.mean(2), x=draw(2, 2, 3, dtype=dtype))
    index = F.max_pool1d(draw(2, 2, 7), 2, 3, return_indices=True)[1]
    f.case("y = max_unpool1d(x, i, kernel=[2], stride=[3], size=[7])",
           lambda x, i: F.max_unpool1d(x, i.long(), 2, 3, output_size=(7,)), x=draw(2, 2, 2, dtype=dtype), i=index.to(torch.int32))
    index = F.max_pool3d(draw(1, 2, 4, 2, 5), (2, 1, 2), return_indices=True)[1]
    f.case("y = max_unpool3d(x, i, kernel=[2, 1, 2], size=[4, 2, 5])",
           lambda x, i: F.max_unpool3d(x, i.long(), (2, 1, 2), output_size=(4, 2, 5)),
           x=draw(1, 2, 2, 2, 2, dtype=dtype), i=index.to(torch.int32))


def order(f, dtype):
    """Elements by their rank."""
    x = draw(3, 4, 5, dtype=dtype)
    odd = tensor([[3.0, math.nan, 1.0, 1.0], [2.0, -1.0, -1.0, 4.0]], dtype)
    many = torch.randint(0, 3, (4, 9)).to(dtype)

    def placed(found):
        return found[0], found[1].to(torch.int32)
    for v in (x, odd):
        f.case("y, index = nanmedian(x, axis=1)", lambda x: placed(torch.nanmedian(x, 1)), outputs="y index",
               grad=None if v is x else [], x=v)
    f.case("y, index = mode(x)", lambda x: placed(torch.mode(x)), outputs="y index", x=many)
    f.case("y, index = mode(x, axis=0, keep=yes)", lambda x: placed(torch.mode(x, 0, True)), outputs="y index", x=many)
    if dtype in (torch.float32, torch.float64):
        for q, way in ((0.3, "linear"), (0.7, "lower"), (0.7, "higher"), (0.4, "midpoint"), (0.4, "nearest"), (1.0, "linear")):
            f.case(f"y = quantile(x, q={q}, axis=1, mode={way})", lambda x: torch.quantile(x, q, 1, interpolation=way), x=x)
        f.case("y = quantile(x, q=0.5, keep=yes)", lambda x: torch.quantile(x, 0.5, -1, True), grad=[], x=odd)


def resize(f, dtype):
    """Borders, and images of other sizes."""
    for mode in ("constant", "reflect", "replicate", "circular"):
        for shape, low, high in (((2, 5), (0, 2), (0, 1)), ((1, 2, 3, 4), (0, 0, 1, 3), (0, 0, 2, 0)), ((1, 1, 2, 3, 2), (0, 0, 1, 2, 0), (0, 0, 1, 0, 1))):
            pads = [p for pair in list(zip(low, high))[:0 if len(shape) < 3 else 1:-1] for p in pair]
            f.case(f"y = extend(x, low={ints(low)}, high={ints(high)}, mode={mode}, value=0.5)",
                   lambda x: F.pad(x, pads, mode, 0.5 if mode == "constant" else None), x=draw(*shape, dtype=dtype))
    names = {3: "linear", 4: "bilinear", 5: "trilinear"}
    for shape, size in (((2, 1, 5), (8,)), ((1, 2, 4, 3), (8, 6)), ((1, 2, 5, 6), (3, 4)), ((1, 1, 2, 3, 2), (3, 2, 5))):
        modes = ["nearest", "nearest-exact", names[len(shape)], "area"] + (["bicubic"] if len(shape) == 4 else [])
        for mode in modes:
            for align in (False, True) if mode not in ("nearest", "nearest-exact", "area") else (None,):
                f.case(f"y = interpolate(x, size={ints(size)}, mode={mode.replace('-', '_')}, align_corners={flag(align)})",
                       lambda x: F.interpolate(x, size, mode=mode, align_corners=align), x=draw(*shape, dtype=dtype))
    for mode in ("nearest", "bilinear", "bicubic"):
        for scale in ((2.0, 2.0), (1.7, 0.6)):
            f.case(f"y = interpolate(x, scale={list(scale)}, mode={mode})",
                   lambda x: F.interpolate(x, scale_factor=scale, mode=mode), x=draw(1, 2, 4, 5, dtype=dtype))
    for mode in ("bilinear", "bicubic"):
        for size in ((3, 4), (9, 2)):
            f.case(f"y = interpolate(x, size={ints(size)}, mode={mode}, antialias=yes)",
                   lambda x: F.interpolate(x, size, mode=mode, antialias=True), x=draw(1, 1, 8, 7, dtype=dtype))


def grid_sample(f, dtype):
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                f.case(f"y = grid_sample(x, g, mode={mode}, padding_mode={padding}, align_corners={flag(align)})",
                       lambda x, g: F.grid_sample(x, g, mode, padding, align), x=draw(2, 2, 3, 4, dtype=dtype),
                       g=draw(2, 3, 2, 2, dtype=dtype))
    for align in (False, True):
        f.case(f"y = affine_grid(t, size=[3, 2], align_corners={flag(align)})",
               lambda t: F.affine_grid(t, (2, 1, 3, 2), align), t=draw(2, 2, 3, dtype=dtype))


def axis(f, dtype):
    x, rows = draw(3, 2, 4, dtype=dtype), torch.tensor([1, 0, 1])
    for d, shape in ((0, (4, 2, 3)), (1, (3, 3, 4)), (-1, (2, 1, 5))):
        index = torch.randint(0, x.shape[d], shape)
        f.case(f"y = gather(x, index, axis={d})", lambda x, index: x.gather(d, index), x=x, index=index)
        f.case(f"y = gather(x, index, axis={d})", lambda x, index: x.index_select(d, index), x=x, index=rows)
        f.case(f"y = scatter(x, index, u, axis={d}, mode=add)", lambda x, index, u: x.scatter_add(d, index, u), x=x,
               index=index, u=draw(*shape, dtype=dtype))
        f.case(f"y = scatter(x, index, u, axis={d}, mode=add)", lambda x, index, u: x.index_add(d, index, u), x=x, index=rows,
               u=draw(*[3 if i == d % 3 else n for i, n in enumerate(x.shape)], dtype=dtype))
        for mode, name in (("max", "amax"), ("min", "amin")):
            f.case(f"y = scatter(x, index, u, axis={d}, mode={mode})",
                   lambda x, index, u: x.scatter_reduce(d, index, u, name), x=x, index=index, u=draw(*shape, dtype=dtype))
        once = torch.argsort(torch.rand(x.shape), dim=d).narrow(d, 0, 2)
        f.case(f"y = scatter(x, index, u, axis={d}, mode=set)", lambda x, index, u: x.scatter(d, index, u), x=x,
               index=once, u=draw(*once.shape, dtype=dtype))
    odd = tensor([[1.0, math.nan, -0.0, 0.0, math.inf, 1.0], [-1.0, 2.0, -math.inf, 2.0, math.nan, math.nan]], dtype)

    def sorted_by(x, d, descending):
        y, index = x.sort(dim=d, descending=descending, stable=True)
        return y, index.to(torch.int32)

    def best(x, k, d, largest):
        y, index = x.topk(k, d, largest)
        return y, index.to(torch.int32)
    for descending in (False, True):
        for d in (0, 1, -1):
            f.case(f"y, index = sort(x, axis={d}, descending={flag(descending)})", lambda x: sorted_by(x, d, descending),
                   outputs="y index", x=x)
            f.case(f"y, index = topk(x, k=2, axis={d}, largest={flag(descending)})", lambda x: best(x, 2, d, descending),
                   outputs="y index", x=x)
        f.case(f"y, index = sort(x, descending={flag(descending)})", lambda x: sorted_by(x, -1, descending),
               outputs="y index", grad=[], x=odd)
    zeros = tensor([[2.0, 0.0, -1.5, 3.0], [1.0, 0.0, 0.5, 0.0]], dtype)
    for d in (0, 1, -1):
        f.case(f"y = cumsum(x, axis={d})", lambda x: x.cumsum(d), x=x)
        f.case(f"y = cumsum(x, axis={d}, reverse=yes)", lambda x: x.flip(d).cumsum(d).flip(d), x=x)
        f.case(f"y = cumsum(x, axis={d}, exclusive=yes)", lambda x: x.cumsum(d) - x, x=x)
        f.case(f"y = cumprod(x, axis={d})", lambda x: x.cumprod(d), x=x)
        f.case(f"y = logcumsumexp(x, axis={d})", lambda x: x.logcumsumexp(d), x=x)
        for op, function in {"cummax": torch.cummax, "cummin": torch.cummin}.items():
            f.case(f"y, index = {op}(x, axis={d})", lambda x: indexed(function(x, d)), outputs="y index", x=x)
    f.case("y = cumprod(x)", lambda x: x.cumprod(-1), x=zeros)
    f.case("y, index = cummax(x)", lambda x: indexed(x.cummax(-1)), outputs="y index", x=zeros)
    f.case("y, index = cummin(x)", lambda x: indexed(x.cummin(-1)), outputs="y index", grad=[], x=odd)


def indexed(results):
    return results[0], results[1].to(torch.int32)


def composite(f, dtype):
    x, y, images = draw(2, 3, 4, dtype=dtype), draw(2, 3, 4, dtype=dtype), draw(1, 4, 4, 6, dtype=dtype)
    square, vector, index = draw(3, 3, dtype=dtype), draw(4, dtype=dtype), torch.tensor([[1, 0, 1]])
    moves = {"unsqueeze(x, axis=-1)": lambda x: x.unsqueeze(-1), "unsqueeze(x, axis=1)": lambda x: x.unsqueeze(1),
             "swapaxes(x, axis0=0, axis1=-1)": lambda x: x.swapaxes(0, -1),
             "movedim(x, source=[0, 2], destination=[2, 0])": lambda x: x.movedim((0, 2), (2, 0)),
             "movedim(x, source=[-1], destination=[0])": lambda x: x.movedim(-1, 0),
             "narrow(x, axis=2, start=1, length=2)": lambda x: x.narrow(2, 1, 2),
             "select(x, axis=1, index=-1)": lambda x: x.select(1, -1), "flip(x, axes=[0, 2])": lambda x: x.flip((0, 2)),
             "flip(x)": lambda x: x.flip((0, 1, 2)), "roll(x, shifts=[1, -2], axes=[1, 2])": lambda x: x.roll((1, -2), (1, 2)),
             "roll(x, shifts=[5])": lambda x: x.roll(5), "tile(x, repeats=[2, 3])": lambda x: x.tile((2, 3)),
             "tile(x, repeats=[2, 1, 1, 2])": lambda x: x.tile((2, 1, 1, 2)),
             "repeat_interleave(x, repeats=2, axis=1)": lambda x: x.repeat_interleave(2, 1),
             "tril(x, diagonal=1)": lambda x: x.tril(1), "triu(x)": lambda x: x.triu(), "triu(x, diagonal=-1)": lambda x: x.triu(-1),
             "diagonal(x)": lambda x: x.diagonal(), "diagonal(x, diagonal=-1, axis1=1, axis2=2)": lambda x: x.diagonal(-1, 1, 2),
             "diag_embed(x)": torch.diag_embed, "diag_embed(x, diagonal=-2)": lambda x: torch.diag_embed(x, -2)}
    reductions = {"var(x)": torch.var, "var(x, axes=[0, 2], keep=yes, correction=0)": lambda x: x.var((0, 2), correction=0, keepdim=True),
                  "std(x, axes=[1])": lambda x: x.std(1), "norm(x)": torch.norm, "norm(x, p=1, axes=[0, 1])": lambda x: x.norm(1, (0, 1)),
                  "norm(x, p=inf, axes=[2], keep=yes)": lambda x: torch.linalg.vector_norm(x, math.inf, 2, True),
                  "norm(x, p=3, axes=[1])": lambda x: torch.linalg.vector_norm(x, 3, 1),
                  "normalize(x, axis=1)": lambda x: F.normalize(x, dim=1), "normalize(x, p=1, axis=-1)": lambda x: F.normalize(x, 1, -1),
                  "logsumexp(x, axes=[1])": lambda x: x.logsumexp(1), "logsumexp(x, keep=yes)": lambda x: x.logsumexp((0, 1, 2), True),
                  "prod(x)": torch.prod, "prod(x, axes=[1], keep=yes)": lambda x: x.prod(1, True)}
    for body, function in {**moves, **reductions}.items():
        f.case(f"y = {body}", function, x=x)
    f.case("y = squeeze(x)", torch.squeeze, x=draw(1, 3, 1, dtype=dtype))
    f.case("y = squeeze(x, axes=[0, 1])", lambda x: x.squeeze((0, 1)), x=draw(1, 3, 1, dtype=dtype))
    f.case("y = expand(x, dims=[2, -1, 3])", lambda x: x.expand(2, -1, 3), x=draw(4, 1, dtype=dtype))
    f.case("z = stack(x, y, axis=1)", lambda x, y: torch.stack((x, y), 1), outputs="z", x=x, y=y)
    for diagonal in (0, 1, -2):
        f.case(f"y = diag(x, diagonal={diagonal})", lambda x: x.diag(diagonal), x=vector)
        f.case(f"y = diag(x, diagonal={diagonal})", lambda x: x.diag(diagonal), x=square)
    f.case("y = trace(x)", torch.trace, x=square)
    f.case("y = pixel_shuffle(x, factor=2)", lambda x: F.pixel_shuffle(x, 2), x=images)
    f.case("y = pixel_unshuffle(x, factor=2)", lambda x: F.pixel_unshuffle(x, 2), x=images)
    f.case("y = channel_shuffle(x, groups=2)", lambda x: F.channel_shuffle(x, 2), x=images)
    window = dict(padding=(1, 0), stride=(2, 1), dilation=(1, 2))
    text = "kernel=[2, 3], padding=[1, 0], stride=[2, 1], dilation=[1, 2]"
    f.case(f"y = unfold(x, {text})", lambda x: F.unfold(x, (2, 3), **window), x=images)
    f.case(f"y = fold(x, size=[4, 6], {text})", lambda x: F.fold(x, (4, 6), (2, 3), **window), x=draw(1, 12, 6, dtype=dtype))
    f.case("y = index_select(x, index, axis=1)", lambda x, index: x[:, index], x=x, index=index)
    f.case("y = take(x, index)", torch.take, x=x, index=index)
    f.case("y = take_along_dim(x, index, axis=1)", lambda x, index: torch.take_along_dim(x, index, 1), x=x, index=index[..., None])
    u = draw(2, 3, 4, dtype=dtype)
    f.case("y = index_add(x, index, u, axis=1)", lambda x, index, u: x.index_add(1, index, u), x=x, index=index[0], u=u)
    f.case("y = index_copy(x, index, u, axis=1)", lambda x, index, u: x.index_copy(1, index, u), x=x, index=tensor([2, 0, 1], torch.int64), u=u)
    f.case("y = index_fill(x, index, axis=2, value=1.5)", lambda x, index: x.index_fill(2, index, 1.5), x=x, index=index[0])
    f.case("y = one_hot(index, classes=4)", lambda index: F.one_hot(index, 4), grad=[], index=index)
    f.case("y = masked_fill(x, mask, value=-inf)", lambda x, mask: x.masked_fill(mask, -math.inf), x=x, mask=torch.rand(3, 1) < 0.5)
    flags = tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, math.nan]], dtype)
    odd = tensor([[3.0, math.nan, 1.0, 1.0], [2.0, -1.0, -1.0, 4.0]], dtype)
    for op, function in {"any": torch.any, "all": torch.all}.items():
        f.case(f"y = {op}(x)", function, grad=[], x=flags)
        f.case(f"y = {op}(x, axes=[1], keep=yes)", lambda x: function(x, 1, True), grad=[], x=flags)
    for v in (x, odd):
        for op, function in {"max_with_index": torch.max, "min_with_index": torch.min, "median": torch.median}.items():
            f.case(f"y, index = {op}(x)", lambda x: indexed(function(x, -1)), outputs="y index", grad=None if v is x else [], x=v)
            f.case(f"y, index = {op}(x, axis=0, keep=yes)", lambda x: indexed(function(x, 0, True)), outputs="y index",
                   grad=None if v is x else [], x=v)
        f.case("y = argmin(x, axis=1)", lambda x: x.argmin(1).to(torch.int32), grad=[], x=v)
        f.case("y = argsort(x, axis=0)", lambda x: x.argsort(dim=0, stable=True).to(torch.int32), grad=[], x=v)
    f.case("y, index = kthvalue(x, k=2, axis=1)", lambda x: indexed(x.kthvalue(2, 1)), outputs="y index", x=x)
    f.case("z = cosine_similarity(x, y)", F.cosine_similarity, outputs="z", x=x, y=y)
    f.case("z = cosine_similarity(x, y, axis=-1)", lambda x, y: F.cosine_similarity(x, y, -1), outputs="z", x=x, y=y[:1])
    f.case("z = pairwise_distance(x, y)", F.pairwise_distance, outputs="z", x=x, y=y)
    f.case("z = pairwise_distance(x, y, p=1, keep=yes)", lambda x, y: F.pairwise_distance(x, y, 1, keepdim=True), outputs="z", x=x, y=y)
    for p in (1, 2, 3):
        f.case(f"z = cdist(x, y, p={p})", lambda x, y: torch.cdist(x, y, p), outputs="z", x=x, y=draw(2, 5, 4, dtype=dtype))
    for equation, shapes in {"bij,bjk->bik": ((2, 3, 4), (2, 4, 2)), "ij,jk": ((3, 4), (4, 2)), "ii->i": ((3, 3),), "ii": ((3, 3),),
                             "i,j->ij": ((3,), (2,)), "bhid,bhjd->bhij": ((1, 2, 3, 4), (1, 2, 2, 4)), "ij->ji": ((2, 3),),
                             "ijk->j": ((2, 3, 4),), "...ij,...jk->...ik": ((2, 3, 4), (4, 2)), "b...d,d->b...": ((2, 3, 4), (4,)),
                             "bn,anm,bm->ba": ((2, 3), (5, 3, 4), (2, 4)), "ij,ij->i": ((3, 4), (3, 4))}.items():
        names = "abc"[:len(shapes)]
        f.case(f'y = einsum({", ".join(names)}, equation="{equation}")', lambda *v: torch.einsum(equation, *v),
               **{n: draw(*s, dtype=dtype) for n, s in zip(names, shapes)})


def sequence(f, dtype):
    x = draw(3, 5, 4, dtype=dtype)
    for kind in (torch.int32, torch.int64):
        length = torch.tensor([1, 5, 3], dtype=kind)
        f.case("y = last_step(x, length)", lambda x, length: x[torch.arange(3), length.long() - 1], x=x, length=length)
    row, column = torch.tril_indices(3, 4, -1)
    f.case("y = tril_flatten(x, diagonal=-1)", lambda x: x[..., row, column], x=draw(2, 3, 4, dtype=dtype))
    triangle = torch.tril_indices(4, 4)
    f.case("y = tril_flatten(x)", lambda x: x[triangle[0], triangle[1]], x=draw(4, 4, dtype=dtype))
    f.case("y = glu(x)", F.glu, x=x)
    gates = {"tanh": torch.tanh, "relu": F.relu, "gelu": F.gelu, "silu": F.silu}
    for name, gate in gates.items():
        f.case(f"y = glu(x, axis=0, gate={name})", lambda x: x[:2] * gate(x[2:]), x=draw(4, 3, dtype=dtype))


    classes = torch.tensor([[1, 1], [2, 1], [1, 1]])
    lengths, steps = torch.tensor([2, 1, 2], dtype=torch.int32), torch.tensor([6, 5, 2], dtype=torch.int32)
    blanks = torch.zeros(3, 5, dtype=torch.long)
    blanks[:, 1::2] = classes
    skip = torch.cat([torch.zeros(3, 2, dtype=torch.bool), blanks[:, 2:] != blanks[:, :-2]], 1)
    logs = draw(3, 6, 3, dtype=dtype).log_softmax(-1)
    f.case("total = alignment(score, skip, steps, states)",
           lambda score, skip, steps, states: -F.ctc_loss(logs.transpose(0, 1), classes, steps, lengths, reduction="none"), "total",
           grad=[], score=logs.gather(2, blanks[:, None].expand(3, 6, 5)), skip=skip, steps=steps, states=2 * lengths + 1)


def write_family(family, folder):
    f = File(family.__name__)
    for dtype in FLOATS:
        family(f, dtype)
    f.write(folder)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.manual_seed(0)
    for family in (pointwise, reduce, matmul, conv, pool, norm, loss, attention, embedding, movement):
        write_family(family, folder)
    f = File("whole")
    whole(f)
    f.write(folder)
    write_family(crop, folder)  # the last ones: the random numbers of the others are those of earlier versions
    write_family(decoding, folder)
    torch.manual_seed(0)
    write_elementwise(folder)
    torch.manual_seed(0)
    write_family(axis, folder)
    write_family(composite, folder)
    for family in (conv_ranks, pool_ranks, resize, grid_sample, recurrence, sequence, order):  # each begins anew, so that files do not depend on their order
        torch.manual_seed(0)
        write_family(family, folder)


if __name__ == "__main__":
    main()
