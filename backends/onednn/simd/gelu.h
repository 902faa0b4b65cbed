/* backends/onednn/simd/gelu.h: GELU (Hendrycks and Gimpel, "Gaussian error linear units", 2016) of vectors
 * and its derivative, exact or approximated by tanh, as the ops gelu and gelu_grad define them. */
#pragma once

#include "backends/onednn/simd/vector_math.h"

/* sqrt(2 / pi), the scale of the approximation, and 0.044715 times that. */
#define V_GELU_SCALE 0x1.988454p-1f
#define V_GELU_CUBE  0x1.2444f2p-5f

/* e^-2u with u = SCALE x + CUBE x^3; the constants contain the factor -2 / ln 2. The power of two is a
 * minimax fit with an error of at most 1e-7, of which (1 + tanh u) / 2 = 1 / (1 + e^-2u) retains at most a
 * quarter. */
static inline vf v_gelu_exp(vf x) {
  vf y = x * (x * x * (V_GELU_CUBE * -0x1.715476p+1f) + V_GELU_SCALE * -0x1.715476p+1f);
  y = v_clamp(y, -120.0f, 120.0f);
  vf t = y + TN_NEAREST, f = y - (t - TN_NEAREST);
  vf p = 0x1.5bba14p-10f * f + 0x1.3cea88p-7f;
  p = p * f + 0x1.c6b752p-5f;
  p = p * f + 0x1.ebf9bcp-3f;
  p = p * f + 0x1.62e42ap-1f;
  p = p * f + 1.0f;
  return p * (vf)(((vu)t - TN_NEAREST_BITS + 127u) << 23);
}

/* The distribution function of the normal distribution. */
static inline vf v_normal_cdf(vf x) { return v_erf(x * 0x1.6a09e6p-1f) * 0.5f + 0.5f; }

static inline vf v_gelu(vf x, int32_t approximate) {
  return x * (approximate ? v_reciprocal(1.0f + v_gelu_exp(x)) : v_normal_cdf(x));
}

/* The derivative of x cdf(x): cdf(x) + x density(x). */
static inline vf v_gelu_grad(vf x, int32_t approximate) {
  vf square = x * x;
  if (!approximate) return v_normal_cdf(x) + x * (v_exp(square * -0.5f) * 0x1.988454p-2f);
  vf e = v_gelu_exp(x), cdf = v_reciprocal(1.0f + e);
  return cdf + x * (e * cdf * cdf) * (square * (6 * V_GELU_CUBE) + 2 * V_GELU_SCALE);
}
