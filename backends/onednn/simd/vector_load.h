/* backends/onednn/simd/vector_load.h: loads and stores of vectors, whole or only their first lanes, of f32,
 * bf16 and f16. Functions that take a dtype are inlined with that dtype known, so that one loop written with
 * them compiles to one loop for each dtype. */
#pragma once

#include <stddef.h>

#include "backends/onednn/simd/vector.h"
#include "tenon/base.h"

typedef float vf_unaligned __attribute__((vector_size(V_BYTES), aligned(1), may_alias));
typedef uint32_t vu_unaligned __attribute__((vector_size(V_BYTES), aligned(1), may_alias));

static inline vf v_load(const void *from) { return (vf) * (const vf_unaligned *)from; }
static inline void v_store(void *to, vf x) { *(vf_unaligned *)to = (vf_unaligned)x; }
static inline vu v_load_u(const void *from) { return (vu) * (const vu_unaligned *)from; }
static inline void v_store_u(void *to, vu x) { *(vu_unaligned *)to = (vu_unaligned)x; }
static inline vi v_load_i(const int32_t *from) { return (vi)v_load_u(from); }
static inline void v_store_i(int32_t *to, vi x) { v_store_u(to, (vu)x); }
static inline vh v_load_h(const void *from) {
  vh x;
  memcpy(&x, from, sizeof x);
  return x;
}
static inline void v_store_h(void *to, vh x) { memcpy(to, &x, sizeof x); }

/* Bytes of 0 or 1 as a mask, and back. */
#if defined(__AVX512F__)
static inline vm v_load_bool(const uint8_t *from) {
  __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
  return _mm_test_epi8_mask(bytes, bytes);
}
static inline void v_store_bool(uint8_t *to, vm m) {
  _mm_storeu_si128((__m128i *)(void *)to, _mm_maskz_set1_epi8(m, 1));
}
#else
typedef int8_t v_bytes __attribute__((vector_size(V_LANES)));
static inline vm v_load_bool(const uint8_t *from) {
  v_bytes bytes;
  memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, vi) != 0;
}
static inline void v_store_bool(uint8_t *to, vm m) {
  v_bytes bytes = __builtin_convertvector(m, v_bytes) & 1;
  memcpy(to, &bytes, sizeof bytes);
}
#endif

/* ---- the first n lanes, 0 < n <= V_LANES: the others are zero, and their memory is not touched ------ */

#if defined(__AVX512F__)
V_INLINE __mmask16 v_first_bits(int64_t n) { return (__mmask16)((1u << n) - 1); }
V_INLINE vf v_load_part(const float *from, int64_t n) {
  return (vf)_mm512_maskz_loadu_ps(v_first_bits(n), from);
}
V_INLINE void v_store_part(float *to, vf x, int64_t n) {
  _mm512_mask_storeu_ps(to, v_first_bits(n), (__m512)x);
}
V_INLINE vi v_load_i_part(const int32_t *from, int64_t n) {
  return (vi)_mm512_maskz_loadu_epi32(v_first_bits(n), from);
}
V_INLINE void v_store_i_part(int32_t *to, vi x, int64_t n) {
  _mm512_mask_storeu_epi32(to, v_first_bits(n), (__m512i)x);
}
#elif defined(__AVX2__)
V_INLINE vf v_load_part(const float *from, int64_t n) {
  return (vf)_mm256_maskload_ps(from, (__m256i)v_first(n));
}
V_INLINE void v_store_part(float *to, vf x, int64_t n) {
  _mm256_maskstore_ps(to, (__m256i)v_first(n), (__m256)x);
}
V_INLINE vi v_load_i_part(const int32_t *from, int64_t n) {
  return (vi)_mm256_maskload_epi32(from, (__m256i)v_first(n));
}
V_INLINE void v_store_i_part(int32_t *to, vi x, int64_t n) {
  _mm256_maskstore_epi32(to, (__m256i)v_first(n), (__m256i)x);
}
#else
V_INLINE vf v_load_part(const float *from, int64_t n) {
  vf x = {0};
  for (int64_t l = 0; l < n; l++) x[l] = from[l];
  return x;
}
V_INLINE void v_store_part(float *to, vf x, int64_t n) {
  for (int64_t l = 0; l < n; l++) to[l] = x[l];
}
V_INLINE vi v_load_i_part(const int32_t *from, int64_t n) {
  vi x = {0};
  for (int64_t l = 0; l < n; l++) x[l] = from[l];
  return x;
}
V_INLINE void v_store_i_part(int32_t *to, vi x, int64_t n) {
  for (int64_t l = 0; l < n; l++) to[l] = x[l];
}
#endif

#if defined(__AVX512BW__)
V_INLINE vh v_load_h_part(const uint16_t *from, int64_t n) {
  return (vh)_mm256_maskz_loadu_epi16(v_first_bits(n), from);
}
V_INLINE void v_store_h_part(uint16_t *to, vh x, int64_t n) {
  _mm256_mask_storeu_epi16(to, v_first_bits(n), (__m256i)x);
}
#else
V_INLINE vh v_load_h_part(const uint16_t *from, int64_t n) {
  uint16_t x[V_LANES] = {0};
  memcpy(x, from, (size_t)n * sizeof *x);
  return v_load_h(x);
}
V_INLINE void v_store_h_part(uint16_t *to, vh x, int64_t n) { memcpy(to, &x, (size_t)n * sizeof *to); }
#endif

/* The first n lanes, or all of them where n is larger than V_LANES. */
V_INLINE vf v_load_upto(const float *from, int64_t n) {
  return n >= V_LANES ? v_load(from) : v_load_part(from, n);
}
V_INLINE void v_store_upto(float *to, vf x, int64_t n) {
  if (n >= V_LANES)
    v_store(to, x);
  else
    v_store_part(to, x, n);
}
V_INLINE vh v_load_h_upto(const uint16_t *from, int64_t n) {
  return n >= V_LANES ? v_load_h(from) : v_load_h_part(from, n);
}
V_INLINE void v_store_h_upto(uint16_t *to, vh x, int64_t n) {
  if (n >= V_LANES)
    v_store_h(to, x);
  else
    v_store_h_part(to, x, n);
}

/* ---- half precision ------------------------------------------------------------------------------- */

static inline vf v_from_bf16(vh h) { return (vf)(__builtin_convertvector(h, vu) << 16); }

/* To nearest, ties to even: adding 0x7fff and the last bit that stays carries exactly when the rest rounds
 * up. A NaN is truncated and made quiet instead, since it could carry into infinity. The instruction of
 * AVX512-BF16 flushes subnormal numbers. */
static inline vu v_bf16_bits(vf x) {
  vu bits = (vu)x;
  return v_select_u(v_ne(x, x), bits >> 16 | 0x40u, (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
static inline vh v_to_bf16(vf x) { return __builtin_convertvector(v_bf16_bits(x), vh); }
static inline vf v_round_bf16(vf x) { return (vf)(v_bf16_bits(x) << 16); }

#if defined(__AVX512F__)
static inline vf v_from_f16(vh h) { return (vf)_mm512_cvtph_ps((__m256i)h); }
static inline vh v_to_f16(vf x) { return (vh)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT); }
static inline vf v_round_f16(vf x) { return v_from_f16(v_to_f16(x)); }
#elif defined(__AVX2__) && defined(__F16C__)
static inline vf v_from_f16(vh h) { return (vf)_mm256_cvtph_ps((__m128i)h); }
static inline vh v_to_f16(vf x) { return (vh)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT); }
static inline vf v_round_f16(vf x) { return v_from_f16(v_to_f16(x)); }
#else
/* Exponent and mantissa move into place with a bias that is 112 too small; a multiplication by 2^112 corrects
 * it and normalizes subnormals. Infinity and NaN get an exponent of ones. */
static inline vf v_f16_value(vu h) {
  vu sign = (h & 0x8000u) << 16, magnitude = (h & 0x7fffu) << 13;
  vu scaled = (vu)((vf)magnitude * 0x1p112f);
  vm special = (vi)((h & 0x7c00u) == 0x7c00u);
  return (vf)(sign | v_select_u(special, magnitude | 0x7f800000u, scaled));
}
/* Normal results round as in v_bf16_bits; subnormal ones by the addition of 0.5, whose last bit is worth the
 * step of f16's subnormals, 2^-24. */
static inline vu v_f16_bits(vf x) {
  vu bits = (vu)x, magnitude = bits & 0x7fffffffu;
  vu normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  vu subnormal = (vu)((vf)magnitude + 0.5f) - 0x3f000000u;
  vu half = v_select_u((vi)(magnitude < 0x38800000u), subnormal, normal);
  half = v_select_u((vi)(magnitude >= 0x477ff000u), v_splat_u(0x7c00u), half);
  half = v_select_u((vi)(magnitude > 0x7f800000u), 0x7e00u | (magnitude >> 13 & 0x3ffu), half);
  return half | (bits >> 16 & 0x8000u);
}
static inline vf v_from_f16(vh h) { return v_f16_value(__builtin_convertvector(h, vu)); }
static inline vh v_to_f16(vf x) { return __builtin_convertvector(v_f16_bits(x), vh); }
static inline vf v_round_f16(vf x) { return v_f16_value(v_f16_bits(x)); }
#endif

/* ---- elements of a dtype: f32, bf16 or f16, from element `at` on ------------------------------------ */

V_INLINE vf v_from_half(int32_t dtype, vh h) { return dtype == TN_BF16 ? v_from_bf16(h) : v_from_f16(h); }
V_INLINE vh v_to_half(int32_t dtype, vf x) { return dtype == TN_BF16 ? v_to_bf16(x) : v_to_f16(x); }

V_INLINE vf v_load_as(int32_t dtype, const void *base, int64_t at) {
  if (dtype == TN_F32) return v_load((const float *)base + at);
  return v_from_half(dtype, v_load_h((const uint16_t *)base + at));
}
V_INLINE void v_store_as(int32_t dtype, void *base, int64_t at, vf x) {
  if (dtype == TN_F32)
    v_store((float *)base + at, x);
  else
    v_store_h((uint16_t *)base + at, v_to_half(dtype, x));
}

/* The first n lanes, 0 < n <= V_LANES; the others are `fill`. */
V_INLINE vf v_load_part_as(int32_t dtype, const void *base, int64_t at, int64_t n, float fill) {
  vf x = dtype == TN_F32 ? v_load_part((const float *)base + at, n)
                         : v_from_half(dtype, v_load_h_part((const uint16_t *)base + at, n));
  return fill == 0 ? x : v_select(v_first(n), x, v_splat(fill));
}
V_INLINE void v_store_part_as(int32_t dtype, void *base, int64_t at, int64_t n, vf x) {
  if (dtype == TN_F32)
    v_store_part((float *)base + at, x, n);
  else
    v_store_h_part((uint16_t *)base + at, v_to_half(dtype, x), n);
}

/* The first n lanes, or all of them where n is larger than V_LANES. */
V_INLINE vf v_load_upto_as(int32_t dtype, const void *base, int64_t at, int64_t n, float fill) {
  return n >= V_LANES ? v_load_as(dtype, base, at) : v_load_part_as(dtype, base, at, n, fill);
}
V_INLINE void v_store_upto_as(int32_t dtype, void *base, int64_t at, int64_t n, vf x) {
  if (n >= V_LANES)
    v_store_as(dtype, base, at, x);
  else
    v_store_part_as(dtype, base, at, n, x);
}
