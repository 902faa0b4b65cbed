/* core/base/element.c: elements of every dtype as doubles. */
#include "core/base/element.h"

#include <string.h>

void tn_element_store(int32_t dtype, void *to, int64_t i, double v) {
  uint32_t wide;
  float f = (float)v;
  memcpy(&wide, &f, sizeof wide);
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: ((uint8_t *)to)[i] = (uint8_t)v; break;
  case TN_I32: ((int32_t *)to)[i] = (int32_t)v; break;
  case TN_I64: ((int64_t *)to)[i] = (int64_t)v; break;
  case TN_F16: ((_Float16 *)to)[i] = (_Float16)v; break;
  case TN_BF16: ((uint16_t *)to)[i] = (uint16_t)(wide >> 16); break; /* v is a bf16 already */
  case TN_F32: ((float *)to)[i] = f; break;
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
  case TN_I32: return ((const int32_t *)from)[i];
  case TN_I64: return (double)((const int64_t *)from)[i];
  case TN_F16: return (double)((const _Float16 *)from)[i];
  case TN_BF16: return element_bf16(((const uint16_t *)from)[i]);
  case TN_F32: return (double)((const float *)from)[i];
  default: return ((const double *)from)[i];
  }
}
