/* backends/onednn/kernels/relu_grad.h: the inner loop of a ReLU's gradient and of the sums that the gradient
 * of the normalization in front of it needs. */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_RELU_GRAD_H
#define TN_BACKENDS_ONEDNN_KERNELS_RELU_GRAD_H

#include "backends/onednn/simd/loops.h"

/* n blocks of `lanes` channels. h = r > bound ? dy + more : otherwise; sums: of h, and of h (x - mean),
 * `lanes` of each, are added to. more: NULL where there is none. */
typedef struct tn_gate {
  const void *dy, *more, *r, *x;
  void *h;
  const void *bound, *otherwise; /* one element each */
  const float *mean;
  double *sums;
} tn_gate;
typedef struct tn_gate_loops {
  int32_t lanes;
  void (*run[TN_DTYPES])(const tn_gate *g, int64_t n);
} tn_gate_loops;
TN_LOOPS_DECLARE(tn_gate_loops, tn_loops_gate);

#endif
