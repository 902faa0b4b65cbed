/* backends/onednn/simd/vector.h: vectors of 32-bit lanes as wide as the registers of the instruction set that
 * a file of loops is compiled for: types, masks and arithmetic. GCC's vector extension, and intrinsics where
 * it has no operator (masks, square roots). Every function means the same on every instruction set.
 *
 * vector_load.h has loads, stores and half precision, vector_math.h elementary functions. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A file whose vectors are blocks of channels (kernels/image_layouts.h) defines V_LEAST_LANES as 8 before it
 * includes this one: plain vectors then span two registers. */
#if defined(__AVX512F__)
#define V_BYTES 64
#elif defined(__AVX2__) || (defined(V_LEAST_LANES) && V_LEAST_LANES == 8)
#define V_BYTES 32
#else
#define V_BYTES 16
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
  V_LANES = V_BYTES / 4,
  V_GROUP = 16 /* lanes of one iteration of a pointwise loop: one to four vectors */
};

typedef float vf __attribute__((vector_size(V_BYTES)));
typedef int32_t vi __attribute__((vector_size(V_BYTES)));
typedef uint32_t vu __attribute__((vector_size(V_BYTES)));
typedef uint16_t vh __attribute__((vector_size(V_BYTES / 2))); /* bf16 or f16, as bits */
typedef double vd __attribute__((vector_size(V_BYTES * 2)));

#define V_INLINE  static inline __attribute__((always_inline))
#define V_EACH(j) for (int32_t j = 0; j < V_GROUP; j += V_LANES)

/* A constant vector of f(0, s), f(1, s) ..., for shuffles. */
#if V_BYTES == 64
#define V_CONSTANT(f, s)                                                                                     \
  ((vi){f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s), f(8, s), f(9, s), f(10, s),  \
        f(11, s), f(12, s), f(13, s), f(14, s), f(15, s)})
#elif V_BYTES == 32
#define V_CONSTANT(f, s) ((vi){f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s)})
#else
#define V_CONSTANT(f, s) ((vi){f(0, s), f(1, s), f(2, s), f(3, s)})
#endif
#define V_LANE(l, s) (l)
#define V_INDEX      V_CONSTANT(V_LANE, 0) /* 0, 1, 2 ... */

static inline vf v_splat(float x) { return x - (vf){0}; }
static inline vi v_splat_i(int32_t x) { return x - (vi){0}; }
static inline vu v_splat_u(uint32_t x) { return x - (vu){0}; }

/* ---- masks: one bit or one lane of ones for each lane --------------------------------------------- */

#if defined(__AVX512F__)
typedef __mmask16 vm;
#define V_COMPARE(name, op, predicate)                                                                       \
  static inline vm v_##name(vf x, vf y) { return _mm512_cmp_ps_mask((__m512)x, (__m512)y, predicate); }
#define V_COMPARE_I(name, op, predicate)                                                                     \
  static inline vm v_##name(vi x, vi y) { return _mm512_cmp_epi32_mask((__m512i)x, (__m512i)y, predicate); }
static inline vf v_select(vm m, vf x, vf y) { return (vf)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x); }
static inline vm v_and(vm x, vm y) { return (vm)(x & y); }
static inline vm v_or(vm x, vm y) { return (vm)(x | y); }
static inline vm v_not(vm x) { return (vm)~x; }
#else
typedef vi vm;
#define V_COMPARE(name, op, predicate)                                                                       \
  static inline vm v_##name(vf x, vf y) { return x op y; }
#define V_COMPARE_I(name, op, predicate)                                                                     \
  static inline vm v_##name(vi x, vi y) { return x op y; }
static inline vf v_select(vm m, vf x, vf y) { return (vf)((m & (vi)x) | (~m & (vi)y)); }
static inline vm v_and(vm x, vm y) { return x & y; }
static inline vm v_or(vm x, vm y) { return x | y; }
static inline vm v_not(vm x) { return ~x; }
#endif
V_COMPARE(eq, ==, _CMP_EQ_OQ)
V_COMPARE(ne, !=, _CMP_NEQ_UQ)
V_COMPARE(lt, <, _CMP_LT_OQ)
V_COMPARE(le, <=, _CMP_LE_OQ)
V_COMPARE(gt, >, _CMP_GT_OQ)
V_COMPARE(ge, >=, _CMP_GE_OQ)
V_COMPARE_I(eq_i, ==, _MM_CMPINT_EQ)
V_COMPARE_I(lt_i, <, _MM_CMPINT_LT)
#undef V_COMPARE
#undef V_COMPARE_I

static inline vi v_select_i(vm m, vi x, vi y) { return (vi)v_select(m, (vf)x, (vf)y); }
static inline vu v_select_u(vm m, vu x, vu y) { return (vu)v_select(m, (vf)x, (vf)y); }

/* The lanes below n; every n is allowed. */
static inline vm v_first(int64_t n) { return v_lt_i(V_INDEX, v_splat_i((int32_t)n)); }
/* x in the lanes below n, `other` behind them. */
static inline vf v_keep_first(vf x, int64_t n, vf other) {
  return n >= V_LANES ? x : v_select(v_first(n), x, other);
}

/* The larger and the smaller one, NaN if either is; y where both are equal. */
static inline vf v_max(vf x, vf y) { return v_select(v_or(v_gt(x, y), v_ne(x, x)), x, y); }
static inline vf v_min(vf x, vf y) { return v_select(v_or(v_lt(x, y), v_ne(x, x)), x, y); }

/* x limited to low .. high. NaN stays NaN. */
static inline vf v_clamp(vf x, float low, float high) {
#if defined(__AVX512F__)
  return (vf)_mm512_max_ps((__m512)v_splat(low), _mm512_min_ps((__m512)v_splat(high), (__m512)x));
#elif defined(__AVX2__)
  return (vf)_mm256_max_ps((__m256)v_splat(low), _mm256_min_ps((__m256)v_splat(high), (__m256)x));
#elif defined(__SSE2__)
  __m128 part[V_BYTES / 16];
  memcpy(part, &x, sizeof part);
  for (int32_t i = 0; i < V_BYTES / 16; i++)
    part[i] = _mm_max_ps(_mm_set1_ps(low), _mm_min_ps(_mm_set1_ps(high), part[i]));
  memcpy(&x, part, sizeof part);
  return x;
#else
  x = v_select(v_lt(x, v_splat(low)), v_splat(low), x);
  return v_select(v_gt(x, v_splat(high)), v_splat(high), x);
#endif
}

/* ---- signs, roots, integers ----------------------------------------------------------------------- */

static inline vf v_abs(vf x) { return (vf)((vu)x & 0x7fffffffu); }
static inline vf v_neg(vf x) { return (vf)((vu)x ^ 0x80000000u); }
/* |x| with the sign of y. */
static inline vf v_copysign(vf x, vf y) { return (vf)(((vu)x & 0x7fffffffu) | ((vu)y & 0x80000000u)); }

#if defined(__AVX512F__)
static inline vf v_sqrt(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
static inline vf v_floor(vf x) { return (vf)_mm512_floor_ps((__m512)x); }
#elif defined(__AVX2__)
static inline vf v_sqrt(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
static inline vf v_floor(vf x) { return (vf)_mm256_floor_ps((__m256)x); }
#else
static inline vf v_sqrt(vf x) {
  for (int32_t l = 0; l < V_LANES; l++) x[l] = sqrtf(x[l]);
  return x;
}
static inline vf v_floor(vf x) {
  for (int32_t l = 0; l < V_LANES; l++) x[l] = floorf(x[l]);
  return x;
}
#endif

/* 1 / x with an error of at most two units in the last place where x and the result are normal: an estimate
 * and one Newton step, faster than a division. */
static inline vf v_reciprocal(vf x) {
#if defined(__AVX512F__)
  vf y = (vf)_mm512_rcp14_ps((__m512)x);
#elif defined(__AVX2__)
  vf y = (vf)_mm256_rcp_ps((__m256)x);
#else
  vf y = 1.0f / x;
#endif
  return y + y * (1.0f - x * y);
}

#if defined(__AVX512F__)
#define V_EVEN_LANES ((_MM_PERM_ENUM)0xa0) /* 0 0 2 2 */
#define V_ODD_LANES  ((_MM_PERM_ENUM)0xf5) /* 1 1 3 3 */
#endif
/* The upper and lower halves of 64-bit products. */
static inline void v_multiply_wide(vu x, uint32_t y, vu *high, vu *low) {
#if defined(__AVX512F__)
  /* Exchanges under a mask in place of shifts, which have the port of the products, and blends. */
  __m512i k = _mm512_set1_epi32((int32_t)y);
  __m512i even = _mm512_mul_epu32((__m512i)x, k),
          odd = _mm512_mul_epu32(_mm512_shuffle_epi32((__m512i)x, V_ODD_LANES), k);
  *low = (vu)_mm512_mask_shuffle_epi32(even, 0xaaaa, odd, V_EVEN_LANES);
  *high = (vu)_mm512_mask_shuffle_epi32(odd, 0x5555, even, V_ODD_LANES);
#elif defined(__AVX2__)
  __m256i k = _mm256_set1_epi32((int32_t)y);
  __m256i even = _mm256_mul_epu32((__m256i)x, k),
          odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)x, 32), k);
  *low = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  *high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#else
  for (int32_t l = 0; l < V_LANES; l++) {
    uint64_t product = (uint64_t)x[l] * y;
    (*high)[l] = (uint32_t)(product >> 32);
    (*low)[l] = (uint32_t)product;
  }
#endif
}

/* ---- across lanes --------------------------------------------------------------------------------- */

/* Lane i gets lane i ^ s. */
V_INLINE vf v_exchange(vf x, int32_t s) { return __builtin_shuffle(x, V_INDEX ^ s); }

/* The sum of all lanes in every lane, added as a tree. */
V_INLINE vf v_sum_across(vf x) {
#pragma GCC unroll 4
  for (int32_t s = V_LANES / 2; s > 0; s /= 2) x += v_exchange(x, s);
  return x;
}

/* The largest lane in every lane; NaN if one lane is NaN. */
V_INLINE vf v_max_across(vf x) {
#pragma GCC unroll 4
  for (int32_t s = V_LANES / 2; s > 0; s /= 2) x = v_max(x, v_exchange(x, s));
  return x;
}

/* Adds the lanes to V_LANES sums in f64. */
V_INLINE void v_accumulate(double *sums, vf x) {
  vd old;
  memcpy(&old, sums, sizeof old);
  old += __builtin_convertvector(x, vd);
  memcpy(sums, &old, sizeof old);
}
