/* core/exec/nonfinite/scan.h: counts the elements of a tensor that are not finite. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/base/env.h"

enum { TN_SCAN_FINITE = 0, TN_SCAN_INFINITE = 1, TN_SCAN_NAN = 2 };

/* The scan of a value. */
typedef struct tn_scan {
  int32_t kind;         /* TN_SEEN_..., the worst of all elements */
  bool looked;          /* the value was scanned */
  int64_t first, count; /* index of the first element of the worst kind; number of elements not finite */
  double value;         /* of that first element */
  double low, high;     /* range of the finite elements; low > high: there are no such elements */
} tn_scan;

/* Scans n contiguous elements. All elements of an integer type are finite. */
tn_scan tn_scan_elements(int32_t dtype, const void *data, int64_t n);
