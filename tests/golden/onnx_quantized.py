"""The ops of ONNX for bytes that stand for real numbers (x - zero) * scale, as ops of Tenon: a line each, as in
onnx_rows.py."""
from onnx_layers import Window


def of_tensor(n, i, rank, axis):
    """Operand i, a scale or a zero, along an axis of a tensor, or of blocks of it."""
    shape = n.shape(i)
    if len(shape) > 1:
        return n.emit("repeat_interleave", n.x(i), repeats=n.attribute("block_size", 1), axis=axis)
    dims = [] if shape in ((), (1,)) else [shape[0] if d == axis % rank else 1 for d in range(rank)]
    return n.emit("reshape", n.x(i), dims=dims)


def moved(n, i, zero, rank, axis, dtype):
    """Operand i less its zero, as numbers of a type that holds the differences."""
    x = n.as_type(n.x(i), dtype)
    return n.emit("sub", x, n.as_type(of_tensor(n, zero, rank, axis), dtype)) if n.has(zero) else x


def real(n, i, axis):
    """Operand i with its scale and zero behind it, as real numbers."""
    rank, dtype = len(n.shape(i)), n.dtype(i + 1)
    return n.emit("mul", moved(n, i, i + 2, rank, axis, dtype), of_tensor(n, i + 1, rank, axis))


def quantized(n, x, i, rank, axis, dtype):
    """x in multiples of the scale, operand i, from the zero behind it on. The cast takes the nearest byte."""
    steps = n.emit("round", n.emit("div", x, of_tensor(n, i, rank, axis)))
    if n.has(i + 1):
        steps = n.emit("add", steps, n.as_type(of_tensor(n, i + 1, rank, axis), n.dtype(i)))
    return n.as_type(steps, dtype)


def quantize(n):
    return quantized(n, n.x(0), 1, len(n.shape(0)), n.attribute("axis", 1), n.dtype_of_result(0))


def dequantize(n):
    return real(n, 0, n.attribute("axis", 1))


def dynamic(n):
    """The scale and the zero are those of the interval of x and 0."""
    x, zero = n.x(0), n.whole(0, "f32")
    low, high = (n.emit(pick, n.emit(reduce, x), zero) for reduce, pick in (("reduce_min", "minimum"), ("reduce_max", "maximum")))
    scale = n.emit("div", n.emit("sub", high, low), n.whole(255, "f32"))
    start = n.emit("round", n.emit("clip", n.emit("neg", n.emit("div", low, scale)), min=0, max=255))
    steps = n.emit("add", n.emit("round", n.emit("div", x, scale)), start)
    return [n.as_type(steps, "u8"), scale, n.as_type(start, "u8")]


def conv_of(n, x, w):
    window = Window(n, n.shape(w[0])[2:])
    return n.emit(f"conv{window.rank}d", x, w[1], stride=window.stride, padding=window.low + window.high, dilation=window.dilation,
                  groups=n.attribute("group", 1))


def conv_integer(n):
    x, w = moved(n, 0, 2, 4, 1, "f64"), moved(n, 1, 3, 4, 0, "f64")
    return n.as_type(conv_of(n, x, (1, w)), "i32")


def matmul_integer(n):
    a, b = moved(n, 0, 2, len(n.shape(0)), -2, "f64"), moved(n, 1, 3, len(n.shape(1)), -1, "f64")
    return n.as_type(n.emit("matmul", a, b), "i32")


def quantized_matmul(n):
    y = n.emit("matmul", real(n, 0, -2), real(n, 3, -1))
    return quantized(n, y, 6, len(n.shape(0)), -1, n.dtype_of_result(0))


def quantized_conv(n):
    y = conv_of(n, real(n, 0, 1), (3, real(n, 3, 0)))
    return quantized(n, y, 6, len(n.shape(0)), 1, n.dtype_of_result(0))


ROWS = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "ConvInteger": conv_integer,
    "MatMulInteger": matmul_integer,
    "QLinearConv": quantized_conv,
    "QLinearMatMul": quantized_matmul,
}
