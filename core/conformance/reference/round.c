/* core/conformance/reference/round.c: rounds a double to an element of a dtype. */
#include <math.h>

#include "core/base/element.h"
#include "core/conformance/reference/reference.h"

static double round_bf16(double v) {
  uint16_t bits;
  tn_element_store(TN_BF16, &bits, 0, v);
  return tn_element_load(TN_BF16, &bits, 0);
}

static double round_integer(double v, double low, double high) {
  return v != v ? 0 : v < low ? low : v > high ? high : trunc(v);
}

double tn_reference_round(int32_t dtype, double v) {
  switch (dtype) {
  case TN_BOOL: return v != 0;
  case TN_U8: return round_integer(v, 0, UINT8_MAX);
  case TN_I32: return round_integer(v, INT32_MIN, INT32_MAX);
  case TN_I64: return round_integer(v, -0x1p63, 0x1.fffffffffffffp62);
  case TN_F16: return (double)(_Float16)v;
  case TN_BF16: return round_bf16(v);
  case TN_F32: return (double)(float)v;
  default: return v;
  }
}
