/* core/ops/elementwise.c: functions of one, two and three tensors, element by element, as composite pointwise
 * ops. Results for NaN and infinities, and gradients at kinks, are PyTorch's. */
#include "core/ops/rows.h"

ROW(detach, "x, through which no gradient goes", UNARY BOTH, .flags = TN_OP_NONDIFF, .formula = "y = x",
    .aliases = "stop_gradient");

/* ---- powers, logarithms ---- */

ROW(square, "x^2", UNARY BOTH, .formula = "y = x * x");
ROW(logaddexp, "log(exp(x) + exp(y))", BINARY FLOATS,
    .formula = "m = maximum(x, y); z = m if x == y and abs(x) == inf else m + log1p(exp(-abs(x - y)))",
    .gradient = "dx = dz * sigmoid(x - y); dy = dz * sigmoid(y - x)");
ROW(logaddexp2, "log2(2^x + 2^y)", BINARY FLOATS,
    .formula = "m = maximum(x, y); w = 1.44269504088896341 * log1p(exp2(-abs(x - y))); "
               "z = m if x == y and abs(x) == inf else m + w",
    .gradient = "s = 0.69314718055994530942; dx = dz * sigmoid(s * (x - y)); dy = dz * sigmoid(s * (y - x))");
ROW(xlogy, "x log(y); 0 where x is 0", BINARY FLOATS, .domain = "y > 0",
    .formula = "z = y if y != y else 0 if x == 0 else x * log(y)",
    .gradient = "dx = 0 if x == 0 and y <= 0 else dz * log(y); dy = dz * (x / y)");
ROW_WITH(logit, "log(x / (1 - x)), inverse of the sigmoid",
         NUMBERS(NUMBER(0, "eps", "-1", NULL, "x is taken between eps and 1 - eps; negative: as it is")),
         UNARY FLOATS, .domain = "x (0, 1)",
         .formula =
             "p = x if eps < 0 else eps if x < eps else 1 - eps if x > 1 - eps else x; y = log(p / (1 - p))");

/* ---- angles ---- */

ROW(deg2rad, "degrees as radians", UNARY FLOATS, .formula = "y = pi / 180 * x");
ROW(rad2deg, "radians as degrees", UNARY FLOATS, .formula = "y = 180 / pi * x");
ROW(sinc, "sin(pi x) / (pi x); 1 where x is 0", UNARY FLOATS,
    .formula = "y = 1 if x == 0 else sin(pi * x) / (pi * x)",
    .gradient = "dx = 0 if x == 0 else dy * ((cos(pi * x) - y) / x)");

/* ---- special functions ---- */

/* Rational approximations of M. Giles, "Approximating the erfinv function", 2010, in the form that PyTorch
 * has, and two steps of Newton's method, on erfc where erf is near 1. */
ROW(erfinv, "inverse of the error function", UNARY FLOATS, .domain = "x (-1, 1)",
    .formula = "a = abs(x); s = a * a; q = 1 - a; u = sqrt(-log(0.5 * q)); "
               "n = ((-0.140543331 * s + 0.914624893) * s - 1.645349621) * s + 0.886226899; "
               "d = (((0.012229801 * s - 0.329097515) * s + 1.442710462) * s - 2.118377725) * s + 1; "
               "f = ((1.641345311 * u + 3.429567803) * u - 1.624906493) * u - 1.970840454; "
               "g = (1.637067800 * u + 3.543889200) * u + 1; "
               "near = a <= 0.7; "
               "w = a * n / d if near else f / g; "
               "v = w - (erf(w) - a if near else q - erfc(w)) / (1.12837916709551257390 * exp(-(w * w))); "
               "t = v - (erf(v) - a if near else q - erfc(v)) / (1.12837916709551257390 * exp(-(v * v))); "
               "y = copysign(inf if a == 1 else t, x)",
    .gradient = "dx = dy * (0.88622692545275801365 * exp(y * y))",
    .notes = "M. Giles, \"Approximating the erfinv function\", 2010.");
/* By the recurrence psi(x) = psi(x + 1) - 1 / x up to x + 10, and there by the asymptotic series of
 * Abramowitz and Stegun, 6.3.18; below 0 by reflection. */
ROW(digamma, "derivative of lgamma", UNARY FLOATS, .domain = "x > 0",
    .formula = "p = 1 - x if x < 0 else x; "
               "r = 1 / p + 1 / (p + 1) + 1 / (p + 2) + 1 / (p + 3) + 1 / (p + 4) + 1 / (p + 5) + 1 / (p + 6)"
               "  + 1 / (p + 7) + 1 / (p + 8) + 1 / (p + 9); "
               "t = p + 10; w = 1 / (t * t); "
               "s = w * (0.083333333333333333 - w * (0.0083333333333333333 - w * (0.0039682539682539683"
               "  - w * (0.0041666666666666667 - w * (0.0075757575757575758 - w * (0.021092796092796093"
               "  - w * 0.083333333333333333)))))); "
               "psi = log(t) - 0.5 / t - s - r; "
               "y = copysign(inf, -x) if x == 0 else nan if x < 0 and x == trunc(x) else psi - pi / tan(pi * "
               "(x - trunc(x))) if x < 0 else psi",
    .gradient = "dx = dy * trigamma(x)", .aliases = "psi");
ROW(trigamma, "derivative of digamma", UNARY FLOATS, .domain = "x > 0",
    .formula = "p = 1 - x if x < 0.5 else x; "
               "r = 1 / p^2 + 1 / (p + 1)^2 + 1 / (p + 2)^2 + 1 / (p + 3)^2 + 1 / (p + 4)^2 + 1 / (p + 5)^2"
               "  + 1 / (p + 6)^2 + 1 / (p + 7)^2 + 1 / (p + 8)^2 + 1 / (p + 9)^2; "
               "t = p + 10; w = 1 / (t * t); "
               "s = 0.16666666666666667 - w * (0.033333333333333333 - w * (0.023809523809523810"
               "  - w * (0.033333333333333333 - w * (0.075757575757575758 - w * (0.25311355311355311"
               "  - w * 1.1666666666666667))))); "
               "tail = 1 / t + 0.5 * w + w / t * s + r; "
               "c = pi / sin(pi * (x - trunc(x) if x < 0.5 else 0.5)); "
               "y = c * c - tail if x < 0.5 else tail");

/* ---- parts of numbers ---- */

ROW(frac, "x without its whole part", UNARY FLOATS, .formula = "y = x - trunc(x)", .gradient = "dx = dy");
ROW(floor_divide, "x / y rounded down; 0 for integers where y is 0", BINARY BOTH, .flags = TN_OP_NONDIFF,
    .formula = "m = fmod(x, y); off = m != 0 and (m < 0) != (y < 0); "
               "d = (x - m) / y - (1 if off else 0) if not whole else 0; "
               "q = quotient(x, y) if whole else 0; "
               "z = (q - 1 if off else q) if whole else x / y if y == 0 else round(d)");
ROW(remainder, "the rest of x / y rounded down, of the sign of y; 0 for integers where y is 0", BINARY BOTH,
    .formula = "m = fmod(x, y); z = m + y if m != 0 and (m < 0) != (y < 0) else m",
    .gradient = "dx = dz; dy = -(dz * floor(x / y))", .aliases = "mod");
ROW(sign_bit, "whether x has the sign bit, as -0 does", TEST FLOATS, .formula = "y = copysign(1, x) < 0");

/* ---- tests, bits ---- */

static tn_status bitwise_not_decompose(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0);
  (void)attributes;
  double ones = tn_val_type(b, x)->dtype == TN_U8 ? UINT8_MAX : -1;
  tn_build_yield(b, 0, tn_bitwise_xor(b, x, tn_ops_number(b, x, ones)));
  return TN_OK;
}

ROW(is_nan, "whether x is NaN", TEST FLOATS, .formula = "y = x != x");
ROW(is_inf, "whether x is infinite", TEST FLOATS, .formula = "y = abs(x) == inf");
ROW(is_pos_inf, "whether x is infinity", TEST FLOATS, .formula = "y = x == inf");
ROW(is_neg_inf, "whether x is -infinity", TEST FLOATS, .formula = "y = x == -inf");
ROW_WITH(is_close, "whether |x - y| <= atol + rtol |y|",
         NUMBERS(NUMBER(0, "rtol", "1e-5", ">= 0", "of the size of y"),
                 NUMBER(1, "atol", "1e-8", ">= 0", "absolute"),
                 NUMBER(2, "equal_nan", "0", NULL, "1: two NaN are close")),
         COMPARE FLOATS,
         .formula =
             "d = abs(x - y); "
             "z = x == y or d <= atol + rtol * abs(y) and d < inf or equal_nan != 0 and x != x and y != y");
ROW(logical_and, "both differ from 0", COMPARE, .formula = "z = x != 0 and y != 0");
ROW(logical_or, "either differs from 0", COMPARE, .formula = "z = x != 0 or y != 0");
ROW(logical_xor, "one of them differs from 0", COMPARE, .formula = "z = (x != 0) != (y != 0)");
ROW(logical_not, "x is 0", "(x:T) -> (y:bool)", .formula = "y = x == 0");
ROW(bitwise_not, "the other bits", UNARY "; T in bool u8 i8 i32 i64", .decompose = bitwise_not_decompose);

/* ---- limits, choices, mixtures ---- */

ROW_WITH(clip, "x between min and max; max where min is above it",
         NUMBERS(NUMBER(0, "min", "-inf", NULL, "lower limit"), NUMBER(1, "max", "inf", NULL, "upper limit")),
         UNARY BOTH, .formula = "v = min if x <= min else x; y = max if v >= max else v");
/* At a limit it and x get half of the gradient each; x gets all of it where both limits are equal. */
ROW(clamp, "x between low and high; high where low is above it", "(x:T, low:T, high:T) -> (y:T)" BOTH,
    .formula = "y = minimum(maximum(x, low), high)",
    .gradient =
        "above = low > high or x > high; below = x < low and not above; "
        "tie = low < high and (x == low or x == high); part = 0.5 * dy if tie else dy; "
        "dx = 0 if above or below else part; dlow = dy if below else part if tie and x == low else 0; "
        "dhigh = dy if above else part if tie and x == high else 0");
ROW(fmax, "the larger one; the other one where one is NaN", BINARY BOTH,
    .formula = "z = x if x >= y or y != y else y",
    .gradient = "part = 0.5 * dz if x == y else dz; "
                "dx = part if x >= y or y != y else 0; dy = 0 if x > y or y != y else part");
ROW(fmin, "the smaller one; the other one where one is NaN", BINARY BOTH,
    .formula = "z = x if x <= y or y != y else y",
    .gradient = "part = 0.5 * dz if x == y else dz; "
                "dx = part if x <= y or y != y else 0; dy = 0 if x < y or y != y else part");
ROW_WITH(nan_to_num, "x, with numbers in the places of NaN and infinities",
         NUMBERS(NUMBER(0, "nan", "0", NULL, "for NaN"),
                 NUMBER(1, "posinf", "inf", NULL, "for infinity; inf: the greatest finite number"),
                 NUMBER(2, "neginf", "-inf", NULL, "for -infinity; -inf: the least finite number")),
         UNARY FLOATS,
         .formula =
             "high = largest if posinf == inf else posinf; low = -largest if neginf == -inf else neginf; "
             "y = nan if x != x else high if x == inf else low if x == -inf else x");
ROW_WITH(masked_fill, "value where mask holds, else x",
         NUMBERS(NUMBER(0, "value", NULL, NULL, "in the place of x")), "(x:T, mask:bool) -> (y:T)" BOTH,
         .formula = "y = value if mask else x");
ROW(lerp, "x + weight (y - x)", "(x:T, y:T, weight:T) -> (z:T)" FLOATS,
    .formula = "z = x + weight * (y - x) if abs(weight) < 0.5 else y - (y - x) * (1 - weight)",
    .gradient = "dx = dz * (1 - weight); dy = dz * weight; dweight = dz * (y - x)");
ROW_WITH(addcmul, "x + value y z", NUMBERS(NUMBER(0, "value", "1", NULL, "factor")),
         "(x:T, y:T, z:T) -> (w:T)" BOTH, .formula = "w = x + value * (y * z)");
ROW_WITH(addcdiv, "x + value y / z", NUMBERS(NUMBER(0, "value", "1", NULL, "factor")),
         "(x:T, y:T, z:T) -> (w:T)" FLOATS, .formula = "w = x + value * (y / z)");
