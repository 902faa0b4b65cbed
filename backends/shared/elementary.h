/* backends/shared/elementary.h: elementary functions in binary32 without branches or calls, once for numbers
 * and for vectors of them. Infinities, NaN, signed zeros and subnormals give the results of libm. The largest
 * errors over all arguments, against binary64, in units in the last place:
 *
 *     exp 1.0   log 0.9   tanh 1.4   erf 1.3   sigmoid 2.4
 *
 * and no more where products and sums fuse. TN_DEFINE_ELEMENTARY(T, U, I, M, P) defines P_exp, P_log, P_tanh,
 * P_sigmoid and P_erf, static and inline, for T: float, or a vector of floats. U and I are unsigned and
 * signed integers of as many lanes, M the results of comparisons. It needs P_bits, P_float: U of T and T of U
 * by their bits; P_of_int: T of I by its value; P_splat; P_abs, P_neg, P_copysign; P_clamp(x, low, high),
 * where NaN stays NaN; P_eq, P_ne, P_lt, P_ge; P_select(M, T, T). */
#pragma once

#include <math.h>

#include "backends/shared/polynomials.h"

/* P_exp_small: e^r for |r| <= ln 2 / 2.
 * P_exp: e^x = 2^n e^r. Two factors apply the power of two, so that results range from the subnormals to
 * infinity. Integer arithmetic is unsigned, so that a NaN does not cause undefined behaviour. P_exp_double:
 * e^2x for 0 <= x <= 10, where one factor suffices. P_log: ln x = e ln 2 + ln(1 + f) with sqrt(1/2) <= 1 + f
 * < sqrt(2). Subnormals are scaled up first. P_tanh: an odd polynomial near zero; 1 - 2 / (e^2x + 1)
 * elsewhere, which is 1 from 10 on. P_erf: an odd polynomial up to 1, then 1 - e^Q(|x|) with Q fitted to ln
 * erfc; 1 from 4 on. */
#define TN_DEFINE_ELEMENTARY(T, U, I, M, P)                                                                  \
  TN_DEFINE_POLYNOMIALS(T, P)                                                                                \
  static inline T P##_exp_small(T r) { return (P##_exp_part(r) * (r * r) + r) + 1.0f; }                      \
  static inline T P##_exp(T x) {                                                                             \
    x = P##_clamp(x, -105.0f, 89.0f);                                                                        \
    T t = x * TN_LOG2_E + TN_NEAREST;                                                                        \
    U n = P##_bits(t) - TN_NEAREST_BITS, half = (U)((I)n >> 1);                                              \
    T f = t - TN_NEAREST;                                                                                    \
    T y = P##_exp_small((x - f * TN_LN2_HIGH) + f * -TN_LN2_LOW);                                            \
    return y * P##_float((half + 127u) << 23) * P##_float((n - half + 127u) << 23);                          \
  }                                                                                                          \
  static inline T P##_exp_double(T x) {                                                                      \
    T t = x * (2 * TN_LOG2_E) + TN_NEAREST, f = t - TN_NEAREST;                                              \
    T r = ((x + x) - f * TN_LN2_HIGH) + f * -TN_LN2_LOW;                                                     \
    return P##_exp_small(r) * P##_float((P##_bits(t) - TN_NEAREST_BITS + 127u) << 23);                       \
  }                                                                                                          \
  static inline T P##_log(T x) {                                                                             \
    M small = P##_lt(x, P##_splat(0x1p-126f));                                                               \
    U u = P##_bits(P##_select(small, x * 0x1p23f, x)) - 0x3f3504f3u; /* of sqrt(1/2) */                      \
    T e = P##_of_int((I)u >> 23) - P##_select(small, P##_splat(23.0f), P##_splat(0.0f));                     \
    T f = P##_float((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f, q = f * f;                                      \
    T y = (f * q) * P##_log_part(f) + e * -0x1.bd0106p-13f;                                                  \
    y = (y - 0.5f * q) + f + e * 0x1.63p-1f;                                                                 \
    y = P##_select(P##_eq(x, P##_splat(INFINITY)), x, y);                                                    \
    y = P##_select(P##_eq(x, P##_splat(0.0f)), P##_splat(-INFINITY), y);                                     \
    return P##_select(P##_ge(x, P##_splat(0.0f)), y, P##_splat(NAN));                                        \
  }                                                                                                          \
  static inline T P##_tanh(T x) {                                                                            \
    T a = P##_abs(x), z = x * x, near = x + x * (z * P##_tanh_part(z));                                      \
    T far = 1.0f - 2.0f / (P##_exp_double(P##_clamp(a, 0.0f, 10.0f)) + 1.0f);                                \
    return P##_copysign(P##_select(P##_lt(a, P##_splat(0.625f)), near, far), x);                             \
  }                                                                                                          \
  static inline T P##_sigmoid(T x) {                                                                         \
    T e = P##_exp(P##_neg(P##_abs(x)));                                                                      \
    return P##_select(P##_ge(x, P##_splat(0.0f)), P##_splat(1.0f), e) / (1.0f + e);                          \
  }                                                                                                          \
  static inline T P##_erf(T x) {                                                                             \
    T a = P##_clamp(P##_abs(x), 0.0f, 4.0f), z = x * x, near = x + x * P##_erf_part(z);                      \
    T far = P##_copysign(1.0f - P##_exp(P##_log_erfc(a)), x);                                                \
    T y = P##_select(P##_lt(P##_abs(x), P##_splat(1.0f)), near, far);                                        \
    return P##_select(P##_ne(x, x), x, y);                                                                   \
  }
