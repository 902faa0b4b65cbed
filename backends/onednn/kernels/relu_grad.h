/* backends/onednn/kernels/relu_grad.h: the inner loop of a ReLU's gradient and of the sums that the gradient
 * of the normalization before the ReLU needs. */
#pragma once

#include "backends/onednn/simd/loops.h"

/* n blocks of `lanes` channels. h = r > 0 ? dy + more : 0. The sums of h and of h (x - mean), `lanes` of
 * each, are added to `sums`. more: NULL without a second gradient. r: NULL if the ReLU's operand is (x -
 * mean) scale + shift, whose sign is that of (x - mean) scale against -shift, without a rounding. */
typedef struct tn_relu_grad {
  const void *dy, *more, *r, *x;
  void *h;
  const float *mean, *scale, *shift;
  double *sums;
} tn_relu_grad;
typedef struct tn_relu_grad_loops {
  int32_t lanes;
  void (*run[TN_DTYPES])(const tn_relu_grad *g, int64_t n);
} tn_relu_grad_loops;
TN_LOOPS_DECLARE(tn_relu_grad_loops, tn_loops_relu_grad);
