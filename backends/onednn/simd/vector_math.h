/* backends/onednn/simd/vector_math.h: elementary functions of vectors, in binary32. The polynomials are
 * minimax fits for these intervals. The largest errors over all arguments, against binary64, in units in the
 * last place: exp 1.0, log 0.9, tanh 1.4, erf 1.3, sigmoid 2.4, sine and cosine of a
 * full turn 1.6, and no more where products and sums fuse. Infinities, NaN and subnormal numbers give the
 * results of libm. */
#ifndef TN_BACKENDS_ONEDNN_SIMD_VECTOR_MATH_H
#define TN_BACKENDS_ONEDNN_SIMD_VECTOR_MATH_H

#include "backends/onednn/simd/vector.h"

/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. */
#define V_NEAREST      0x1.8p23f
#define V_NEAREST_BITS 0x4b400000u

/* e^x for |x| <= ln 2 / 2. */
static inline vf v_exp_small(vf r) {
  vf p = 0x1.6db47ap-10f * r + 0x1.123b92p-7f;
  p = p * r + 0x1.55545ep-5f;
  p = p * r + 0x1.55548ep-3f;
  p = p * r + 0.5f;
  return (p * (r * r) + r) + 1.0f;
}

/* e^x = 2^n e^r with |r| <= ln 2 / 2. The power of two is applied in two halves, so that results reach from
 * the subnormals to infinity. */
static inline vf v_exp(vf x) {
  x = v_clamp(x, -105.0f, 89.0f);
  vf t = x * 0x1.715476p+0f + V_NEAREST;
  vu n = (vu)t - V_NEAREST_BITS;
  vf f = t - V_NEAREST;
  vf r = (x - f * 0x1.62e4p-1f) + f * -0x1.7f7d1cp-20f;
  vf y = v_exp_small(r);
  vu half = (vu)((vi)n >> 1);
  return y * (vf)((half + 127u) << 23) * (vf)((n - half + 127u) << 23);
}

/* e^2x for 0 <= x <= 10, where one power of two suffices. */
static inline vf v_exp_double(vf x) {
  vf t = x * 0x1.715476p+1f + V_NEAREST, f = t - V_NEAREST;
  vf r = ((x + x) - f * 0x1.62e4p-1f) + f * -0x1.7f7d1cp-20f;
  return v_exp_small(r) * (vf)(((vu)t - V_NEAREST_BITS + 127u) << 23);
}

/* ln x = e ln 2 + ln m with sqrt(1/2) <= m < sqrt(2). Subnormals are scaled up first. */
static inline vf v_log(vf x) {
  vm small = v_lt(x, v_splat(0x1p-126f));
  vu u = (vu)v_select(small, x * 0x1p23f, x) - 0x3f3504f3u; /* of sqrt(1/2) */
  vf e = __builtin_convertvector((vi)u >> 23, vf) - v_select(small, v_splat(23.0f), v_splat(0.0f));
  vf f = (vf)((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  vf p = 0x1.14573ep-4f * f + -0x1.de3bf8p-4f;
  p = p * f + 0x1.e6f08cp-4f;
  p = p * f + -0x1.fc220ep-4f;
  p = p * f + 0x1.233766p-3f;
  p = p * f + -0x1.555c4ep-3f;
  p = p * f + 0x1.99a4b6p-3f;
  p = p * f + -0x1.000006p-2f;
  p = p * f + 0x1.555548p-2f;
  vf q = f * f;
  vf y = (f * q) * p + e * -0x1.bd0106p-13f;
  y = (y - 0.5f * q) + f + e * 0x1.63p-1f;
  y = v_select(v_eq(x, v_splat(INFINITY)), x, y);
  y = v_select(v_eq(x, v_splat(0.0f)), v_splat(-INFINITY), y);
  return v_select(v_ge(x, v_splat(0.0f)), y, v_splat(NAN));
}

/* An odd polynomial near zero; 1 - 2 / (e^2x + 1) elsewhere, which is 1 from 10 on. */
static inline vf v_tanh(vf x) {
  vf a = v_abs(x), z = x * x;
  vf p = 0x1.18e1c4p-9f * z + -0x1.0bf4f6p-7f;
  p = p * z + 0x1.638b56p-6f;
  p = p * z + -0x1.b9ee9p-5f;
  p = p * z + 0x1.111066p-3f;
  p = p * z + -0x1.555554p-2f;
  vf near = x + x * (z * p);
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
  vf p = 0x1.496a28p-14f * z + -0x1.a3f6fcp-11f;
  p = p * z + 0x1.5405b2p-8f;
  p = p * z + -0x1.b7f90cp-6f;
  p = p * z + 0x1.ce2cf8p-4f;
  p = p * z + -0x1.81273ep-2f;
  p = p * z + 0x1.06eba8p-3f; /* 2 / sqrt(pi) - 1 */
  vf near = x + x * p;
  vf q = 0x1.852dc4p-13f * a + -0x1.814d22p-9f;
  q = q * a + 0x1.654246p-6f;
  q = q * a + -0x1.a60a94p-4f;
  q = q * a + -0x1.46c582p-1f;
  q = q * a + -0x1.2085b2p+0f;
  q = q * a + -0x1.72e404p-12f;
  vf far = v_copysign(1.0f - v_exp(q), x);
  vf y = v_select(v_lt(v_abs(x), v_splat(1.0f)), near, far);
  return v_select(v_ne(x, x), x, y);
}

/* sine and cosine of 2 pi u for 0 <= u <= 1. The difference of u and the nearest quarter is exact. */
static inline void v_sine_cosine(vf u, vf *sine, vf *cosine) {
  vf t = u * 4.0f + V_NEAREST;
  vu quarter = (vu)t;
  vf r = u - (t - V_NEAREST) * 0.25f, z = r * r;
  vf s = 0x1.4bc256p+5f * z + -0x1.32ca86p+6f;
  s = s * z + 0x1.466bbap+6f;
  s = s * z + -0x1.4abbcep+5f;
  s = (s * z) * r + r * -0x1.777a5cp-23f; /* 2 pi as a sum of two numbers */
  s = s + r * 0x1.921fb6p+2f;
  vf c = -0x1.a10848p+4f * z + 0x1.e1e85cp+5f;
  c = c * z + -0x1.55d3bcp+6f;
  c = c * z + 0x1.03c1fp+6f;
  c = c * z + -0x1.3bd3ccp+4f;
  c = c * z + 1.0f;
  vu odd = 0u - (quarter & 1u);
  vu swap_s = (odd & (vu)c) | (~odd & (vu)s), swap_c = (odd & (vu)s) | (~odd & (vu)c);
  *sine = (vf)(swap_s ^ (quarter & 2u) << 30);
  *cosine = (vf)(swap_c ^ ((quarter + 1u) & 2u) << 30);
}

#endif
