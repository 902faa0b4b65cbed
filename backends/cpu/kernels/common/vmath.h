/* backends/cpu/kernels/common/vmath.h: elementary functions in binary32 without branches or calls, so that
 * the compiler vectorizes loops over them. The polynomials are minimax fits for these intervals. The largest
 * errors over all arguments, measured against binary64, are
 *
 *     exp 1.0   log 0.9   tanh 1.4   erf 1.3   sigmoid 2.4   sin and cos of 2 pi u 1.6   ulp
 *
 * Infinities, NaN, signed zeros and subnormals give the results of libm. The functions must be compiled
 * without contraction to fused multiply-adds, so that every instruction set gives the same bits. */
#ifndef TN_BACKENDS_CPU_KERNELS_COMMON_VMATH_H
#define TN_BACKENDS_CPU_KERNELS_COMMON_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

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

/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. Integer arithmetic on those bits
 * is unsigned, so that a NaN does not cause undefined behaviour. */
#define VM_ROUND   0x1.8p23f
#define VM_ROUND_U 0x4b400000u

/* e^x = 2^n e^r with |r| <= ln 2 / 2. Two factors apply the power of two, so that results range from the
 * subnormals to infinity. */
static inline float vm_exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -105.0f ? -105.0f : x;
  float t = x * 0x1.715476p+0f + VM_ROUND;
  uint32_t n = vm_bits(t) - VM_ROUND_U;
  float f = t - VM_ROUND;
  float r = (x - f * 0x1.62e4p-1f) + f * -0x1.7f7d1cp-20f;
  float p = 0x1.6db47ap-10f;
  p = p * r + 0x1.123b92p-7f;
  p = p * r + 0x1.55545ep-5f;
  p = p * r + 0x1.55548ep-3f;
  p = p * r + 0.5f;
  float y = (p * (r * r) + r) + 1.0f;
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
  float p = 0x1.14573ep-4f;
  p = p * f + -0x1.de3bf8p-4f;
  p = p * f + 0x1.e6f08cp-4f;
  p = p * f + -0x1.fc220ep-4f;
  p = p * f + 0x1.233766p-3f;
  p = p * f + -0x1.555c4ep-3f;
  p = p * f + 0x1.99a4b6p-3f;
  p = p * f + -0x1.000006p-2f;
  p = p * f + 0x1.555548p-2f;
  float q = f * f;
  float y = (f * q) * p + e * -0x1.bd0106p-13f;
  y = (y - 0.5f * q) + f + e * 0x1.63p-1f;
  y = x == INFINITY ? INFINITY : y;
  y = x == 0.0f ? -INFINITY : y;
  return x >= 0.0f ? y : NAN;
}

/* An odd polynomial near zero; 1 - 2 / (e^2x + 1) elsewhere. */
static inline float vm_tanh(float x) {
  float a = vm_abs(x), z = x * x;
  float p = 0x1.18e1c4p-9f;
  p = p * z + -0x1.0bf4f6p-7f;
  p = p * z + 0x1.638b56p-6f;
  p = p * z + -0x1.b9ee9p-5f;
  p = p * z + 0x1.111066p-3f;
  p = p * z + -0x1.555554p-2f;
  float near = x + x * (z * p);
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
  float p = 0x1.496a28p-14f;
  p = p * z + -0x1.a3f6fcp-11f;
  p = p * z + 0x1.5405b2p-8f;
  p = p * z + -0x1.b7f90cp-6f;
  p = p * z + 0x1.ce2cf8p-4f;
  p = p * z + -0x1.81273ep-2f;
  p = p * z + 0x1.06eba8p-3f; /* 2 / sqrt(pi) - 1 */
  float near = x + x * p;
  float q = 0x1.852dc4p-13f;
  q = q * a + -0x1.814d22p-9f;
  q = q * a + 0x1.654246p-6f;
  q = q * a + -0x1.a60a94p-4f;
  q = q * a + -0x1.46c582p-1f;
  q = q * a + -0x1.2085b2p+0f;
  q = q * a + -0x1.72e404p-12f;
  float far = vm_copysign(1.0f - vm_exp(q), x);
  return vm_abs(x) < 1.0f ? near : (x != x ? x : far);
}

/* sin and cos of 2 pi u for 0 <= u <= 1. The difference of u and the nearest multiple of 1/4 is exact. */
static inline void vm_turn(float u, float *sine, float *cosine) {
  float t = u * 4.0f + VM_ROUND;
  uint32_t quarter = vm_bits(t);
  float r = u - (t - VM_ROUND) * 0.25f, z = r * r;
  float s = 0x1.4bc256p+5f;
  s = s * z + -0x1.32ca86p+6f;
  s = s * z + 0x1.466bbap+6f;
  s = s * z + -0x1.4abbcep+5f;
  s = (s * z) * r + r * -0x1.777a5cp-23f; /* 2 pi in two parts */
  s = s + r * 0x1.921fb6p+2f;
  float c = -0x1.a10848p+4f;
  c = c * z + 0x1.e1e85cp+5f;
  c = c * z + -0x1.55d3bcp+6f;
  c = c * z + 0x1.03c1fp+6f;
  c = c * z + -0x1.3bd3ccp+4f;
  c = c * z + 1.0f;
  float swap_s = quarter & 1u ? c : s, swap_c = quarter & 1u ? s : c;
  *sine = vm_float(vm_bits(swap_s) ^ ((quarter & 2u) << 30));
  *cosine = vm_float(vm_bits(swap_c) ^ (((quarter + 1u) & 2u) << 30));
}

#endif
