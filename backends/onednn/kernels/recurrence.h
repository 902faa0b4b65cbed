/* backends/onednn/kernels/recurrence.h: inner loops of recurrence and its gradient: products of some rows
 * with a packed weight, and the cells. Arithmetic and states are f32; elements of operands and results are
 * f32, bf16 or f16.
 *
 * A panel has the columns of a weight that a tile computes, line by line: of lstm and gru one vector of units
 * for each gate, so that a tile has all gates of its units; else four vectors of columns. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/simd/loops.h"

enum {
  TN_RECURRENCE_ROWS = 18,  /* of a product, at most */
  TN_RECURRENCE_BLOCKS = 4, /* vectors of a panel's line, at most */
  TN_RECURRENCE_WIDTH = 64, /* columns of a panel, at most */
  TN_RECURRENCE_DTYPES = TN_F32 + 1,
  TN_RECURRENCE_TILE_ROWS = 16, /* of a product by tiles, at most */
  TN_RECURRENCE_TILE_DEPTH = 32 /* elements of bf16 in a row of a tile */
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
  bool x_is_f32;  /* where other elements are not */
  const void *x;  /* gates of the input */
  const float *p; /* of the state, with its bias */
  const float *h; /* the state before the step */
  float *c;       /* lstm: the state c, which the step replaces */
  float *next;    /* the state behind the step */
  void *y;        /* the same as elements; of f32 it is `next` */
  void *stored;   /* as the op defines it; NULL: not wanted */
} tn_recurrence_cell;

/* One step of one sequence back, as TYPED(lstm_grad) of backends/cpu/kernels/recurrence_typed.h. */
typedef struct tn_recurrence_cell_grad {
  int64_t n;
  const void *stored, *y, *dy; /* dy: NULL for zeros */
  const float *h;              /* the state before the step */
  const void *c;               /* NULL: zeros */
  float *dh, *dc;
  void *d;  /* gradients of the gates */
  float *p; /* of the part that comes from the state; of f32 and but for gru it is `d` */
} tn_recurrence_cell_grad;

typedef struct tn_recurrence_loops {
  int64_t lanes;
  /* The panel of columns, whose numbers are rows of w with k elements, from element `at` on: vector v has
   * `lanes` rows from v * step on, of which `n[v]` exist; the others are zero. */
  void (*pack_rows)(int32_t dtype, const void *w, int64_t at, int64_t k, int64_t step, const int64_t *n,
                    int64_t blocks, float *panel);
  /* The panel of the first n columns of w from element `at` on, which has k lines of `width` elements. */
  void (*pack_lines)(int32_t dtype, const void *w, int64_t at, int64_t k, int64_t width, int64_t n,
                     float *panel);
  /* The same for tiles, of bf16. */
  void (*pack_pairs)(const void *w, int64_t at, int64_t k, int64_t width, int64_t n, float *panel);
  void (*multiply)(const tn_recurrence_product *p);
  /* n elements from element `at` on to f32, and back. */
  void (*widen)(int32_t dtype, const void *from, int64_t at, int64_t n, float *to);
  void (*narrow)(int32_t dtype, const float *from, int64_t n, void *to, int64_t at);
  /* by dtype and TN_CELL_... */
  void (*cell[TN_RECURRENCE_DTYPES][4])(const tn_recurrence_cell *c);
  void (*cell_grad[TN_RECURRENCE_DTYPES][4])(const tn_recurrence_cell_grad *c);
} tn_recurrence_loops;
TN_LOOPS_DECLARE(tn_recurrence_loops, tn_loops_recurrence);

/* recurrence_tiles.c: the same product, of rows that are rounded to bf16 and a panel of bf16: a line has two
 * elements of each column, and zeros fill the panel up to a multiple of TN_RECURRENCE_TILE_DEPTH elements of
 * k. k is even. */
bool tn_onednn_recurrence_has_tiles(int32_t isa);
void tn_onednn_recurrence_tiles(const tn_recurrence_product *p);
