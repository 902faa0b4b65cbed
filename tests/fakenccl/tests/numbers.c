/* tests/fakenccl/tests/numbers.c */
#include "tests/fakenccl/tests/numbers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- small floats ---- */

typedef struct format {
  int mantissa, bias, exponents; /* 1 << bits of the exponent */
  unsigned finite, top;          /* largest finite code; code of larger values */
} format;

static const format *numbers_format(int dtype) {
  static const format f16 = {10, 15, 32, 0x7BFF, 0x7C00}, bf16 = {7, 127, 256, 0x7F7F, 0x7F80},
                      e4m3 = {3, 7, 16, 0x7E, 0x7F}, e5m2 = {2, 15, 32, 0x7B, 0x7C};
  switch (dtype) {
  case ncclFloat16: return &f16;
  case ncclBfloat16: return &bf16;
  case ncclFloat8e4m3: return &e4m3;
  case ncclFloat8e5m2: return &e5m2;
  default: return NULL;
  }
}

static double numbers_decode(const format *f, unsigned code) {
  unsigned exponent = code >> f->mantissa, rest = code & ((1u << f->mantissa) - 1);
  if (exponent == 0) return ldexp(rest, 1 - f->bias - f->mantissa);
  return ldexp(rest + (1u << f->mantissa), (int)exponent - f->bias - f->mantissa);
}

/* The code of the nearest value; of two, the even code. */
static unsigned numbers_encode(const format *f, double size) {
  unsigned low = 0, high = f->finite + 1; /* decode(low) <= size < decode(high), as if there was no limit */
  if (size >= numbers_decode(f, high)) return f->top;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (numbers_decode(f, middle) <= size)
      low = middle;
    else
      high = middle;
  }
  double below = size - numbers_decode(f, low), above = numbers_decode(f, high) - size;
  unsigned code = below < above || (below == above && low % 2 == 0) ? low : high;
  return code > f->finite ? f->top : code;
}

/* ---- elements ---- */

size_t numbers_size(int dtype) {
  switch (dtype) {
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32: return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64: return 8;
  case ncclFloat16:
  case ncclBfloat16: return 2;
  default: return 1;
  }
}

bool numbers_is_float(int dtype) { return dtype >= ncclFloat16; }

void numbers_set(void *x, int dtype, size_t i, double value) {
  const format *f = numbers_format(dtype);
  int64_t whole = f == NULL && !numbers_is_float(dtype) ? (int64_t)value : 0;
  unsigned code = f != NULL ? numbers_encode(f, fabs(value)) : 0;
  uint8_t sign = signbit(value) ? 1 : 0;
  float f32 = (float)value;
  uint16_t half = (uint16_t)(code | (unsigned)sign << 15);
  uint8_t quarter = (uint8_t)(code | (unsigned)sign << 7);
  const void *from = dtype == ncclFloat32       ? (const void *)&f32
                     : dtype == ncclFloat64     ? (const void *)&value
                     : f == NULL                ? (const void *)&whole
                     : numbers_size(dtype) == 2 ? (const void *)&half
                                                : (const void *)&quarter;
  memcpy((char *)x + i * numbers_size(dtype), from, numbers_size(dtype));
}

#define ELEMENT(T) (((const T *)x)[i])

double numbers_get(const void *x, int dtype, size_t i) {
  const format *f = numbers_format(dtype);
  unsigned bits = numbers_size(dtype) == 2 ? ELEMENT(uint16_t) : ELEMENT(uint8_t);
  unsigned sign = numbers_size(dtype) == 2 ? bits >> 15 : bits >> 7 & 1;
  if (f != NULL)
    return (sign ? -1 : 1) * numbers_decode(f, bits & (numbers_size(dtype) == 2 ? 0x7FFF : 0x7F));
  switch (dtype) {
  case ncclInt8: return ELEMENT(int8_t);
  case ncclUint8: return ELEMENT(uint8_t);
  case ncclInt32: return ELEMENT(int32_t);
  case ncclUint32: return ELEMENT(uint32_t);
  case ncclInt64: return (double)ELEMENT(int64_t);
  case ncclUint64: return (double)ELEMENT(uint64_t);
  case ncclFloat32: return (double)ELEMENT(float);
  default: return ELEMENT(double);
  }
}

/* ---- reductions ---- */

static double numbers_round(int dtype, double value) {
  unsigned char element[8];
  numbers_set(element, dtype, 0, value);
  double rounded;
  _Alignas(8) unsigned char aligned[8];
  memcpy(aligned, element, 8);
  rounded = numbers_get(aligned, dtype, 0);
  return rounded;
}

static double numbers_apply(int op, double a, double b) {
  switch (op) {
  case ncclProd: return a * b;
  case ncclMax: return a > b ? a : b;
  case ncclMin: return a < b ? a : b;
  default: return a + b;
  }
}

void numbers_reduce(void *to, void *const *from, int n, size_t count, int dtype, int op, double factor) {
  bool averages = op == ncclAvg, floats = numbers_is_float(dtype);
  double by = op == ncclNumOps ? factor : averages && floats ? numbers_round(dtype, 1.0 / n) : 1;
  for (size_t i = 0; i < count; i++) {
    double all = 0;
    for (int r = 0; r < n; r++) {
      double next = numbers_round(dtype, numbers_get(from[r], dtype, i) * by);
      all = r == 0 ? next : numbers_round(dtype, numbers_apply(op, all, next));
    }
    if (averages && !floats) all = trunc(all / n);
    numbers_set(to, dtype, i, all);
  }
}

/* Small numbers, so that integers of eight bits wrap in products only. */
void numbers_fill(void *x, size_t count, int dtype, int rank) {
  for (size_t i = 0; i < count; i++) {
    double whole = (double)((i * 37 + (size_t)rank * 101) % 23);
    bool is_signed = dtype == ncclInt8 || dtype == ncclInt32 || dtype == ncclInt64;
    numbers_set(x, dtype, i, numbers_is_float(dtype) ? (whole - 9) / 7 : is_signed ? whole - 9 : whole);
  }
}
