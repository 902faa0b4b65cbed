/* core/exec/nonfinite/scan.h: private to core/exec: whether elements are finite. */
#ifndef TN_CORE_EXEC_NONFINITE_SCAN_H
#define TN_CORE_EXEC_NONFINITE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/env.h"

enum { TN_SEEN_FINITE = 0, TN_SEEN_INFINITE = 1, TN_SEEN_NAN = 2 };

/* What the elements of a value were. */
typedef struct tn_seen {
  int32_t kind;         /* the worst: TN_SEEN_... */
  bool looked;          /* somebody has looked at them */
  int64_t first, count; /* of those that are not finite: the first of the worst kind, and how many of any */
  double value;         /* of the first */
  double low, high;     /* of the finite ones; low > high: there are none */
} tn_seen;

/* `n` elements in a row. Of a type that is no float everything is finite. */
tn_seen tn_seen_of(int32_t dtype, const void *data, int64_t n);

#endif
