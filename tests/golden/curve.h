/* tests/golden/curve.h: compares loss curves.
 *
 * Frameworks that add in different orders round differently. Training amplifies the differences until single
 * losses differ as much as with different seeds; only the trend of the loss agrees. Curves are therefore
 * smoothed by the mean over the last steps before they are compared. */
#pragma once

#include <math.h>
#include <stddef.h>

enum { CURVE_WINDOW = 25 };

/* The mean over the CURVE_WINDOW steps up to step i, or over all steps up to i if there are fewer. */
static inline double curve_smooth(const double *losses, size_t i) {
  size_t first = i + 1 > CURVE_WINDOW ? i + 1 - CURVE_WINDOW : 0;
  double sum = 0.0;
  for (size_t k = first; k <= i; k++) sum += losses[k];
  return sum / (double)(i + 1 - first);
}

/* The absolute difference of two smoothed curves. */
typedef struct curve_gap {
  double largest, mean;
} curve_gap;

static inline curve_gap curve_apart(const double *a, const double *b, size_t n) {
  curve_gap gap = {0.0, 0.0};
  for (size_t i = 0; i < n; i++) {
    double off = fabs(curve_smooth(a, i) - curve_smooth(b, i));
    if (off > gap.largest || isnan(off)) gap.largest = off;
    gap.mean += off / (double)n;
  }
  return gap;
}
