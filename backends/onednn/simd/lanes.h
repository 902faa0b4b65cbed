/* backends/onednn/simd/lanes.h: for files of loops: vectors of f32 as wide as the instruction set's, and
 * elements on the way to them and back. Every function is inlined with its dtype known, so that one loop
 * written with them is one loop for each dtype. */
#ifndef TN_BACKENDS_ONEDNN_SIMD_LANES_H
#define TN_BACKENDS_ONEDNN_SIMD_LANES_H

#include <stddef.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "backends/onednn/simd/loops.h"

#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif

typedef float lane_f32 __attribute__((vector_size(4 * LANES)));
typedef int32_t lane_i32 __attribute__((vector_size(4 * LANES)));
typedef uint32_t lane_u32 __attribute__((vector_size(4 * LANES)));
typedef uint16_t lane_u16 __attribute__((vector_size(2 * LANES)));
typedef double lane_f64 __attribute__((vector_size(8 * LANES)));

#define LANE_INLINE static inline __attribute__((always_inline))

LANE_INLINE lane_f32 lane_all(float x) { return x - (lane_f32){0}; }
LANE_INLINE lane_i32 lane_all_i32(int32_t x) { return x - (lane_i32){0}; }

/* Where the mask, of all ones or none, is set; else the other. */
LANE_INLINE lane_f32 lane_pick(lane_i32 mask, lane_f32 yes, lane_f32 no) {
  return (lane_f32)((mask & (lane_i32)yes) | (~mask & (lane_i32)no));
}
LANE_INLINE lane_i32 lane_pick_i32(lane_i32 mask, lane_i32 yes, lane_i32 no) {
  return (mask & yes) | (~mask & no);
}

/* ---- halves --------------------------------------------------------------------------------------- */

LANE_INLINE lane_f32 lane_of_bf16(lane_u16 x) {
  return (lane_f32)(__builtin_convertvector(x, lane_u32) << 16);
}

/* To nearest, ties to even; NaN stays NaN. */
LANE_INLINE lane_u16 lane_to_bf16(lane_f32 x) {
  lane_u32 bits = (lane_u32)x, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  lane_u32 quiet = (bits >> 16) | 0x40u;
  lane_i32 nan = x != x;
  return __builtin_convertvector((lane_u32)lane_pick_i32(nan, (lane_i32)quiet, (lane_i32)rounded), lane_u16);
}

#if defined(__AVX512F__)
LANE_INLINE lane_f32 lane_of_f16(lane_u16 x) { return (lane_f32)_mm512_cvtph_ps((__m256i)x); }
LANE_INLINE lane_u16 lane_to_f16(lane_f32 x) { return (lane_u16)_mm512_cvtps_ph((__m512)x, 0); }
#elif defined(__F16C__)
LANE_INLINE lane_f32 lane_of_f16(lane_u16 x) { return (lane_f32)_mm256_cvtph_ps((__m128i)x); }
LANE_INLINE lane_u16 lane_to_f16(lane_f32 x) { return (lane_u16)_mm256_cvtps_ph((__m256)x, 0); }
#else
/* Exponent and mantissa move into place, which leaves the exponent's bias 112 too small; a multiplication by
 * 2^112 corrects it and normalizes subnormals on the way. */
LANE_INLINE lane_f32 lane_of_f16(lane_u16 x) {
  lane_u32 h = __builtin_convertvector(x, lane_u32), magnitude = (h & 0x7fffu) << 13;
  lane_i32 special = (h & 0x7c00u) == 0x7c00u;
  lane_u32 scaled = (lane_u32)((lane_f32)magnitude * 0x1p112f);
  return (lane_f32)(((h & 0x8000u) << 16) |
                    (lane_u32)lane_pick_i32(special, (lane_i32)(magnitude | 0x7f800000u), (lane_i32)scaled));
}

/* Normal results round in the integer. Subnormal ones are rounded by adding 0.5, whose last place is worth
 * 2^-24, the step of f16's subnormals. */
LANE_INLINE lane_u16 lane_to_f16(lane_f32 x) {
  lane_u32 bits = (lane_u32)x, sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  lane_u32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  lane_u32 subnormal = (lane_u32)((lane_f32)magnitude + 0.5f) - 0x3f000000u;
  lane_i32 half = lane_pick_i32(magnitude < 0x38800000u, (lane_i32)subnormal, (lane_i32)normal);
  half = lane_pick_i32(magnitude >= 0x477ff000u, lane_all_i32(0x7c00), half);
  half = lane_pick_i32(magnitude > 0x7f800000u, (lane_i32)(0x7e00u | ((magnitude >> 13) & 0x3ffu)), half);
  return __builtin_convertvector(sign | (lane_u32)half, lane_u16);
}
#endif

/* ---- elements ------------------------------------------------------------------------------------- */

LANE_INLINE size_t lane_size(int32_t dtype) { return dtype == TN_F32 ? 4 : 2; }
LANE_INLINE const void *lane_at(int32_t dtype, const void *base, int64_t at) {
  return (const uint8_t *)base + at * (int64_t)lane_size(dtype);
}

/* LANES elements, f32, bf16 or f16, from element `at` on. */
LANE_INLINE lane_f32 lane_load(int32_t dtype, const void *base, int64_t at) {
  lane_f32 wide;
  lane_u16 half;
  if (dtype == TN_F32) {
    memcpy(&wide, lane_at(dtype, base, at), sizeof wide);
    return wide;
  }
  memcpy(&half, lane_at(dtype, base, at), sizeof half);
  return dtype == TN_BF16 ? lane_of_bf16(half) : lane_of_f16(half);
}

LANE_INLINE void lane_store(int32_t dtype, void *base, int64_t at, lane_f32 x) {
  uint8_t *to = (uint8_t *)base + at * (int64_t)lane_size(dtype);
  if (dtype == TN_F32) {
    memcpy(to, &x, sizeof x);
    return;
  }
  lane_u16 half = dtype == TN_BF16 ? lane_to_bf16(x) : lane_to_f16(x);
  memcpy(to, &half, sizeof half);
}

/* The first n < LANES elements; the other lanes are `fill`. */
#ifdef __AVX512F__
LANE_INLINE lane_f32 lane_load_part(int32_t dtype, const void *base, int64_t at, int64_t n, float fill) {
  const void *from = lane_at(dtype, base, at);
  __mmask16 mask = (__mmask16)((1u << n) - 1);
  lane_f32 filled = lane_all(fill);
  if (dtype == TN_F32) return (lane_f32)_mm512_mask_loadu_ps((__m512)filled, mask, from);
  lane_u16 half = (lane_u16)_mm256_maskz_loadu_epi16(mask, from);
  return (lane_f32)_mm512_mask_mov_ps((__m512)filled, mask,
                                      (__m512)(dtype == TN_BF16 ? lane_of_bf16(half) : lane_of_f16(half)));
}

LANE_INLINE void lane_store_part(int32_t dtype, void *base, int64_t at, int64_t n, lane_f32 x) {
  uint8_t *to = (uint8_t *)base + at * (int64_t)lane_size(dtype);
  __mmask16 mask = (__mmask16)((1u << n) - 1);
  if (dtype == TN_F32)
    _mm512_mask_storeu_ps(to, mask, (__m512)x);
  else
    _mm256_mask_storeu_epi16(to, mask, (__m256i)(dtype == TN_BF16 ? lane_to_bf16(x) : lane_to_f16(x)));
}
#else
LANE_INLINE lane_f32 lane_load_part(int32_t dtype, const void *base, int64_t at, int64_t n, float fill) {
  lane_u16 half = {0};
  lane_f32 wide = lane_all(fill);
  const void *from = lane_at(dtype, base, at);
  if (dtype == TN_F32) {
    for (int64_t i = 0; i < n; i++) wide[i] = ((const float *)from)[i];
    return wide;
  }
  for (int64_t i = 0; i < n; i++) half[i] = ((const uint16_t *)from)[i];
  wide = dtype == TN_BF16 ? lane_of_bf16(half) : lane_of_f16(half);
  for (int64_t i = n; i < LANES; i++) wide[i] = fill;
  return wide;
}

LANE_INLINE void lane_store_part(int32_t dtype, void *base, int64_t at, int64_t n, lane_f32 x) {
  uint8_t *to = (uint8_t *)base + at * (int64_t)lane_size(dtype);
  if (dtype == TN_F32) {
    for (int64_t i = 0; i < n; i++) ((float *)(void *)to)[i] = x[i];
    return;
  }
  lane_u16 half = dtype == TN_BF16 ? lane_to_bf16(x) : lane_to_f16(x);
  for (int64_t i = 0; i < n; i++) ((uint16_t *)(void *)to)[i] = half[i];
}
#endif

#ifdef __AVX512F__
#define LANE_NUMBERS ((lane_i32){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#else
#define LANE_NUMBERS ((lane_i32){0, 1, 2, 3, 4, 5, 6, 7})
#endif
/* Lane i becomes what was lane (i + by) % LANES. */
LANE_INLINE lane_f32 lane_turned(lane_f32 x, int32_t by) {
  return __builtin_shuffle(x, (LANE_NUMBERS + by) & (LANES - 1));
}
LANE_INLINE float lane_sum(lane_f32 x) {
  for (int32_t half = LANES / 2; half > 0; half /= 2) x += lane_turned(x, half);
  return x[0];
}
LANE_INLINE float lane_largest(lane_f32 x) { /* NaN if there is one */
  for (int32_t half = LANES / 2; half > 0; half /= 2) {
    lane_f32 y = lane_turned(x, half);
    x = lane_pick((y > x) | (y != y), y, x);
  }
  return x[0];
}

#endif
