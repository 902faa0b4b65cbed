/* softmax, log_softmax and cross entropy of classes that are neighbours, row by row:
 *
 *     loss = (1 - s) (lse - x[target]) + s (lse - mean(x)),  s the label smoothing
 *
 * in f64 from sums that are made in f32 over some dozens of terms and in f64 beyond; 0 where the target is
 * the ignored one. */
#include "backends/onednn/kernels/softmax.h"
#include "backends/onednn/integer_math.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/onednn/kernels/kernels.h"
#include "tenon/attributes.h"

enum { CHUNK = 1 << 13 /* elements that a chunk should at least have */ };

typedef struct plan {
  void (*row)(const void *x, void *y, int64_t n);
  tn_softmax_sums (*sums)(const void *x, int64_t n, int64_t pick, int32_t all);
  int64_t rows, n, per_chunk, ignore;
  double smoothing;
} plan;

typedef struct job {
  const plan *p;
  const tn_launch *l;
  _Atomic int64_t wrong; /* the first row whose target is no class */
} job;

static void *at(const tn_view *view, int64_t element) {
  return (uint8_t *)view->data + element * (int64_t)tn_dtype_size(view->type.dtype);
}

static tn_status run(tn_launch *l, job *j, void (*chunk)(void *arg, int64_t chunk)) {
  const plan *p = j->p;
  if (p->n > 0) tn_parallel(l, (p->rows + p->per_chunk - 1) / p->per_chunk, chunk, j);
  return TN_OK;
}

/* ---- softmax and its logarithm -------------------------------------------------------------------- */

static void softmax_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end = least(p->rows, (chunk + 1) * p->per_chunk);
  for (int64_t row = chunk * p->per_chunk; row < end; row++)
    p->row(at(&j->l->in[0], row * p->n), at(&j->l->out[0], row * p->n), p->n);
}

static tn_status softmax_launch(tn_launch *l) {
  job j = {.p = l->plan, .l = l};
  return run(l, &j, softmax_chunk);
}

/* ---- cross entropy -------------------------------------------------------------------------------- */

static int64_t target_at(const tn_launch *l, int64_t row) {
  const void *target = at(&l->in[1], row);
  switch (l->in[1].type.dtype) {
  case TN_I64: return *(const int64_t *)target;
  case TN_I32: return *(const int32_t *)target;
  default: return *(const uint8_t *)target;
  }
}

static void note_wrong(job *j, int64_t row) {
  int64_t seen = atomic_load(&j->wrong);
  while (row < seen && !atomic_compare_exchange_weak(&j->wrong, &seen, row)) continue;
}

static void loss_row(job *j, int64_t row) {
  const plan *p = j->p;
  const void *x = at(&j->l->in[0], row * p->n);
  int64_t target = target_at(j->l, row);
  bool is_class = target >= 0 && target < p->n;
  tn_softmax_sums s = p->sums(x, p->n, is_class ? target : 0, p->smoothing != 0);
  double lse = (double)s.largest + log(s.exps), loss = 0;
  if (target != p->ignore && !is_class) {
    note_wrong(j, row);
  } else if (target != p->ignore) {
    loss = (1 - p->smoothing) * (lse - (double)s.picked);
    if (p->smoothing != 0) loss += p->smoothing * (lse - s.sum / (double)p->n);
  }
  ((float *)j->l->out[0].data)[row] = (float)loss;
  ((float *)j->l->out[1].data)[row] = (float)lse;
}

static void loss_chunk(void *arg, int64_t chunk) {
  job *j = arg;
  int64_t end = least(j->p->rows, (chunk + 1) * j->p->per_chunk);
  for (int64_t row = chunk * j->p->per_chunk; row < end; row++) loss_row(j, row);
}

static tn_status loss_launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l, INT64_MAX};
  tn_status status = run(l, &j, loss_chunk);
  int64_t wrong = atomic_load(&j.wrong);
  if (status != TN_OK || wrong == INT64_MAX) return status;
  return tn_fail(
      l, TN_EINVAL, NULL,
      "cross_entropy: target %lld of row %lld is no class, expected 0 .. %lld or %lld (ignored); check the "
      "labels against the number of outputs of the last layer",
      (long long)target_at(l, wrong), (long long)wrong, (long long)(p->n - 1), (long long)p->ignore);
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static bool is_loss(const tn_match *m) { return m->n_out == 2; }

static int64_t axis_of(const tn_match *m) {
  const void *attributes = m->nodes[0].node->attributes;
  int64_t axis = is_loss(m) ? ((const tn_cross_entropy_attributes *)attributes)->axis
                            : ((const tn_axis_attributes *)attributes)->axis;
  return axis < 0 ? axis + m->in[0]->rank : axis;
}

/* Rows are runs where the classes are the innermost dimension that has more than one. */
static bool are_neighbours(const tn_type *x, int64_t axis) {
  for (int64_t i = axis + 1; i < x->rank; i++)
    if (x->dims[i] != 1) return false;
  return true;
}

/* False: not among its own. */
static bool make_plan(const tn_match *m, const void *backend, plan *p) {
  const tn_softmax_loops *loops = TN_LOOPS_PICK_AT(tn_loops_softmax, tn_onednn_isa_of(backend));
  const tn_type *x = m->in[0];
  int64_t axis = axis_of(m);
  bool logarithm = m->nodes[0].node->op[0] == 'l'; /* softmax, log_softmax, cross_entropy */
  *p = (plan){(logarithm ? loops->log_softmax : loops->softmax)[x->dtype], loops->sums[x->dtype], .rows = 1};
  if (p->row == NULL || !are_neighbours(x, axis) || x->dims[axis] == 0) return false;
  if (is_loss(m) &&
      (m->out[0]->dtype != TN_F32 || m->out[1]->dtype != TN_F32 || tn_dtype_is_float(m->in[1]->dtype)))
    return false;
  for (int64_t i = 0; i < axis; i++) p->rows *= x->dims[i];
  p->n = x->dims[axis];
  p->per_chunk = at_least_1(CHUNK / p->n);
  if (!is_loss(m)) return true;
  const tn_cross_entropy_attributes *a = m->nodes[0].node->attributes;
  p->ignore = a->ignore;
  p->smoothing = a->smoothing;
  return true;
}

static tn_status query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  const tn_match *m = q->match;
  plan p;
  if (!make_plan(m, q->backend, &p))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "%s of %s, or of classes that are no neighbours, is not among its own",
                   m->nodes[0].node->op, tn_dtype_name(m->in[0]->dtype));
  tn_variant v = {.struct_size = sizeof v,
                  .name = "rows",
                  .prepared_bytes = sizeof(plan),
                  .n_inplace = is_loss(m) ? 0 : 1,
                  .inplace = inplace,
                  .cost_s = 1e-7 + 2 * (double)tn_type_bytes(m->in[0]) / 1e10,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **made) {
  plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, keep);
  *made = keep;
  return TN_OK;
}

static void release(tn_env *env, void *made) { tn_delete(env, made); }

#define ROWS(id, text, what, run)                                                                            \
  const tn_kernel tn_onednn_##id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #id, what),        \
                                    .family = "onednn",                                                      \
                                    .pattern = text,                                                         \
                                    .query = query,                                                          \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .launch = run}

ROWS(softmax, "y = softmax(x)", "softmax, row by row in vectors", softmax_launch);
ROWS(log_softmax, "y = log_softmax(x)", "logarithm of softmax, row by row in vectors", softmax_launch);
ROWS(cross_entropy, "loss, lse = cross_entropy(logits, target)", "cross entropy, row by row in vectors",
     loss_launch);
