"""Pointwise ops: a line each, with the draw of operands and options and the function of PyTorch."""
import torch
import torch.nn.functional as F

from .draws import binary, optioned, ternary, unary


def full(d):
    return [], {"dims": list(d.shape(0)), "value": d.int(-3, 3), "dtype": "f32"}


def mask(d):
    a, b = d.broadcasting(2)
    return [d.values(b), d.values(d.narrowed(b), dtype=torch.bool)], {"value": d.int(0 if d.dtype is torch.uint8 else -3, 3)}


def choose(d):
    c, a, b = d.broadcasting(3)
    return [d.values(c, dtype=torch.bool), d.values(a), d.values(b)], {}


def close(d):
    a, b = d.broadcasting(2)
    return [d.values(a), d.values(b)], {"rtol": d.choice([1e-5, 0.5]), "atol": d.choice([1e-8, 0.5]), "equal_nan": d.int(0, 1)}


def grid(d):
    """Scales are powers of 2, with which quotients are exact in every dtype."""
    bits, step = d.int(2, 8), 2.0 ** -d.int(0, 6)
    last = 2 ** bits - 1
    zero = d.int(0, last)
    low, high = (torch.tensor(n * step, dtype=d.dtype) for n in (-zero, last - zero))
    return [d.values(d.shape(0), -4, 4), low, high], {"bits": bits}


def rounded(x, low, high, bits):
    last = 2 ** bits - 1
    scale = (high - low).detach() / last
    return torch.fake_quantize_per_tensor_affine(x, scale.float(), (-low.detach() / scale).round().int(), 0, last)


def slices(d):
    shape = d.shape(1, empty=False)
    return [d.values(shape, -0.5, 0.5)], {"bits": d.int(2, 8), "axis": d.axis(len(shape))}


def rounded_slices(x, bits, axis):
    others = [i for i in range(x.dim()) if i != axis % x.dim()]
    largest = x.detach().abs().amax(others, keepdim=True) if others else x.detach().abs()
    scale = (largest / (2 ** (bits - 1) - 1)).clamp(min=torch.finfo(torch.float32).eps)
    return x + ((x.detach() / scale).round() * scale - x.detach())


ROWS = {
    "abs": (unary(), torch.abs),
    "acos": (unary(-0.99, 0.99), torch.acos),
    "acosh": (unary(1.05, 6), torch.acosh),
    "add": (binary(), torch.add),
    "addcdiv": (lambda d: (ternary(0.5, 3)(d)[0], {"value": d.choice([1, -2.5])}), lambda x, y, z, value: torch.addcdiv(x, y, z, value=value)),
    "addcmul": (lambda d: (ternary()(d)[0], {"value": d.choice([1, -2.5])}), lambda x, y, z, value: torch.addcmul(x, y, z, value=value)),
    "affine": (optioned(scale=(-2, 2), shift=(-2, 2)), lambda x, scale, shift: x * scale + shift),
    "and": (binary(), torch.logical_and),
    "asin": (unary(-0.99, 0.99), torch.asin),
    "asinh": (unary(), torch.asinh),
    "atan": (unary(), torch.atan),
    "atan2": (binary(), torch.atan2),
    "atanh": (unary(-0.95, 0.95), torch.atanh),
    "bitwise_and": (binary(), torch.bitwise_and),
    "bitwise_not": (unary(), torch.bitwise_not),
    "bitwise_or": (binary(), torch.bitwise_or),
    "bitwise_xor": (binary(), torch.bitwise_xor),
    "ceil": (unary(), torch.ceil),
    "celu": (optioned(alpha=(0.3, 2)), F.celu),
    "clamp": (ternary(), torch.clamp),
    "clip": (optioned(min=[-2, -1, 0, 1], max=[-1, 0, 1, 2]), lambda x, min, max: torch.clamp(x, min, max)),
    "copy": (unary(), torch.clone),
    "copysign": (binary(), torch.copysign),
    "cos": (unary(), torch.cos),
    "cosh": (unary(), torch.cosh),
    "deg2rad": (unary(-200, 200), torch.deg2rad),
    "detach": (unary(), lambda x: x.detach().clone()),
    "digamma": (unary(0.2, 6), torch.digamma),
    "div": (binary(0.3, 3), torch.div),
    "elu": (optioned(alpha=(0.3, 2)), F.elu),
    "eq": (binary(), torch.eq),
    "erf": (unary(), torch.erf),
    "erfc": (unary(), torch.erfc),
    "erfinv": (unary(-0.95, 0.95), torch.erfinv),
    "exp": (unary(), torch.exp),
    "exp2": (unary(), torch.exp2),
    "expm1": (unary(), torch.expm1),
    "fake_quantize": (grid, rounded),
    "fake_quantize_channels": (slices, rounded_slices),
    "floor": (unary(), torch.floor),
    "floor_divide": (binary(), lambda x, y: torch.floor_divide(x.detach(), y.detach())),
    "fmax": (binary(), torch.fmax),
    "fmin": (binary(), torch.fmin),
    "fmod": (binary(), torch.fmod),
    "frac": (unary(), torch.frac),
    "full": (full, lambda dims, value, dtype: torch.full(dims, value, dtype=torch.float32)),
    "ge": (binary(), torch.ge),
    "gelu": (optioned(approximate=["none", "tanh"]), lambda x, approximate: F.gelu(x, approximate=approximate)),
    "gt": (binary(), torch.gt),
    "hardshrink": (optioned(**{"lambda": (0.1, 2)}), lambda x, **o: F.hardshrink(x, o["lambda"])),
    "hardsigmoid": (unary(-7, 7), F.hardsigmoid),
    "hardswish": (unary(-7, 7), F.hardswish),
    "hardtanh": (optioned(min=(-2, 0), max=(0.5, 2)), lambda x, min, max: F.hardtanh(x, min, max)),
    "hypot": (binary(), torch.hypot),
    "is_close": (close, lambda x, y, rtol, atol, equal_nan: torch.isclose(x, y, rtol, atol, bool(equal_nan))),
    "is_finite": (unary(), torch.isfinite),
    "is_inf": (unary(), torch.isinf),
    "is_nan": (unary(), torch.isnan),
    "is_neg_inf": (unary(), torch.isneginf),
    "is_pos_inf": (unary(), torch.isposinf),
    "le": (binary(), torch.le),
    "leaky_relu": (optioned(slope=(-0.5, 0.5)), lambda x, slope: F.leaky_relu(x, slope)),
    "lerp": (ternary(), torch.lerp),
    "lgamma": (unary(0.2, 6), torch.lgamma),
    "log": (unary(0.05, 4), torch.log),
    "log10": (unary(0.05, 4), torch.log10),
    "log1p": (unary(-0.9, 4), torch.log1p),
    "log2": (unary(0.05, 4), torch.log2),
    "log_sigmoid": (unary(), F.logsigmoid),
    "logaddexp": (binary(), torch.logaddexp),
    "logaddexp2": (binary(), torch.logaddexp2),
    "logical_and": (binary(), torch.logical_and),
    "logical_not": (unary(), torch.logical_not),
    "logical_or": (binary(), torch.logical_or),
    "logical_xor": (binary(), torch.logical_xor),
    "logit": (lambda d: ([d.values(d.shape(0), 0.02, 0.98)], {"eps": d.choice([-1, 0.1])}),
              lambda x, eps: torch.logit(x, None if eps < 0 else eps)),
    "lt": (binary(), torch.lt),
    "masked_fill": (mask, lambda x, m, value: x.masked_fill(m, value)),
    "maximum": (binary(), torch.maximum),
    "minimum": (binary(), torch.minimum),
    "mish": (unary(), F.mish),
    "mul": (binary(), torch.mul),
    "nan_to_num": (optioned(nan=(-2, 2), posinf=(3, 9), neginf=(-9, -3)), torch.nan_to_num),
    "ne": (binary(), torch.ne),
    "neg": (unary(), torch.neg),
    "not": (unary(), torch.logical_not),
    "or": (binary(), torch.logical_or),
    "pow": (binary(first=(0.1, 3)), torch.pow),
    "prelu": (binary(), lambda x, slope: torch.where(x > 0, x, slope * x)),
    "quotient": (binary(), lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    "rad2deg": (unary(), torch.rad2deg),
    "reciprocal": (unary(0.2, 3), torch.reciprocal),
    "relu": (unary(), F.relu),
    "relu6": (unary(-7, 7), F.relu6),
    "remainder": (binary(), torch.remainder),
    "round": (unary(-6, 6), torch.round),
    "rsqrt": (unary(0.05, 4), torch.rsqrt),
    "selu": (unary(), F.selu),
    "shift_left": (binary(0, 20), torch.bitwise_left_shift),
    "shift_right": (binary(0, 20, first=(-1000, 1000)), torch.bitwise_right_shift),
    "sigmoid": (unary(), torch.sigmoid),
    "sign": (unary(), lambda x: torch.where(x != x, x, torch.sign(x))),
    "sign_bit": (unary(), torch.signbit),
    "silu": (unary(), F.silu),
    "sin": (unary(), torch.sin),
    "sinc": (lambda d: ([d.away(d.shape(0))], {}), torch.sinc),
    "sinh": (unary(), torch.sinh),
    "softplus": (optioned(beta=(0.5, 2), threshold=(1, 20)), F.softplus),
    "softshrink": (optioned(**{"lambda": (0.1, 2)}), lambda x, **o: F.softshrink(x, o["lambda"])),
    "softsign": (unary(), F.softsign),
    "sqrt": (unary(0.05, 4), torch.sqrt),
    "square": (unary(), torch.square),
    "sub": (binary(), torch.sub),
    "tan": (unary(-1.3, 1.3), torch.tan),
    "tanh": (unary(), torch.tanh),
    "tanhshrink": (unary(), F.tanhshrink),
    "threshold": (optioned(threshold=(-2, 2), value=(-9, 9)), F.threshold),
    "trigamma": (unary(0.2, 6), lambda x: torch.polygamma(1, x)),
    "trunc": (unary(), torch.trunc),
    "where": (choose, torch.where),
    "xlogy": (binary(0.1, 3), torch.xlogy),
}
