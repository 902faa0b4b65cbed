/* backends/onednn/kernels/norm.c: layer_norm and its gradient, row by row, the gradient also with the
 * gradient of a residual added to it. The gradients of weight and bias are sums over rows: in f32 over some
 * dozens of rows, which are added up in f64, part by part. */
#include "backends/onednn/kernels/norm.h"
#include "backends/shared/integer_math.h"

#include <stdbool.h>
#include <string.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum {
  CHUNK = 1 << 14,  /* elements of a chunk, at least */
  PARTS = 32,       /* of the rows of a gradient */
  ROWS = 64,        /* of a sum in f32 */
  COLUMNS = 1 << 12 /* of the parts' sums, in a chunk */
};

typedef struct norm_kernel {
  tn_norm_function forward;
  tn_norm_grad_function gradient;
  void (*collect)(float *x, double *sums, int64_t n);
  int64_t rows, n, per_chunk, chunks;
  double epsilon;
} norm_kernel;

static void *norm_at(const tn_view *view, int64_t element) {
  return (uint8_t *)view->data + element * (int64_t)tn_dtype_size(view->type.dtype);
}

typedef struct norm_job {
  const norm_kernel *p;
  const tn_launch *l;
} norm_job;

/* ---- layer_norm ----------------------------------------------------------------------------------- */

static void onednn_norm_chunk(void *arg, int64_t chunk) {
  const norm_job *j = arg;
  const norm_kernel *p = j->p;
  const tn_launch *l = j->l;
  int64_t end = least(p->rows, (chunk + 1) * p->per_chunk);
  for (int64_t row = chunk * p->per_chunk; row < end; row++)
    p->forward(norm_at(&l->in[0], row * p->n), l->in[1].data, l->in[2].data, norm_at(&l->out[0], row * p->n),
               p->n, p->epsilon, (float *)l->out[1].data + row, (float *)l->out[2].data + row);
}

static tn_status onednn_norm_launch(tn_launch *l) {
  const norm_kernel *p = l->prepared;
  norm_job j = {p, l};
  tn_parallel(l, p->chunks, onednn_norm_chunk, &j);
  return TN_OK;
}

/* ---- layer_norm_grad ------------------------------------------------------------------------------ */

/* The workspace of a part: dweight and dbias in f64, then in f32. */
static int64_t norm_part_bytes(int64_t n) { return round_up(2 * n * 12, 64); }
static double *norm_sums(const norm_job *j, int64_t part) {
  return (double *)(void *)((uint8_t *)j->l->workspace + part * norm_part_bytes(j->p->n));
}

static void norm_grad_chunk(void *arg, int64_t chunk) {
  const norm_job *j = arg;
  const norm_kernel *p = j->p;
  const tn_launch *l = j->l;
  const tn_view *more = l->n_in > 5 ? &l->in[5] : NULL;
  const float *mean = l->in[2].data, *rstd = l->in[3].data;
  int64_t first = chunk * p->per_chunk, end = least(p->rows, first + p->per_chunk), n = p->n;
  double *sums = norm_sums(j, chunk);
  float *few = (float *)(void *)(sums + 2 * n);
  memset(sums, 0, (size_t)norm_part_bytes(n));
  for (int64_t row = first; row < end; row++) {
    p->gradient(norm_at(&l->in[0], row * n), norm_at(&l->in[1], row * n), l->in[4].data, mean[row], rstd[row],
                more != NULL ? norm_at(more, row * n) : NULL, norm_at(&l->out[0], row * n), n, few, few + n);
    if ((row + 1 - first) % ROWS == 0 || row + 1 == end) p->collect(few, sums, 2 * n);
  }
}

/* Adds up the parts of some columns, in the order of the parts. */
static void norm_combine_chunk(void *arg, int64_t chunk) {
  const norm_job *j = arg;
  const norm_kernel *p = j->p;
  int64_t first = chunk * COLUMNS, end = least(p->n, first + COLUMNS);
  for (int32_t set = 0; set < 2; set++) {
    float *to = j->l->out[1 + set].data;
    double *sums = norm_sums(j, 0) + set * p->n;
    for (int64_t part = 1; part < p->chunks; part++) {
      const double *more = norm_sums(j, part) + set * p->n;
      for (int64_t i = first; i < end; i++) sums[i] += more[i];
    }
    for (int64_t i = first; i < end; i++) to[i] = p->chunks > 0 ? (float)sums[i] : 0;
  }
}

static tn_status onednn_norm_grad_launch(tn_launch *l) {
  const norm_kernel *p = l->prepared;
  norm_job j = {p, l};
  tn_parallel(l, p->chunks, norm_grad_chunk, &j);
  tn_parallel(l, divide_up(p->n, COLUMNS), norm_combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static bool norm_is_gradient(const tn_match *m) { return m->n_in >= 5; }

/* False where the kernel does not support the types. */
static bool norm_make(const tn_match *m, const void *backend, norm_kernel *p) {
  const tn_norm_loops *loops = TN_LOOPS_PICK_AT(tn_loops_norm, tn_onednn_isa_of(backend));
  const tn_norm_attributes *a = m->nodes[0].node->attributes;
  const tn_type *x = m->in[norm_is_gradient(m) ? 1 : 0];
  *p = (norm_kernel){
      loops->forward[x->dtype], loops->gradient[x->dtype], loops->collect, 1, 1, 0, 0, a->epsilon};
  if (p->forward == NULL) return false;
  for (int32_t i = 0; i < x->rank; i++) *(i < x->rank - a->trailing ? &p->rows : &p->n) *= x->dims[i];
  p->per_chunk = at_least_1(CHUNK / at_least_1(p->n));
  if (norm_is_gradient(m) && divide_up(p->rows, p->per_chunk) > PARTS)
    p->per_chunk = divide_up(p->rows, PARTS);
  p->chunks = divide_up(p->rows, p->per_chunk);
  return true;
}

/* The residual has the type of the result, and no rounding comes between the gradient and the sum. */
static tn_status norm_check_sum(tn_query *q) {
  const tn_match *m = q->match;
  if (m->n_nodes == 1) return TN_OK;
  if (m->in[0]->dtype == TN_F32 && tn_type_equal(m->in[5], m->out[0]) && tn_type_equal(m->in[5], m->in[0]))
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sum behind the gradient broadcasts, or elements are not f32");
}

static tn_status onednn_norm_query(tn_query *q) {
  static const int32_t inplace[2][2] = {{0, 0}, {5, 0}};
  const tn_match *m = q->match;
  TN_TRY(norm_check_sum(q));
  norm_kernel p;
  if (!norm_make(m, q->backend, &p))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s of %s is not supported", m->nodes[0].node->op,
                   tn_dtype_name(m->in[0]->dtype));
  return tn_offer(q,
                  (tn_variant){.name = "rows",
                               .workspace_bytes = norm_is_gradient(m) ? p.chunks * norm_part_bytes(p.n) : 0,
                               .prepared_bytes = sizeof(norm_kernel),
                               .n_inplace = m->n_nodes,
                               .inplace = inplace,
                               .cost_s = tn_cost_of_bytes(q->device, (norm_is_gradient(m) ? 3 : 2) *
                                                                         (double)tn_type_bytes(m->out[0]))});
}

static tn_status onednn_norm_prepare(tn_prepare *p, void **made) {
  norm_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  norm_make(p->match, p->backend, kernel);
  *made = kernel;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, layer_norm, "onednn_layer_norm", "y, mean, rstd = layer_norm(x, weight?, bias?)",
                 "layer norm, row by row in vectors", .query = onednn_norm_query,
                 .prepare = onednn_norm_prepare, .release = tn_delete_prepared, .launch = onednn_norm_launch);
TN_DEFINE_KERNEL(onednn, layer_norm_grad, "onednn_layer_norm_grad",
                 "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?)",
                 "all gradients of a layer norm in one pass over its rows", .query = onednn_norm_query,
                 .prepare = onednn_norm_prepare, .release = tn_delete_prepared,
                 .launch = onednn_norm_grad_launch);
TN_DEFINE_KERNEL(
    onednn, layer_norm_grad_add, "onednn_layer_norm_grad_add",
    "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?); s = add(dx, r) -> s, dweight, dbias",
    "all gradients of a layer norm, and the gradient of a residual added to them", .query = onednn_norm_query,
    .prepare = onednn_norm_prepare, .release = tn_delete_prepared, .launch = onednn_norm_grad_launch);
