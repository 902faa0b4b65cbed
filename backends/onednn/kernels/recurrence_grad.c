/* backends/onednn/kernels/recurrence_grad.c: the gradient of recurrence in f32. A task takes some sequences
 * back through all steps: in each step it computes the gradients of their gates, and multiplies these by the
 * weight. The gradient of the weight is one product of all steps at the end. */
#include "backends/onednn/kernels/recurrence_sequences.h"
#include "backends/shared/define_kernel.h"

/* ---- backward ------------------------------------------------------------------------------------ */

/* The panels of the product that leads back through a step: columns of the weight. */
static void recurrence_pack_columns(void *arg, int64_t panel) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  int64_t width = BLOCKS * p->loops->lanes, first = panel * width, k = recurrence_columns(p);
  p->loops->pack_lines((float *)j->l->in[GRAD_WEIGHT].data + first, k, p->units,
                       least(width, p->units - first), j->panels + first * k);
}

/* The gradients of the gates of one step, and the state before it beside them. */
static void recurrence_cell_back(const recurrence_job *j, int64_t row, int64_t k, float *dh) {
  const recurrence_kernel *p = j->p;
  int64_t n = p->units, at = recurrence_at(j, row, k), width = p->stored * n;
  int64_t before = k > 0 ? recurrence_at(j, row, k - 1) : 0;
  const float *y = j->l->in[GRAD_Y].data, *stored = j->l->in[GRAD_STORED].data, *dy = j->l->in[GRAD_DY].data,
              *c = j->l->in[GRAD_C].data;
  float *h = j->state + at * n;
  if (k > 0)
    memcpy(h, y + before * n, (size_t)n * sizeof *h);
  else
    recurrence_load_state(j, GRAD_H, row, h);
  p->loops->cell_grad[p->a.cell](
      &(tn_recurrence_cell_grad){.n = n,
                                 .stored = stored + at * width,
                                 .y = y + at * n,
                                 .dy = dy != NULL ? dy + at * n : NULL,
                                 .h = h,
                                 .c = p->a.cell != TN_CELL_LSTM ? NULL
                                      : k > 0                   ? stored + before * width + 4 * n
                                      : c != NULL               ? c + row * n
                                                                : NULL,
                                 .dh = dh,
                                 .dc = (float *)j->l->out[4].data + row * n,
                                 .d = (float *)j->l->out[0].data + at * recurrence_columns(p),
                                 .p = j->product + at * recurrence_columns(p)});
}

/* dh += p w, of at most ROWS sequences in step k. */
static void recurrence_step_back(const recurrence_job *j, const int64_t *rows, int64_t n, int64_t k,
                                 float *dh) {
  const recurrence_kernel *p = j->p;
  int64_t width = BLOCKS * p->loops->lanes, depth = recurrence_columns(p);
  tn_recurrence_product m = {.rows = n, .k = depth, .blocks = BLOCKS};
  float *of_row[ROWS];
  for (int64_t i = 0; i < n; i++) {
    of_row[i] = dh + rows[i] % p->rows * recurrence_padded(p);
    recurrence_cell_back(j, rows[i], k, of_row[i]);
    m.a[i] = j->product + recurrence_at(j, rows[i], k) * depth;
  }
  for (int64_t first = 0; first < p->units; first += width) {
    m.panel = j->panels + first * depth;
    for (int64_t i = 0; i < n; i++) m.first[i] = m.out[i] = of_row[i] + first;
    p->loops->multiply(&m);
  }
}

static void recurrence_backward(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  int64_t first = task * p->rows, end = least(first + p->rows, p->batch), rows[ROWS];
  float *dh = j->dh + first * recurrence_padded(p);
  for (int64_t row = first; row < end; row++) {
    recurrence_load_state(j, GRAD_LAST, row, j->dh + row * recurrence_padded(p));
    if (p->a.cell == TN_CELL_LSTM)
      recurrence_load_state(j, GRAD_CELL, row, (float *)j->l->out[4].data + row * p->units);
  }
  for (int64_t k = p->steps - 1; k >= 0; k--) {
    int64_t n = recurrence_active(j, task, k, rows);
    if (n > 0) recurrence_step_back(j, rows, n, k, dh);
  }
  for (int64_t row = first; row < end; row++)
    memcpy((float *)j->l->out[3].data + row * p->units, j->dh + row * recurrence_padded(p),
           (size_t)p->units * sizeof *dh);
}

/* ---- the gradient of the weight ------------------------------------------------------------------- */

static float *recurrence_parts(const recurrence_job *j) {
  return j->scratch + j->p->weight.chunks * j->p->weight.scratch_bytes / (int64_t)sizeof(float);
}

static void recurrence_weight_chunk(void *arg, int64_t chunk) {
  const recurrence_job *j = arg;
  const tn_gemm_partition *g = &j->p->weight;
  const tn_gemm_epilogue none = {.op = TN_EPILOGUE_NONE};
  const tn_gemm_matrices x = {.a = j->product, .b = j->state, .c = j->l->out[1].data};
  int64_t count, first = tn_gemm_chunk_items(g, chunk, &count);
  for (int64_t item = first; item < first + count; item++) {
    tn_gemm_extent range;
    tn_gemm_item_range(g, item, &range);
    tn_gemm_run_range(g, j->p->gemm, &x, &none, &range,
                      j->scratch + chunk * g->scratch_bytes / (int64_t)sizeof(float), recurrence_parts(j));
    if (g->method != TN_GEMM_GATHERED && range.n0 == 0)
      j->p->gemm->sum_rows(j->product + range.m0, g->m, g->k, range.m, (float *)j->l->out[2].data + range.m0);
  }
}

static void recurrence_weight_join(void *arg, int64_t chunk) {
  const recurrence_job *j = arg;
  tn_gemm_join_chunk(&j->p->weight, j->p->gemm, recurrence_parts(j), chunk, j->l->out[1].data,
                     j->l->out[2].data);
}

static tn_status onednn_recurrence_grad_launch(tn_launch *l) {
  const recurrence_kernel *p = l->prepared;
  recurrence_job j = {.l = l, .p = p, .length = l->in[GRAD_LENGTH].data, .panels = l->workspace};
  TN_TRY(tn_check_sequence_lengths(l, j.length, p->batch, p->steps));
  if (p->units == 0) return TN_OK;
  int64_t own = recurrence_product_floats(p);
  j.dh = j.panels + recurrence_padded(p) * recurrence_columns(p);
  j.state = j.dh + p->batch * recurrence_padded(p);
  j.product = own > 0 ? j.state + recurrence_state_floats(p) : l->out[0].data;
  j.scratch = j.state + recurrence_state_floats(p) + own;
  if (j.length != NULL) {
    recurrence_clear(&l->out[0]);
    memset(j.state, 0, (size_t)(j.scratch - j.state) * sizeof(float));
  }
  tn_parallel(l, divide_up(p->units, BLOCKS * p->loops->lanes), recurrence_pack_columns, &j);
  tn_parallel(l, recurrence_tasks(p), recurrence_backward, &j);
  tn_parallel(l, p->weight.chunks, recurrence_weight_chunk, &j);
  if (p->weight.joins > 0) tn_parallel(l, p->weight.joins, recurrence_weight_join, &j);
  return TN_OK;
}

/* ---- query ---- */

static tn_status onednn_recurrence_grad_query(tn_query *q) {
  TN_TRY(tn_onednn_recurrence_check(q));
  recurrence_kernel p;
  tn_onednn_recurrence_make(q->match, q->backend, &p);
  int64_t floats = recurrence_padded(&p) * (recurrence_columns(&p) + p.batch) + recurrence_state_floats(&p) +
                   recurrence_product_floats(&p);
  return tn_onednn_recurrence_offer(q, &p,
                                    floats + tn_gemm_workspace_bytes(&p.weight) / (int64_t)sizeof(float), 2);
}

TN_DEFINE_KERNEL(
    onednn, recurrence_grad, "onednn_recurrence_grad",
    "dx, dw, dbias, dh, dc = recurrence_grad(w, h?, c?, length?, y, stored, dy?, dlast?, dcell?)",
    "some sequences back through all steps in each task, then the gradient of w as one product",
    .query = onednn_recurrence_grad_query, .prepare = tn_onednn_recurrence_prepare,
    .release = tn_delete_prepared, .launch = onednn_recurrence_grad_launch);
