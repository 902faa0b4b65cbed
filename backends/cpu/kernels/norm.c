/* backends/cpu/kernels/norm.c: layer_norm in three passes over a row: the mean, the variance around the mean,
 * the result. Sums are in f64. The mean and rstd, 1 / standard deviation, of each row are results for the
 * gradient. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/rows.h"

#include <math.h>

#include "tenon/attributes.h"

typedef struct norm_kernel {
  tn_rows rows;
  double epsilon;
} norm_kernel;

typedef struct norm_job {
  const norm_kernel *p;
  const tn_launch *l;
  const tn_row_functions *f;
} norm_job;

/* y = y * weight + bias; either may be NULL. */
static void norm_weigh_f32(float *y, const float *weight, const float *bias, int64_t n) {
  for (int64_t k = 0; k < n && weight != NULL; k++) y[k] *= weight[k];
  for (int64_t k = 0; k < n && bias != NULL; k++) y[k] += bias[k];
}

static void norm_weigh_f64(double *y, const double *weight, const double *bias, int64_t n) {
  for (int64_t k = 0; k < n && weight != NULL; k++) y[k] *= weight[k];
  for (int64_t k = 0; k < n && bias != NULL; k++) y[k] += bias[k];
}

/* Weight and bias have the type of the arithmetic: f32, or f64 for f64. */
static void norm_weigh(const norm_job *j, void *y, int64_t at, int64_t n) {
  const tn_view *w = &j->l->in[1], *b = &j->l->in[2];
  if (j->l->in[0].type.dtype == TN_F64)
    norm_weigh_f64(y, w->data ? (const double *)w->data + at : NULL,
                   b->data ? (const double *)b->data + at : NULL, n);
  else
    norm_weigh_f32(y, w->data ? (const float *)w->data + at : NULL,
                   b->data ? (const float *)b->data + at : NULL, n);
}

static void norm_do_row(const norm_job *j, int64_t row) {
  const tn_view *x = &j->l->in[0], *y = &j->l->out[0];
  int64_t n = j->p->rows.n, base = row * n;
  tn_row_tile from, to;
  double sum = 0, squares = 0;
  for (int64_t at = 0; at < n; at += TN_TILE)
    sum += j->f->sum(tn_row_load(x, base + at, least(n - at, TN_TILE), &from), least(n - at, TN_TILE));
  double mean = sum / (double)n;
  for (int64_t at = 0; at < n; at += TN_TILE)
    squares += j->f->sum_squares(tn_row_load(x, base + at, least(n - at, TN_TILE), &from),
                                 least(n - at, TN_TILE), mean);
  double rstd = 1 / sqrt(squares / (double)n + j->p->epsilon);
  tn_cpu_put(j->l->out[1].type.dtype, j->l->out[1].data, row, mean);
  tn_cpu_put(j->l->out[2].type.dtype, j->l->out[2].data, row, rstd);
  for (int64_t at = 0; at < n; at += TN_TILE) {
    const void *values = tn_row_load(x, base + at, least(n - at, TN_TILE), &from);
    void *results = tn_row_begin(y, base + at, &to);
    j->f->scale(values, results, least(n - at, TN_TILE), mean, rstd);
    norm_weigh(j, results, at, least(n - at, TN_TILE));
    tn_row_end(y, base + at, least(n - at, TN_TILE), &to);
  }
}

static void norm_chunk(void *arg, int64_t chunk) {
  const norm_job *j = arg;
  const tn_rows *r = &j->p->rows;
  int64_t row = chunk * r->tasks_per_chunk;
  int64_t end = row + r->tasks_per_chunk < r->tasks ? row + r->tasks_per_chunk : r->tasks;
  for (; row < end; row++) norm_do_row(j, row);
}

static tn_status norm_launch(tn_launch *l) {
  const norm_kernel *p = l->prepared;
  norm_job j = {p, l, tn_row_functions_of(l->in[0].type.dtype)};
  tn_parallel(l, p->rows.chunks, norm_chunk, &j);
  return TN_OK;
}

static tn_status norm_check(tn_query *q) {
  const tn_match *m = q->match;
  int32_t x = m->in[0]->dtype, wide = x == TN_F64 ? TN_F64 : TN_F32;
  if (!tn_dtype_is_float(x))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16, f32 or f64",
                   tn_dtype_name(x));
  for (int32_t i = 1; i < m->n_in; i++)
    if (m->in[i] != NULL && m->in[i]->dtype != wide)
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "weights are %s for elements of %s, expected %s",
                     tn_dtype_name(m->in[i]->dtype), tn_dtype_name(x), tn_dtype_name(wide));
  return TN_OK;
}

static tn_status norm_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  TN_TRY(norm_check(q));
  return tn_offer(q, (tn_variant){.name = "three passes",
                                  .prepared_bytes = sizeof(norm_kernel),
                                  .n_inplace = 1,
                                  .inplace = inplace});
}

static tn_status norm_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_norm_attributes *a = n->attributes;
  norm_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->rows = tn_rows_trailing(n->in[0], a->trailing);
  keep->epsilon = a->epsilon;
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, layer_norm, "layer_norm", "y, mean, rstd = layer_norm(x, weight?, bias?)",
                 "layer norm over trailing dimensions", TN_KERNEL_CALLBACKS_WITH(norm, tn_delete_prepared));
