/* backends/onednn/kernels/pool.h: the inner loops of pooling, on one plane of a block of channels, or of one
 * channel, or on rows of an image with channels innermost. */
#pragma once

#include "backends/onednn/simd/loops.h"

enum { TN_POOL_COLUMNS = 1024 /* of x, with padding, of the loops over planes */ };

/* One spatial dimension of x (in) and y (out). */
typedef struct tn_pool_axis {
  int64_t in, out, kernel, stride, padding;
} tn_pool_axis;

typedef struct tn_pool_shape {
  int32_t include_pad;
  tn_pool_axis axis[2];
} tn_pool_shape;

/* low .. high-1, and the number of positions with padding. */
typedef struct tn_pool_window {
  int64_t low, high, padded;
} tn_pool_window;

/* The elements of x under window o. A last window that reaches beyond the padding (`ceil`) counts only the
 * positions within the padding. */
static inline tn_pool_window tn_pool_window_at(const tn_pool_axis *a, int64_t o) {
  int64_t start = o * a->stride - a->padding, stop = start + a->kernel, end = a->in + a->padding;
  if (stop > end) stop = end;
  return (tn_pool_window){start > 0 ? start : 0, stop < a->in ? stop : a->in, stop - start};
}

/* The windows that hold element i of x. */
static inline tn_pool_window tn_pool_windows_of(const tn_pool_axis *a, int64_t i) {
  int64_t before = i + a->padding - a->kernel + 1, after = (i + a->padding) / a->stride + 1;
  return (tn_pool_window){before > 0 ? (before + a->stride - 1) / a->stride : 0,
                          after < a->out ? after : a->out, 0};
}

/* index: of each maximum in its plane; NULL for averages. */
typedef void (*tn_pool_function)(const tn_pool_shape *s, const void *from, void *to, int32_t *index);

/* Rows first .. last-1 of the result y of an image whose pixels have `channels` channels. index may be NULL.
 */
typedef void (*tn_pool_rows_function)(const tn_pool_shape *s, int64_t channels, int64_t first, int64_t last,
                                      const void *x, void *y, int32_t *index);

enum { TN_POOL_MAX = 0, TN_POOL_MAX_GRAD = 1, TN_POOL_AVG = 2, TN_POOL_AVG_GRAD = 3, TN_POOLS = 4 };
typedef struct tn_pool_loops {
  int32_t lanes;                                /* channels of a block */
  tn_pool_function blocks[TN_POOLS][TN_DTYPES]; /* a plane of blocks */
  /* A plane. Forward: stride 1 or 2 along rows, at most TN_POOL_COLUMNS. Gradients: adjacent windows of 2
   * x 2. */
  tn_pool_function planes[TN_POOLS][TN_DTYPES];
  tn_pool_rows_function rows[TN_POOLS][TN_DTYPES]; /* not of gradients */
} tn_pool_loops;
TN_LOOPS_DECLARE(tn_pool_loops, tn_loops_pool);
