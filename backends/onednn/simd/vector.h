/* backends/onednn/simd/vector.h: vectors of 32-bit lanes as wide as the instruction set of a file of loops
 * has them, for loops that the compiler does not vectorize by itself as they should be: GCC's vector
 * extension, and intrinsics where that has no word for something (square roots, masks, half precision).
 *
 * A file computes with vf (floats), vi and vu (whole numbers) and vm (one truth per lane). Every function
 * means the same on every instruction set. */
#ifndef TN_BACKENDS_ONEDNN_SIMD_VECTOR_H
#define TN_BACKENDS_ONEDNN_SIMD_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { V_BYTES = 64 };
#elif defined(__AVX2__)
enum { V_BYTES = 32 };
#else
enum { V_BYTES = 16 };
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
  V_LANES = V_BYTES / 4,
  V_GROUP = 16 /* lanes that loops do in one go: one to four vectors */
};

typedef float vf __attribute__((vector_size(V_BYTES)));
typedef int32_t vi __attribute__((vector_size(V_BYTES)));
typedef uint32_t vu __attribute__((vector_size(V_BYTES)));
typedef float vf_unaligned __attribute__((vector_size(V_BYTES), aligned(1), may_alias));
typedef uint32_t vu_unaligned __attribute__((vector_size(V_BYTES), aligned(1), may_alias));

#define V_EACH(j) for (int32_t j = 0; j < V_GROUP; j += V_LANES)

static inline vf v_get(const void *from) { return (vf) * (const vf_unaligned *)from; }
static inline void v_put(void *to, vf x) { *(vf_unaligned *)to = (vf_unaligned)x; }
static inline vu v_get_u(const void *from) { return (vu) * (const vu_unaligned *)from; }
static inline void v_put_u(void *to, vu x) { *(vu_unaligned *)to = (vu_unaligned)x; }
static inline vf v_all(float x) { return x - (vf){0}; }
static inline vu v_all_u(uint32_t x) { return x - (vu){0}; }

/* ---- truths ------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
typedef __mmask16 vm;
#define V_COMPARE(name, op, predicate)                                                                       \
  static inline vm v_##name(vf x, vf y) { return _mm512_cmp_ps_mask((__m512)x, (__m512)y, predicate); }
static inline vf v_pick(vm m, vf x, vf y) { return (vf)_mm512_mask_blend_ps(m, (__m512)y, (__m512)x); }
static inline vm v_or(vm x, vm y) { return (vm)(x | y); }
static inline vm v_truth(const uint8_t *from) {
  __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
  return _mm_test_epi8_mask(bytes, bytes);
}
static inline void v_put_truth(uint8_t *to, vm m) {
  _mm_storeu_si128((__m128i *)(void *)to, _mm_maskz_set1_epi8(m, 1));
}
#else
typedef vi vm;
typedef int8_t v_bytes __attribute__((vector_size(V_LANES)));
#define V_COMPARE(name, op, predicate)                                                                       \
  static inline vm v_##name(vf x, vf y) { return x op y; }
static inline vf v_pick(vm m, vf x, vf y) { return (vf)((m & (vi)x) | (~m & (vi)y)); }
static inline vm v_or(vm x, vm y) { return x | y; }
static inline vm v_truth(const uint8_t *from) {
  v_bytes bytes;
  memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, vi) != 0;
}
static inline void v_put_truth(uint8_t *to, vm m) {
  v_bytes bytes = __builtin_convertvector(m, v_bytes) & 1;
  memcpy(to, &bytes, sizeof bytes);
}
#endif
V_COMPARE(eq, ==, _CMP_EQ_OQ)
V_COMPARE(ne, !=, _CMP_NEQ_UQ)
V_COMPARE(lt, <, _CMP_LT_OQ)
V_COMPARE(le, <=, _CMP_LE_OQ)
V_COMPARE(gt, >, _CMP_GT_OQ)
V_COMPARE(ge, >=, _CMP_GE_OQ)
#undef V_COMPARE

/* The larger and the smaller one, NaN if either is. */
static inline vf v_larger(vf x, vf y) { return v_pick(v_or(v_gt(x, y), v_ne(x, x)), x, y); }
static inline vf v_smaller(vf x, vf y) { return v_pick(v_or(v_lt(x, y), v_ne(x, x)), x, y); }

/* x, but no less than `low` and no more than `high`. NaN stays. */
static inline vf v_within(vf x, float low, float high) {
#if defined(__AVX512F__)
  return (vf)_mm512_max_ps((__m512)v_all(low), _mm512_min_ps((__m512)v_all(high), (__m512)x));
#elif defined(__AVX2__)
  return (vf)_mm256_max_ps((__m256)v_all(low), _mm256_min_ps((__m256)v_all(high), (__m256)x));
#else
  x = v_pick(v_lt(x, v_all(low)), v_all(low), x);
  return v_pick(v_gt(x, v_all(high)), v_all(high), x);
#endif
}

/* ---- signs, roots, whole numbers ---------------------------------------------------------------- */

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

/* 1 / x, two units in the last place off at most, where x and the result are normal: an estimate and a step
 * of Newton's, in a fraction of a division's time. */
static inline vf v_inverse(vf x) {
#if defined(__AVX512F__)
  vf y = (vf)_mm512_rcp14_ps((__m512)x);
#elif defined(__AVX2__)
  vf y = (vf)_mm256_rcp_ps((__m256)x);
#else
  vf y = 1.0f / x;
#endif
  return y + y * (1.0f - x * y);
}

/* Upper and lower halves of the products of whole numbers. */
static inline void v_multiply(vu x, uint32_t y, vu *high, vu *low) {
#if defined(__AVX512F__)
  __m512i k = _mm512_set1_epi32((int32_t)y);
  __m512i even = _mm512_mul_epu32((__m512i)x, k),
          odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)x, 32), k);
  *low = (vu)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
  *high = (vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
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

/* ---- half precision: 16 bits in memory, one lane here -------------------------------------------- */

typedef uint16_t v_halves __attribute__((vector_size(V_LANES * 2)));

static inline vu v_get_halves(const void *from) {
  v_halves h;
  memcpy(&h, from, sizeof h);
  return __builtin_convertvector(h, vu);
}

static inline void v_put_halves(void *to, vu x) {
  v_halves h = __builtin_convertvector(x, v_halves);
  memcpy(to, &h, sizeof h);
}

static inline vu v_pick_u(vm m, vu x, vu y) { return (vu)v_pick(m, (vf)x, (vf)y); }

static inline vf v_of_bf16(vu h) { return (vf)(h << 16); }

/* To nearest, ties to even: adding 0x7fff and the last bit that stays carries exactly when the rest rounds
 * up. A NaN is cut instead, and made quiet, since it could carry into infinity. The instruction of
 * AVX512-BF16 would lose subnormal numbers. */
static inline vu v_bf16_of(vf x) {
  vu bits = (vu)x;
  return v_pick_u(v_ne(x, x), bits >> 16 | 0x40u, (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#if defined(__AVX512F__)
static inline vf v_of_f16(vu h) { return (vf)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)h)); }
static inline vu v_f16_of(vf x) {
  return (vu)_mm512_cvtepu16_epi32(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX2__) && defined(__F16C__)
static inline vf v_of_f16(vu h) {
  v_halves narrow = __builtin_convertvector(h, v_halves);
  return (vf)_mm256_cvtph_ps((__m128i)narrow);
}
static inline vu v_f16_of(vf x) {
  return (vu)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
#else
/* Exponent and mantissa move into place with a bias that is 112 too small; a multiplication by 2^112 mends
 * that and normalizes subnormals. Infinity and NaN get an exponent of ones. */
static inline vf v_of_f16(vu h) {
  vu sign = (h & 0x8000u) << 16, magnitude = (h & 0x7fffu) << 13;
  vu scaled = (vu)((vf)magnitude * 0x1p112f);
  vm special = (vi)((h & 0x7c00u) == 0x7c00u);
  return (vf)(sign | v_pick_u(special, magnitude | 0x7f800000u, scaled));
}
/* Normal results round as in v_bf16_of; subnormal ones by the addition of 0.5, whose last bit is worth the
 * step of f16's subnormals, 2^-24. */
static inline vu v_f16_of(vf x) {
  vu bits = (vu)x, magnitude = bits & 0x7fffffffu;
  vu normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  vu subnormal = (vu)((vf)magnitude + 0.5f) - 0x3f000000u;
  vu half = v_pick_u((vi)(magnitude < 0x38800000u), subnormal, normal);
  half = v_pick_u((vi)(magnitude >= 0x477ff000u), v_all_u(0x7c00u), half);
  half = v_pick_u((vi)(magnitude > 0x7f800000u), 0x7e00u | (magnitude >> 13 & 0x3ffu), half);
  return half | (bits >> 16 & 0x8000u);
}
#endif

#endif
