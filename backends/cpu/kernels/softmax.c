/* backends/cpu/kernels/softmax.c: softmax and log_softmax along any axis in three passes over the operand:
 * the largest element, the sum of exponentials relative to it, the result. No pass stores a copy of a row. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/rows.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

typedef struct softmax_kernel {
  tn_rows rows;
  bool log;
} softmax_kernel;

typedef struct softmax_job {
  const softmax_kernel *p;
  const tn_launch *l;
  const tn_row_functions *f;
} softmax_job;

/* One contiguous row. */
static void softmax_do_row(const softmax_job *j, int64_t row) {
  const tn_view *x = &j->l->in[0], *y = &j->l->out[0];
  int64_t n = j->p->rows.n, base = row * n;
  tn_row_tile from, to;
  double largest = -INFINITY, sum = 0;
  for (int64_t at = 0; at < n; at += TN_TILE)
    largest = j->f->largest(tn_row_load(x, base + at, least(n - at, TN_TILE), &from), least(n - at, TN_TILE),
                            largest);
  for (int64_t at = 0; at < n; at += TN_TILE)
    sum += j->f->sum_exp(tn_row_load(x, base + at, least(n - at, TN_TILE), &from), least(n - at, TN_TILE),
                         largest);
  double log_sum = log(sum);
  for (int64_t at = 0; at < n; at += TN_TILE) {
    const void *values = tn_row_load(x, base + at, least(n - at, TN_TILE), &from);
    void *results = tn_row_begin(y, base + at, &to);
    if (j->p->log)
      j->f->difference(values, results, least(n - at, TN_TILE), largest, log_sum);
    else
      j->f->softmax(values, results, least(n - at, TN_TILE), largest, sum);
    tn_row_end(y, base + at, least(n - at, TN_TILE), &to);
  }
}

/* Neighbouring rows, whose elements have stride `inner`. */
static void softmax_do_block(const softmax_job *j, int64_t task) {
  const tn_view *x = &j->l->in[0], *y = &j->l->out[0];
  const tn_rows *r = &j->p->rows;
  int64_t column = task % r->blocks * TN_ROW_BLOCK, n = r->inner - column;
  int64_t base = task / r->blocks * r->n * r->inner + column;
  tn_row_tile from, to, largest;
  double sum[TN_ROW_BLOCK] = {0};
  if (n > TN_ROW_BLOCK) n = TN_ROW_BLOCK;
  memcpy(&largest, tn_row_load(x, base, n, &from), (size_t)n * tn_lane_size(tn_lane_of(x->type.dtype)));
  for (int64_t i = 1; i < r->n; i++)
    j->f->each_largest(tn_row_load(x, base + i * r->inner, n, &from), n, &largest);
  for (int64_t i = 0; i < r->n; i++)
    j->f->each_sum_exp(tn_row_load(x, base + i * r->inner, n, &from), n, &largest, sum);
  for (int64_t k = 0; k < n && j->p->log; k++) sum[k] = log(sum[k]);
  for (int64_t i = 0; i < r->n; i++) {
    int64_t at = base + i * r->inner;
    void *results = tn_row_begin(y, at, &to);
    (j->p->log ? j->f->each_difference : j->f->each_softmax)(tn_row_load(x, at, n, &from), results, n,
                                                             &largest, sum);
    tn_row_end(y, at, n, &to);
  }
}

static void softmax_rows_chunk(void *arg, int64_t chunk) {
  const softmax_job *j = arg;
  const tn_rows *r = &j->p->rows;
  int64_t task = chunk * r->tasks_per_chunk;
  int64_t end = task + r->tasks_per_chunk < r->tasks ? task + r->tasks_per_chunk : r->tasks;
  for (; task < end; task++) (r->inner == 1 ? softmax_do_row : softmax_do_block)(j, task);
}

static tn_status softmax_launch(tn_launch *l) {
  const softmax_kernel *p = l->prepared;
  softmax_job j = {p, l, tn_row_functions_of(l->in[0].type.dtype)};
  if (p->rows.n > 0) tn_parallel(l, p->rows.chunks, softmax_rows_chunk, &j);
  return TN_OK;
}

static tn_status softmax_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  const tn_type *x = q->match->in[0];
  if (!tn_dtype_is_float(x->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s does not support elements of type %s",
                   q->match->nodes[0].node->op, tn_dtype_name(x->dtype));
  return tn_offer(q, (tn_variant){.name = "three passes",
                                  .prepared_bytes = sizeof(softmax_kernel),
                                  .n_inplace = 1,
                                  .inplace = inplace});
}

static tn_status softmax_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  softmax_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->rows = tn_rows_of(n->in[0], ((const tn_axis_attributes *)n->attributes)->axis);
  keep->log = strcmp(n->op, "log_softmax") == 0;
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, softmax, "softmax", "y = softmax(x)", "softmax along any axis",
                 TN_KERNEL_CALLBACKS_WITH(softmax, tn_delete_prepared));

TN_DEFINE_KERNEL(cpu, log_softmax, "log_softmax", "y = log_softmax(x)", "logarithm of softmax along any axis",
                 TN_KERNEL_CALLBACKS_WITH(softmax, tn_delete_prepared));
