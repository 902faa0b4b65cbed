/* tests/fakenccl/arithmetic.c: reductions of several vectors, element by element, in the order of ranks.
 * Types of 8 and 16 bits that are floats are computed in f32, and rounded to the type after every operation.
 * ncclAvg is what it is in NCCL: operands of floats are multiplied by 1/n before the sum; sums of integers
 * are divided by n. */
#include <math.h>
#include <string.h>

#include "backends/shared/half.h"
#include "tests/fakenccl/fakenccl.h"

/* ---- f8: sign, exponent, mantissa; e4m3 has no infinity, and one NaN ---- */

static float f8_load(uint8_t bits, int mantissa, int bias) {
  int exponent = (bits & 0x7F) >> mantissa, rest = bits & ((1 << mantissa) - 1);
  bool e4m3 = mantissa == 3;
  float size = exponent > 0 ? ldexpf((float)(rest | 1 << mantissa), exponent - bias - mantissa)
                            : ldexpf((float)rest, 1 - bias - mantissa);
  if (e4m3 ? (bits & 0x7F) == 0x7F : exponent == 31) size = !e4m3 && rest == 0 ? INFINITY : NAN;
  return (bits & 0x80) != 0 ? -size : size;
}

/* To nearest, ties to even. Too large: infinity, or the NaN of e4m3, as a conversion without saturation. */
static uint8_t f8_store(float value, int mantissa, int bias, float largest) {
  uint8_t sign = signbit(value) ? 0x80 : 0, top = mantissa == 3 ? 0x7F : 0x7C;
  if (isnan(value)) return sign | 0x7F;
  float size = fabsf(value);
  if (isinf(size)) return sign | top;
  int exponent = size > 0 ? ilogbf(size) : 1 - bias;
  if (exponent < 1 - bias) exponent = 1 - bias;
  float steps = rintf(ldexpf(size, mantissa - exponent));
  if (ldexpf(steps, exponent - mantissa) > largest) return sign | top;
  /* a carry out of the mantissa moves into the exponent */
  int code = (int)steps + ((exponent + bias - 1) << mantissa);
  return sign | (uint8_t)code;
}

static float f8e4m3_load(uint8_t bits) { return f8_load(bits, 3, 7); }
static float f8e5m2_load(uint8_t bits) { return f8_load(bits, 2, 15); }
static uint8_t f8e4m3_store(float x) { return f8_store(x, 3, 7, 448); }
static uint8_t f8e5m2_store(float x) { return f8_store(x, 2, 15, 57344); }

/* ---- reductions ---- */

#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MIN(a, b)  ((b) < (a) || (a) != (a) ? (b) : (a))
#define MAX(a, b)  ((b) > (a) || (a) != (a) ? (b) : (a))
#define SAME(x)    (x)

#define LOOP(T, WIDE, LOAD, STORE, OP)                                                                       \
  for (size_t i = 0; i < count; i++) {                                                                       \
    T all = ((const T *)from[0])[i];                                                                         \
    for (int r = 1; r < n; r++) {                                                                            \
      WIDE sofar = (WIDE)LOAD(all), next = (WIDE)LOAD(((const T *)from[r])[i]);                              \
      all = (T)STORE((WIDE)OP(sofar, next));                                                                 \
    }                                                                                                        \
    ((T *)to)[i] = all;                                                                                      \
  }

/* Sums and products in SUMS, which wraps; extremes in WIDE. */
#define REDUCE(name, T, WIDE, SUMS, LOAD, STORE)                                                             \
  static void reduce_##name(int op, int n, const void *const *from, void *to, size_t count) {                \
    switch (op) {                                                                                            \
    case ncclProd: LOOP(T, SUMS, LOAD, STORE, PROD) break;                                                   \
    case ncclMax: LOOP(T, WIDE, LOAD, STORE, MAX) break;                                                     \
    case ncclMin: LOOP(T, WIDE, LOAD, STORE, MIN) break;                                                     \
    default: LOOP(T, SUMS, LOAD, STORE, SUM) break;                                                          \
    }                                                                                                        \
  }                                                                                                          \
  static void multiply_##name(void *x, size_t count, const void *factor) {                                   \
    T by, *at = x;                                                                                           \
    memcpy(&by, factor, sizeof by);                                                                          \
    for (size_t i = 0; i < count; i++) at[i] = (T)STORE((SUMS)LOAD(at[i]) * (SUMS)LOAD(by));                 \
  }

REDUCE(i8, int8_t, int32_t, uint32_t, SAME, SAME)
REDUCE(u8, uint8_t, uint32_t, uint32_t, SAME, SAME)
REDUCE(i32, int32_t, int32_t, uint32_t, SAME, SAME)
REDUCE(u32, uint32_t, uint32_t, uint32_t, SAME, SAME)
REDUCE(i64, int64_t, int64_t, uint64_t, SAME, SAME)
REDUCE(u64, uint64_t, uint64_t, uint64_t, SAME, SAME)
REDUCE(f16, uint16_t, float, float, tn_f32_of_f16, tn_f16_of_f32)
REDUCE(f32, float, float, float, SAME, SAME)
REDUCE(f64, double, double, double, SAME, SAME)
REDUCE(bf16, uint16_t, float, float, tn_f32_of_bf16, tn_bf16_of_f32)
REDUCE(f8e4m3, uint8_t, float, float, f8e4m3_load, f8e4m3_store)
REDUCE(f8e5m2, uint8_t, float, float, f8e5m2_load, f8e5m2_store)

#define DIVIDE(name, T)                                                                                      \
  static void divide_##name(void *x, size_t count, int n) {                                                  \
    T *at = x;                                                                                               \
    for (size_t i = 0; i < count; i++) at[i] = (T)(at[i] / (T)n);                                            \
  }

DIVIDE(i8, int8_t)
DIVIDE(u8, uint8_t)
DIVIDE(i32, int32_t)
DIVIDE(u32, uint32_t)
DIVIDE(i64, int64_t)
DIVIDE(u64, uint64_t)

static const struct {
  void (*reduce)(int op, int n, const void *const *from, void *to, size_t count);
  void (*multiply)(void *x, size_t count, const void *factor);
  void (*divide)(void *x, size_t count, int n); /* NULL: floats */
} types[ncclNumTypes] = {[ncclInt8] = {reduce_i8, multiply_i8, divide_i8},
                         [ncclUint8] = {reduce_u8, multiply_u8, divide_u8},
                         [ncclInt32] = {reduce_i32, multiply_i32, divide_i32},
                         [ncclUint32] = {reduce_u32, multiply_u32, divide_u32},
                         [ncclInt64] = {reduce_i64, multiply_i64, divide_i64},
                         [ncclUint64] = {reduce_u64, multiply_u64, divide_u64},
                         [ncclFloat16] = {reduce_f16, multiply_f16, NULL},
                         [ncclFloat32] = {reduce_f32, multiply_f32, NULL},
                         [ncclFloat64] = {reduce_f64, multiply_f64, NULL},
                         [ncclBfloat16] = {reduce_bf16, multiply_bf16, NULL},
                         [ncclFloat8e4m3] = {reduce_f8e4m3, multiply_f8e4m3, NULL},
                         [ncclFloat8e5m2] = {reduce_f8e5m2, multiply_f8e5m2, NULL}};

void fakenccl_reduce(int dtype, int op, int n, const void *const *from, void *to, size_t count) {
  types[dtype].reduce(op, n, from, to, count);
  if (op == ncclAvg && types[dtype].divide != NULL) types[dtype].divide(to, count, n);
}

void fakenccl_multiply(int dtype, void *x, size_t count, const void *factor) {
  types[dtype].multiply(x, count, factor);
}

bool fakenccl_one_nth(int dtype, int n, void *factor) {
  float f32 = (float)(1.0 / n);
  double f64 = 1.0 / n;
  uint16_t f16 = tn_f16_of_f32(f32), bf16 = tn_bf16_of_f32(f32);
  uint8_t e4m3 = f8e4m3_store(f32), e5m2 = f8e5m2_store(f32);
  switch (dtype) {
  case ncclFloat16: memcpy(factor, &f16, sizeof f16); return true;
  case ncclFloat32: memcpy(factor, &f32, sizeof f32); return true;
  case ncclFloat64: memcpy(factor, &f64, sizeof f64); return true;
  case ncclBfloat16: memcpy(factor, &bf16, sizeof bf16); return true;
  case ncclFloat8e4m3: memcpy(factor, &e4m3, sizeof e4m3); return true;
  case ncclFloat8e5m2: memcpy(factor, &e5m2, sizeof e5m2); return true;
  default: return false;
  }
}
