/* backends/cpu/kernels/loss.c: cross entropy over classes along any axis, and lse, the logarithm of the sum
 * of exponentials:
 *
 *     loss = (1 - s) (lse - x[target]) + s (lse - mean(x)),  s the label smoothing
 *
 * Sums and losses are computed in f64. The loss of an ignored target is 0. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/rows.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "tenon/attributes.h"

typedef struct loss_kernel {
  tn_rows rows;
  int64_t ignore;
  double smoothing;
} loss_kernel;

typedef struct loss_job {
  const loss_kernel *p;
  const tn_launch *l;
  const tn_row_functions *f;
  _Atomic int64_t invalid; /* the first row with an invalid target */
} loss_job;

static int64_t loss_target_at(const loss_job *j, int64_t row) {
  const tn_view *t = &j->l->in[1];
  int64_t tile;
  return *tn_cpu_i64(t->type.dtype, t->data, row, 1, &tile);
}

static void loss_note_invalid(loss_job *j, int64_t row) {
  int64_t seen = atomic_load(&j->invalid);
  while (row < seen && !atomic_compare_exchange_weak(&j->invalid, &seen, row)) continue;
}

/* Computes both results of a row from its lse and its sum. `first` is the index of the row's element 0. */
static void loss_finish(loss_job *j, int64_t row, int64_t first, double lse, double sum) {
  const loss_kernel *p = j->p;
  const tn_view *x = &j->l->in[0], *out = j->l->out;
  int64_t target = loss_target_at(j, row);
  double loss = 0;
  if (target != p->ignore && (target < 0 || target >= p->rows.n)) {
    loss_note_invalid(j, row);
  } else if (target != p->ignore) {
    loss = (1 - p->smoothing) * (lse - tn_cpu_get(x->type.dtype, x->data, first + target * p->rows.inner));
    if (p->smoothing != 0) loss += p->smoothing * (lse - sum / (double)p->rows.n);
  }
  tn_cpu_put(out[0].type.dtype, out[0].data, row, loss);
  tn_cpu_put(out[1].type.dtype, out[1].data, row, lse);
}

/* One contiguous row. */
static void loss_do_row(loss_job *j, int64_t row) {
  const tn_view *x = &j->l->in[0];
  int64_t n = j->p->rows.n, base = row * n;
  tn_row_tile tile;
  double largest = -INFINITY, exps = 0, sum = 0;
  for (int64_t at = 0; at < n; at += TN_TILE)
    largest = j->f->largest(tn_row_load(x, base + at, least(n - at, TN_TILE), &tile), least(n - at, TN_TILE),
                            largest);
  for (int64_t at = 0; at < n; at += TN_TILE) {
    const void *values = tn_row_load(x, base + at, least(n - at, TN_TILE), &tile);
    exps += j->f->sum_exp(values, least(n - at, TN_TILE), largest);
    if (j->p->smoothing != 0) sum += j->f->sum(values, least(n - at, TN_TILE));
  }
  loss_finish(j, row, base, largest + log(exps), sum);
}

/* Neighbouring rows, whose elements have stride `inner`. */
static void loss_do_block(loss_job *j, int64_t task) {
  const tn_view *x = &j->l->in[0];
  const tn_rows *r = &j->p->rows;
  int64_t column = task % r->blocks * TN_ROW_BLOCK, n = r->inner - column;
  int64_t row = task / r->blocks * r->inner + column, base = task / r->blocks * r->n * r->inner + column;
  tn_row_tile from, largest;
  double exps[TN_ROW_BLOCK] = {0}, sum[TN_ROW_BLOCK] = {0};
  if (n > TN_ROW_BLOCK) n = TN_ROW_BLOCK;
  memcpy(&largest, tn_row_load(x, base, n, &from), (size_t)n * tn_lane_size(tn_lane_of(x->type.dtype)));
  for (int64_t i = 1; i < r->n; i++)
    j->f->each_largest(tn_row_load(x, base + i * r->inner, n, &from), n, &largest);
  for (int64_t i = 0; i < r->n; i++) {
    const void *values = tn_row_load(x, base + i * r->inner, n, &from);
    j->f->each_sum_exp(values, n, &largest, exps);
    if (j->p->smoothing != 0) j->f->each_sum(values, n, sum);
  }
  for (int64_t k = 0; k < n; k++) {
    double shift = x->type.dtype == TN_F64 ? largest.f64[k] : (double)largest.f32[k];
    loss_finish(j, row + k, base + k, shift + log(exps[k]), sum[k]);
  }
}

static void loss_rows_chunk(void *arg, int64_t chunk) {
  loss_job *j = arg;
  const tn_rows *r = &j->p->rows;
  int64_t task = chunk * r->tasks_per_chunk;
  int64_t end = task + r->tasks_per_chunk < r->tasks ? task + r->tasks_per_chunk : r->tasks;
  for (; task < end; task++) (r->inner == 1 ? loss_do_row : loss_do_block)(j, task);
}

static tn_status loss_launch(tn_launch *l) {
  const loss_kernel *p = l->prepared;
  loss_job j = {p, l, tn_row_functions_of(l->in[0].type.dtype), INT64_MAX};
  tn_parallel(l, p->rows.chunks, loss_rows_chunk, &j);
  int64_t invalid = atomic_load(&j.invalid);
  if (invalid == INT64_MAX) return TN_OK;
  return tn_fail(l, TN_EINVAL, NULL,
                 "cross_entropy: target %lld of row %lld is out of range, expected 0 .. %lld or %lld "
                 "(ignored); check the "
                 "labels against the number of outputs of the last layer",
                 (long long)loss_target_at(&j, invalid), (long long)invalid, (long long)(p->rows.n - 1),
                 (long long)p->ignore);
}

static tn_status loss_query(tn_query *q) {
  const tn_match *m = q->match;
  if (!tn_dtype_is_float(m->in[0]->dtype) || tn_dtype_is_float(m->in[1]->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "the scores are %s and the targets %s, expected a float type and an integer type",
                   tn_dtype_name(m->in[0]->dtype), tn_dtype_name(m->in[1]->dtype));
  return tn_offer(q, (tn_variant){.name = "two passes", .prepared_bytes = sizeof(loss_kernel)});
}

static tn_status loss_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_cross_entropy_attributes *a = n->attributes;
  loss_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *keep = (loss_kernel){tn_rows_of(n->in[0], a->axis), a->ignore, a->smoothing};
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, cross_entropy, "cross_entropy", "loss, lse = cross_entropy(logits, target)",
                 "cross entropy of classes along any axis",
                 TN_KERNEL_CALLBACKS_WITH(loss, tn_delete_prepared));
