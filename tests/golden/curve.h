/* tests/golden/curve.h: how curves of losses are compared.
 *
 * Two frameworks that add in different orders drift apart as two seeds do once a net has multiplied their
 * roundings up to the size of a step's noise; what then still has to agree is where the loss goes. So curves
 * are compared smoothed, by their mean over the last steps. */
#ifndef TN_TESTS_GOLDEN_CURVE_H
#define TN_TESTS_GOLDEN_CURVE_H

#include <math.h>
#include <stddef.h>

enum { CURVE_WINDOW = 25 };

/* The mean over the CURVE_WINDOW steps that end with step i, or over as many as there are. */
static inline double curve_smooth(const double *losses, size_t i) {
  size_t first = i + 1 > CURVE_WINDOW ? i + 1 - CURVE_WINDOW : 0;
  double sum = 0.0;
  for (size_t k = first; k <= i; k++) sum += losses[k];
  return sum / (double)(i + 1 - first);
}

/* Of |difference| of two smoothed curves. */
typedef struct curve_gap {
  double largest, mean;
} curve_gap;

static inline curve_gap curve_apart(const double *a, const double *b, size_t n) {
  curve_gap gap = {0.0, 0.0};
  for (size_t i = 0; i < n; i++) {
    double off = fabs(curve_smooth(a, i) - curve_smooth(b, i));
    gap.largest = fmax(gap.largest, off);
    gap.mean += off / (double)n;
  }
  return gap;
}

#endif
