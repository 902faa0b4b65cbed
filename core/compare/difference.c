/* core/compare/difference.c: the largest difference between two tensors. */
#include "core/compare/difference.h"

#include <math.h>

#include "core/base/element.h"

/* Bits of the fraction, and the exponent of the smallest normal number. */
static const struct {
  int fraction, least;
} FLOATS[TN_DTYPES] = {
    [TN_F16] = {10, -14}, [TN_BF16] = {7, -126}, [TN_F32] = {23, -126}, [TN_F64] = {52, -1022}};

double tn_difference_epsilon(int32_t dtype) {
  return tn_dtype_is_float(dtype) ? ldexp(1, -FLOATS[dtype].fraction - 1) : 0;
}

double tn_difference_ulp(int32_t dtype, double expected, double difference) {
  int exponent = 0;
  if (!tn_dtype_is_float(dtype) || !isfinite(expected)) return difference;
  frexp(expected, &exponent);
  if (expected == 0 || exponent - 1 < FLOATS[dtype].least) exponent = FLOATS[dtype].least + 1;
  return difference / ldexp(1, exponent - 1 - FLOATS[dtype].fraction);
}

static double difference_of_elements(double expected, double found) {
  if (expected == found || (isnan(expected) && isnan(found))) return 0;
  return isfinite(expected) && isfinite(found) ? fabs(expected - found) : INFINITY;
}

tn_difference tn_difference_of(const tn_type *type, const void *expected, const void *found) {
  tn_difference d = {.at = -1};
  int64_t n = tn_type_count(type);
  for (int64_t i = 0; i < n; i++) {
    double a = tn_element_load(type->dtype, expected, i), b = tn_element_load(type->dtype, found, i);
    double difference = difference_of_elements(a, b);
    if (isfinite(a)) d.magnitude = fmax(d.magnitude, fabs(a));
    if (difference <= d.largest) continue;
    d.largest = difference;
    d.at = i;
    d.expected = a;
    d.found = b;
  }
  d.ulp = isfinite(d.largest) ? tn_difference_ulp(type->dtype, d.expected, d.largest) : INFINITY;
  return d;
}
