/* backends/onednn/kernels/norm.h: the inner loops of layer_norm and its gradient, on one row of f32, bf16
 * or f16; weights and sums are f32. */
#pragma once

#include "backends/onednn/simd/loops.h"

/* weight and bias may be NULL. */
typedef void (*tn_norm_function)(const void *x, const float *weight, const float *bias, void *y, int64_t n,
                                 double epsilon, float *mean, float *rstd);
/* Adds the row's terms to dweight and dbias, and `more`, unless it is NULL, to dx. */
typedef void (*tn_norm_grad_function)(const void *dy, const void *x, const float *weight, float mean,
                                      float rstd, const void *more, void *dx, int64_t n, float *dweight,
                                      float *dbias);
typedef struct tn_norm_loops {
  tn_norm_function forward[TN_DTYPES];
  tn_norm_grad_function gradient[TN_DTYPES];
  /* sums += x, and x = 0 */
  void (*collect)(float *x, double *sums, int64_t n);
} tn_norm_loops;
TN_LOOPS_DECLARE(tn_norm_loops, tn_loops_norm);
