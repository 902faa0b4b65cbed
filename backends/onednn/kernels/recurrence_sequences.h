/* backends/onednn/kernels/recurrence_sequences.h: what recurrence and its gradient share: the prepared
 * kernel, sizes of the workspace, and the sequences of a task. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "backends/onednn/kernels/gemm/gemm.h"
#include "backends/onednn/kernels/recurrence.h"
#include "backends/shared/integer_math.h"
#include "backends/shared/sequence.h"
#include "tenon/attributes.h"

enum { ROWS = TN_RECURRENCE_ROWS, WIDTH = TN_RECURRENCE_WIDTH, BLOCKS = TN_RECURRENCE_BLOCKS };

typedef struct recurrence_kernel {
  tn_recurrence_attributes a;
  int32_t dtype; /* f32, or bf16 or f16: then states and sums are f32 in the workspace */
  const tn_recurrence_loops *loops;
  int64_t batch, steps, units, gates, stored;
  bool tiles;               /* products are computed by recurrence_tiles.c, on panels of bf16 */
  bool whole;               /* the product of the input is part of the match */
  int64_t features;         /* of the input: k of that product */
  int64_t rows;             /* sequences of a task */
  int64_t ahead;            /* steps whose input a task multiplies at once */
  tn_gemm_partition weight; /* of the gradient: its product, and the loops */
  const tn_gemm_loops *gemm;
} recurrence_kernel;

typedef struct recurrence_job {
  const tn_launch *l;
  const recurrence_kernel *p;
  const int32_t *length;                         /* NULL: all sequences have all steps */
  float *panels, *input, *bias, *zeros, *inputs; /* of the workspace: panels of both weights, their biases */
  float *states, *cells, *features; /* of a sequence: h behind two steps, c, and the input of a step */
  float *product, *state, *dh, *dc, *dw, *dbias, *scratch; /* of the gradient */
} recurrence_job;

/* ---- sizes --------------------------------------------------------------------------------------- */

static inline int64_t recurrence_blocks(const recurrence_kernel *p) {
  return p->gates == 1 ? BLOCKS : p->gates;
}
/* The units of a panel, and its columns. */
static inline int64_t recurrence_panel_units(const recurrence_kernel *p) {
  return p->loops->lanes * (p->gates == 1 ? BLOCKS : 1);
}
static inline int64_t recurrence_panel_width(const recurrence_kernel *p) {
  return p->loops->lanes * recurrence_blocks(p);
}
static inline int64_t recurrence_panels(const recurrence_kernel *p) {
  return divide_up(p->units, recurrence_panel_units(p));
}
static inline int64_t recurrence_tasks(const recurrence_kernel *p) { return divide_up(p->batch, p->rows); }

/* Lines of a panel, whose numbers are f32, or pairs of bf16. */
static inline int64_t recurrence_lines(const recurrence_kernel *p, int64_t k) {
  return p->tiles ? round_up(k, TN_RECURRENCE_TILE_DEPTH) / 2 : k;
}
/* Floats of the parts of the workspace, each a multiple of a cache line. */
static inline int64_t recurrence_panel_floats(const recurrence_kernel *p, int64_t k) {
  return round_up(recurrence_panels(p) * recurrence_panel_width(p) * recurrence_lines(p, k), WIDTH);
}
/* Biases of both weights, in panels. */
static inline int64_t recurrence_bias_rows(const recurrence_kernel *p) {
  return round_up(2 * recurrence_panels(p) * recurrence_panel_width(p), WIDTH);
}
static inline int64_t recurrence_padded(const recurrence_kernel *p) { return round_up(p->units, WIDTH); }
static inline int64_t recurrence_input_floats(const recurrence_kernel *p) {
  return recurrence_tasks(p) * p->ahead * p->rows * recurrence_panels(p) * recurrence_panel_width(p);
}
static inline bool recurrence_is_half(const recurrence_kernel *p) { return p->dtype != TN_F32; }
/* Of halves alone: what in f32 are operands and results. */
static inline int64_t recurrence_half_floats(const recurrence_kernel *p, int64_t floats) {
  return recurrence_is_half(p) ? round_up(floats, WIDTH) : 0;
}
static inline int64_t recurrence_feature_floats(const recurrence_kernel *p) {
  return recurrence_half_floats(p, recurrence_tasks(p) * p->ahead * p->rows * p->features);
}
static inline int64_t recurrence_state_rows(const recurrence_kernel *p) {
  return recurrence_half_floats(p, p->batch * p->units);
}
static inline int64_t recurrence_forward_floats(const recurrence_kernel *p) {
  return recurrence_panel_floats(p, p->units) + recurrence_panel_floats(p, p->features) +
         recurrence_bias_rows(p) + recurrence_padded(p) + recurrence_input_floats(p) +
         recurrence_feature_floats(p) + 3 * recurrence_state_rows(p);
}
static inline int64_t recurrence_columns(const recurrence_kernel *p) { return p->gates * p->units; }
static inline int64_t recurrence_all(const recurrence_kernel *p) { return p->batch * p->steps; }
static inline int64_t recurrence_state_floats(const recurrence_kernel *p) {
  return round_up(recurrence_all(p) * p->units, WIDTH);
}
static inline int64_t recurrence_product_floats(const recurrence_kernel *p) {
  bool own = p->a.cell == TN_CELL_GRU || recurrence_is_half(p);
  return own ? round_up(recurrence_all(p) * recurrence_columns(p), WIDTH) : 0;
}
static inline int64_t recurrence_weight_floats(const recurrence_kernel *p) {
  return recurrence_half_floats(p, recurrence_columns(p) * p->units);
}
static inline int64_t recurrence_back_floats(const recurrence_kernel *p) {
  return recurrence_padded(p) * recurrence_lines(p, recurrence_columns(p));
}
static inline int64_t recurrence_bias_floats(const recurrence_kernel *p) {
  return recurrence_half_floats(p, recurrence_columns(p));
}
static inline int64_t recurrence_grad_floats(const recurrence_kernel *p) {
  return recurrence_back_floats(p) + recurrence_padded(p) * p->batch + recurrence_state_rows(p) +
         recurrence_weight_floats(p) + recurrence_bias_floats(p) + recurrence_state_floats(p) +
         recurrence_product_floats(p) + tn_gemm_workspace_bytes(&p->weight) / (int64_t)sizeof(float);
}

/* ---- sequences ----------------------------------------------------------------------------------- */

static inline int64_t recurrence_length(const recurrence_job *j, int64_t row) {
  return tn_sequence_length(j->length, row, j->p->steps);
}

/* The number of step k of a sequence among all steps of all sequences. */
static inline int64_t recurrence_at(const recurrence_job *j, int64_t row, int64_t k) {
  return row * j->p->steps + (j->p->a.reverse ? recurrence_length(j, row) - 1 - k : k);
}

/* The sequences of a task that have a step k. Returns how many. */
static inline int64_t recurrence_active(const recurrence_job *j, int64_t task, int64_t k, int64_t *rows) {
  int64_t n = 0, end = least((task + 1) * j->p->rows, j->p->batch);
  for (int64_t row = task * j->p->rows; row < end; row++)
    if (k < recurrence_length(j, row)) rows[n++] = row;
  return n;
}

static inline void recurrence_multiply_rows(const recurrence_kernel *p, const tn_recurrence_product *m) {
  (p->tiles ? tn_onednn_recurrence_tiles : p->loops->multiply)(m);
}

static inline void recurrence_clear(const tn_view *v) { memset(v->data, 0, tn_type_bytes(&v->type)); }

/* Element `at` of a tensor of the dtype of the launch; NULL of NULL. */
static inline void *recurrence_element(const recurrence_kernel *p, void *base, int64_t at) {
  return base != NULL ? (uint8_t *)base + at * (int64_t)tn_dtype_size(p->dtype) : NULL;
}

/* A row of units of an operand that may be absent: then zeros. */
static inline void recurrence_load_state(const recurrence_job *j, int32_t operand, int64_t row, float *to) {
  const void *from = j->l->in[operand].data;
  int64_t n = j->p->units;
  if (from != NULL)
    j->p->loops->widen(j->p->dtype, from, row * n, n, to);
  else
    memset(to, 0, (size_t)n * sizeof *to);
}

static inline void recurrence_store_state(const recurrence_job *j, int32_t result, int64_t row,
                                          const float *from) {
  int64_t n = j->p->units;
  j->p->loops->narrow(j->p->dtype, from, n, j->l->out[result].data, row * n);
}

/* ---- of both kernels (recurrence.c) --------------------------------------------------------------- */

enum { GRAD_WEIGHT, GRAD_H, GRAD_C, GRAD_LENGTH, GRAD_Y, GRAD_STORED, GRAD_DY, GRAD_LAST, GRAD_CELL };

void tn_onednn_recurrence_make(const tn_match *m, const void *backend, recurrence_kernel *p);
tn_status tn_onednn_recurrence_check(tn_query *q);
/* The only variant: floats of the workspace, and how often the products of the forward pass are computed. */
tn_status tn_onednn_recurrence_offer(tn_query *q, const recurrence_kernel *p, int64_t floats, double times);
tn_status tn_onednn_recurrence_prepare(tn_prepare *p, void **made);
