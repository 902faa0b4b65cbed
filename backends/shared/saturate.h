/* backends/shared/saturate.h: floats to whole numbers: toward zero, as far as the type reaches; NaN becomes
 * 0. Arithmetic of whole numbers, which wraps, and is defined for all of them. */
#pragma once

#include <stdint.h>

#define TN_CLAMP(x, low, high) ((x) != (x) ? 0 : (x) < (low) ? (low) : (x) > (high) ? (high) : (x))
static inline uint8_t tn_u8_of_f32(float x) { return (uint8_t)(int32_t)TN_CLAMP(x, 0.0f, 255.0f); }
static inline uint8_t tn_u8_of_f64(double x) { return (uint8_t)(int32_t)TN_CLAMP(x, 0.0, 255.0); }
static inline int8_t tn_i8_of_f32(float x) { return (int8_t)(int32_t)TN_CLAMP(x, -128.0f, 127.0f); }
static inline int8_t tn_i8_of_f64(double x) { return (int8_t)(int32_t)TN_CLAMP(x, -128.0, 127.0); }
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

/* UINT is INT without its sign. A quotient that there is not is 0; the least number divided by -1 wraps. */
#define TN_IS_SIGNED(INT)         ((INT)-1 < 1)
#define TN_IS_MINUS_1(y, INT)     (TN_IS_SIGNED(INT) && (y) == (INT)-1)
#define TN_OPPOSITE(x, INT, UINT) ((INT)(0 - (UINT)(x)))
#define TN_SIZE_OF(x, INT, UINT)  ((x) > 0 ? (x) : TN_OPPOSITE(x, INT, UINT))
#define TN_SIGN_OF(x, INT)        ((INT)((x) > 0 ? 1 : -((x) != 0)))
#define TN_QUOTIENT(x, y, INT, UINT)                                                                         \
  ((y) == 0 ? 0 : TN_IS_MINUS_1(y, INT) ? TN_OPPOSITE(x, INT, UINT) : (INT)((x) / (y)))
#define TN_REST(x, y, INT) ((y) == 0 || TN_IS_MINUS_1(y, INT) ? 0 : (INT)((x) % (y)))

/* A shift by all bits of INT or more leaves 0 to the left, and copies of the sign bit, or 0, to the right. A
 * negative y counts as all bits. */
#define TN_SHIFT_BITS(INT)             (8 * (int32_t)sizeof(INT))
#define TN_SHIFT_IS_LONG(y, INT, UINT) ((UINT)(y) >= (UINT)TN_SHIFT_BITS(INT))
#define TN_SHIFT_LEFT(x, y, INT, UINT) (TN_SHIFT_IS_LONG(y, INT, UINT) ? 0 : (INT)((UINT)(x) << (y)))
#define TN_SHIFT_RIGHT(x, y, INT, UINT)                                                                      \
  (TN_SHIFT_IS_LONG(y, INT, UINT) ? (TN_IS_SIGNED(INT) ? (INT)((x) >> (TN_SHIFT_BITS(INT) - 1)) : 0)         \
                                  : (INT)((x) >> (y)))
