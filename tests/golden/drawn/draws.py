"""Draws operands and options of ops: shapes with empty and single dimensions, operands that broadcast, numbers with
ties and numbers that are not finite. A draw of the tables in this folder is a function of a Draw that returns
operands, a list or a dictionary by name, and options.
"""
import math
import random
import zlib

import torch

FLOATS = (torch.float32, torch.float64)
BYTES = {torch.bool: (0, 1), torch.uint8: (0, 255), torch.int8: (-128, 127)}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan, 40.0, -40.0)


class Draw:
    """The draws of one case, which depend on its name alone."""

    def __init__(self, name, dtype, special):
        seed = zlib.crc32(name.encode())
        self.r, self.dtype, self.special = random.Random(seed), dtype, special
        torch.manual_seed(seed)
        self.ties = self.r.random() < 0.3
        self.large = self.r.random() < 0.15
        self.wraps = False  # bytes are all of their type

    # ---- options ----

    def int(self, low, high):
        """A whole number, bounds included."""
        return self.r.randint(low, high)

    def choice(self, of):
        return self.r.choice(of)

    def flag(self):
        return self.r.random() < 0.5

    def some(self, n, low, high):
        return [self.int(low, high) for _ in range(n)]

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank):
        """Some dimensions, in any order, from either end; none means all."""
        chosen = self.r.sample(range(rank), self.int(0, rank))
        return [a - rank if self.flag() else a for a in chosen]

    # ---- shapes ----

    def size(self, empty=True):
        u = self.r.random()
        if u < 0.04 and empty:
            return 0
        return 1 if u < 0.25 else self.int(2, 6)

    def shape(self, low=1, high=4, empty=True):
        dims = [self.size(empty) for _ in range(self.int(low, high))]
        if self.large and dims:
            dims = [min(n, 2) for n in dims]
            dims[self.int(0, len(dims) - 1)] = self.int(15, 70)
        return tuple(dims)

    def narrowed(self, shape):
        """A shape that broadcasts to `shape`: some dimensions are 1, some in front are left out."""
        dims = [1 if self.r.random() < 0.3 else n for n in shape]
        return tuple(dims[self.int(0, len(dims)) if self.flag() else 0:])

    def broadcasting(self, n, low=0):
        """Shapes of n operands that broadcast to one shape."""
        shape = self.shape(low)
        if self.r.random() < 0.25:
            return [shape] * n
        shapes = [self.narrowed(shape) for _ in range(n)]
        shapes[self.int(0, n - 1)] = shape
        return shapes

    # ---- elements ----

    def values(self, shape=(), low=-3.0, high=3.0, dtype=None):
        """Elements of the dtype of the case: of an interval, multiples of 1/2 with ties, or special numbers."""
        dtype = dtype or self.dtype
        if dtype is torch.bool:
            return torch.rand(shape) < 0.5
        if self.wraps and dtype in BYTES and (low, high) == (-3.0, 3.0):
            low, high = BYTES[dtype]
        if dtype not in FLOATS:
            low = max(0, math.ceil(low)) if dtype is torch.uint8 else math.ceil(low)
            return torch.randint(low, math.floor(high) + 1, shape).to(dtype)
        if self.special and (low, high) == (-3.0, 3.0):
            return torch.tensor(SPECIAL, dtype=dtype)[torch.randint(0, len(SPECIAL), shape)]
        x = torch.rand(shape, dtype=torch.float64) * (high - low) + low
        if self.ties and high - low > 1:
            x = (x * 2).round().clamp(math.ceil(low * 2), math.floor(high * 2)) / 2
        return x.to(dtype)

    def away(self, shape):
        """Elements of either sign at a distance from 0."""
        x = self.values(shape, 0.3, 3)
        return torch.where(torch.rand(shape) < 0.5, -x, x)

    def distinct(self, shape):
        """Elements without ties."""
        n = math.prod(shape)
        if n > 128 and self.dtype in BYTES:
            raise ValueError("too many elements for numbers of a byte")
        return ((torch.randperm(n) - n // 2).reshape(shape) * (1 if self.dtype not in FLOATS else 0.5)).to(self.dtype)

    def indices(self, n, shape):
        """Indices below n."""
        return torch.randint(0, max(n, 1), shape).to(self.choice((torch.int32, torch.int64)))


# ---- draws that several ops have ----


def unary(low=-3.0, high=3.0, **options):
    return lambda d: ([d.values(d.shape(0), low, high)], dict(options))


def binary(low=-3.0, high=3.0, first=(-3.0, 3.0)):
    """Operands that broadcast; the interval is that of the second."""
    def draw(d):
        a, b = d.broadcasting(2)
        return [d.values(a, *first), d.values(b, low, high)], {}
    return draw


def ternary(low=-3.0, high=3.0):
    def draw(d):
        a, b, c = d.broadcasting(3)
        return [d.values(a), d.values(b), d.values(c, low, high)], {}
    return draw


def optioned(low=-3.0, high=3.0, **ranges):
    """Options drawn from intervals, or from lists."""
    def draw(d):
        given = {k: d.choice(v) if isinstance(v, list) else round(d.r.uniform(*v), 3) for k, v in ranges.items()}
        return [d.values(d.shape(0), low, high)], given
    return draw


def reduced(low=-3.0, high=3.0, keep=True, **options):
    def draw(d):
        shape = d.shape(0)
        given = {"axes": d.axes(len(shape)), **({"keep": d.flag()} if keep else {})}
        return [d.values(shape, low, high)], {**given, **{k: d.choice(v) for k, v in options.items()}}
    return draw


def along(distinct=False, rank=1, **options):
    """An axis, and options drawn from lists."""
    def draw(d):
        shape = d.shape(rank)
        x = d.distinct(shape) if distinct else d.values(shape)
        return [x], {"axis": d.axis(len(shape)), **{k: d.choice(v) for k, v in options.items()}}
    return draw


def short(drawing):
    """A draw without long dimensions, along which products grow beyond the digits of f32."""
    def draw(d):
        d.large = False
        return drawing(d)
    return draw


def coarse(drawing):
    """A draw of multiples of 1/2: the distance of close numbers from their mean has no digits in f32."""
    def draw(d):
        d.ties = True
        return drawing(d)
    return draw


def moved(low=1, high=4, empty=True, **options):
    """One operand, and options that are functions of the draw and the shape."""
    def draw(d):
        shape = d.shape(low, high, empty)
        return [d.values(shape)], {k: v(d, shape) if callable(v) else v for k, v in options.items()}
    return draw


# ---- arguments of PyTorch's functions ----


def summed(x):
    """Elements in the type of their sums."""
    return x.long() if x.dtype in BYTES else x


def over(function):
    """A reduction of PyTorch, which has no dimensions where Tenon has all."""
    return lambda x, axes, keep=False: function(x, dim=tuple(axes) or tuple(range(x.dim())), keepdim=keep)


def all_of(x, axes):
    return tuple(axes) or tuple(range(x.dim()))
