/* core/ops/quantize.h: the numbers of fake quantization: for the formula of the op, and in C for what writes
 * the scales to a file. */
#pragma once

#include <stdint.h>

/* The grid of a range from `low` to `high`, which contains 0: the numbers (0 .. n) - z, times s. Number z is
 * 0. STEP(name, value) defines each name. */
#define TN_QUANTIZE_GRID(STEP)                                                                               \
  STEP(l, minimum(low, 0))                                                                                   \
  STEP(h, maximum(high, 0))                                                                                  \
  STEP(s, maximum((h - l) / n, 1.1920928955078125e-07))                                                      \
  STEP(z, minimum(maximum(-round(l / s), 0), n))

/* The greatest of the whole numbers of a weight, which are symmetric. */
static inline int tn_quantize_greatest(int64_t bits) { return (1 << (bits - 1)) - 1; }
