/* backends/onednn/kernels/reduce.h: the inner loops of reductions, by what they make and of which elements.
 *
 * Sums are made in f32, at most some dozens of terms an accumulator, and those are added up in f64, so that
 * their error does not grow with the length of the sum. */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_REDUCE_H
#define TN_BACKENDS_ONEDNN_KERNELS_REDUCE_H

#include "backends/onednn/simd/loops.h"

enum { TN_REDUCE_SUM, TN_REDUCE_MAX, TN_REDUCE_MIN, TN_REDUCE_MOMENTS, TN_REDUCE_GRADS, TN_REDUCES };
enum { TN_REDUCE_COLUMNS = 256 /* that a call of `columns` takes, at most */ };

/* x, and y where the reduction has two operands: the x of norm_grad_sums, whose x here is dy; mean: one for
 * each result. Each adds to sums that the caller has started: first all first ones, then all second ones. */
typedef struct tn_reduce_functions {
  /* n neighbours, one result */
  void (*run)(const void *x, const void *y, int64_t n, const float *mean, double *sums);
  /* n blocks of `lanes` channels, one result a channel */
  void (*block)(const void *x, const void *y, int64_t n, const float *mean, double *sums);
  /* n rows that lie `stride` elements apart, of m neighbours: m results */
  void (*columns)(const void *x, const void *y, int64_t n, int64_t stride, int64_t m, const float *mean,
                  double *sums);
} tn_reduce_functions;

typedef struct tn_reduce_loops {
  int32_t lanes; /* channels of a block */
  tn_reduce_functions of[TN_REDUCES][TN_DTYPES];
  /* n sums as elements */
  void (*put[TN_DTYPES])(const double *sums, void *to, int64_t n);
} tn_reduce_loops;
TN_LOOPS_DECLARE(tn_reduce_loops, tn_loops_reduce);

#endif
