"""Reductions, ops along an axis, movement and indices: a line each, with the draw of operands and options and the function
of PyTorch."""
import itertools
import math

import torch
import torch.nn.functional as F

from .draws import all_of, along, coarse, moved, over, reduced, short, summed


# ---- draws ----


def sums(d):
    shape = d.shape()
    axes = d.axes(len(shape))
    kept = [n for i, n in enumerate(shape) if axes and i not in [a % len(shape) for a in axes]]
    return [d.values(shape, -2.5, 2.5), d.values(shape, -2.5, 2.5), d.values(kept, -2.5, 2.5), d.values(kept, 0.5)], {"axes": axes}


def classes(d):
    shape = d.shape(1, 4, False)
    axis = d.axis(len(shape))
    rows = [n for i, n in enumerate(shape) if i != axis % len(shape)]
    return [d.values(shape, -4, 4), d.indices(shape[axis], rows)], {
        "axis": axis, "ignore": d.choice([-100, 0]), "smoothing": d.choice([0, 0.1, 1])}


def best(d, option):
    shape = d.shape(1, 4, False)
    axis = d.axis(len(shape))
    return [d.distinct(shape)], {"k": d.int(1, shape[axis]), "axis": axis, option: d.flag()}


def unit(d):
    shape = d.shape(1)
    return [d.away(shape)], {"axis": d.axis(len(shape)), "p": d.choice([1, 2, 3, math.inf])}


def pair(**options):
    """Two operands of one rank that broadcast, and options that are functions of the draw and the rank."""
    def draw(d):
        shape = d.shape(2)
        other = shape if d.flag() else tuple(1 if d.r.random() < 0.3 else n for n in shape)
        return [d.away(shape), d.away(other)], {k: v(d, len(shape)) for k, v in options.items()}
    return draw


def repeated(d):
    shape = d.shape()
    return [d.values(shape)], {"repeats": d.int(0, 3), "axis": d.axis(len(shape))}


def triangle(d):
    rows = d.int(1, 6)
    return [d.values((*d.shape(0, 2), rows, d.int(rows, 7)))], {"diagonal": -d.int(0, rows - 1)}


def lower(x, diagonal):
    rows, columns = torch.tril_indices(*x.shape[-2:], offset=diagonal)
    return x[..., rows, columns]


def expanded(v, x, axes):
    """v, a value for each of the dimensions of x that are kept, in the rank of x."""
    gone = [a % x.dim() for a in all_of(x, axes)]
    return v.reshape([1 if i in gone else n for i, n in enumerate(x.shape)])


def rows(d):
    batch, p, r, m = d.shape(0, 2), d.size(), d.size(), d.size(False)
    norm = d.choice([0, 1, 2, 3, math.inf])
    d.ties = d.ties and norm != math.inf  # PyTorch's gives each of equal distances all of the gradient
    return [d.values((*batch, p, m), -2.5, 2.5), d.values((*batch, r, m), -2.5, 2.5)], {"p": norm}


def regrouped(d, shape):
    """The dimensions of a shape, some neighbours of them joined, with ones between."""
    dims = []
    for n in shape:
        if dims and d.flag():
            dims[-1] *= n
        else:
            dims += [1] * (d.r.random() < 0.2) + [n]
    if dims and 0 not in dims and d.flag():
        dims[d.int(0, len(dims) - 1)] = -1
    return dims


def sliced(d):
    shape = d.shape()
    starts = [d.int(0, n) for n in shape]
    stops = [d.int(s, n) for s, n in zip(starts, shape)]
    return [d.values(shape)], {"starts": starts, "stops": stops, "steps": [d.int(1, 3) for _ in shape]}


def padded(d):
    shape = d.shape()
    return [d.values(shape)], {"low": d.some(len(shape), 0, 2), "high": d.some(len(shape), 0, 2),
                               "inner": d.choice([[], d.some(len(shape), 0, 2)])}


def bordered(d):
    mode = d.choice(["constant", "reflect", "replicate", "circular"])
    shape = (d.size(), d.size(), *(d.int(2, 5) for _ in range(d.int(1, 3))))
    most = [0, 0] + [min(2, n - 1) for n in shape[2:]]
    if d.dtype not in (torch.float32, torch.float64) and mode == "reflect":
        mode = "constant"
    return [d.values(shape)], {"low": [d.int(0, m) for m in most], "high": [d.int(0, m) for m in most], "mode": mode,
                               **({"value": d.int(-2, 2)} if mode == "constant" else {})}


def joined(d):
    shape = d.shape()
    axis = d.axis(len(shape))
    i = axis % len(shape)
    return [d.values((*shape[:i], d.size(), *shape[i + 1:])) for _ in range(d.int(1, 4))], {"axis": axis}


def stacked(d):
    shape = d.shape(0, 3)
    return [d.values(shape) for _ in range(d.int(1, 4))], {"axis": d.axis(len(shape) + 1)}


def spread_to(d, kept):
    shape = d.shape(0, 4)
    narrow = d.narrowed(shape)
    dims = list(shape)
    for i, n in enumerate(narrow):
        if kept and n == shape[len(shape) - len(narrow) + i] and d.flag():
            dims[len(shape) - len(narrow) + i] = -1
    return [d.values(narrow)], {"dims": dims}


def rolled(d):
    shape = d.shape()
    axes = sorted(a % len(shape) for a in d.axes(len(shape)))
    return [d.values(shape)], {"shifts": d.some(len(axes) or 1, -7, 7), "axes": axes}


def matrices(d, shape):
    return d.int(-4, 4)


def diagonals(d):
    shape = d.shape(2)
    a, b = d.r.sample(range(len(shape)), 2)
    return [d.values(shape)], {"diagonal": d.int(-3, 3), "axis1": a, "axis2": b - len(shape) if d.flag() else b}


def narrowed(d):
    shape = d.shape()
    axis = d.axis(len(shape))
    start = d.int(0, shape[axis])
    length = d.int(0, shape[axis] - start)
    back = start - shape[axis] if d.flag() and start < shape[axis] else start
    return [d.values(shape)], {"axis": axis, "start": back, "length": length}


def selected(d):
    shape = d.shape(1, 4, False)
    axis = d.axis(len(shape))
    return [d.values(shape)], {"axis": axis, "index": d.int(-shape[axis], shape[axis] - 1)}


def shuffled(d, kind):
    f = d.int(1, 3)
    n, c, h, w = (d.size(kind != "down") for _ in range(4))  # PyTorch's unshuffle keeps the shape of empty images
    if kind == "channels":
        return [d.values((n, c * f, h, w))], {"groups": f}
    return [d.values((n, c * f * f, h, w) if kind == "up" else (n, c, h * f, w * f))], {"factor": f}


def patches(d, back):
    n, c, kernel, stride, padding, dilation = d.size(), d.size(False), *(d.some(2, 1, 3) for _ in range(2)), d.some(2, 0, 1), d.some(2, 1, 2)
    size = [d.int(max(1, k * e - 2 * p), 8) if k * e - 2 * p < 8 else 8 for k, e, p in zip(kernel, dilation, padding)]
    options = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    d.dtype = d.dtype if d.dtype.is_floating_point else torch.float32  # PyTorch's has no others
    if not back:
        return [d.values((n, c, *size))], options
    blocks = [(s + 2 * p - e * (k - 1) - 1) // t + 1 for s, k, t, p, e in zip(size, kernel, stride, padding, dilation)]
    return [d.values((n, c * kernel[0] * kernel[1], blocks[0] * blocks[1]))], {"size": size, **options}


def packed(d):
    values, offsets, at = [], [], d.int(0, 2)
    for _ in range(d.int(1, 3)):
        values.append(d.values(d.shape(0, 2)))
        offsets.append(at)
        at += values[-1].numel() + d.int(0, 2)
    return values, {"offsets": offsets, "count": at + d.int(0, 2)}


def pack(*values, offsets, count):
    y = torch.zeros(count, dtype=values[0].dtype)
    for v, at in zip(values, offsets):
        y = torch.cat((y[:at], v.reshape(-1), y[at + v.numel():]))
    return y


def ranged(d):
    n, count = d.int(1, 4), d.int(1, 9)
    starts = [0] + sorted(d.r.sample(range(1, count), d.int(0, min(3, count - 1)))) if count > 1 else [0]
    return [d.values((n,))], {"starts": starts, "index": [d.int(0, n - 1) for _ in starts], "count": count}


def spread(x, starts, index, count):
    return x[torch.tensor([index[sum(s <= i for s in starts) - 1] for i in range(count)])]


def cropped(d):
    n, c, h, w = d.size(), d.size(), d.int(1, 6), d.int(1, 6)
    operands = {"x": d.values((n, c, h, w)), "start": torch.randint(-4, 6, (n, 2)).to(torch.int32)}
    if d.flag():
        operands["mirror"] = torch.randint(0, 2, (n, 2)).to(torch.int32)
    return operands, {"size": d.some(2, 1, 6)}


def crop(x, start, mirror=None, size=()):
    wide, samples = F.pad(x, (12, 12, 12, 12)), []
    for n in range(x.shape[0]):
        top, left = start[n].tolist()
        y = wide[n, :, 12 + top:12 + top + size[0], 12 + left:12 + left + size[1]]
        samples.append(y.flip([i + 1 for i in range(2) if mirror is not None and mirror[n, i]]))
    return torch.stack(samples) if samples else x.new_zeros(0, x.shape[1], *size)


def cast(d):
    to = d.choice(["bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"])
    whole = to in ("u8", "i8", "i32", "i64")  # of numbers without a counterpart there PyTorch's result depends on the machine
    return [d.values(d.shape(0), *((0, 3.5) if whole else ()))], {"to": to}


TO = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
      "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


def ramp(d):
    shape = d.shape(1)
    return [], {"dims": list(shape), "axis": d.axis(len(shape)), "dtype": d.choice(["i32", "i64", "f32"])}


def iota(dims, axis, dtype):
    order = [1] * len(dims)
    order[axis] = -1
    return torch.arange(dims[axis]).to(TO[dtype]).reshape(order).expand(dims)


EQUATIONS = ("bij,bjk->bik", "ij,jk", "ii->i", "ii", "i,j->ij", "bhid,bhjd->bhij", "ij->ji", "ijk->j", "...ij,...jk->...ik",
             "b...d,d->b...", "bn,anm,bm->ba", "ij,ij->i", "i,i", "ij,kj,k->ik", "abc,cd->abd", "ijk,ilk->", "iij->ij")


def contracted(d):
    equation = d.choice(EQUATIONS)
    sizes = {c: d.size() for c in equation if c.isalpha()}
    dots = d.shape(0, 2)
    operands = []
    for term in equation.split("->")[0].split(","):
        parts = itertools.chain(*([sizes[c]] if c.isalpha() else list(dots) if i == term.find(".") else [] for i, c in enumerate(term)))
        operands.append(d.values(tuple(parts)))
    return operands, {"equation": f'"{equation}"'}


def factors(d):
    m, k, n = d.size(), d.size(), d.size()
    batches = d.broadcasting(2)
    batch_a, batch_b = (s[:2] for s in batches) if len(batches[0]) == len(batches[1]) else (batches[0][-1:], batches[1][-1:])
    ta, tb = d.flag(), d.flag()
    operands = {"a": d.values((*batch_a, *((k, m) if ta else (m, k)))), "b": d.values((*batch_b, *((n, k) if tb else (k, n))))}
    if d.flag():
        operands["bias"] = d.values((n,))
    return operands, {"transpose_a": ta, "transpose_b": tb}


def product(a, b, bias=None, transpose_a=False, transpose_b=False):
    y = (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)
    return y if bias is None else y + bias


def entropy(x, t, axis, ignore, smoothing):
    shaped = x.movedim(axis, 1) if x.dim() > 1 else x
    loss = F.cross_entropy(shaped, t.long(), reduction="none", ignore_index=ignore, label_smoothing=smoothing)
    return loss, x.logsumexp(axis)


def cumulative(x, axis, mode, exclusive=False, reverse=False):
    if reverse:
        return cumulative(x.flip(axis), axis, mode, exclusive).flip(axis)
    if exclusive:
        first = torch.full_like(x.narrow(axis, 0, 1) if x.shape[axis] else x, 1 if mode == "prod" else 0)
        x = torch.cat((first, x.narrow(axis, 0, max(x.shape[axis] - 1, 0))), axis)
    return {"sum": lambda: x.cumsum(axis, dtype=x.dtype), "prod": lambda: x.cumprod(axis, dtype=x.dtype), "max": lambda: x.cummax(axis)[0],
            "min": lambda: x.cummin(axis)[0], "logsumexp": lambda: x.logcumsumexp(axis)}[mode]()


def running(d):
    operands, options = along(reverse=[False, True])(d)
    modes = ["sum", "prod", "max", "min"] + ["logsumexp"] * d.dtype.is_floating_point
    mode = d.choice(modes)
    return operands, {**options, "mode": mode, "exclusive": d.flag() if mode in ("sum", "prod") else False}


def running_index(function):
    def run(x, axis, reverse):
        if not reverse:
            return function(x, axis)
        y, index = function(x.flip(axis), axis)
        return y.flip(axis), (x.shape[axis] - 1 - index).flip(axis)
    return run


def extend(x, low, high, mode, value=0):
    pads = list(itertools.chain(*reversed(list(zip(low, high))[2:])))
    return F.pad(x, pads, mode, value if mode == "constant" else None)


def pad(x, low, high, inner):
    inner = inner or [0] * x.dim()
    y = torch.zeros([a + b + n + max(n - 1, 0) * s for n, a, b, s in zip(x.shape, low, high, inner)], dtype=x.dtype)
    y[tuple(slice(a, a + max(n - 1, 0) * (s + 1) + min(n, 1), s + 1) for n, a, s in zip(x.shape, low, inner))] = x
    return y


def prod(x, axes, keep):
    x = summed(x)
    for a in sorted((a % x.dim() for a in all_of(x, axes)), reverse=True):
        x = x.prod(a, keepdim=keep, dtype=x.dtype)
    return x


def logical(function):
    def run(x, axes, keep):
        for a in sorted((a % x.dim() for a in all_of(x, axes)), reverse=True):
            x = function(x, a, keep)
        return x if x.dtype is torch.bool else x != 0
    return run


ROWS = {
    # reductions
    "reduce_sum": (reduced(), over(lambda x, **o: summed(x).sum(dtype=summed(x).dtype, **o))),
    "reduce_mean": (reduced(), over(torch.mean)),
    "reduce_max": (reduced(), over(torch.amax)),
    "reduce_min": (reduced(), over(torch.amin)),
    "prod": (short(reduced()), prod),
    "any": (reduced(), logical(torch.any)),
    "all": (reduced(), logical(torch.all)),
    "all_finite": (moved(0), lambda x: torch.isfinite(x).all()),
    "var": (reduced(correction=[0, 0.5, 1]), lambda x, axes, keep, correction: x.var(all_of(x, axes), correction=correction, keepdim=keep)),
    "std": (coarse(reduced(correction=[0, 0.5, 1])), lambda x, axes, keep, correction: x.std(all_of(x, axes), correction=correction, keepdim=keep)),
    "norm": (reduced(p=[0, 1, 2, 3, 0.5, math.inf]), lambda x, axes, keep, p: torch.linalg.vector_norm(x, p, all_of(x, axes), keep)),
    "logsumexp": (reduced(), lambda x, axes, keep: x.logsumexp(all_of(x, axes), keep)),
    "moments": (reduced(-2, keep=False), lambda x, axes: (x.mean(all_of(x, axes)), x.var(all_of(x, axes), correction=0))),
    "norm_grad_sums": (sums, lambda dy, x, mean, rstd, axes: (
        dy.sum(all_of(x, axes)), (dy * (x - expanded(mean, x, axes)) * expanded(rstd, x, axes)).sum(all_of(x, axes)))),
    # along an axis
    "argmax": (along(), lambda x, axis: x.argmax(axis)),
    "argmin": (along(), lambda x, axis: x.argmin(axis)),
    "argsort": (along(descending=[False, True]), lambda x, axis, descending: x.argsort(dim=axis, descending=descending, stable=True)),
    "sort": (along(descending=[False, True]), lambda x, axis, descending: x.sort(dim=axis, descending=descending, stable=True)),
    "topk": (lambda d: best(d, "largest"), lambda x, k, axis, largest: x.topk(k, axis, largest)),
    "kthvalue": (lambda d: best(d, "keep"), lambda x, k, axis, keep: x.kthvalue(k, axis, keep)),
    "median": (along(True, keep=[False, True]), lambda x, axis, keep: x.median(axis, keep)),
    "nanmedian": (along(True, keep=[False, True]), lambda x, axis, keep: x.nanmedian(axis, keep)),
    "mode": (along(True, keep=[False, True]), lambda x, axis, keep: x.mode(axis, keep)),
    "quantile": (along(True, keep=[False, True], q=[0, 0.25, 0.6, 1], mode=["linear", "lower", "higher", "midpoint", "nearest"]),
                 lambda x, axis, keep, q, mode: x.quantile(q, axis, keep, interpolation=mode)),
    "max_with_index": (along(keep=[False, True]), lambda x, axis, keep: x.max(axis, keep)),
    "min_with_index": (along(keep=[False, True]), lambda x, axis, keep: x.min(axis, keep)),
    "cumsum": (along(exclusive=[False, True], reverse=[False, True]), lambda x, axis, **o: cumulative(summed(x), axis, "sum", **o)),
    "cumprod": (short(along(exclusive=[False, True], reverse=[False, True])), lambda x, axis, **o: cumulative(summed(x), axis, "prod", **o)),
    "logcumsumexp": (along(reverse=[False, True]), lambda x, axis, reverse: cumulative(x, axis, "logsumexp", False, reverse)),
    "cumulative": (short(running), cumulative),
    "cummax": (along(reverse=[False, True]), running_index(torch.cummax)),
    "cummin": (along(reverse=[False, True]), running_index(torch.cummin)),
    "softmax": (along(), lambda x, axis: x.softmax(axis)),
    "log_softmax": (along(), lambda x, axis: x.log_softmax(axis)),
    "cross_entropy": (classes, entropy),
    "normalize": (unit, lambda x, axis, p: F.normalize(x, p, axis)),
    "cosine_similarity": (pair(axis=lambda d, n: d.axis(n)), lambda x, y, axis: F.cosine_similarity(x, y, axis)),
    "pairwise_distance": (pair(p=lambda d, n: d.choice([1, 2, 3]), keep=lambda d, n: d.flag()),
                          lambda x, y, p, keep: F.pairwise_distance(x, y, p, keepdim=keep)),
    "cdist": (rows, lambda x, y, p: torch.cdist(x, y, p)),
    "trace": (moved(2, 2), lambda x: torch.trace(summed(x)).to(summed(x).dtype)),
    "einsum": (contracted, lambda *v, equation: torch.einsum(equation.strip('"'), *v)),
    "matmul": (factors, product),
    # movement
    "reshape": (moved(0, dims=regrouped), lambda x, dims: x.reshape(dims)),
    "transpose": (moved(order=lambda d, s: d.r.sample(range(len(s)), len(s))), lambda x, order: x.permute(order)),
    "slice": (sliced, lambda x, starts, stops, steps: x[tuple(map(slice, starts, stops, steps))]),
    "pad": (padded, pad),
    "extend": (bordered, extend),
    "concat": (joined, lambda *xs, axis: torch.cat(xs, axis)),
    "stack": (stacked, lambda *xs, axis: torch.stack(xs, axis)),
    "broadcast": (lambda d: spread_to(d, False), lambda x, dims: x.expand(dims)),
    "expand": (lambda d: spread_to(d, True), lambda x, dims: x.expand(dims)),
    "tile": (moved(repeats=lambda d, s: d.some(d.int(1, 4), 0, 3)), lambda x, repeats: x.tile(repeats)),
    "repeat_interleave": (repeated, lambda x, repeats, axis: x.repeat_interleave(repeats, axis)),
    "roll": (rolled, lambda x, shifts, axes: x.roll(shifts, axes)),
    "flip": (moved(axes=lambda d, s: d.axes(len(s))), lambda x, axes: x.flip(all_of(x, axes))),
    "tril": (moved(2, diagonal=matrices), lambda x, diagonal: x.tril(diagonal)),
    "triu": (moved(2, diagonal=matrices), lambda x, diagonal: x.triu(diagonal)),
    "tril_flatten": (triangle, lower),
    "diagonal": (diagonals, lambda x, diagonal, axis1, axis2: x.diagonal(diagonal, axis1, axis2)),
    "diag": (moved(1, 2, diagonal=matrices), lambda x, diagonal: x.diag(diagonal)),
    "diag_embed": (moved(1, 3, diagonal=matrices), lambda x, diagonal: torch.diag_embed(x, diagonal)),
    "swapaxes": (moved(axis0=lambda d, s: d.axis(len(s)), axis1=lambda d, s: d.axis(len(s))), lambda x, axis0, axis1: x.swapaxes(axis0, axis1)),
    "movedim": (moved(2, source=lambda d, s: d.r.sample(range(len(s)), 2), destination=lambda d, s: d.r.sample(range(len(s)), 2)),
                lambda x, source, destination: x.movedim(source, destination)),
    "narrow": (narrowed, lambda x, axis, start, length: x.narrow(axis, start, length)),
    "select": (selected, lambda x, axis, index: x.select(axis, index)),
    "squeeze": (moved(axes=lambda d, s: d.axes(len(s))), lambda x, axes: x.squeeze(all_of(x, axes))),
    "unsqueeze": (moved(0, 3, axis=lambda d, s: d.axis(len(s) + 1)), lambda x, axis: x.unsqueeze(axis)),
    "unfold": (lambda d: patches(d, False), lambda x, kernel, stride, padding, dilation: F.unfold(x, kernel, dilation, padding, stride)),
    "fold": (lambda d: patches(d, True), lambda x, size, kernel, stride, padding, dilation: F.fold(x, size, kernel, dilation, padding, stride)),
    "pixel_shuffle": (lambda d: shuffled(d, "up"), lambda x, factor: F.pixel_shuffle(x, factor)),
    "pixel_unshuffle": (lambda d: shuffled(d, "down"), lambda x, factor: F.pixel_unshuffle(x, factor)),
    "channel_shuffle": (lambda d: shuffled(d, "channels"), lambda x, groups: F.channel_shuffle(x, groups)),
    "reorder": (moved(0), torch.clone),
    "pack": (packed, pack),
    "spread": (ranged, spread),
    "crop": (cropped, crop),
    "cast": (cast, lambda x, to: x.to(TO[to])),
    "iota": (ramp, iota),
    "triangular_mask": (lambda d: ([], {"rows": d.size(), "columns": d.size(), "diagonal": d.int(-3, 3)}),
                        lambda rows, columns, diagonal: torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)),
}
