/* backends/onednn/simd/vector_math.h: elementary functions of vectors, in binary32. The largest errors
 * over all arguments, against binary64, in units in the last place: exp 1.0, log 0.9, tanh 1.4, erf 1.3,
 * sigmoid 2.4, sine and cosine of a full turn 1.6, and no more where products and sums fuse. Infinities, NaN
 * and subnormal numbers give the results of libm. */
#ifndef TN_BACKENDS_ONEDNN_SIMD_VECTOR_MATH_H
#define TN_BACKENDS_ONEDNN_SIMD_VECTOR_MATH_H

#include "backends/onednn/simd/vector.h"
#include "backends/shared/polynomials.h"

TN_DEFINE_POLYNOMIALS(vf, v)

/* e^x for |x| <= ln 2 / 2. */
static inline vf v_exp_small(vf r) { return (v_exp_part(r) * (r * r) + r) + 1.0f; }

/* e^x = 2^n e^r with |r| <= ln 2 / 2. The power of two is applied in two halves, so that results reach from
 * the subnormals to infinity. */
static inline vf v_exp(vf x) {
  x = v_clamp(x, -105.0f, 89.0f);
  vf t = x * TN_LOG2_E + TN_NEAREST;
  vu n = (vu)t - TN_NEAREST_BITS;
  vf f = t - TN_NEAREST;
  vf r = (x - f * TN_LN2_HIGH) + f * -TN_LN2_LOW;
  vf y = v_exp_small(r);
  vu half = (vu)((vi)n >> 1);
  return y * (vf)((half + 127u) << 23) * (vf)((n - half + 127u) << 23);
}

/* e^2x for 0 <= x <= 10, where one power of two suffices. */
static inline vf v_exp_double(vf x) {
  vf t = x * (2 * TN_LOG2_E) + TN_NEAREST, f = t - TN_NEAREST;
  vf r = ((x + x) - f * TN_LN2_HIGH) + f * -TN_LN2_LOW;
  return v_exp_small(r) * (vf)(((vu)t - TN_NEAREST_BITS + 127u) << 23);
}

/* ln x = e ln 2 + ln m with sqrt(1/2) <= m < sqrt(2). Subnormals are scaled up first. */
static inline vf v_log(vf x) {
  vm small = v_lt(x, v_splat(0x1p-126f));
  vu u = (vu)v_select(small, x * 0x1p23f, x) - 0x3f3504f3u; /* of sqrt(1/2) */
  vf e = __builtin_convertvector((vi)u >> 23, vf) - v_select(small, v_splat(23.0f), v_splat(0.0f));
  vf f = (vf)((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  vf q = f * f;
  vf y = (f * q) * v_log_part(f) + e * -0x1.bd0106p-13f;
  y = (y - 0.5f * q) + f + e * 0x1.63p-1f;
  y = v_select(v_eq(x, v_splat(INFINITY)), x, y);
  y = v_select(v_eq(x, v_splat(0.0f)), v_splat(-INFINITY), y);
  return v_select(v_ge(x, v_splat(0.0f)), y, v_splat(NAN));
}

/* An odd polynomial near zero; 1 - 2 / (e^2x + 1) elsewhere, which is 1 from 10 on. */
static inline vf v_tanh(vf x) {
  vf a = v_abs(x), z = x * x;
  vf near = x + x * (z * v_tanh_part(z));
  vf far = 1.0f - 2.0f / (v_exp_double(v_clamp(a, 0.0f, 10.0f)) + 1.0f);
  return v_copysign(v_select(v_lt(a, v_splat(0.625f)), near, far), x);
}

static inline vf v_sigmoid(vf x) {
  vf e = v_exp(v_neg(v_abs(x)));
  return v_select(v_ge(x, v_splat(0.0f)), v_splat(1.0f), e) / (1.0f + e);
}

/* An odd polynomial up to 1, then 1 - e^Q(|x|) with Q fitted to ln erfc; 1 from 4 on. */
static inline vf v_erf(vf x) {
  vf a = v_clamp(v_abs(x), 0.0f, 4.0f), z = x * x;
  vf near = x + x * v_erf_part(z);
  vf far = v_copysign(1.0f - v_exp(v_log_erfc(a)), x);
  vf y = v_select(v_lt(v_abs(x), v_splat(1.0f)), near, far);
  return v_select(v_ne(x, x), x, y);
}

/* sine and cosine of 2 pi u for 0 <= u <= 1. The difference of u and the nearest quarter is exact. */
static inline void v_sine_cosine(vf u, vf *sine, vf *cosine) {
  vf t = u * 4.0f + TN_NEAREST;
  vu quarter = (vu)t;
  vf r = u - (t - TN_NEAREST) * 0.25f, z = r * r;
  vf s = v_sine_part(r, z), c = v_cosine_part(z);
  vu odd = 0u - (quarter & 1u);
  vu swap_s = (odd & (vu)c) | (~odd & (vu)s), swap_c = (odd & (vu)s) | (~odd & (vu)c);
  *sine = (vf)(swap_s ^ (quarter & 2u) << 30);
  *cosine = (vf)(swap_c ^ ((quarter + 1u) & 2u) << 30);
}

#endif
