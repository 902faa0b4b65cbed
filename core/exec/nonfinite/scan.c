/* core/exec/nonfinite/scan.c: scans elements of every float type. */
#include "core/exec/nonfinite/scan.h"

#include <math.h>
#include <string.h>

#include "tenon/base.h"

/* IEEE 754 binary16: 5 bits of exponent, 10 of fraction. */
static double scan_f16(uint16_t bits) {
  int32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  double size = exponent == 0x1f ? (fraction ? NAN : INFINITY)
                : exponent       ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
  return bits & 0x8000 ? -size : size;
}

static double scan_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return (double)value;
}

static double scan_element(int32_t dtype, const void *data, int64_t i) {
  switch (dtype) {
  case TN_F16: return scan_f16(((const uint16_t *)data)[i]);
  case TN_BF16: return scan_bf16(((const uint16_t *)data)[i]);
  case TN_F32: return (double)((const float *)data)[i];
  default: return ((const double *)data)[i];
  }
}

tn_scan tn_scan_elements(int32_t dtype, const void *data, int64_t n) {
  tn_scan seen = {.looked = true, .low = INFINITY, .high = -INFINITY};
  if (!tn_dtype_is_float(dtype)) return seen;
  for (int64_t i = 0; i < n; i++) {
    double value = scan_element(dtype, data, i);
    if (isfinite(value)) {
      seen.low = value < seen.low ? value : seen.low;
      seen.high = value > seen.high ? value : seen.high;
      continue;
    }
    int32_t kind = isnan(value) ? TN_SCAN_NAN : TN_SCAN_INFINITE;
    seen.count++;
    if (kind <= seen.kind) continue;
    seen.kind = kind;
    seen.first = i;
    seen.value = value;
  }
  return seen;
}
