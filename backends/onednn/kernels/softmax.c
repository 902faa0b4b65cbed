/* backends/onednn/kernels/softmax.c: softmax, log_softmax and cross entropy over contiguous classes, row by
 * row:
 *
 *     loss = (1 - s) (lse - x[target]) + s (lse - mean(x)),  s the label smoothing
 *
 * in f64 from sums in f32 over some dozens of terms, added up in f64; 0 where the target is the ignored one.
 */
#include "backends/onednn/kernels/softmax.h"
#include "backends/shared/integer_math.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { CHUNK = 1 << 13 /* elements of a chunk, at least */ };

typedef struct softmax_kernel {
  void (*row)(const void *x, void *y, int64_t n);
  tn_softmax_sums (*sums)(const void *x, int64_t n, int64_t pick, int32_t all);
  int64_t rows, n, per_chunk, ignore;
  double smoothing;
} softmax_kernel;

typedef struct softmax_job {
  const softmax_kernel *p;
  const tn_launch *l;
  _Atomic int64_t wrong; /* the first row whose target is out of range */
} softmax_job;

static void *softmax_at(const tn_view *view, int64_t element) {
  return (uint8_t *)view->data + element * (int64_t)tn_dtype_size(view->type.dtype);
}

static tn_status softmax_run(tn_launch *l, softmax_job *j, void (*chunk)(void *arg, int64_t chunk)) {
  const softmax_kernel *p = j->p;
  if (p->n > 0) tn_parallel(l, (p->rows + p->per_chunk - 1) / p->per_chunk, chunk, j);
  return TN_OK;
}

/* ---- softmax and its logarithm -------------------------------------------------------------------- */

static void softmax_run_chunk(void *arg, int64_t chunk) {
  const softmax_job *j = arg;
  const softmax_kernel *p = j->p;
  int64_t end = least(p->rows, (chunk + 1) * p->per_chunk);
  for (int64_t row = chunk * p->per_chunk; row < end; row++)
    p->row(softmax_at(&j->l->in[0], row * p->n), softmax_at(&j->l->out[0], row * p->n), p->n);
}

static tn_status onednn_softmax_launch(tn_launch *l) {
  softmax_job j = {.p = l->prepared, .l = l};
  return softmax_run(l, &j, softmax_run_chunk);
}

/* ---- cross entropy -------------------------------------------------------------------------------- */

static int64_t softmax_target(const tn_launch *l, int64_t row) {
  const void *target = softmax_at(&l->in[1], row);
  switch (l->in[1].type.dtype) {
  case TN_I64: return *(const int64_t *)target;
  case TN_I32: return *(const int32_t *)target;
  default: return *(const uint8_t *)target;
  }
}

static void softmax_note_wrong(softmax_job *j, int64_t row) {
  int64_t seen = atomic_load(&j->wrong);
  while (row < seen && !atomic_compare_exchange_weak(&j->wrong, &seen, row)) continue;
}

static void softmax_loss_row(softmax_job *j, int64_t row) {
  const softmax_kernel *p = j->p;
  const void *x = softmax_at(&j->l->in[0], row * p->n);
  int64_t target = softmax_target(j->l, row);
  bool is_class = target >= 0 && target < p->n;
  tn_softmax_sums s = p->sums(x, p->n, is_class ? target : 0, p->smoothing != 0);
  double lse = (double)s.largest + log(s.exps), loss = 0;
  if (target != p->ignore && !is_class) {
    softmax_note_wrong(j, row);
  } else if (target != p->ignore) {
    loss = (1 - p->smoothing) * (lse - (double)s.picked);
    if (p->smoothing != 0) loss += p->smoothing * (lse - s.sum / (double)p->n);
  }
  ((float *)j->l->out[0].data)[row] = (float)loss;
  ((float *)j->l->out[1].data)[row] = (float)lse;
}

static void softmax_loss_chunk(void *arg, int64_t chunk) {
  softmax_job *j = arg;
  int64_t end = least(j->p->rows, (chunk + 1) * j->p->per_chunk);
  for (int64_t row = chunk * j->p->per_chunk; row < end; row++) softmax_loss_row(j, row);
}

static tn_status onednn_softmax_loss_launch(tn_launch *l) {
  const softmax_kernel *p = l->prepared;
  softmax_job j = {p, l, INT64_MAX};
  tn_status status = softmax_run(l, &j, softmax_loss_chunk);
  int64_t wrong = atomic_load(&j.wrong);
  if (status != TN_OK || wrong == INT64_MAX) return status;
  return tn_fail(
      l, TN_EINVAL, NULL,
      "cross_entropy: target %lld of row %lld is no class, expected 0 .. %lld or %lld (ignored); check the "
      "labels against the number of outputs of the last layer",
      (long long)softmax_target(l, wrong), (long long)wrong, (long long)(p->n - 1), (long long)p->ignore);
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static bool softmax_is_loss(const tn_match *m) { return m->n_out == 2; }

static int64_t softmax_axis(const tn_match *m) {
  const void *attributes = m->nodes[0].node->attributes;
  int64_t axis = softmax_is_loss(m) ? ((const tn_cross_entropy_attributes *)attributes)->axis
                                    : ((const tn_axis_attributes *)attributes)->axis;
  return axis < 0 ? axis + m->in[0]->rank : axis;
}

/* Whether the classes are the innermost dimension of more than one element. */
static bool softmax_is_contiguous(const tn_type *x, int64_t axis) {
  for (int64_t i = axis + 1; i < x->rank; i++)
    if (x->dims[i] != 1) return false;
  return true;
}

/* False where the kernel does not support the match. */
static bool softmax_make(const tn_match *m, const void *backend, softmax_kernel *p) {
  const tn_softmax_loops *loops = TN_LOOPS_PICK_AT(tn_loops_softmax, tn_onednn_isa_of(backend));
  const tn_type *x = m->in[0];
  int64_t axis = softmax_axis(m);
  bool logarithm = m->nodes[0].node->op[0] == 'l'; /* softmax, log_softmax, cross_entropy */
  *p = (softmax_kernel){(logarithm ? loops->log_softmax : loops->softmax)[x->dtype], loops->sums[x->dtype],
                        .rows = 1};
  if (p->row == NULL || !softmax_is_contiguous(x, axis) || x->dims[axis] == 0) return false;
  if (softmax_is_loss(m) &&
      (m->out[0]->dtype != TN_F32 || m->out[1]->dtype != TN_F32 || tn_dtype_is_float(m->in[1]->dtype)))
    return false;
  for (int64_t i = 0; i < axis; i++) p->rows *= x->dims[i];
  p->n = x->dims[axis];
  p->per_chunk = at_least_1(CHUNK / p->n);
  if (!softmax_is_loss(m)) return true;
  const tn_cross_entropy_attributes *a = m->nodes[0].node->attributes;
  p->ignore = a->ignore;
  p->smoothing = a->smoothing;
  return true;
}

static tn_status onednn_softmax_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  const tn_match *m = q->match;
  softmax_kernel p;
  if (!softmax_make(m, q->backend, &p))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "%s of %s, or over classes that are not contiguous, is not supported",
                   m->nodes[0].node->op, tn_dtype_name(m->in[0]->dtype));
  return tn_offer(q,
                  (tn_variant){.name = "rows",
                               .prepared_bytes = sizeof(softmax_kernel),
                               .n_inplace = softmax_is_loss(m) ? 0 : 1,
                               .inplace = inplace,
                               .cost_s = tn_cost_of_bytes(q->device, 2 * (double)tn_type_bytes(m->in[0]))});
}

static tn_status onednn_softmax_prepare(tn_prepare *p, void **made) {
  softmax_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  softmax_make(p->match, p->backend, kernel);
  *made = kernel;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, softmax, "onednn_softmax", "y = softmax(x)", "softmax, row by row in vectors",
                 .query = onednn_softmax_query, .prepare = onednn_softmax_prepare,
                 .release = tn_delete_prepared, .launch = onednn_softmax_launch);
TN_DEFINE_KERNEL(onednn, log_softmax, "onednn_log_softmax", "y = log_softmax(x)",
                 "logarithm of softmax, row by row in vectors", .query = onednn_softmax_query,
                 .prepare = onednn_softmax_prepare, .release = tn_delete_prepared,
                 .launch = onednn_softmax_launch);
TN_DEFINE_KERNEL(onednn, cross_entropy, "onednn_cross_entropy", "loss, lse = cross_entropy(logits, target)",
                 "cross entropy, row by row in vectors", .query = onednn_softmax_query,
                 .prepare = onednn_softmax_prepare, .release = tn_delete_prepared,
                 .launch = onednn_softmax_loss_launch);
