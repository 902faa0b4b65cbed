/* core/base/element.c: elements of every dtype as doubles. */
#include "core/base/element.h"

#include <math.h>
#include <string.h>

const int32_t tn_dtype_order[TN_DTYPES - 1] = {TN_BOOL, TN_U8,   TN_I8,  TN_I32, TN_I64,
                                               TN_F16,  TN_BF16, TN_F32, TN_F64};

void tn_element_range(int32_t dtype, double *low, double *high) {
  static const double ranges[TN_DTYPES][2] = {[TN_BOOL] = {0, 1},
                                              [TN_U8] = {0, UINT8_MAX},
                                              [TN_I8] = {INT8_MIN, INT8_MAX},
                                              [TN_I32] = {INT32_MIN, INT32_MAX},
                                              [TN_I64] = {-0x1p63, 0x1p63 - 1024}};
  *low = ranges[dtype][0];
  *high = ranges[dtype][1];
}

/* The upper half of an f32. The double is first rounded to odd in f32, so that it is not rounded twice. */
static uint16_t element_to_bf16(double v) {
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (isnan(f)) return (uint16_t)(bits >> 16 | 0x40);
  if (isinf(f)) return (uint16_t)(bits >> 16);
  if (fabs((double)f) > fabs(v)) bits--;
  if ((double)f != v) bits |= 1u;
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void tn_element_store(int32_t dtype, void *to, int64_t i, double v) {
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: ((uint8_t *)to)[i] = (uint8_t)v; break;
  case TN_I8: ((int8_t *)to)[i] = (int8_t)v; break;
  case TN_I32: ((int32_t *)to)[i] = (int32_t)v; break;
  case TN_I64: ((int64_t *)to)[i] = (int64_t)v; break;
  case TN_F16: ((_Float16 *)to)[i] = (_Float16)v; break;
  case TN_BF16: ((uint16_t *)to)[i] = element_to_bf16(v); break;
  case TN_F32: ((float *)to)[i] = (float)v; break;
  default: ((double *)to)[i] = v;
  }
}

static double element_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float f;
  memcpy(&f, &wide, sizeof f);
  return (double)f;
}

double tn_element_load(int32_t dtype, const void *from, int64_t i) {
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: return ((const uint8_t *)from)[i];
  case TN_I8: return ((const int8_t *)from)[i];
  case TN_I32: return ((const int32_t *)from)[i];
  case TN_I64: return (double)((const int64_t *)from)[i];
  case TN_F16: return (double)((const _Float16 *)from)[i];
  case TN_BF16: return element_bf16(((const uint16_t *)from)[i]);
  case TN_F32: return (double)((const float *)from)[i];
  default: return ((const double *)from)[i];
  }
}

void tn_elements_transpose(size_t bytes, int64_t rows, int64_t columns, const void *from, void *to) {
  const char *in = from;
  char *out = to;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      memcpy(out + (size_t)(c * rows + r) * bytes, in + (size_t)(r * columns + c) * bytes, bytes);
}
