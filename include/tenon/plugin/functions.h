/* tenon/plugin/functions.h: the pointwise ops that are functions of C99's library, one a row. `function` is
 * the C function for f64; the one for f32 has an f behind its name. CUDA C has both. A backend makes its code
 * from the rows.
 *
 *     #define CASE(op, function, ...) if (strcmp(name, #op) == 0) return function(x);
 *     TN_UNARY_FUNCTIONS(CASE)
 *
 * X(op, function, work, doc, domain, gradient, aliases): work is in additions of f32, for costs; domain,
 * gradient and aliases are texts of tn_op (op.h), or NULL. Results of functions in TN_ROUNDING_FUNCTIONS and
 * TN_SIGN_FUNCTIONS are exact (TN_OP_EXACT). A minor version appends rows. */
#ifndef TENON_PLUGIN_FUNCTIONS_H
#define TENON_PLUGIN_FUNCTIONS_H

#include "tenon/base.h"

/* clang-format off */
/* of x, with the result y */
#define TN_UNARY_FUNCTIONS(X)                                                                                \
  X(sin, sin, 40, "sine of radians", NULL, "dx = dy * cos(x)", NULL)                                         \
  X(cos, cos, 40, "cosine of radians", NULL, "dx = -(dy * sin(x))", NULL)                                    \
  X(tan, tan, 60, "tangent of radians", NULL, "dx = dy * (1 + y * y)", NULL)                                 \
  X(asin, asin, 40, "arc sine, from -pi/2 to pi/2", "x [-1, 1]",                                             \
    "dx = dy * rsqrt((1 - x) * (1 + x))", "arcsin")                                                          \
  X(acos, acos, 40, "arc cosine, from 0 to pi", "x [-1, 1]",                                                 \
    "dx = -(dy * rsqrt((1 - x) * (1 + x)))", "arccos")                                                       \
  X(atan, atan, 40, "arc tangent, from -pi/2 to pi/2", NULL, "dx = dy / (1 + x * x)", "arctan")              \
  X(sinh, sinh, 40, "hyperbolic sine", NULL, "dx = dy * cosh(x)", NULL)                                      \
  X(cosh, cosh, 40, "hyperbolic cosine", NULL, "dx = dy * sinh(x)", NULL)                                    \
  X(asinh, asinh, 60, "inverse of sinh", NULL, "dx = dy * rsqrt(1 + x * x)", "arcsinh")                      \
  X(acosh, acosh, 60, "inverse of cosh", "x >= 1", "dx = dy * rsqrt((x - 1) * (x + 1))", "arccosh")          \
  X(atanh, atanh, 60, "inverse of tanh", "x [-1, 1]", "dx = dy / ((1 - x) * (1 + x))", "arctanh")            \
  X(exp2, exp2, 16, "2 to the power x", NULL, "dx = dy * (0.69314718055994530942 * y)", NULL)                \
  X(expm1, expm1, 24, "exp(x) - 1, accurate near 0", NULL, "dx = dy * (1 + y)", NULL)                        \
  X(log2, log2, 24, "logarithm to base 2", "x >= 0", "dx = dy / (0.69314718055994530942 * x)", NULL)         \
  X(log10, log10, 24, "logarithm to base 10", "x >= 0", "dx = dy / (2.30258509299404568402 * x)", NULL)      \
  X(log1p, log1p, 24, "log(1 + x), accurate near 0", "x >= -1", "dx = dy / (1 + x)", NULL)                   \
  X(erfc, erfc, 60, "1 - erf(x), accurate for large x", NULL,                                                \
    "dx = dy * (-1.12837916709551257390 * exp(-(x * x)))", NULL)                                             \
  X(lgamma, lgamma, 120, "logarithm of the gamma function's absolute value", "x > 0",                        \
    "dx = dy * digamma(x)", NULL)

/* of x, with a whole number as the result */
#define TN_ROUNDING_FUNCTIONS(X)                                                                             \
  X(ceil, ceil, 1, "smallest integer not below x", NULL, NULL, NULL)                                         \
  X(trunc, trunc, 1, "x without its fraction", NULL, NULL, "fix")                                            \
  X(round, rint, 1, "nearest integer, ties to even", NULL, NULL, NULL)

/* of x and y, with the result z */
#define TN_BINARY_FUNCTIONS(X)                                                                               \
  X(pow, pow, 120, "x to the power y", "x > 0",                                                              \
    "dx = 0 if y == 0 else dz * (y * x^(y - 1)); dy = 0 if x == 0 and y >= 0 else dz * (z * log(x))", NULL)  \
  X(atan2, atan2, 60, "the angle of the point (y, x), from -pi to pi", NULL,                                 \
    "s = x * x + y * y; part = 0 if s == 0 else dz / s; dx = part * y; dy = -(part * x)", "arctan2")         \
  X(hypot, hypot, 40, "sqrt(x^2 + y^2) without overflow", NULL,                                              \
    "part = dz / z; dx = part * x; dy = part * y", NULL)

#define TN_SIGN_FUNCTIONS(X)                                                                                 \
  X(copysign, copysign, 2, "x with the sign of y", NULL, "dx = 0 if x == 0 else dz * (z / x)", NULL)
/* clang-format on */

/* All rows of one operand, and of two. */
#define TN_FUNCTIONS_OF_ONE(X) TN_UNARY_FUNCTIONS(X) TN_ROUNDING_FUNCTIONS(X)
#define TN_FUNCTIONS_OF_TWO(X) TN_BINARY_FUNCTIONS(X) TN_SIGN_FUNCTIONS(X)

#endif
