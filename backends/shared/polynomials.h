/* backends/shared/polynomials.h: polynomials of elementary functions in binary32: minimax fits for the
 * intervals to which backends/cpu/kernels/common/vmath.h and backends/onednn/simd/vector_math.h reduce
 * arguments. TN_DEFINE_POLYNOMIALS defines them for a type T: float, or a vector of floats. */
#ifndef TN_BACKENDS_SHARED_POLYNOMIALS_H
#define TN_BACKENDS_SHARED_POLYNOMIALS_H

/* A function of this folder that device code may call as well. Such headers include nothing of the host
 * there. */
#ifdef __CUDACC__
#define TN_SHARED_FN static __device__ inline
#else
#define TN_SHARED_FN static inline
#endif

/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. */
#define TN_NEAREST      0x1.8p23f
#define TN_NEAREST_BITS 0x4b400000u

/* 1 / ln 2, and ln 2 in two parts, of which the first has few bits: n * TN_LN2_HIGH is exact for small n. */
#define TN_LOG2_E   0x1.715476p+0f
#define TN_LN2_HIGH 0x1.62e4p-1f
#define TN_LN2_LOW  0x1.7f7d1cp-20f

/* PREFIX_exp_part(r): (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
 * PREFIX_log_part(f): (ln(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f < sqrt(2).
 * PREFIX_tanh_part(z): (tanh x - x) / x^3 by z = x^2, for |x| < 0.625.
 * PREFIX_erf_part(z): erf(x) / x - 1 by z = x^2, for |x| < 1.
 * PREFIX_log_erfc(a): ln(1 - erf a) for 1 <= a <= 4.
 * PREFIX_sine_part(r, z): sin(2 pi r) by r and z = r^2, for |r| <= 1/8; 2 pi is in two parts.
 * PREFIX_cosine_part(z): cos(2 pi r) by z = r^2, for |r| <= 1/8. */
#define TN_DEFINE_POLYNOMIALS(T, prefix)                                                                     \
  TN_SHARED_FN T prefix##_exp_part(T r) {                                                                    \
    T p = 0x1.6db47ap-10f * r + 0x1.123b92p-7f;                                                              \
    p = p * r + 0x1.55545ep-5f;                                                                              \
    p = p * r + 0x1.55548ep-3f;                                                                              \
    return p * r + 0.5f;                                                                                     \
  }                                                                                                          \
  TN_SHARED_FN T prefix##_log_part(T f) {                                                                    \
    T p = 0x1.14573ep-4f * f + -0x1.de3bf8p-4f;                                                              \
    p = p * f + 0x1.e6f08cp-4f;                                                                              \
    p = p * f + -0x1.fc220ep-4f;                                                                             \
    p = p * f + 0x1.233766p-3f;                                                                              \
    p = p * f + -0x1.555c4ep-3f;                                                                             \
    p = p * f + 0x1.99a4b6p-3f;                                                                              \
    p = p * f + -0x1.000006p-2f;                                                                             \
    return p * f + 0x1.555548p-2f;                                                                           \
  }                                                                                                          \
  TN_SHARED_FN T prefix##_tanh_part(T z) {                                                                   \
    T p = 0x1.18e1c4p-9f * z + -0x1.0bf4f6p-7f;                                                              \
    p = p * z + 0x1.638b56p-6f;                                                                              \
    p = p * z + -0x1.b9ee9p-5f;                                                                              \
    p = p * z + 0x1.111066p-3f;                                                                              \
    return p * z + -0x1.555554p-2f;                                                                          \
  }                                                                                                          \
  TN_SHARED_FN T prefix##_erf_part(T z) {                                                                    \
    T p = 0x1.496a28p-14f * z + -0x1.a3f6fcp-11f;                                                            \
    p = p * z + 0x1.5405b2p-8f;                                                                              \
    p = p * z + -0x1.b7f90cp-6f;                                                                             \
    p = p * z + 0x1.ce2cf8p-4f;                                                                              \
    p = p * z + -0x1.81273ep-2f;                                                                             \
    return p * z + 0x1.06eba8p-3f;                                                                           \
  }                                                                                                          \
  TN_SHARED_FN T prefix##_log_erfc(T a) {                                                                    \
    T p = 0x1.852dc4p-13f * a + -0x1.814d22p-9f;                                                             \
    p = p * a + 0x1.654246p-6f;                                                                              \
    p = p * a + -0x1.a60a94p-4f;                                                                             \
    p = p * a + -0x1.46c582p-1f;                                                                             \
    p = p * a + -0x1.2085b2p+0f;                                                                             \
    return p * a + -0x1.72e404p-12f;                                                                         \
  }                                                                                                          \
  TN_SHARED_FN T prefix##_sine_part(T r, T z) {                                                              \
    T p = 0x1.4bc256p+5f * z + -0x1.32ca86p+6f;                                                              \
    p = p * z + 0x1.466bbap+6f;                                                                              \
    p = p * z + -0x1.4abbcep+5f;                                                                             \
    p = (p * z) * r + r * -0x1.777a5cp-23f;                                                                  \
    return p + r * 0x1.921fb6p+2f;                                                                           \
  }                                                                                                          \
  TN_SHARED_FN T prefix##_cosine_part(T z) {                                                                 \
    T p = -0x1.a10848p+4f * z + 0x1.e1e85cp+5f;                                                              \
    p = p * z + -0x1.55d3bcp+6f;                                                                             \
    p = p * z + 0x1.03c1fp+6f;                                                                               \
    p = p * z + -0x1.3bd3ccp+4f;                                                                             \
    return p * z + 1.0f;                                                                                     \
  }

#endif
