/* backends/cpu/kernels/rows.h: what softmax, cross entropy and layer norm do to the rows of a tensor
 * seen as (outer, n, inner): a row is the n elements along an axis. Where inner is 1 a row lies in one
 * piece and is worked through tile by tile; else TN_ROW_BLOCK neighbouring rows are worked through
 * side by side, element by element. Arithmetic is in f32, f64 for f64; sums are in f64. */
#ifndef TN_BACKENDS_CPU_KERNELS_ROWS_H
#define TN_BACKENDS_CPU_KERNELS_ROWS_H

#include "backends/cpu/kernels/lane.h"

enum { TN_ROW_BLOCK = 256, TN_ROW_CHUNK = 1 << 14 /* elements that a chunk should at least have */ };

/* Space for a tile in either type. */
typedef union tn_row_tile {
  float f32[TN_TILE];
  double f64[TN_TILE];
} tn_row_tile;

/* Functions of n elements at x, f32 or f64. The upper ones take neighbours in a row; the lower ones one
 * element of each of n rows, whose results so far are in arrays of the same type, sums in double. */
typedef struct tn_row_functions {
  double (*largest)(const void *x, int64_t n, double so_far); /* NaN if there is one */
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

/* For tensors of this element type. */
const tn_row_functions *tn_row_functions_of(int32_t dtype);

/* The n elements at `at` in the functions' type: where they lie, or converted into the tile. */
const void *tn_row_load(const tn_view *view, int64_t at, int64_t n, tn_row_tile *tile);
/* Where to write n elements that will lie at `at`: there, or into the tile; and the end of it, which
 * stores a tile that was not written in place. */
void *tn_row_begin(const tn_view *view, int64_t at, tn_row_tile *tile);
void tn_row_end(const tn_view *view, int64_t at, int64_t n, const tn_row_tile *tile);

/* A tensor as (outer, n, inner), and its rows as tasks: one row, or a block of neighbouring ones. */
typedef struct tn_rows {
  int64_t outer, n, inner;
  int64_t blocks, tasks, tasks_per_chunk, chunks;
} tn_rows;

tn_rows tn_rows_of(const tn_type *type, int64_t axis);
/* The same for rows that are the last dimensions. */
tn_rows tn_rows_trailing(const tn_type *type, int64_t trailing);

#endif
