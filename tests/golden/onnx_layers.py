"""The ops of ONNX with windows, statistics and recurrence as ops of Tenon: a line each, as onnx_rows.py has the others."""
import math

from onnx_rows import Without

# ---- windows ----


class Window:
    """The attributes of a window: low and high are the elements of padding on both sides of each dimension."""

    def __init__(self, n, kernel):
        self.kernel, self.rank = list(kernel), len(kernel)
        self.stride = list(n.attribute("strides", [1] * self.rank))
        self.dilation = list(n.attribute("dilations", [1] * self.rank))
        pads = list(n.attribute("pads", [0] * 2 * self.rank))
        self.low, self.high = pads[:self.rank], pads[self.rank:]
        auto = n.attribute("auto_pad", "NOTSET")
        if auto.startswith("SAME"):
            self.fit(n.shape(0)[2:], auto == "SAME_UPPER")

    def fit(self, size, behind):
        """Padding with which the result has size / stride elements, rounded up."""
        for i, s in enumerate(size):
            reach = (self.kernel[i] - 1) * self.dilation[i] + 1
            total = max((-(-s // self.stride[i]) - 1) * self.stride[i] + reach - s, 0)
            less, more = total // 2, total - total // 2
            self.low[i], self.high[i] = (less, more) if behind else (more, less)

    def pads(self, value=0):
        """Those of extend, which knows all dimensions."""
        return {"low": [0, 0] + self.low, "high": [0, 0] + self.high, "value": value}


def conv(n):
    w = Window(n, n.shape(1)[2:])
    return n.emit(f"conv{w.rank}d", n.x(0), n.x(1), *([n.x(2)] if n.has(2) else []), stride=w.stride, padding=w.low + w.high,
                  dilation=w.dilation, groups=n.attribute("group", 1))


def conv_transpose(n):
    w = Window(n, n.shape(1)[2:])
    more, size, result = list(n.attribute("output_padding", [0] * w.rank)), n.shape(0)[2:], n.raw_output(0).shape[2:]
    for i in range(w.rank):
        whole = (size[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 + more[i]
        less = whole - result[i]
        if n.attribute("output_shape", None) is not None or n.attribute("auto_pad", "NOTSET") != "NOTSET":
            upper = n.attribute("auto_pad", "NOTSET") == "SAME_UPPER"
            w.low[i] = max(less, 0) // 2 if upper else max(less, 0) - max(less, 0) // 2
            w.high[i] = max(less, 0) - w.low[i]
            more[i] += max(-less, 0)
    return n.emit(f"conv_transpose{w.rank}d", n.x(0), n.x(1), *([n.x(2)] if n.has(2) else []), stride=w.stride,
                  padding=w.low + w.high, dilation=w.dilation, groups=n.attribute("group", 1), output_padding=more)


def undilated(w, n):
    if any(d != 1 for d in w.dilation):
        raise Without("pooling has no dilation")
    if n.attribute("storage_order", 0):
        raise Without("indices of a column after the other")


def spread(n, w):
    """Whether padding differs on both sides, or is more than half of the kernel, so that extend writes it."""
    return w.low != w.high or any(2 * p > k for p, k in zip(w.low, w.kernel))


def max_pool(n):
    w = Window(n, n.attribute("kernel_shape", []))
    undilated(w, n)
    x, padding = n.x(0), w.low
    if spread(n, w):
        x, padding = n.emit("extend", x, **w.pads(-math.inf)), [0] * w.rank
    options = dict(kernel=w.kernel, stride=w.stride, padding=padding, ceil=bool(n.attribute("ceil_mode", 0)))
    if n.results == 1:
        return n.emit_all(f"max_pool{w.rank}d", 2, x, **options)[0]
    if spread(n, w):
        raise Without("an index where padding differs on both sides")
    y, index = n.emit_all(f"max_pool{w.rank}d", 2, x, **options)
    # Tenon counts within an image, ONNX in all of x
    plane = math.prod(n.shape(0)[2:])
    before = n.emit("affine", n.emit("iota", dims=[math.prod(n.shape(0)[:2]), 1], dtype="f64"), scale=plane)
    result = list(n.raw_output(0).shape)
    before = n.emit("reshape", n.emit("cast", before, to="i64"), dims=result[:2] + [1] * w.rank)
    return [y, n.emit("add", n.as_type(index, "i64"), before)]


def average_pool(n):
    w = Window(n, n.attribute("kernel_shape", []))
    undilated(w, n)
    include, ceil = bool(n.attribute("count_include_pad", 0)), bool(n.attribute("ceil_mode", 0))
    op = f"avg_pool{w.rank}d"
    if not spread(n, w):
        return n.emit(op, n.x(0), kernel=w.kernel, stride=w.stride, padding=w.low, ceil=ceil, include_pad=include)
    options = dict(kernel=w.kernel, stride=w.stride, ceil=ceil)
    y = n.emit(op, n.emit("extend", n.x(0), **w.pads()), **options)
    if include:
        return y
    ones = n.emit("full", dims=list(n.shape(0)), value=1, dtype=n.dtype(0))
    return n.emit("div", y, n.emit(op, n.emit("extend", ones, **w.pads()), **options))


def lp_pool(n):
    w = Window(n, n.attribute("kernel_shape", []))
    undilated(w, n)
    x = n.emit("extend", n.emit("abs", n.x(0)), **w.pads())
    return n.emit(f"lp_pool{w.rank}d", x, kernel=w.kernel, stride=w.stride, ceil=bool(n.attribute("ceil_mode", 0)), p=n.attribute("p", 2))


def max_unpool(n):
    w = Window(n, n.attribute("kernel_shape", []))
    if w.rank != 2 or n.has(2):
        raise Without("an index in an image of another size than the result")
    size = list(n.raw_output(0).shape[2:])
    index = n.given((n.constant(1) % math.prod(size)).astype("int32"))  # ONNX counts in all of x, Tenon within an image
    return n.emit("max_unpool2d", n.x(0), index, kernel=w.kernel, stride=w.stride, size=size)


def upsample(n):
    return n.emit("interpolate", n.x(0), size=list(n.raw_output(0).shape[2:]), mode="nearest")


def global_pool(op):
    return lambda n: n.emit("reshape", n.emit(op, n.x(0)), dims=list(n.raw_output(0).shape))


def grid_sample(n):
    mode = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest"}.get(n.attribute("mode", "linear"))
    if mode is None:
        raise Without("grid_sample has no cubic filter")
    if len(n.shape(0)) != 4:
        raise Without("grid_sample of volumes")
    return n.emit("grid_sample", n.x(0), n.x(1), mode=mode, padding_mode=n.attribute("padding_mode", "zeros"),
                  align_corners=bool(n.attribute("align_corners", 0)))


def affine_grid(n):
    size = [int(s) for s in n.constant(1)]
    if len(size) != 4:
        raise Without("affine_grid of volumes")
    return n.emit("affine_grid", n.x(0), size=size[2:], align_corners=bool(n.attribute("align_corners", 0)))


def col2im(n):
    size, kernel = [int(s) for s in n.constant(1)], [int(k) for k in n.constant(2)]
    w = Window(n, kernel)
    if w.rank != 2 or w.low != w.high:
        raise Without("fold of volumes, or with padding that differs on both sides")
    return n.emit("fold", n.x(0), size=size, kernel=kernel, stride=w.stride, padding=w.low, dilation=w.dilation)


def resize(n):
    """What PyTorch's interpolate has: nearest elements by the rules of one or the other, and filters."""
    position, shape = n.attribute("coordinate_transformation_mode", "half_pixel"), list(n.shape(0))
    mode, nearest = n.attribute("mode", "nearest"), n.attribute("nearest_mode", "round_prefer_floor")
    result = list(n.raw_output(0).shape)
    smaller = any(r < s for r, s in zip(result, shape))
    filters = bool(n.attribute("antialias", 0)) and smaller
    axes = list(n.attribute("axes", range(len(shape))))
    if n.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Without("interpolate keeps no aspect ratio")
    if filters != bool(n.attribute("exclude_outside", 0)):
        raise Without("elements outside have no weight with antialias, and that of the edge without")
    if result[:2] != shape[:2]:
        raise Without("interpolate keeps batch and channels")
    name = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[mode]
    if mode == "nearest" and position == "half_pixel" and nearest == "round_prefer_ceil":
        name = "nearest_exact"
    elif mode == "nearest" and (position, nearest) != ("asymmetric", "floor"):
        whole = all(r % s == 0 for r, s in zip(result, shape))
        if (position, nearest) != ("half_pixel", "round_prefer_floor") or not whole:
            raise Without("nearest elements by another rule than PyTorch's")
    elif mode != "nearest" and position not in ("half_pixel", "align_corners"):
        raise Without("positions that neither half pixels nor aligned corners give")
    options = {"mode": name}
    if mode != "nearest":
        options["align_corners"] = position == "align_corners"
        if filters:
            options["antialias"] = True
    if mode == "cubic" and abs(n.attribute("cubic_coeff_a", -0.75) - (-0.5 if "antialias" in options else -0.75)) > 1e-9:
        raise Without("a cubic filter with another coefficient")
    given = dict(zip(axes, n.constant(2))) if n.has(2) and n.constant(2).size else None
    scales = [float(given.get(i, 1)) for i in range(len(shape))] if given else None
    if scales and position == "align_corners" and any(s * k != r for s, k, r in zip(shape, scales, result)):
        raise Without("corners of a size that is not whole")
    if scales and mode != "nearest" and position != "align_corners":
        return n.emit("interpolate", n.x(0), scale=scales[2:], **options)
    return n.emit("interpolate", n.x(0), size=result[2:], **options)


# ---- norms ----


def batch_norm(n):
    x, scale, bias, epsilon = n.x(0), n.x(1), n.x(2), n.attribute("epsilon", 1e-5)
    if not n.attribute("training_mode", 0):
        return n.emit("batch_norm_apply", x, n.x(3), n.x(4), scale, bias, epsilon=epsilon)
    y, mean, variance = n.emit_all("batch_norm", 3, x, scale, bias, epsilon=epsilon)
    keep = n.attribute("momentum", 0.9)
    running = [n.emit("add", n.emit("affine", n.x(i), scale=keep), n.emit("affine", new, scale=1 - keep)) for i, new in ((3, mean), (4, variance))]
    return [y, *running]


def layer_norm(n):
    axis = n.attribute("axis", -1) % len(n.shape(0))
    trailing = len(n.shape(0)) - axis
    y, mean, deviation = n.emit_all("layer_norm", 3, n.x(0), n.x(1), *([n.x(2)] if n.has(2) else []), epsilon=n.attribute("epsilon", 1e-5), trailing=trailing)
    return [y] + [n.emit("reshape", v, dims=list(n.raw_output(i).shape)) for i, v in ((1, mean), (2, deviation))][:n.results - 1]


def rms_norm(n):
    axis = n.attribute("axis", -1) % len(n.shape(0))
    return n.emit("rms_norm", n.x(0), n.x(1), epsilon=n.attribute("epsilon", 1e-5), trailing=len(n.shape(0)) - axis)


def group_norm(groups=None):
    return lambda n: n.emit("group_norm", n.x(0), n.x(1), n.x(2), groups=groups(n) if groups else n.attribute("num_groups", 1),
                            epsilon=n.attribute("epsilon", 1e-5))


def lrn(n):
    return n.emit("local_response_norm", n.x(0), size=n.attribute("size", 1), alpha=n.attribute("alpha", 0.0001),
                  beta=n.attribute("beta", 0.75), k=n.attribute("bias", 1.0))


def mean_variance(n):
    axes = list(n.attribute("axes", [0, 2, 3]))
    mean = n.emit("reduce_mean", n.x(0), axes=axes, keep=True)
    centered = n.emit("sub", n.x(0), mean)
    deviation = n.emit("sqrt", n.emit("reduce_mean", n.emit("square", centered), axes=axes, keep=True))
    return n.emit("div", centered, n.emit("affine", deviation, shift=1e-9))


# ---- recurrence ----


def gates_in_order(n, v, order, units, axis):
    """The blocks of v along an axis, one for each gate, in Tenon's order."""
    if order == sorted(order):
        return v
    shape = n.shape_of(v)
    blocks = []
    for g in order:
        low, high = [0] * len(shape), list(shape)
        low[axis], high[axis] = g * units, (g + 1) * units
        blocks.append(n.emit("slice", v, starts=low, stops=high))
    return n.emit("concat", *blocks, axis=axis)


def recurrent(cell, order):
    """x (steps, batch, width), or (batch, steps, width) for layout 1; a direction after the other."""
    def row(n):
        units, layout = n.attribute("hidden_size", None), n.attribute("layout", 0)
        if cell == "gru" and not n.attribute("linear_before_reset", 0):
            raise Without("the reset gate in front of the product: recurrence has it behind it, as PyTorch")
        if n.has(7):
            raise Without("recurrence has no peepholes")
        if n.attribute("activations", None) or n.attribute("clip", None):
            raise Without("recurrence has no other functions of its gates, and no limit of them")
        x = n.x(0) if layout else n.emit("transpose", n.x(0), order=[1, 0, 2])
        directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[n.attribute("direction", "forward")]
        ys, states = [], []
        for i, reverse in enumerate(directions):
            results = one_direction(n, x, i, reverse, units, layout)
            ys.append(results[0])
            states.append(results[1:])
        y = n.emit("stack", *ys, axis=2 if layout else 1)
        ends = [n.emit("stack", *v, axis=1 if layout else 0) for v in zip(*states)]
        return ([y] + ends)[:n.results] if n.named(0) else [v for i, v in enumerate([y] + ends) if n.named(i)]

    def one_direction(n, x, i, reverse, units, layout):
        gates = len(order)
        w, r = (gates_in_order(n, n.part(k, i), order, units, 0) for k in (1, 2))
        biases = [None, None]
        if n.has(3):
            both = n.part(3, i)
            halves = [n.emit("slice", both, starts=[k * gates * units], stops=[(k + 1) * gates * units]) for k in (0, 1)]
            biases = [gates_in_order(n, b, order, units, 0) for b in halves]
        given = n.emit("matmul", x, w, *([biases[0]] if biases[0] else []), transpose_b=True)
        state = [(n.part(k, i, 1 if layout else 0) if n.has(k) else "_") for k in (5, 6)]
        length = n.x(4) if n.has(4) else "_"
        y, last, c, _ = n.emit_all("recurrence", 4, given, r, biases[1] or "_", state[0], state[1] if cell == "lstm" else "_", length,
                                   cell=cell, reverse=reverse)
        y = y if layout else n.emit("transpose", y, order=[1, 0, 2])
        return (y, last, c) if cell == "lstm" else (y, last)
    return row


ROWS = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalAveragePool": global_pool("global_avg_pool"),
    "GlobalMaxPool": global_pool("global_max_pool"),
    "MaxUnpool": max_unpool,
    "Upsample": upsample,
    "GridSample": grid_sample,
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
    "Resize": resize,
    "BatchNormalization": batch_norm,
    "InstanceNormalization": group_norm(lambda n: n.shape(0)[1]),
    "GroupNormalization": group_norm(),
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "LRN": lrn,
    "LpNormalization": lambda n: n.emit("normalize", n.x(0), p=n.attribute("p", 2), axis=n.attribute("axis", -1)),
    "MeanVarianceNormalization": mean_variance,
    "RNN": recurrent("tanh", [0]),
    "GRU": recurrent("gru", [1, 0, 2]),
    "LSTM": recurrent("lstm", [0, 2, 3, 1]),
}
