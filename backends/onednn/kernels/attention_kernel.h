/* backends/onednn/kernels/attention_kernel.h: attention and its gradient, between query, prepare and operands
 * (attention.c) and the tiles of a launch (attention_forward.c, attention_grad.c). */
#pragma once

#include <stdbool.h>

#include "backends/onednn/kernels/attention.h"
#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/kernels/transpose.h"
#include "tenon/attributes.h"
#include "tenon/plugin/kernel.h"

enum {
  TN_ATTENTION_STRIPS = TN_ATTENTION_TILE / TN_ATTENTION_STRIP,
  TN_ATTENTION_PANEL = TN_ATTENTION_TILE * TN_ATTENTION_WIDTH,
  TN_ATTENTION_TENSORS = 9 /* of a launch, at most */
};

/* The mask and the window of general_attention. Steps are elements from one item of the batch, head, query
 * and key to the next; 0: the mask is the same for all. */
typedef struct tn_attention_mask {
  int32_t dtype; /* TN_F32 or TN_BOOL; -1: there is no mask */
  int64_t step[4];
  int64_t window; /* a query sees keys at a distance below this; 0: at any */
} tn_attention_mask;

typedef struct tn_attention_kernel {
  const tn_attention_loops *loops;
  const tn_gemm_loops *gemm;
  tn_transpose_function transpose;
  int64_t batch, heads, heads_per_chunk, queries, keys, width, value_width;
  int64_t joined;            /* width of the concatenated gradients of q, k and v; 0: separate gradients */
  bool causal, side_by_side; /* the heads of a token are adjacent */
  bool general;              /* general_attention, with `mask`: a query may see no key */
  float scale;
  tn_attention_mask mask;
} tn_attention_kernel;

/* Rows of one width; row, head and batch are the distances of rows, heads and items of the batch. */
typedef struct tn_attention_operand {
  float *data;
  int64_t rows, width, row, head, batch;
} tn_attention_operand;

typedef struct tn_attention_job {
  const tn_attention_kernel *p;
  tn_launch *l;
  const char *letters; /* of each operand and result: query, key, value, mask, y, log-sum-exp */
  tn_attention_operand at[TN_ATTENTION_TENSORS]; /* all f32, but for the mask */
} tn_attention_job;

tn_status tn_attention_query(tn_query *q);
tn_status tn_attention_prepare(tn_prepare *p, void **made);
/* Calls `body` for chunks of p->heads_per_chunk heads of the batch. */
tn_status tn_attention_run(tn_launch *l, const char *letters, void (*body)(void *arg, int64_t chunk));

/* Head `index` of all heads of the batch. */
float *tn_attention_head_data(const tn_attention_kernel *p, const tn_attention_operand *operand,
                              int64_t index);
/* Converts a head of a bf16 operand to f32, or a head of a result back. */
void tn_attention_convert(const tn_attention_job *job, int32_t tensor, int64_t index);

/* ---- tiles ---------------------------------------------------------------------------------------- */

/* Rows that are `step` apart. */
typedef struct tn_attention_rows {
  float *at;
  int64_t step;
} tn_attention_rows;

tn_attention_rows tn_attention_rows_of(const tn_attention_job *job, int32_t tensor, int64_t index);
static inline tn_attention_rows tn_attention_from_row(tn_attention_rows r, int64_t n) {
  return (tn_attention_rows){r.at + n * r.step, r.step};
}

/* c = a b; a_k is the distance of the columns of a. */
void tn_attention_product(const tn_attention_kernel *p, int64_t m, int64_t n, int64_t k, tn_attention_rows a,
                          int64_t a_k, tn_attention_rows b, tn_attention_rows c);
/* Transposes n rows into columns of a panel, with zeros behind them. */
void tn_attention_transpose(const tn_attention_kernel *p, tn_attention_rows from, int64_t n, int64_t width,
                            float *panel);

/* A strip of queries and the keys of a tile that are visible to it. */
typedef struct tn_attention_view {
  int64_t rows;
  int64_t most;    /* visible to any of them */
  int64_t columns; /* computed */
  int32_t visible[TN_ATTENTION_STRIP];
} tn_attention_view;

tn_attention_view tn_attention_view_at(const tn_attention_kernel *p, int64_t query, int64_t key,
                                       int64_t keys);
