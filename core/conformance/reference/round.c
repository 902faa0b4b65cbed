/* core/conformance/reference/round.c: rounds a double to an element of a dtype. */
#include <math.h>

#include "core/base/element.h"
#include "core/conformance/reference/reference.h"

static double round_bf16(double v) {
  uint16_t bits;
  tn_element_store(TN_BF16, &bits, 0, v);
  return tn_element_load(TN_BF16, &bits, 0);
}

static double round_integer(int32_t dtype, double v) {
  double low, high;
  tn_element_range(dtype, &low, &high);
  return v != v ? 0 : v < low ? low : v > high ? high : trunc(v);
}

double tn_reference_round(int32_t dtype, double v) {
  switch (dtype) {
  case TN_BOOL: return v != 0;
  case TN_F16: return (double)(_Float16)v;
  case TN_BF16: return round_bf16(v);
  case TN_F32: return (double)(float)v;
  case TN_F64: return v;
  default: return round_integer(dtype, v);
  }
}
