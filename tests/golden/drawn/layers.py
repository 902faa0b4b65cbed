"""Convolution, pooling, images, norms, attention, recurrence and optimizers: a line each, with the draw of operands and
options and the function of PyTorch."""
import itertools
import math

import torch
import torch.nn.functional as F

from .draws import BYTES

CONV = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
MAX_POOL, AVERAGE_POOL = (F.max_pool1d, F.max_pool2d, F.max_pool3d), (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
LP_POOL = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)
ADAPTIVE_AVERAGE = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
MAX_UNPOOL = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)
ADAPTIVE_MAX = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)


# ---- convolution ----


def window(d, rank, both=True):
    """Options of a convolution, and the size of an image that has a result."""
    kernel, stride, dilation = d.some(rank, 1, 3), d.some(rank, 1, 3), d.some(rank, 1, 2)
    padding = d.some(2 * rank if both and d.r.random() < 0.2 else rank, 0, 2)
    size = [max(e * (k - 1) + 1, d.int(1, 7)) for k, e in zip(kernel, dilation)]
    return size, kernel, {"stride": stride, "padding": padding, "dilation": dilation, "groups": d.choice([1, 1, 2, 3])}


def conv(rank):
    def draw(d):
        size, kernel, options = window(d, rank)
        g = options["groups"]
        c, out = g * d.int(1, 3), g * d.int(1, 3 if not d.large else 17)
        operands = {"x": d.values((d.size(), c, *size)), "w": d.values((out, c // g, *kernel))}
        if d.flag():
            operands["bias"] = d.values((out,))
        return operands, options

    def run(x, w, bias=None, padding=(), **options):
        if len(padding) > rank:
            pairs = reversed(list(zip(padding[:rank], padding[rank:])))
            x, padding = F.pad(x, list(itertools.chain(*pairs))), [0] * rank
        return CONV[rank - 1](x, w, bias, padding=padding, **options)
    return draw, run


def transposed(rank):
    def draw(d):
        size, kernel, options = window(d, rank, False)
        g = options["groups"]
        c, out = g * d.int(1, 3), g * d.int(1, 3)
        options["output_padding"] = [d.int(0, s - 1) for s in options["stride"]]  # PyTorch's may reach the dilation, too
        operands = {"x": d.values((d.size(), c, *(d.int(1, 4) for _ in size))), "w": d.values((c, out // g, *kernel))}
        if d.flag():
            operands["bias"] = d.values((out,))
        return operands, options

    def run(x, w, bias=None, **options):
        y = TRANSPOSED[rank - 1](x, w, bias, **options)
        if 0 in y.shape[2:]:
            raise ValueError("an image without elements, which Tenon refuses")
        return y
    return draw, run


def conv_gradient(rank, of_input):
    def draw(d):
        size, kernel, options = window(d, rank, False)
        g = options["groups"]
        x, w = d.values((d.int(1, 3), g * d.int(1, 3), *size)), None
        w = d.values((g * d.int(1, 3), x.shape[1] // g, *kernel))
        dy = d.values(CONV[rank - 1](x.double(), w.double(), **options).shape)
        return ([dy, w], {**options, "dims": list(x.shape)}) if of_input else ([x, dy], {**options, "dims": list(w.shape)})
    names = [f"conv{rank}d_input", f"conv{rank}d_weight"]
    if of_input:
        return draw, lambda dy, w, dims, **o: getattr(torch.nn.grad, names[0])(dims, w, dy, **o)
    return draw, lambda x, dy, dims, **o: getattr(torch.nn.grad, names[1])(x, dims, dy, **o)


# ---- pooling ----


def pooled(rank, distinct=False, low=-3.0, high=3.0, **more):
    def draw(d):
        kernel = d.some(rank, 1, 3)
        shape = (d.size(), d.size(False), *(max(k, d.int(1, 7)) for k in kernel))
        options = {"kernel": kernel, "stride": d.choice([[], d.some(rank, 1, 3)]), "ceil": d.flag()}
        if low < 0:
            options["padding"] = [d.int(0, k // 2) for k in kernel]
        x = d.distinct(shape) if distinct else d.values(shape, low, high)
        return [x], {**options, **{k: d.choice(v) for k, v in more.items()}}
    return draw


def max_pool(rank):
    return lambda x, kernel, stride, ceil, padding: MAX_POOL[rank - 1](
        x, kernel, stride or kernel, padding, ceil_mode=ceil, return_indices=True)


def average_pool(rank):
    return lambda x, kernel, stride, ceil, padding, include_pad: AVERAGE_POOL[rank - 1](
        x, kernel, stride or kernel, padding, ceil, include_pad)


def lp_pool(rank):
    return lambda x, kernel, stride, ceil, p: LP_POOL[rank - 1](
        x, p, kernel[0] if rank == 1 else tuple(kernel), (stride[0] if rank == 1 else tuple(stride)) if stride else None, ceil)


def pool_gradient(maximum):
    """dy, and what the gradient needs of the pooling of some x."""
    def draw(d):
        (x,), options = pooled(2, True, **({} if maximum else {"include_pad": [False, True]}))(d)
        y = (max_pool(2) if maximum else average_pool(2))(x.double(), **options)
        shape = (y[0] if maximum else y).shape
        return [d.values(shape)] + [y[1].to(torch.int32)] * maximum, {**options, "dims": list(x.shape)}

    def run(dy, index=None, dims=(), **options):
        x = torch.zeros(*dims, dtype=dy.dtype, requires_grad=True)
        if maximum:
            flat = torch.zeros(*dims[:2], dims[2] * dims[3], dtype=dy.dtype)
            return flat.scatter_add(2, index.long().flatten(2), dy.flatten(2)).reshape(dims)
        return torch.autograd.grad(average_pool(2)(x, **options), x, dy, create_graph=True)[0]
    return draw, run


def unpool(rank):
    def draw(d):
        kernel = d.some(rank, 1, 3)
        x = d.distinct((d.size(), d.size(False), *(k * d.int(1, 3) + d.int(0, k - 1) for k in kernel)))
        y, index = MAX_POOL[rank - 1](x.double(), kernel, return_indices=True)
        return [d.values(y.shape), index.to(torch.int32)], {"kernel": kernel, "size": list(x.shape[2:])}
    return draw, lambda x, i, kernel, size: MAX_UNPOOL[rank - 1](x, i.long(), kernel, output_size=size)


def adaptive(functions, **more):
    def draw(d):
        rank = d.int(1, 3)
        return [d.values((d.size(), d.size(), *(d.int(1, 7) for _ in range(rank))))], {"size": d.some(rank, 1, 5)}

    def run(x, size):
        if x.dtype in BYTES:  # PyTorch has floats alone
            y, index = run(x.double(), size)
            return y.to(x.dtype), index
        return functions[x.dim() - 3](x, size, **more)
    return draw, run


def image(d, low=1, high=3):
    return (d.size(), d.size(), *(d.int(1, 7) for _ in range(d.int(low, high))))


# ---- images of other sizes ----


def resized(d):
    rank = d.int(1, 3)
    modes = ["nearest", "nearest_exact", ("linear", "bilinear", "trilinear")[rank - 1], "area"] + ["bicubic"] * (rank == 2)
    mode = d.choice(modes)
    options = {"mode": mode}
    if mode not in ("nearest", "nearest_exact", "area"):
        options["align_corners"] = d.flag()
    if mode in ("bilinear", "bicubic") and d.flag():
        options["antialias"] = True
    options.update({"size": d.some(rank, 2, 9)} if d.flag() or mode == "area" or options.get("antialias") else
                   {"scale": [d.choice([0.5, 0.7, 1.7, 2, 2.5]) for _ in range(rank)]})
    return [d.values((d.size(), d.size(), *(d.int(2, 7) for _ in range(rank))))], options


def resize(x, mode, size=None, scale=None, align_corners=None, antialias=False):
    return F.interpolate(x, size, scale, mode.replace("_", "-"), align_corners, antialias=antialias)


def sampled(d):
    n, c = d.size(), d.size()
    operands = [d.values((n, c, d.int(1, 6), d.int(1, 6))), torch.rand(n, d.int(1, 4), d.int(1, 4), 2, dtype=torch.float64) * 3 - 1.5]
    return [operands[0], operands[1].to(d.dtype)], {
        "mode": d.choice(["bilinear", "nearest"]), "padding_mode": d.choice(["zeros", "border", "reflection"]), "align_corners": d.flag()}


def affine(d):
    return [d.values((d.int(1, 3), 2, 3))], {"size": d.some(2, 1, 5), "align_corners": d.flag()}


# ---- norms ----


def normed(bias=True, least=1e-5):
    """x of at least 2 dimensions, weight and bias of its channels. Variances of few elements have no digits in f32."""
    def draw(d):
        shape = (d.int(5, 9), d.size(False), *(d.int(1, 5) for _ in range(d.int(0, 3))))
        operands = {"x": d.values(shape)}
        if d.flag():
            operands["weight"], operands["bias"] = d.values((shape[1],)), d.values((shape[1],))
        return operands, {"epsilon": d.choice([least, 0.1])}
    return draw


def batch_norm(x, weight=None, bias=None, epsilon=0.0):
    axes = [i for i in range(x.dim()) if i != 1]
    return F.batch_norm(x, None, None, weight, bias, True, 0, epsilon), x.mean(axes), x.var(axes, correction=0)


def applied(d):
    operands, options = normed()(d)
    channels = operands["x"].shape[1]
    statistics = {"mean": d.values((channels,)), "variance": d.values((channels,), 0.2, 3)}
    return {"x": operands.pop("x"), **statistics, **operands}, options


def apply(x, mean, variance, weight=None, bias=None, epsilon=0.0):
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = (x - mean.view(shape)) * torch.rsqrt(variance.view(shape) + epsilon)
    return y if weight is None else y * weight.view(shape) + bias.view(shape)


def row_normed(bias):
    def draw(d):
        shape = (*d.shape(0, 2), *(d.int(5, 9) for _ in range(d.int(1, 2))))
        trailing = d.int(1, len(shape)) if 0 not in shape else 1
        operands = {"x": d.values(shape)}
        if d.flag():
            operands["weight"] = d.values(shape[len(shape) - trailing:])
            if bias:
                operands["bias"] = d.values(shape[len(shape) - trailing:])
        return operands, {"epsilon": d.choice([1e-5, 0.1]), "trailing": trailing}
    return draw


def layer_norm(x, weight=None, bias=None, epsilon=0.0, trailing=1):
    axes = list(range(x.dim() - trailing, x.dim()))
    variance = x.var(axes, correction=0)
    return F.layer_norm(x, x.shape[x.dim() - trailing:], weight, bias, epsilon), x.mean(axes), torch.rsqrt(variance + epsilon)


def layer_norm_given(d):
    operands, options = row_normed(False)(d)
    x, trailing = operands.pop("x"), options["trailing"]
    _, mean, rstd = layer_norm(x.double(), None, None, options["epsilon"], trailing)
    return {"dy": d.values(x.shape), "x": x, "mean": mean.to(d.dtype), "rstd": rstd.to(d.dtype), **operands}, {"trailing": trailing}


def layer_norm_gradient(dy, x, mean, rstd, weight=None, trailing=1):
    row, front = x.shape[x.dim() - trailing:], x.dim() - trailing
    shape = list(x.shape[:front]) + [1] * trailing
    normal = (x - mean.reshape(shape)) * rstd.reshape(shape)
    over = list(range(front))
    g = dy if weight is None else dy * weight
    axes = list(range(front, x.dim()))
    dx = rstd.reshape(shape) * (g - g.mean(axes, keepdim=True) - normal * (g * normal).mean(axes, keepdim=True))
    return (dx,) + ((dy * normal).sum(over) if over else dy * normal, dy.sum(over) if over else dy)


def grouped(d):
    groups = d.int(1, 3)
    shape = (d.size(), groups * d.int(5, 7), *(d.int(1, 5) for _ in range(d.int(0, 3))))
    operands = {"x": d.values(shape)}
    if d.flag():
        operands["weight"], operands["bias"] = d.values((shape[1],)), d.values((shape[1],))
    return operands, {"groups": groups, "epsilon": d.choice([1e-5, 0.1])}


# ---- attention ----


def heads(d, same=False):
    b, h, queries, keys, width, values = d.size(), d.int(1, 3), d.int(1, 6), d.int(1, 6), d.int(1, 5), d.int(1, 5)
    keys = queries if same else keys
    return {"q": d.values((b, h, queries, width)), "k": d.values((b, h, keys, width)), "v": d.values((b, h, keys, values))}


def attended(d):
    operands = heads(d)
    causal = d.flag() and operands["q"].shape[2] <= operands["k"].shape[2]
    return operands, {"causal": causal, "scale": d.choice([0, 0.7])}


def attend(q, k, v, causal, scale):
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    seen = seen.tril(k.shape[2] - q.shape[2]) if causal else seen
    s = (q @ k.mT) * (scale or 1 / math.sqrt(q.shape[-1]))
    lse = s.masked_fill(~seen, -math.inf).logsumexp(-1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=scale or None), lse


def attention_given(d):
    operands, options = attended(d)
    y, lse = attend(*(x.double() for x in operands.values()), **options)
    return {**operands, "y": y.to(d.dtype), "lse": lse.to(d.dtype), "dy": d.values(y.shape)}, options


def attention_gradient(q, k, v, y, lse, dy, **options):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    return torch.autograd.grad(attend(*leaves, **options)[0], leaves, dy)


def masked(d):
    operands = heads(d)
    b, h, n, m = (*operands["q"].shape[:3], operands["k"].shape[2])
    kind = d.choice(["none", "flags", "numbers"])
    shape = d.choice([(n, m), (b, 1, 1, m), (b, h, n, m), (1, h, n, 1)])
    if kind != "none":
        operands["mask"] = d.values(shape) if kind == "numbers" else torch.rand(shape) < 0.7
    options = {"scale": d.choice([0, 0.7]), "softcap": d.choice([0, 1.5]), "causal": d.flag() and n <= m}
    return operands, options


def attend_masked(q, k, v, mask=None, scale=0, softcap=0, causal=False):
    s = (q @ k.mT) * (scale or 1 / math.sqrt(q.shape[-1]))
    s = softcap * torch.tanh(s / softcap) if softcap else s
    seen = torch.ones(s.shape, dtype=torch.bool)
    seen = seen.tril(k.shape[2] - q.shape[2]) if causal else seen
    if mask is not None and mask.dtype is torch.bool:
        seen = seen & mask
    s = s if mask is None or mask.dtype is torch.bool else s + mask
    # a query that sees no key has the result 0
    weights = torch.where(seen.any(-1, keepdim=True), s.masked_fill(~seen, -math.inf), 0.0).softmax(-1)
    return weights.masked_fill(~seen, 0) @ v


def cached(d):
    b, h, tokens, room, width, values = d.int(1, 2), d.int(1, 3), d.int(1, 3), d.int(3, 7), d.int(1, 4), d.int(1, 4)
    at = d.int(0, room - tokens)
    return [d.values((b, h, tokens, width)), d.values((b, h, tokens, width)), d.values((b, h, tokens, values)),
            d.values((b, h, room, width)), d.values((b, h, room, values)), torch.tensor(at)], {"scale": d.choice([0, 0.7])}


def attend_cached(q, k, v, keys, values, position, scale):
    at, tokens = int(position), q.shape[2]
    keys = torch.cat((keys[:, :, :at], k, keys[:, :, at + tokens:]), 2)
    values = torch.cat((values[:, :, :at], v, values[:, :, at + tokens:]), 2)
    mask = torch.ones(tokens, keys.shape[2], dtype=torch.bool).tril(at)
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, scale=scale or None), keys, values


def turned(d):
    h, pairs = d.int(1, 3), d.int(1, 3)
    operands = {"x": d.values((d.size(), d.size(), h * 2 * pairs))}
    if d.flag():
        operands["start"] = torch.tensor(d.int(0, 9))
    return operands, {"heads": h, "base": d.choice([10000, 500]), "interleaved": d.flag(), "inverse": d.flag()}


def rotate(x, start=0, heads=1, base=10000, interleaved=False, inverse=False):
    """As complex numbers, of which the parts are neighbours or half a head apart."""
    width, t = x.shape[2] // heads, x.shape[1]
    speed = 1 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.outer(torch.arange(int(start), int(start) + t, dtype=torch.float64), speed) * (-1 if inverse else 1)
    turn = torch.polar(torch.ones_like(angle), angle)[:, None]
    y = x.unflatten(2, (heads, width // 2, 2) if interleaved else (heads, 2, width // 2))
    y = y if interleaved else y.movedim(-2, -1)
    y = torch.view_as_real(torch.view_as_complex(y.contiguous()) * turn)
    return (y if interleaved else y.movedim(-1, -2)).flatten(2)


def halved(d):
    shape = list(d.shape())
    axis = d.axis(len(shape))
    shape[axis] *= 2
    return [d.values(tuple(shape))], {"axis": axis, "gate": d.choice(["sigmoid", "tanh", "relu", "gelu", "silu"])}


def gated(x, axis, gate):
    value, by = x.chunk(2, axis)
    return value * {"tanh": torch.tanh, "relu": F.relu, "gelu": F.gelu, "silu": F.silu}[gate](by)


# ---- recurrence ----


def sequences(d):
    cell = d.choice(["lstm", "gru", "tanh", "relu"])
    gates, n, steps, units = {"lstm": 4, "gru": 3}.get(cell, 1), d.int(1, 3), d.int(1, 5), d.int(1, 4)
    operands = {"x": d.values((n, steps, gates * units)), "w": d.values((gates * units, units), -1, 1)}
    if d.flag():
        operands["bias"] = d.values((gates * units,))
    if d.flag():
        operands["h"] = d.values((n, units))
        if cell == "lstm":
            operands["c"] = d.values((n, units))
    if d.flag():
        operands["length"] = torch.randint(0, steps + 1, (n,)).to(torch.int32)
    return operands, {"cell": cell, "reverse": d.flag()}


def run_recurrence(x, w, bias=None, h=None, c=None, length=None, cell="lstm", reverse=False):
    """PyTorch's cells sample by sample; an input matrix of ones and zeros hands x over as it is."""
    n, steps, _ = x.shape
    units = w.shape[1]
    zeros = torch.zeros(n, units, dtype=x.dtype)
    h, c = (zeros if v is None else v for v in (h, c))
    bias = torch.zeros(w.shape[0], dtype=x.dtype) if bias is None else bias
    parameters = [torch.eye(w.shape[0], dtype=x.dtype), w, torch.zeros_like(bias), bias]
    function = {"lstm": torch.lstm, "gru": torch.gru, "tanh": torch.rnn_tanh, "relu": torch.rnn_relu}[cell]
    ys, lasts, cells = [], [], []
    for i in range(n):
        part = x[i:i + 1, :steps if length is None else int(length[i])]
        if part.shape[1] == 0:
            ys, lasts, cells = ys + [zeros.new_zeros(steps, units)], lasts + [h[i]], cells + [c[i]]
            continue
        part = part.flip(1) if reverse else part
        state = (h[None, i:i + 1], c[None, i:i + 1]) if cell == "lstm" else h[None, i:i + 1]
        y, last, *rest = function(part, state, parameters, True, 1, 0.0, False, False, True)
        y = y.flip(1) if reverse else y
        ys.append(F.pad(y[0], (0, 0, 0, steps - y.shape[1])))
        lasts.append(last[0, 0])
        cells.append(rest[0][0, 0] if rest else c[i])
    return (torch.stack(ys), torch.stack(lasts)) + ((torch.stack(cells),) if cell == "lstm" else ())


# ---- optimizers ----


ROWS = {
    "conv1d": conv(1),
    "conv2d": conv(2),
    "conv3d": conv(3),
    "conv_transpose1d": transposed(1),
    "conv_transpose2d": transposed(2),
    "conv_transpose3d": transposed(3),
    "conv2d_grad_input": conv_gradient(2, True),
    "conv2d_grad_weight": conv_gradient(2, False),
    "conv3d_grad_input": conv_gradient(3, True),
    "conv3d_grad_weight": conv_gradient(3, False),
    "max_pool1d": (pooled(1), max_pool(1)),
    "max_pool2d": (pooled(2), max_pool(2)),
    "max_pool3d": (pooled(3), max_pool(3)),
    "avg_pool1d": (pooled(1, include_pad=[False, True]), average_pool(1)),
    "avg_pool2d": (pooled(2, include_pad=[False, True]), average_pool(2)),
    "avg_pool3d": (pooled(3, include_pad=[False, True]), average_pool(3)),
    "lp_pool1d": (pooled(1, False, 0.1, 3, p=[1, 2, 3.5]), lp_pool(1)),
    "lp_pool2d": (pooled(2, False, 0.1, 3, p=[1, 2, 3.5]), lp_pool(2)),
    "lp_pool3d": (pooled(3, False, 0.1, 3, p=[1, 2, 3.5]), lp_pool(3)),
    "max_pool2d_grad": pool_gradient(True),
    "avg_pool2d_grad": pool_gradient(False),
    "max_unpool1d": unpool(1),
    "max_unpool2d": unpool(2),
    "max_unpool3d": unpool(3),
    "adaptive_avg_pool": adaptive(ADAPTIVE_AVERAGE),
    "adaptive_max_pool": adaptive(ADAPTIVE_MAX, return_indices=True),
    "global_avg_pool": (lambda d: ([d.values(image(d))], {}), lambda x: x.flatten(2).mean(2)),
    "global_max_pool": (lambda d: ([d.values(image(d))], {}), lambda x: x.flatten(2).amax(2)),
    "interpolate": (resized, resize),
    "grid_sample": (sampled, F.grid_sample),
    "affine_grid": (affine, lambda t, size, align_corners: F.affine_grid(t, (t.shape[0], 1, *size), align_corners)),
    "batch_norm": (normed(), batch_norm),
    "batch_norm_apply": (applied, apply),
    "layer_norm": (row_normed(True), layer_norm),
    "layer_norm_grad": (layer_norm_given, layer_norm_gradient),
    "rms_norm": (row_normed(False), lambda x, weight=None, epsilon=0, trailing=1: F.rms_norm(x, x.shape[x.dim() - trailing:], weight, epsilon)),
    "group_norm": (grouped, lambda x, weight=None, bias=None, groups=1, epsilon=0: F.group_norm(x, groups, weight, bias, epsilon)),
    "local_response_norm": (lambda d: ([d.values(image(d, 0))], {"size": d.int(1, 6), "alpha": d.choice([1e-4, 0.5]), "beta": d.choice([0.75, 0.6]), "k": d.choice([1, 2])}),
                            lambda x, size, alpha, beta, k: F.local_response_norm(x, size, alpha, beta, k)),
    "attention": (attended, attend),
    "attention_grad": (attention_given, attention_gradient),
    "general_attention": (masked, attend_masked),
    "cached_attention": (cached, attend_cached),
    "rotary": (turned, rotate),
    "glu": (halved, lambda x, axis, gate: F.glu(x, axis) if gate == "sigmoid" else gated(x, axis, gate)),
    "gelu_grad": (lambda d: ([d.values(s := d.shape(0)), d.values(s)], {"approximate": d.choice(["none", "tanh"])}),
                  lambda dy, x, approximate: torch.ops.aten.gelu_backward(dy, x, approximate=approximate)),
    "recurrence": (sequences, run_recurrence),
}
