/* backends/onednn/kernels/recurrence.h: inner loops of recurrence and its gradient in f32: products of some
 * rows with a packed weight, and the cells.
 *
 * A panel has the columns of a weight that a tile computes, line by line: of lstm and gru one vector of units
 * for each gate, so that a tile has all gates of its units; else four vectors of columns. */
#pragma once

#include "backends/onednn/simd/loops.h"

enum {
  TN_RECURRENCE_ROWS = 18,  /* of a product, at most */
  TN_RECURRENCE_BLOCKS = 4, /* vectors of a panel's line, at most */
  TN_RECURRENCE_WIDTH = 64  /* columns of a panel, at most */
};

/* out = first + a panel, for each of some rows */
typedef struct tn_recurrence_product {
  int64_t rows, k, blocks; /* blocks: vectors of a line of the panel, 3 or TN_RECURRENCE_BLOCKS */
  const float *panel, *a[TN_RECURRENCE_ROWS], *first[TN_RECURRENCE_ROWS];
  float *out[TN_RECURRENCE_ROWS];
} tn_recurrence_product;

/* Some units of one step of one sequence. Gate g lies at x + g * x_step and at p + g * p_step. */
typedef struct tn_recurrence_cell {
  int64_t n, x_step, p_step, stored_step;
  const float *x, *p; /* of the input; of the state, with its bias */
  const float *h;     /* the state before the step */
  float *c;           /* lstm: the state c, which the step replaces */
  float *y;           /* the state behind the step */
  float *stored;      /* as the op defines it; NULL: not wanted */
} tn_recurrence_cell;

/* One step of one sequence back, as TYPED(lstm_grad) of backends/cpu/kernels/recurrence_typed.h. */
typedef struct tn_recurrence_cell_grad {
  int64_t n;
  const float *stored, *y, *dy; /* dy: NULL for zeros */
  const float *h, *c;           /* the state before the step; c: NULL for zeros */
  float *dh, *dc;
  float *d, *p; /* gradients of the gates, and of the part that comes from the state: may be the same */
} tn_recurrence_cell_grad;

typedef struct tn_recurrence_loops {
  int64_t lanes;
  /* The panel of columns, whose numbers are rows of w with k elements: vector v has `lanes` rows from
   * v * step on, of which `n[v]` exist; the others are zero. */
  void (*pack_rows)(const float *w, int64_t k, int64_t step, const int64_t *n, int64_t blocks, float *panel);
  /* The panel of the first n columns of w, which has k lines of `width` elements. */
  void (*pack_lines)(const float *w, int64_t k, int64_t width, int64_t n, float *panel);
  void (*multiply)(const tn_recurrence_product *p);
  void (*cell[4])(const tn_recurrence_cell *c);           /* by TN_CELL_... */
  void (*cell_grad[4])(const tn_recurrence_cell_grad *c); /* by TN_CELL_... */
} tn_recurrence_loops;
TN_LOOPS_DECLARE(tn_recurrence_loops, tn_loops_recurrence);
