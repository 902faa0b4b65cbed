/* layer_norm and its gradient, row by row, alone and with what is added to it: a residual's gradient. The
 * gradients of weight and bias are sums over rows: in f32 over some dozens of rows, in f64 beyond, part by
 * part. */
#include "backends/onednn/kernels/norm.h"
#include "backends/onednn/integer_math.h"

#include <stdbool.h>
#include <string.h>

#include "backends/onednn/kernels/kernels.h"
#include "tenon/attributes.h"

enum {
  CHUNK = 1 << 14,  /* elements that a chunk should at least have */
  PARTS = 32,       /* of the rows of a gradient */
  ROWS = 64,        /* whose sums are made in f32 */
  COLUMNS = 1 << 12 /* of the parts' sums, in a chunk */
};

typedef struct plan {
  tn_norm_function forward;
  tn_norm_grad_function gradient;
  void (*collect)(float *x, double *sums, int64_t n);
  int64_t rows, n, per_chunk, chunks;
  double epsilon;
} plan;

static void *at(const tn_view *view, int64_t element) {
  return (uint8_t *)view->data + element * (int64_t)tn_dtype_size(view->type.dtype);
}

typedef struct job {
  const plan *p;
  const tn_launch *l;
} job;

/* ---- layer_norm ----------------------------------------------------------------------------------- */

static void forward_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  const tn_launch *l = j->l;
  int64_t end = least(p->rows, (chunk + 1) * p->per_chunk);
  for (int64_t row = chunk * p->per_chunk; row < end; row++)
    p->forward(at(&l->in[0], row * p->n), l->in[1].data, l->in[2].data, at(&l->out[0], row * p->n), p->n,
               p->epsilon, (float *)l->out[1].data + row, (float *)l->out[2].data + row);
}

static tn_status forward_launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l};
  tn_parallel(l, p->chunks, forward_chunk, &j);
  return TN_OK;
}

/* ---- layer_norm_grad ------------------------------------------------------------------------------ */

/* A part's room: dweight and dbias in f64, then in f32. */
static int64_t part_bytes(int64_t n) { return round_up(2 * n * 12, 64); }
static double *sums_of(const job *j, int64_t part) {
  return (double *)(void *)((uint8_t *)j->l->workspace + part * part_bytes(j->p->n));
}

static void gradient_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  const tn_launch *l = j->l;
  const tn_view *more = l->n_in > 5 ? &l->in[5] : NULL;
  const float *mean = l->in[2].data, *rstd = l->in[3].data;
  int64_t first = chunk * p->per_chunk, end = least(p->rows, first + p->per_chunk), n = p->n;
  double *sums = sums_of(j, chunk);
  float *few = (float *)(void *)(sums + 2 * n);
  memset(sums, 0, (size_t)part_bytes(n));
  for (int64_t row = first; row < end; row++) {
    p->gradient(at(&l->in[0], row * n), at(&l->in[1], row * n), l->in[4].data, mean[row], rstd[row],
                more != NULL ? at(more, row * n) : NULL, at(&l->out[0], row * n), n, few, few + n);
    if ((row + 1 - first) % ROWS == 0 || row + 1 == end) p->collect(few, sums, 2 * n);
  }
}

/* Parts in their order, for some columns. */
static void combine_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t first = chunk * COLUMNS, end = least(p->n, first + COLUMNS);
  for (int32_t set = 0; set < 2; set++) {
    float *to = j->l->out[1 + set].data;
    double *sums = sums_of(j, 0) + set * p->n;
    for (int64_t part = 1; part < p->chunks; part++) {
      const double *more = sums_of(j, part) + set * p->n;
      for (int64_t i = first; i < end; i++) sums[i] += more[i];
    }
    for (int64_t i = first; i < end; i++) to[i] = p->chunks > 0 ? (float)sums[i] : 0;
  }
}

static tn_status gradient_launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l};
  tn_parallel(l, p->chunks, gradient_chunk, &j);
  tn_parallel(l, divide_up(p->n, COLUMNS), combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static bool is_gradient(const tn_match *m) { return m->n_in >= 5; }

/* False: these types are not among its own. */
static bool make_plan(const tn_match *m, const void *backend, plan *p) {
  const tn_norm_loops *loops = TN_LOOPS_PICK_AT(tn_loops_norm, tn_onednn_isa_of(backend));
  const tn_norm_attributes *a = m->nodes[0].node->attributes;
  const tn_type *x = m->in[is_gradient(m) ? 1 : 0];
  *p = (plan){loops->forward[x->dtype], loops->gradient[x->dtype], loops->collect, 1, 1, 0, 0, a->epsilon};
  if (p->forward == NULL) return false;
  for (int32_t i = 0; i < x->rank; i++) *(i < x->rank - a->trailing ? &p->rows : &p->n) *= x->dims[i];
  p->per_chunk = at_least_1(CHUNK / at_least_1(p->n));
  if (is_gradient(m) && divide_up(p->rows, p->per_chunk) > PARTS) p->per_chunk = divide_up(p->rows, PARTS);
  p->chunks = divide_up(p->rows, p->per_chunk);
  return true;
}

/* What is added is no larger, and nothing is rounded in between. */
static tn_status check_sum(tn_query *q) {
  const tn_match *m = q->match;
  if (m->n_nodes == 1) return TN_OK;
  if (m->in[0]->dtype == TN_F32 && tn_type_equal(m->in[5], m->out[0]) && tn_type_equal(m->in[5], m->in[0]))
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "what is added is broadcast, or elements are not f32");
}

static tn_status query(tn_query *q) {
  static const int32_t inplace[2][2] = {{0, 0}, {5, 0}};
  const tn_match *m = q->match;
  tn_status status = check_sum(q);
  if (status != TN_OK) return status;
  plan p;
  if (!make_plan(m, q->backend, &p))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s of %s is not among its types", m->nodes[0].node->op,
                   tn_dtype_name(m->in[0]->dtype));
  tn_variant v = {.struct_size = sizeof v,
                  .name = "rows",
                  .workspace_bytes = is_gradient(m) ? p.chunks * part_bytes(p.n) : 0,
                  .prepared_bytes = sizeof(plan),
                  .n_inplace = m->n_nodes,
                  .inplace = inplace,
                  .cost_s = 1e-7 + (is_gradient(m) ? 3 : 2) * (double)tn_type_bytes(m->out[0]) / 1e10,
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

const tn_kernel tn_onednn_layer_norm = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_layer_norm", "layer norm, row by row in vectors"),
    .family = "onednn",
    .pattern = "y, mean, rstd = layer_norm(x, weight?, bias?)",
    .query = query,
    .prepare = prepare,
    .release = release,
    .launch = forward_launch,
};

#define GRADIENT(name, text, doc)                                                                            \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, doc),     \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = release,                                                    \
                                      .launch = gradient_launch}

GRADIENT(layer_norm_grad, "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?)",
         "all gradients of a layer norm in one pass over its rows");
GRADIENT(
    layer_norm_grad_add,
    "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?); s = add(dx, r) -> s, dweight, dbias",
    "the same, and the gradient of a residual added to it");
