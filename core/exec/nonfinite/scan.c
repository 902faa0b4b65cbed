/* core/exec/nonfinite/scan.c: scans elements of every float type. */
#include "core/exec/nonfinite/scan.h"

#include <math.h>

#include "core/base/element.h"

tn_scan tn_scan_elements(int32_t dtype, const void *data, int64_t n) {
  tn_scan seen = {.looked = true, .low = INFINITY, .high = -INFINITY};
  if (!tn_dtype_is_float(dtype)) return seen;
  for (int64_t i = 0; i < n; i++) {
    double value = tn_element_load(dtype, data, i);
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
