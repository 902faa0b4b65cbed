/* backends/shared/normal.h: normally distributed numbers from random words (tenon/attributes.h,
 * tn_random_attributes): Box and Muller, with the same bits on every device and host.
 *
 * The logarithm, the sine and the cosine are sums, products, quotients and square roots that IEEE 754 rounds,
 * in a fixed order, which a compiler must not contract to fused multiply-adds. The largest errors over all
 * 2^24 arguments are, in ulp: of f32, logarithm 0.9, sine and cosine 1.6; of f64, logarithm 0.8, sine and
 * cosine 1.8. */
#ifndef TN_BACKENDS_SHARED_NORMAL_H
#define TN_BACKENDS_SHARED_NORMAL_H

#include "backends/shared/polynomials.h"

#ifdef __CUDACC__
#define TN_NORMAL_BITS(x)  __float_as_uint(x)
#define TN_NORMAL_FLOAT(u) __uint_as_float(u)
#define TN_NORMAL_SQRT(x)  sqrt(x)
#define TN_NORMAL_SQRTF(x) sqrtf(x)
#else
#include <math.h>

#include "backends/shared/half.h"
#define TN_NORMAL_BITS(x)  tn_bits_of_f32(x)
#define TN_NORMAL_FLOAT(u) tn_f32_of_bits(u)
#define TN_NORMAL_SQRT(x)  sqrt(x)
#define TN_NORMAL_SQRTF(x) sqrtf(x)
#endif

/* ---- f32 ---- */

TN_DEFINE_POLYNOMIALS(float, tn_normal)

/* e ln 2 + ln(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2). */
TN_SHARED_FN float tn_log_of_parts(float e, float f) {
  float q = f * f;
  float y = (f * q) * tn_normal_log_part(f) + e * -0x1.bd0106p-13f;
  return (y - 0.5f * q) + f + e * 0x1.63p-1f;
}

/* ln x of a positive number that is neither subnormal nor infinite. */
TN_SHARED_FN float tn_log_of_normal(float x) {
  unsigned u = TN_NORMAL_BITS(x) - 0x3f3504f3u; /* the bits of sqrt(1/2) */
  float e = (float)((int)u >> 23);
  float f = TN_NORMAL_FLOAT((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  return tn_log_of_parts(e, f);
}

/* sin and cos of 2 pi u for 0 <= u <= 1. The difference of u and the nearest multiple of 1/4 is exact. */
TN_SHARED_FN void tn_turn(float u, float *sine, float *cosine) {
  float t = u * 4.0f + TN_NEAREST;
  unsigned quarter = TN_NORMAL_BITS(t);
  float r = u - (t - TN_NEAREST) * 0.25f, z = r * r;
  float s = tn_normal_sine_part(r, z), c = tn_normal_cosine_part(z);
  float swap_s = quarter & 1u ? c : s, swap_c = quarter & 1u ? s : c;
  *sine = TN_NORMAL_FLOAT(TN_NORMAL_BITS(swap_s) ^ ((quarter & 2u) << 30));
  *cosine = TN_NORMAL_FLOAT(TN_NORMAL_BITS(swap_c) ^ (((quarter + 1u) & 2u) << 30));
}

/* Two words, two numbers of mean 0 and standard deviation 1. */
TN_SHARED_FN void tn_normal_pair(unsigned word0, unsigned word1, float *even, float *odd) {
  float sine, cosine, u0 = (float)(int)(word0 >> 8) * 0x1p-24f, u1 = (float)(int)(word1 >> 8) * 0x1p-24f;
  float r = TN_NORMAL_SQRTF(-2.0f * tn_log_of_normal(1.0f - u0));
  tn_turn(u1, &sine, &cosine);
  *even = r * cosine;
  *odd = r * sine;
}

/* ---- f64 ---- */

/* ln(n / 2^24) for 1 <= n <= 2^24: n / 2^24 = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); by s = f / (2 +
 * f), ln(1 + f) = 2 artanh s. The coefficients are those of fdlibm's log (Sun Microsystems, 1993). */
TN_SHARED_FN double tn_log_of_fraction(unsigned n) {
  int e = 0;
  for (int step = 16; step > 0; step /= 2)
    if (n >> (e + step)) e += step; /* the highest bit of n */
  double m = (double)n / (double)(1u << e);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m = m * 0.5;
    e = e + 1;
  }
  double f = m - 1.0, k = (double)(e - 24), s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
  double even = w * (0x1.999999997fa04p-2 + w * (0x1.c71c51d8e78afp-3 + w * 0x1.39a09d078c69fp-3));
  double odd = z * (0x1.5555555555593p-1 +
                    w * (0x1.2492494229359p-2 + w * (0x1.7466496cb03dep-3 + w * 0x1.2f112df3e5244p-3)));
  double low = s * (half + (even + odd)) + k * 0x1.a39ef35793c76p-33;
  return k * 0x1.62e42feep-1 - ((half - low) - f);
}

/* sin and cos of x for |x| <= pi / 4, with fdlibm's coefficients. */
TN_SHARED_FN double tn_sine_near(double x) {
  double z = x * x;
  double p = 0x1.71de357b1fe7dp-19 + z * (-0x1.ae5e68a2b9cebp-26 + z * 0x1.5d93a5acfd57cp-33);
  p = -0x1.a01a019c161d5p-13 + z * p;
  p = 0x1.111111110f8a6p-7 + z * p;
  return x + (z * x) * (-0x1.5555555555549p-3 + z * p);
}
TN_SHARED_FN double tn_cosine_near(double x) {
  double z = x * x, half = 0.5 * z, w = 1.0 - half;
  double p = -0x1.27e4f809c52adp-22 + z * (0x1.1ee9ebdb4b1c4p-29 + z * -0x1.8fae9be8838d4p-37);
  p = 0x1.a01a019cb159p-16 + z * p;
  p = -0x1.6c16c16c15177p-10 + z * p;
  p = 0x1.555555555554cp-5 + z * p;
  return w + (((1.0 - w) - half) + z * (z * p));
}

/* sin and cos of 2 pi n / 2^24 for 0 <= n < 2^24. The distance to the nearest quarter is exact. */
TN_SHARED_FN void tn_turn_of_fraction(unsigned n, double *sine, double *cosine) {
  unsigned quarter = (n + 0x200000u) >> 22;
  double x = (double)((int)n - (int)(quarter << 22)) * 0x1p-24 * 0x1.921fb54442d18p+2;
  double s = tn_sine_near(x), c = tn_cosine_near(x);
  double swap_s = quarter & 1u ? c : s, swap_c = quarter & 1u ? s : c;
  *sine = quarter & 2u ? -swap_s : swap_s;
  *cosine = (quarter + 1u) & 2u ? -swap_c : swap_c;
}

TN_SHARED_FN void tn_normal_pair_f64(unsigned word0, unsigned word1, double *even, double *odd) {
  double sine, cosine, r = TN_NORMAL_SQRT(-2.0 * tn_log_of_fraction(0x1000000u - (word0 >> 8)));
  tn_turn_of_fraction(word1 >> 8, &sine, &cosine);
  *even = r * cosine;
  *odd = r * sine;
}

#endif
