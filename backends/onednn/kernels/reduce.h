/* backends/onednn/kernels/reduce.h: the inner loops of reductions, by operation and by the order of elements.
 *
 * An accumulator in f32 sums at most some dozens of terms; accumulators are added up in f64, so that the
 * error does not grow with the length of the sum. The squares of moments are taken relative to a value near
 * the elements of a tile and shifted back in f64, so that a mean far from 0 takes no digits of the variance.
 */
#pragma once

#include "backends/onednn/simd/loops.h"

enum { TN_REDUCE_SUM, TN_REDUCE_MAX, TN_REDUCE_MIN, TN_REDUCE_MOMENTS, TN_REDUCE_GRADS, TN_REDUCES };
enum { TN_REDUCE_COLUMNS = 256 /* of a call of `columns`, at most */ };

/* x is the operand; y is the second operand of norm_grad_sums, whose x here is dy. mean: one for each result.
 * Each function adds to sums that the caller has initialized: all first results, then all second ones. */
typedef struct tn_reduce_functions {
  /* n adjacent elements, one result. */
  void (*run)(const void *x, const void *y, int64_t n, const float *mean, double *sums);
  /* n blocks of `lanes` channels, one result for each channel. */
  void (*block)(const void *x, const void *y, int64_t n, const float *mean, double *sums);
  /* n rows of m adjacent elements, `stride` elements apart: m results. */
  void (*columns)(const void *x, const void *y, int64_t n, int64_t stride, int64_t m, const float *mean,
                  double *sums);
} tn_reduce_functions;

typedef struct tn_reduce_loops {
  int32_t lanes; /* channels of a block */
  tn_reduce_functions of[TN_REDUCES][TN_DTYPES];
  /* Stores n sums as elements. */
  void (*store[TN_DTYPES])(const double *sums, void *to, int64_t n);
} tn_reduce_loops;
TN_LOOPS_DECLARE(tn_reduce_loops, tn_loops_reduce);
