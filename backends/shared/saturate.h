/* backends/shared/saturate.h: floats to whole numbers: toward zero, as far as the type reaches; NaN becomes
 * 0. Shifts of whole numbers by any number of bits. */
#pragma once

#include <stdint.h>

#define TN_CLAMP(x, low, high) ((x) != (x) ? 0 : (x) < (low) ? (low) : (x) > (high) ? (high) : (x))
static inline uint8_t tn_u8_of_f32(float x) { return (uint8_t)(int32_t)TN_CLAMP(x, 0.0f, 255.0f); }
static inline uint8_t tn_u8_of_f64(double x) { return (uint8_t)(int32_t)TN_CLAMP(x, 0.0, 255.0); }
static inline int32_t tn_i32_of_f64(double x) { return (int32_t)TN_CLAMP(x, -0x1p31, 0x1.fffffffcp30); }
/* 2^31 - 1 and 2^63 - 1 lie between two numbers of the type: the clamp stops at the lower one. */
static inline int32_t tn_i32_of_f32(float x) {
  return x >= 0x1p31f ? INT32_MAX : (int32_t)TN_CLAMP(x, -0x1p31f, 0x1.fffffep30f);
}
static inline int64_t tn_i64_of_f32(float x) {
  return x >= 0x1p63f ? INT64_MAX : (int64_t)TN_CLAMP(x, -0x1p63f, 0x1.fffffep62f);
}
static inline int64_t tn_i64_of_f64(double x) {
  return x >= 0x1p63 ? INT64_MAX : (int64_t)TN_CLAMP(x, -0x1p63, 0x1.fffffffffffffp62);
}

/* A shift by all bits of INT or more leaves 0 to the left, and copies of the sign bit to the right. A
 * negative y counts as all bits. */
#define TN_SHIFT_BITS(INT)             (8 * (int32_t)sizeof(INT))
#define TN_SHIFT_IS_LONG(y, INT, UINT) ((UINT)(y) >= (UINT)TN_SHIFT_BITS(INT))
#define TN_SHIFT_LEFT(x, y, INT, UINT) (TN_SHIFT_IS_LONG(y, INT, UINT) ? 0 : (INT)((UINT)(x) << (y)))
#define TN_SHIFT_RIGHT(x, y, INT, UINT)                                                                      \
  ((x) >> (TN_SHIFT_IS_LONG(y, INT, UINT) ? TN_SHIFT_BITS(INT) - 1 : (y)))
