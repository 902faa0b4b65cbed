/* backends/cpu/kernels/common/rows.h: the loops of softmax, cross entropy and layer norm over the rows of a
 * tensor. The tensor has the shape (outer, n, inner); a row is the n elements along the axis. If inner is 1,
 * a row is contiguous and is computed tile by tile. Otherwise TN_ROW_BLOCK neighbouring rows are computed
 * together, element by element. Arithmetic is in f32, for f64 in f64; sums are in f64. */
#pragma once

#include "backends/cpu/kernels/common/lane.h"
#include "backends/shared/integer_math.h"

enum { TN_ROW_BLOCK = 256, TN_ROW_CHUNK = 1 << 14 /* least elements per chunk */ };

/* A tile of either type. */
typedef union tn_row_tile {
  float f32[TN_TILE];
  double f64[TN_TILE];
} tn_row_tile;

/* Functions of n elements at x, f32 or f64. The first group takes n neighbours of one row. The second group,
 * each_..., takes one element of each of n rows; maxima so far are arrays of x's type, sums arrays of double.
 */
typedef struct tn_row_functions {
  double (*largest)(const void *x, int64_t n, double so_far); /* NaN if an element is NaN */
  double (*sum)(const void *x, int64_t n);
  double (*sum_exp)(const void *x, int64_t n, double shift);                       /* of exp(x - shift) */
  double (*sum_squares)(const void *x, int64_t n, double shift);                   /* of (x - shift)^2 */
  void (*softmax)(const void *x, void *y, int64_t n, double shift, double sum);    /* exp(x - shift) / sum */
  void (*difference)(const void *x, void *y, int64_t n, double shift, double log); /* (x - shift) - log */
  void (*scale)(const void *x, void *y, int64_t n, double shift, double scale);    /* (x - shift) * scale */

  void (*each_largest)(const void *x, int64_t n, void *so_far);
  void (*each_sum)(const void *x, int64_t n, double *sum);
  void (*each_sum_exp)(const void *x, int64_t n, const void *shift, double *sum);
  void (*each_softmax)(const void *x, void *y, int64_t n, const void *shift, const double *sum);
  void (*each_difference)(const void *x, void *y, int64_t n, const void *shift, const double *log);
} tn_row_functions;

/* The functions for this element type. */
const tn_row_functions *tn_row_functions_of(int32_t dtype);

/* The n elements from `at` in the functions' type: a pointer to them, or to the tile if they are converted.
 */
const void *tn_row_load(const tn_view *view, int64_t at, int64_t n, tn_row_tile *tile);
/* tn_row_begin returns where the caller writes n elements from `at`: in the tensor, or in the tile if they
 * are converted. tn_row_end stores the tile. */
void *tn_row_begin(const tn_view *view, int64_t at, tn_row_tile *tile);
void tn_row_end(const tn_view *view, int64_t at, int64_t n, const tn_row_tile *tile);

/* A tensor as (outer, n, inner), and its division into tasks; a task is one row or a block of rows. */
typedef struct tn_rows {
  int64_t outer, n, inner;
  int64_t blocks, tasks, tasks_per_chunk, chunks;
} tn_rows;

tn_rows tn_rows_of(const tn_type *type, int64_t axis);
/* The same for rows that span the last `trailing` dimensions. */
tn_rows tn_rows_trailing(const tn_type *type, int64_t trailing);
