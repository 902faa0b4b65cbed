/* backends/onednn/kernels/softmax.h: the inner loops of softmax, log_softmax and cross entropy, on one row of
 * n > 0 contiguous elements, f32, bf16 or f16. */
#pragma once

#include "backends/onednn/simd/loops.h"

/* largest: NaN if an element is; exps: the sum of exp(x - largest); picked: x[pick]; sum: of x, if `all` is
 * set.
 */
typedef struct tn_softmax_sums {
  float largest, picked;
  double exps, sum;
} tn_softmax_sums;
typedef struct tn_softmax_loops {
  tn_softmax_sums (*sums[TN_DTYPES])(const void *x, int64_t n, int64_t pick, int32_t all);
  void (*softmax[TN_DTYPES])(const void *x, void *y, int64_t n);
  void (*log_softmax[TN_DTYPES])(const void *x, void *y, int64_t n);
} tn_softmax_loops;
TN_LOOPS_DECLARE(tn_softmax_loops, tn_loops_softmax);
