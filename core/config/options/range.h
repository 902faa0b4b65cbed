/* core/config/options/range.h: ranges of numbers: "> 0", ">= 1", "< 2", "<= 3", "[0, 1)". */
#pragma once

#include <stdbool.h>

typedef struct tn_range {
  double low, high; /* -INFINITY, INFINITY where there is no bound, and open there */
  bool low_open, high_open;
} tn_range;

/* False: the text is no range. */
bool tn_range_read(const char *text, tn_range *range);
