"""The ops of ONNX as ops of Tenon: a line each. A row is a function of a node that emits ops and returns the values of the
results. It raises Without, with a reason, where Tenon has no counterpart of what the attributes ask for."""
import math

import numpy as np


class Without(Exception):
    """A use without a counterpart; the text is the reason."""


def ints(values):
    return "[" + ", ".join(str(int(v)) for v in values) + "]"


def flag(value):
    return "yes" if value else "no"


# ---- pointwise ----


def unary(op, **options):
    """An op of one operand; options by the names of ONNX's attributes: (name of Tenon's, default)."""
    def row(n):
        return n.emit(op, n.x(0), **{name: n.attribute(k, default) for k, (name, default) in options.items()})
    return row


def binary(op):
    return lambda n: n.emit(op, n.x(0), n.x(1))


def folded(op, mean=False):
    """An op of two operands over any number of them."""
    def row(n):
        value = n.x(0)
        for i in range(1, n.count):
            value = n.emit(op, value, n.x(i))
        return n.emit("affine", value, scale=1 / n.count) if mean else value
    return row


def div(n):
    return n.emit("div" if n.is_float(0) else "quotient", n.x(0), n.x(1))


def mod(n):
    return n.emit("fmod" if n.attribute("fmod", 0) else "remainder", n.x(0), n.x(1))


def power(n):
    if not n.is_float(0):
        raise Without("pow of whole numbers: pow computes floats")
    return n.emit("pow", n.x(0), n.as_type(n.x(1), n.dtype(0)))


def clip(n):
    low, high = ((float(n.constant(i)) if n.has(i) else d) for i, d in ((1, -math.inf), (2, math.inf)))
    return n.emit("clip", n.x(0), min=low, max=high)


def hard_sigmoid(n):
    return n.emit("clip", n.emit("affine", n.x(0), scale=n.attribute("alpha", 0.2), shift=n.attribute("beta", 0.5)), min=0, max=1)


def selu(n):
    alpha, gamma = n.attribute("alpha", 1.67326319217681884765625), n.attribute("gamma", 1.05070102214813232421875)
    return n.emit("affine", n.emit("elu", n.x(0), alpha=alpha), scale=gamma)


def shrink(n):
    x, lambd, bias = n.x(0), n.attribute("lambd", 0.5), n.attribute("bias", 0.0)
    small = n.emit("le", n.emit("abs", x), n.number(lambd, 0))
    moved = n.emit("sub", x, n.emit("affine", n.emit("sign", x), scale=bias))
    return n.emit("where", small, n.number(0, 0), moved)


def swish(n):
    x = n.x(0)
    return n.emit("mul", x, n.emit("sigmoid", n.emit("affine", x, scale=n.attribute("alpha", 1.0))))


def is_inf(n):
    up, down = n.attribute("detect_positive", 1), n.attribute("detect_negative", 1)
    return n.emit("is_inf" if up and down else "is_pos_inf" if up else "is_neg_inf", n.x(0))


def cast(n):
    return n.emit("cast", n.x(0), to=n.dtype_of_result(0))


# ---- reductions ----


def axes_of(n, i=1):
    if n.has(i):
        return [int(a) for a in np.atleast_1d(n.constant(i))]
    return list(n.attribute("axes", []))


def reduction(op, before=None, after=None, **options):
    def row(n):
        x, axes = n.x(0), axes_of(n)
        if before:
            x = before(n, x)
        if axes or not n.attribute("noop_with_empty_axes", 0):
            if op in ("reduce_max", "reduce_min") and n.raw(0).size == 0 and n.raw_output(0).size > 0:
                raise Without("an extreme over no elements is an error")
            name = {"reduce_max": "any", "reduce_min": "all"}[op] if n.dtype(0) == "bool" else op
            x = n.emit(name, x, axes=axes, keep=bool(n.attribute("keepdims", 1)), **options)
        return after(n, x) if after else x
    return row


def squared(n, x):
    return n.emit("square", x)


def logarithm(n, x):
    return n.emit("log", x)


def norm_or_whole(p):
    def row(n):
        if n.attribute("noop_with_empty_axes", 0) and not axes_of(n):
            return n.emit("abs", n.x(0))
        return reduction("norm", p=p)(n)
    return row


def extreme(op):
    def row(n):
        axis, x = n.attribute("axis", 0), n.x(0)
        shape = list(n.shape(0))
        last = n.attribute("select_last_index", 0)
        y = n.emit(op, n.emit("flip", x, axes=[axis]) if last else x, axis=axis)
        if last:
            y = n.emit("sub", n.whole(shape[axis] - 1, "i32"), y)
        if n.attribute("keepdims", 1):
            y = n.emit("unsqueeze", y, axis=axis % len(shape))
        return n.as_type(y, "i64")
    return row


# ---- movement ----


def reshape(n):
    dims = [int(d) for d in n.constant(1)]
    if not n.attribute("allowzero", 0):
        dims = [n.shape(0)[i] if d == 0 else d for i, d in enumerate(dims)]
    return n.emit("reshape", n.x(0), dims=dims)


def to_result(op="reshape"):
    """The dims of the result."""
    return lambda n: n.emit(op, n.x(0), dims=list(n.raw_output(0).shape))


def transpose(n):
    return n.emit("transpose", n.x(0), order=list(n.attribute("perm", list(reversed(range(len(n.shape(0))))))))


def sliced(n):
    shape = n.shape(0)
    starts, ends = n.constant(1), n.constant(2)
    axes = [int(a) % len(shape) for a in n.constant(3)] if n.has(3) else range(len(starts))
    steps = n.constant(4) if n.has(4) else [1] * len(starts)
    lows, highs, by, turned = [0] * len(shape), list(shape), [1] * len(shape), []
    for a, start, end, step in zip(axes, starts, ends, steps):
        chosen = range(shape[a])[slice(int(start), int(end), int(step))]
        if step < 0:
            turned.append(a)
            chosen = range(shape[a])[slice(shape[a] - 1 - chosen[0], shape[a] - chosen[-1], int(-step))]
        lows[a], by[a] = (chosen[0] if len(chosen) else 0), int(abs(step))
        highs[a] = chosen[-1] + 1 if len(chosen) else lows[a]
    x = n.emit("flip", n.x(0), axes=turned) if turned else n.x(0)
    return n.emit("slice", x, starts=lows, stops=highs, steps=by)


def pad(n):
    shape, pads = n.shape(0), [int(p) for p in n.constant(1)]
    axes = [int(a) % len(shape) for a in n.constant(3)] if n.has(3) else list(range(len(shape)))
    low, high = [0] * len(shape), [0] * len(shape)
    for i, a in enumerate(axes):
        low[a], high[a] = pads[i], pads[len(axes) + i]
    mode = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}[n.attribute("mode", "constant")]
    value = float(n.constant(2)) if n.has(2) and mode == "constant" else 0
    return n.emit("extend", n.x(0), low=low, high=high, mode=mode, value=value)


def parts(n):
    axis, shape = n.attribute("axis", 0), list(n.shape(0))
    sizes = [y.shape[axis] for y in n.raw_outputs()]
    results, at = [], 0
    for size in sizes:
        low, high = [0] * len(shape), list(shape)
        low[axis], high[axis], at = at, at + size, at + size
        results.append(n.emit("slice", n.x(0), starts=low, stops=high))
    return results


def squeeze(n):
    return n.emit("squeeze", n.x(0), axes=axes_of(n))


def tile(n):
    return n.emit("tile", n.x(0), repeats=[int(r) for r in n.constant(1)])


def depth_to_space(n):
    block, (batch, c, h, w) = n.attribute("blocksize", 1), n.shape(0)
    if n.attribute("mode", "DCR") == "CRD":
        return n.emit("pixel_shuffle", n.x(0), factor=block)
    y = n.emit("reshape", n.x(0), dims=[batch, block, block, c // block**2, h, w])
    return n.emit("reshape", n.emit("transpose", y, order=[0, 3, 4, 1, 5, 2]), dims=list(n.raw_output(0).shape))


def space_to_depth(n):
    block, (batch, c, h, w) = n.attribute("blocksize", 1), n.shape(0)
    y = n.emit("reshape", n.x(0), dims=[batch, c, h // block, block, w // block, block])
    order = [0, 3, 5, 1, 2, 4] if n.attribute("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return n.emit("reshape", n.emit("transpose", y, order=order), dims=list(n.raw_output(0).shape))


def trilu(n):
    return n.emit("triu" if n.attribute("upper", 1) else "tril", n.x(0), diagonal=int(n.constant(1)) if n.has(1) else 0)


def center_crop_pad(n):
    shape, target = list(n.shape(0)), list(n.raw_output(0).shape)
    low, high = [max(s - t, 0) // 2 for s, t in zip(shape, target)], []
    high = [a + min(s, t) for a, s, t in zip(low, shape, target)]
    y = n.emit("slice", n.x(0), starts=low, stops=high)
    more = [max(t - s, 0) for s, t in zip(shape, target)]
    return n.emit("pad", y, low=[m // 2 for m in more], high=[m - m // 2 for m in more])


def one_hot(n):
    if n.raw(0).ndim == 0:
        raise Without("an index without dimensions")
    depth, (off, on), axis = int(n.constant(1)), n.constant(2), n.attribute("axis", -1)
    index = n.given(np.where(n.constant(0) < 0, n.constant(0) + depth, n.constant(0)).astype(np.int64))
    y = n.emit("one_hot", index, classes=depth, dtype=n.dtype_of_result(0))
    off_value, on_value = n.given(np.asarray(off)), n.given(np.asarray(on))
    y = n.emit("where", n.emit("ne", y, n.emit("sub", y, y)), on_value, off_value)
    return n.emit("movedim", y, source=[-1], destination=[axis])


def nonnegative(n, i, size):
    """An index counted from the first element, since Tenon's has no other."""
    v = n.constant(i)
    return n.given(np.where(v < 0, v + size, v).astype(v.dtype))


def gather(n):
    axis, shape = n.attribute("axis", 0), n.shape(0)
    index = nonnegative(n, 1, shape[axis])
    flat = n.emit("reshape", index, dims=[n.raw(1).size])
    return n.emit("reshape", n.emit("gather", n.x(0), flat, axis=axis), dims=list(n.raw_output(0).shape))


def gather_elements(n):
    axis = n.attribute("axis", 0)
    return n.emit("gather", n.x(0), nonnegative(n, 1, n.shape(0)[axis]), axis=axis)


def scatter_elements(n):
    axis, mode = n.attribute("axis", 0), n.attribute("reduction", "none")
    if mode == "mul":
        raise Without("scatter does not multiply")
    return n.emit("scatter", n.x(0), nonnegative(n, 1, n.shape(0)[axis]), n.x(2), axis=axis, mode={"none": "set"}.get(mode, mode))


def cumulative(op):
    return lambda n: n.emit(op, n.x(0), axis=int(n.constant(1)), exclusive=bool(n.attribute("exclusive", 0)),
                            reverse=bool(n.attribute("reverse", 0)))


def top_k(n):
    k, axis = int(n.constant(1)[0]), n.attribute("axis", -1)
    y, index = n.emit_all("topk", 2, n.x(0), k=k, axis=axis, largest=bool(n.attribute("largest", 1)))
    return [y, n.as_type(index, "i64")]


def range_of(n):
    start, _, delta = (float(n.constant(i)) for i in range(3))
    size, dtype = n.raw_output(0).size, n.dtype_of_result(0)
    if dtype[0] != "f" and dtype != "bf16":
        up = n.emit("iota", dims=[size], dtype=dtype)
        return n.emit("add", n.emit("mul", up, n.whole(int(delta), dtype)), n.whole(int(start), dtype))
    return n.as_type(n.emit("affine", n.emit("iota", dims=[size], dtype="f32"), scale=delta, shift=start), dtype)


def filled(n):
    value = n.attribute("value", None)
    return n.emit("full", dims=list(n.raw_output(0).shape), value=0 if value is None else value.item(), dtype=n.dtype_of_result(0))


def eye_like(n):
    rows, columns = n.raw_output(0).shape
    k = n.attribute("k", 0)
    seen = [n.emit("triangular_mask", rows=rows, columns=columns, diagonal=k - i) for i in (0, 1)]
    return n.emit("cast", n.emit("and", seen[0], n.emit("not", seen[1])), to=n.dtype_of_result(0))


def hardmax(n):
    axis = n.attribute("axis", -1)
    y = n.emit("one_hot", n.emit("argmax", n.x(0), axis=axis), classes=n.shape(0)[axis], dtype=n.dtype(0))
    return n.emit("movedim", y, source=[-1], destination=[axis])


def matmul(n):
    a, b = n.x(0), n.x(1)
    a = n.emit("reshape", a, dims=[1, n.shape(0)[0]]) if len(n.shape(0)) == 1 else a
    b = n.emit("reshape", b, dims=[n.shape(1)[0], 1]) if len(n.shape(1)) == 1 else b
    return n.emit("reshape", n.emit("matmul", a, b), dims=list(n.raw_output(0).shape))


def gemm(n):
    y = n.emit("matmul", n.x(0), n.x(1), transpose_a=bool(n.attribute("transA", 0)), transpose_b=bool(n.attribute("transB", 0)))
    y = n.emit("affine", y, scale=n.attribute("alpha", 1.0))
    return n.emit("add", y, n.emit("affine", n.x(2), scale=n.attribute("beta", 1.0))) if n.has(2) else y


def einsum(n):
    return n.emit("einsum", *(n.x(i) for i in range(n.count)), equation='"' + n.attribute("equation", "").replace(" ", "") + '"')


ROWS = {
    "Abs": unary("abs"), "Acos": unary("acos"), "Acosh": unary("acosh"), "Asin": unary("asin"), "Asinh": unary("asinh"),
    "Atan": unary("atan"), "Atanh": unary("atanh"), "Ceil": unary("ceil"), "Cos": unary("cos"), "Cosh": unary("cosh"),
    "Erf": unary("erf"), "Exp": unary("exp"), "Floor": unary("floor"), "IsNaN": unary("is_nan"), "Log": unary("log"),
    "Mish": unary("mish"), "Neg": unary("neg"), "Not": unary("not"), "Reciprocal": unary("reciprocal"), "Relu": unary("relu"),
    "Round": unary("round"), "Sigmoid": unary("sigmoid"), "Sign": unary("sign"), "Sin": unary("sin"), "Sinh": unary("sinh"),
    "Softplus": unary("softplus"), "Softsign": unary("softsign"), "Sqrt": unary("sqrt"), "Tan": unary("tan"), "Tanh": unary("tanh"),
    "HardSwish": unary("hardswish"), "BitwiseNot": unary("bitwise_not"), "Identity": unary("copy"),
    "Celu": unary("celu", alpha=("alpha", 1.0)),
    "Elu": unary("elu", alpha=("alpha", 1.0)),
    "Gelu": unary("gelu", approximate=("approximate", "none")),
    "LeakyRelu": unary("leaky_relu", alpha=("slope", 0.01)),
    "ThresholdedRelu": lambda n: n.emit("threshold", n.x(0), threshold=n.attribute("alpha", 1.0), value=0),
    "HardSigmoid": hard_sigmoid,
    "Selu": selu,
    "Shrink": shrink,
    "Swish": swish,
    "IsInf": is_inf,
    "Clip": clip,
    "Cast": cast,
    "CastLike": cast,
    "Add": binary("add"), "Sub": binary("sub"), "Mul": binary("mul"), "Div": div, "Mod": mod, "Pow": power,
    "And": binary("and"), "Or": binary("or"), "Xor": binary("logical_xor"),
    "BitwiseAnd": binary("bitwise_and"), "BitwiseOr": binary("bitwise_or"), "BitwiseXor": binary("bitwise_xor"),
    "BitShift": lambda n: n.emit("shift_left" if n.attribute("direction", "") == "LEFT" else "shift_right", n.x(0), n.x(1)),
    "Equal": binary("eq"), "Greater": binary("gt"), "GreaterOrEqual": binary("ge"), "Less": binary("lt"), "LessOrEqual": binary("le"),
    "PRelu": binary("prelu"),
    "Where": lambda n: n.emit("where", n.x(0), n.x(1), n.x(2)),
    "Max": folded("maximum"), "Min": folded("minimum"), "Sum": folded("add"), "Mean": folded("add", True),
    "ReduceSum": reduction("reduce_sum"), "ReduceMean": reduction("reduce_mean"), "ReduceMax": reduction("reduce_max"),
    "ReduceMin": reduction("reduce_min"), "ReduceProd": reduction("prod"), "ReduceSumSquare": reduction("reduce_sum", squared),
    "ReduceL1": norm_or_whole(1), "ReduceL2": norm_or_whole(2), "ReduceLogSum": reduction("reduce_sum", None, logarithm),
    "ReduceLogSumExp": reduction("logsumexp"),
    "ArgMax": extreme("argmax"), "ArgMin": extreme("argmin"),
    "Softmax": lambda n: n.emit("softmax", n.x(0), axis=n.attribute("axis", -1)),
    "LogSoftmax": lambda n: n.emit("log_softmax", n.x(0), axis=n.attribute("axis", -1)),
    "Hardmax": hardmax,
    "CumSum": cumulative("cumsum"), "CumProd": cumulative("cumprod"),
    "TopK": top_k,
    "Reshape": reshape, "Flatten": to_result(), "Unsqueeze": to_result(), "Squeeze": squeeze, "Transpose": transpose,
    "Slice": sliced, "Split": parts, "Pad": pad, "Tile": tile, "Expand": to_result("broadcast"),
    "Concat": lambda n: n.emit("concat", *(n.x(i) for i in range(n.count)), axis=n.attribute("axis", 0)),
    "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth, "Trilu": trilu, "CenterCropPad": center_crop_pad,
    "Gather": gather, "GatherElements": gather_elements, "ScatterElements": scatter_elements, "Scatter": scatter_elements,
    "OneHot": one_hot, "Range": range_of, "ConstantOfShape": filled, "EyeLike": eye_like,
    "MatMul": matmul, "Gemm": gemm, "Einsum": einsum,
}
