/* backends/onednn/kernels/recurrence_grad.c: the gradient of recurrence in f32, bf16 and f16. A task takes
 * some sequences back through all steps: in each step it computes the gradients of their gates, and
 * multiplies these by the weight. The gradient of the weight is one product of all steps at the end.
 * Arithmetic is f32, and results of halves are rounded once. */
#include "backends/onednn/kernels/recurrence_sequences.h"
#include "backends/shared/define_kernel.h"

/* ---- backward ------------------------------------------------------------------------------------ */

/* The panels of the product that leads back through a step: columns of the weight. */
static void recurrence_pack_columns(void *arg, int64_t panel) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  int64_t width = BLOCKS * p->loops->lanes, first = panel * width, k = recurrence_columns(p);
  const void *w = j->l->in[GRAD_WEIGHT].data;
  int64_t n = least(width, p->units - first), lines = recurrence_lines(p, k);
  float *to = j->panels + first * lines;
  if (!p->tiles) {
    p->loops->pack_lines(p->dtype, w, first, k, p->units, n, to);
    return;
  }
  p->loops->pack_pairs(w, first, k, p->units, n, to);
  memset(to + k / 2 * width, 0, (size_t)((lines - k / 2) * width) * sizeof *to);
}

/* The state c of lstm before step k; NULL: zeros. */
static const void *recurrence_cell_before(const recurrence_job *j, int64_t row, int64_t k) {
  const recurrence_kernel *p = j->p;
  int64_t n = p->units;
  if (p->a.cell != TN_CELL_LSTM) return NULL;
  if (k == 0) return recurrence_element(p, j->l->in[GRAD_C].data, row * n);
  return recurrence_element(p, j->l->in[GRAD_STORED].data,
                            (recurrence_at(j, row, k - 1) * p->stored + 4) * n);
}

/* The gradients of the gates of one step, and the state before it beside them. */
static void recurrence_cell_back(const recurrence_job *j, int64_t row, int64_t k, float *dh) {
  const recurrence_kernel *p = j->p;
  int64_t n = p->units, at = recurrence_at(j, row, k), columns = recurrence_columns(p);
  float *h = j->state + at * n;
  if (k > 0)
    p->loops->widen(p->dtype, j->l->in[GRAD_Y].data, recurrence_at(j, row, k - 1) * n, n, h);
  else
    recurrence_load_state(j, GRAD_H, row, h);
  p->loops->cell_grad[p->dtype][p->a.cell](&(tn_recurrence_cell_grad){
      .n = n,
      .stored = recurrence_element(p, j->l->in[GRAD_STORED].data, at * p->stored * n),
      .y = recurrence_element(p, j->l->in[GRAD_Y].data, at * n),
      .dy = recurrence_element(p, j->l->in[GRAD_DY].data, at * n),
      .h = h,
      .c = recurrence_cell_before(j, row, k),
      .dh = dh,
      .dc = j->dc + row * n,
      .d = recurrence_element(p, j->l->out[0].data, at * columns),
      .p = j->product + at * columns});
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
    m.panel = j->panels + first * recurrence_lines(p, depth);
    for (int64_t i = 0; i < n; i++) m.first[i] = m.out[i] = of_row[i] + first;
    recurrence_multiply_rows(p, &m);
  }
}

static void recurrence_backward(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  int64_t first = task * p->rows, end = least(first + p->rows, p->batch), rows[ROWS];
  float *dh = j->dh + first * recurrence_padded(p);
  for (int64_t row = first; row < end; row++) {
    recurrence_load_state(j, GRAD_LAST, row, j->dh + row * recurrence_padded(p));
    if (p->a.cell == TN_CELL_LSTM) recurrence_load_state(j, GRAD_CELL, row, j->dc + row * p->units);
  }
  for (int64_t k = p->steps - 1; k >= 0; k--) {
    int64_t n = recurrence_active(j, task, k, rows);
    if (n > 0) recurrence_step_back(j, rows, n, k, dh);
  }
  for (int64_t row = first; row < end; row++) {
    recurrence_store_state(j, 3, row, j->dh + row * recurrence_padded(p));
    if (p->a.cell == TN_CELL_LSTM && j->dc != j->l->out[4].data)
      recurrence_store_state(j, 4, row, j->dc + row * p->units);
  }
}

/* ---- the gradient of the weight ------------------------------------------------------------------- */

static float *recurrence_parts(const recurrence_job *j) {
  return j->scratch + j->p->weight.chunks * j->p->weight.scratch_bytes / (int64_t)sizeof(float);
}

static void recurrence_weight_chunk(void *arg, int64_t chunk) {
  const recurrence_job *j = arg;
  const tn_gemm_partition *g = &j->p->weight;
  const tn_gemm_epilogue none = {.op = TN_EPILOGUE_NONE};
  const tn_gemm_matrices x = {.a = j->product, .b = j->state, .c = j->dw};
  int64_t count, first = tn_gemm_chunk_items(g, chunk, &count);
  for (int64_t item = first; item < first + count; item++) {
    tn_gemm_extent range;
    tn_gemm_item_range(g, item, &range);
    tn_gemm_run_range(g, j->p->gemm, &x, &none, &range,
                      j->scratch + chunk * g->scratch_bytes / (int64_t)sizeof(float), recurrence_parts(j));
    if (g->method != TN_GEMM_GATHERED && range.n0 == 0)
      j->p->gemm->sum_rows(j->product + range.m0, g->m, g->k, range.m, j->dbias + range.m0);
  }
}

static void recurrence_weight_join(void *arg, int64_t chunk) {
  const recurrence_job *j = arg;
  tn_gemm_join_chunk(&j->p->weight, j->p->gemm, recurrence_parts(j), chunk, j->dw, j->dbias);
}

/* The gradients of some rows of the weight, and of their bias, as halves. */
static void recurrence_weight_round(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  int64_t first = task * WIDTH, rows = least(WIDTH, recurrence_columns(p) - first), n = p->units;
  p->loops->narrow(p->dtype, j->dw + first * n, rows * n, j->l->out[1].data, first * n);
  p->loops->narrow(p->dtype, j->dbias + first, rows, j->l->out[2].data, first);
}

/* Where the gradients are summed: results of f32, the workspace for halves. Returns the end of the latter. */
static float *recurrence_place_sums(recurrence_job *j, float *at) {
  const recurrence_kernel *p = j->p;
  bool half = recurrence_is_half(p);
  j->dc = half ? at : j->l->out[4].data;
  j->dw = half ? at + recurrence_state_rows(p) : j->l->out[1].data;
  j->dbias = half ? j->dw + recurrence_weight_floats(p) : j->l->out[2].data;
  return at + recurrence_state_rows(p) + recurrence_weight_floats(p) + recurrence_bias_floats(p);
}

static tn_status onednn_recurrence_grad_launch(tn_launch *l) {
  const recurrence_kernel *p = l->prepared;
  recurrence_job j = {.l = l, .p = p, .length = l->in[GRAD_LENGTH].data, .panels = l->workspace};
  TN_TRY(tn_check_sequence_lengths(l, j.length, p->batch, p->steps));
  if (p->units == 0) return TN_OK;
  int64_t own = recurrence_product_floats(p);
  j.dh = j.panels + recurrence_back_floats(p);
  j.state = recurrence_place_sums(&j, j.dh + p->batch * recurrence_padded(p));
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
  if (recurrence_is_half(p))
    tn_parallel(l, divide_up(recurrence_columns(p), WIDTH), recurrence_weight_round, &j);
  return TN_OK;
}

/* ---- query ---- */

static tn_status onednn_recurrence_grad_query(tn_query *q) {
  TN_TRY(tn_onednn_recurrence_check(q));
  recurrence_kernel p;
  tn_onednn_recurrence_make(q->match, q->backend, &p);
  return tn_onednn_recurrence_offer(q, &p, recurrence_grad_floats(&p), 2);
}

TN_DEFINE_KERNEL(
    onednn, recurrence_grad, "onednn_recurrence_grad",
    "dx, dw, dbias, dh, dc = recurrence_grad(w, h?, c?, length?, y, stored, dy?, dlast?, dcell?)",
    "some sequences back through all steps in each task, then the gradient of w as one product",
    .query = onednn_recurrence_grad_query, .prepare = tn_onednn_recurrence_prepare,
    .release = tn_delete_prepared, .launch = onednn_recurrence_grad_launch);
