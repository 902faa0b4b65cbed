/* backends/sim/communicator/reduce.c: sums, means and extremes of several vectors, element by element. */
#include "backends/sim/communicator/reduce.h"

#include <string.h>

/* ---- f16 and bf16 ---- */

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float from_bf16(uint16_t half) { return of_bits((uint32_t)half << 16); }

/* To nearest, ties to even; a NaN stays one. */
static uint16_t to_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* The exponent moves by a multiplication, which is exact and makes subnormals normal. */
static float from_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7FFF) << 13;
  if (rest >= 0x0F800000) return of_bits(sign | rest | 0x70000000);
  return of_bits(sign | bits_of(of_bits(rest) * 0x1p112f));
}

/* Adding 2^e of the right e lets the processor round to the 10 bits, or to those that a subnormal has. */
static uint16_t to_f16(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (size >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* from 65520 on: infinity */
  if (size < 0x38800000) return (uint16_t)(sign | (bits_of(of_bits(size) + 0.5f) - bits_of(0.5f)));
  uint32_t rounded = size + 0xFFF + (size >> 13 & 1);
  return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

/* ---- reductions ---- */

/* The minimum or maximum with a NaN is NaN. */
#define SUM(a, b) ((a) + (b))
#define MIN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SAME(x)   (x)

/* Every partial result is rounded to the type, as in a ring whose ranks pass on elements of the type. */
#define LOOP(T, WIDE, LOAD, STORE, OP)                                                                       \
  for (int64_t i = 0; i < count; i++) {                                                                      \
    T all = ((const T *)from[0])[i];                                                                         \
    for (int32_t r = 1; r < n; r++) {                                                                        \
      WIDE sofar = (WIDE)LOAD(all), next = (WIDE)LOAD(((const T *)from[r])[i]);                              \
      all = (T)STORE((WIDE)OP(sofar, next));                                                                 \
    }                                                                                                        \
    ((T *)to)[i] = all;                                                                                      \
  }

#define DIVIDE(T, WIDE, LOAD, STORE)                                                                         \
  for (int64_t i = 0; i < count; i++)                                                                        \
    ((T *)to)[i] = (T)STORE((WIDE)((WIDE)LOAD(((const T *)to)[i]) / (WIDE)n));

#define REDUCE(name, T, WIDE, LOAD, STORE)                                                                   \
  static void reduce_##name(int32_t reduction, int32_t n, const void *const *from, void *to,                 \
                            int64_t count) {                                                                 \
    if (reduction == TN_REDUCTION_SUM || reduction == TN_REDUCTION_MEAN) {                                   \
      LOOP(T, WIDE, LOAD, STORE, SUM)                                                                        \
      if (reduction == TN_REDUCTION_MEAN) DIVIDE(T, WIDE, LOAD, STORE)                                       \
    } else if (reduction == TN_REDUCTION_MIN) {                                                              \
      LOOP(T, WIDE, LOAD, STORE, MIN)                                                                        \
    } else {                                                                                                 \
      LOOP(T, WIDE, LOAD, STORE, MAX)                                                                        \
    }                                                                                                        \
  }

/* Sums of integers wrap; C defines that for unsigned integers only. */
#define REDUCE_INTEGER(name, T, UNSIGNED)                                                                    \
  static void reduce_##name(int32_t reduction, int32_t n, const void *const *from, void *to,                 \
                            int64_t count) {                                                                 \
    if (reduction == TN_REDUCTION_SUM) {                                                                     \
      LOOP(T, UNSIGNED, SAME, SAME, SUM)                                                                     \
    } else if (reduction == TN_REDUCTION_MIN) {                                                              \
      LOOP(T, T, SAME, SAME, MIN)                                                                            \
    } else {                                                                                                 \
      LOOP(T, T, SAME, SAME, MAX)                                                                            \
    }                                                                                                        \
  }

REDUCE_INTEGER(u8, uint8_t, uint8_t)
REDUCE_INTEGER(i32, int32_t, uint32_t)
REDUCE_INTEGER(i64, int64_t, uint64_t)
REDUCE(f16, uint16_t, float, from_f16, to_f16)
REDUCE(bf16, uint16_t, float, from_bf16, to_bf16)
REDUCE(f32, float, float, SAME, SAME)
REDUCE(f64, double, double, SAME, SAME)

static void (*const reductions[TN_DTYPES])(int32_t reduction, int32_t n, const void *const *from, void *to,
                                           int64_t count) = {
    [TN_U8] = reduce_u8,     [TN_I32] = reduce_i32, [TN_I64] = reduce_i64, [TN_F16] = reduce_f16,
    [TN_BF16] = reduce_bf16, [TN_F32] = reduce_f32, [TN_F64] = reduce_f64};

int tn_sim_can_reduce(int32_t dtype, int32_t reduction) {
  if (reduction < TN_REDUCTION_SUM || reduction > TN_REDUCTION_MEAN) return 0;
  if (reduction == TN_REDUCTION_MEAN && !tn_dtype_is_float(dtype)) return 0;
  return dtype > 0 && dtype < TN_DTYPES && reductions[dtype] != NULL;
}

void tn_sim_reduce(int32_t dtype, int32_t reduction, int32_t n, const void *const *from, void *to,
                   int64_t count) {
  reductions[dtype](reduction, n, from, to, count);
}
