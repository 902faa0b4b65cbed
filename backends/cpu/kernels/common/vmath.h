/* backends/cpu/kernels/common/vmath.h: elementary functions in binary32 without branches or calls, so that
 * the compiler vectorizes loops over them. The largest errors over all arguments, measured against binary64,
 * are
 *
 *     exp 1.0   log 0.9   tanh 1.4   erf 1.3   sigmoid 2.4   ulp
 *
 * Infinities, NaN, signed zeros and subnormals give the results of libm. The functions must be compiled
 * without contraction to fused multiply-adds, so that every instruction set gives the same bits. */
#ifndef TN_BACKENDS_CPU_KERNELS_COMMON_VMATH_H
#define TN_BACKENDS_CPU_KERNELS_COMMON_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/shared/normal.h"
#include "backends/shared/polynomials.h"

TN_DEFINE_POLYNOMIALS(float, vm)

static inline uint32_t vm_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static inline float vm_float(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static inline float vm_abs(float x) { return vm_float(vm_bits(x) & 0x7fffffffu); }

/* |x| with the sign of y. */
static inline float vm_copysign(float x, float y) {
  return vm_float((vm_bits(x) & 0x7fffffffu) | (vm_bits(y) & 0x80000000u));
}

/* e^x = 2^n e^r with |r| <= ln 2 / 2. Two factors apply the power of two, so that results range from the
 * subnormals to infinity. Integer arithmetic on the bits of the sum is unsigned, so that a NaN does not cause
 * undefined behaviour. */
static inline float vm_exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -105.0f ? -105.0f : x;
  float t = x * TN_LOG2_E + TN_NEAREST;
  uint32_t n = vm_bits(t) - TN_NEAREST_BITS;
  float f = t - TN_NEAREST;
  float r = (x - f * TN_LN2_HIGH) + f * -TN_LN2_LOW;
  float y = (vm_exp_part(r) * (r * r) + r) + 1.0f;
  uint32_t half = (uint32_t)((int32_t)n >> 1);
  return y * vm_float((half + 127u) << 23) * vm_float((n - half + 127u) << 23);
}

/* ln x = e ln 2 + ln m with sqrt(1/2) <= m < sqrt(2). Subnormals are scaled up first. */
static inline float vm_log(float x) {
  float small = x < 0x1p-126f ? 1.0f : 0.0f;
  float scaled = small != 0.0f ? x * 0x1p23f : x;
  uint32_t u = vm_bits(scaled) - 0x3f3504f3u; /* the bits of sqrt(1/2) */
  float e = (float)((int32_t)u >> 23) - small * 23.0f;
  float f = vm_float((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float y = tn_log_of_parts(e, f);
  y = x == INFINITY ? INFINITY : y;
  y = x == 0.0f ? -INFINITY : y;
  return x >= 0.0f ? y : NAN;
}

/* An odd polynomial near zero; 1 - 2 / (e^2x + 1) elsewhere. */
static inline float vm_tanh(float x) {
  float a = vm_abs(x), z = x * x;
  float near = x + x * (z * vm_tanh_part(z));
  float far = vm_copysign(1.0f - 2.0f / (vm_exp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? vm_copysign(near, x) : far;
}

static inline float vm_sigmoid(float x) {
  float e = vm_exp(-vm_abs(x));
  return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

/* An odd polynomial up to 1, then 1 - e^Q(|x|) with Q fitted to ln erfc; 1 from 4 on. */
static inline float vm_erf(float x) {
  float a = vm_abs(x), z = x * x;
  a = a > 4.0f ? 4.0f : a;
  float near = x + x * vm_erf_part(z);
  float far = vm_copysign(1.0f - vm_exp(vm_log_erfc(a)), x);
  return vm_abs(x) < 1.0f ? near : (x != x ? x : far);
}

#endif
