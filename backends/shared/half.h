/* backends/shared/half.h: f16 (IEEE 754 binary16) and bf16 (the upper half of a binary32) to
 * and from f32, and TF32. The first two are stored as uint16_t. Rounding is to nearest, ties to even; NaN
 * stays NaN, infinities stay, numbers that are too large become infinite, subnormals are exact. No branches,
 * so that loops over arrays vectorize. */
#ifndef TN_BACKENDS_SHARED_HALF_H
#define TN_BACKENDS_SHARED_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t tn_bits_of_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float tn_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline float tn_f32_of_bf16(uint16_t h) { return tn_f32_of_bits((uint32_t)h << 16); }

/* Adding 0x7fff plus the last kept bit carries exactly when the dropped half rounds up. A NaN must
 * not be rounded (it could carry into infinity): it is cut, and made quiet. */
static inline uint16_t tn_bf16_of_f32(float x) {
  uint32_t bits = tn_bits_of_f32(x);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x0040u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/* Exponent and mantissa move into place, which leaves the exponent's bias 112 too small; a
 * multiplication by 2^112 corrects it and normalizes subnormals on the way. Infinity and NaN have
 * their exponent put back to all ones. */
static inline float tn_f32_of_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = (uint32_t)(h & 0x7fffu) << 13;
  uint32_t scaled = tn_bits_of_f32(tn_f32_of_bits(magnitude) * 0x1p112f);
  uint32_t special = magnitude | 0x7f800000u;
  return tn_f32_of_bits(sign | ((h & 0x7c00u) == 0x7c00u ? special : scaled));
}

/* Normal results round in the integer, as in tn_bf16_of_f32. Subnormal ones are rounded by the
 * addition of 0.5, whose last mantissa bit is worth 2^-24, the step of f16's subnormals. */
static inline uint16_t tn_f16_of_f32(float x) {
  uint32_t bits = tn_bits_of_f32(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t subnormal = tn_bits_of_f32(tn_f32_of_bits(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t quiet = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? quiet : half;
  return (uint16_t)(sign | half);
}

/* f32 rounded to the 10 bits of mantissa that TF32 keeps, to nearest, ties away from zero, as
 * cvt.rna.tf32 of PTX does. */
static inline float tn_tf32_of_f32(float x) {
  uint32_t bits = tn_bits_of_f32(x), rounded = (bits + 0x1000u) & ~0x1fffu;
  return tn_f32_of_bits((bits & 0x7fffffffu) > 0x7f800000u ? bits : rounded);
}

#endif
