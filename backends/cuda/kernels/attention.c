/* backends/cuda/kernels/attention.c: attention and its gradient over tiles, without libraries
 * (device/attention_kernels.cuh). */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/device/attention.cuh"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/modules/modules.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { ROWS = 64, ROWS_F64 = 32 /* of a tile */ };

/* One kernel of device code. */
typedef struct attention_step {
  tn_cuda_function function;
  tn_cuda_grid grid;
} attention_step;

typedef struct attention_kernel {
  int32_t n_steps;
  attention_step step[3];
  struct attention_args args;
} attention_kernel;

/* ---- shapes ---- */

static bool attention_is_gradient(const tn_match *m) { return m->n_in > 3; }

/* (batch, heads, tokens, width), or (batch, tokens, heads * width) */
static struct attention_rows cuda_attention_rows_of(const tn_type *t, int64_t heads) {
  const int64_t *d = t->dims;
  if (t->rank == 4) return (struct attention_rows){NULL, d[1] * d[2] * d[3], d[2] * d[3], d[3]};
  return (struct attention_rows){NULL, d[1] * d[2], d[2] / heads, d[2]};
}

static void attention_set_rows(const tn_match *m, struct attention_args *a) {
  a->q = cuda_attention_rows_of(m->in[0], a->heads);
  a->k = cuda_attention_rows_of(m->in[1], a->heads);
  a->v = cuda_attention_rows_of(m->in[2], a->heads);
  a->y = cuda_attention_rows_of(attention_is_gradient(m) ? m->in[3] : m->out[0], a->heads);
  a->dy = a->y;
  a->dq = a->q;
  a->dk = a->k;
  a->dv = a->v;
}

static struct attention_args attention_args_of(const tn_match *m) {
  const tn_attention_attributes *attributes = m->nodes[0].node->attributes;
  const tn_type *q = m->in[0], *v = m->in[2];
  bool together = attributes->heads > 0;
  int32_t tokens = together ? 1 : 2;
  int64_t heads = together ? attributes->heads : q->dims[1], per_width = together ? heads : 1;
  struct attention_args a = {.heads = (int)heads,
                             .heads_of_batch = q->dims[0] * heads,
                             .queries = (int)q->dims[tokens],
                             .keys = (int)v->dims[tokens],
                             .width = (int)(q->dims[tokens + 1] / per_width),
                             .value_width = (int)(v->dims[tokens + 1] / per_width),
                             .causal = attributes->causal};
  a.scale = attributes->scale != 0 ? attributes->scale : 1 / sqrt((double)a.width);
  if (heads > 0) attention_set_rows(m, &a);
  return a;
}

/* ---- query ---- */

static tn_status attention_check_sizes(tn_query *q, const struct attention_args *a) {
  int32_t most = ATTENTION_WIDTH;
  if (a->width < 1 || a->width > most || a->value_width < 1 || a->value_width > most)
    return tn_fail(q, TN_EUNSUPPORTED, "shape", "heads are %d and %d wide, expected 1 to %d", a->width,
                   a->value_width, most);
  double blocks = (double)a->heads_of_batch * (1 + (a->queries > a->keys ? a->queries : a->keys) / ROWS_F64);
  if (blocks <= INT32_MAX) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, "shape", "%lld heads of %d queries and %d keys are more than 2^31 tiles",
                 (long long)a->heads_of_batch, a->queries, a->keys);
}

/* Attention has two products of the pairs, the gradient seven: two of them are computed twice. */
static double cuda_attention_cost(const tn_query *q, const struct attention_args *a) {
  double pairs = (double)a->heads_of_batch * a->queries * a->keys * (a->causal ? 0.5 : 1);
  double products = attention_is_gradient(q->match) ? 3.5 : 1;
  double flops = 2 * pairs * (a->width + a->value_width) * products;
  double rate = q->device->vector_flops_per_s * (q->match->in[0]->dtype == TN_F64 ? 0.2 : 0.4);
  return tn_estimate_s(q->device, tn_match_bytes(q->match), flops, rate);
}

static tn_status cuda_attention_query(tn_query *q) {
  const struct attention_args a = attention_args_of(q->match);
  tn_status status = attention_check_sizes(q, &a);
  if (status != TN_OK) return status;
  tn_variant v = {.struct_size = sizeof v,
                  .name = "tiles",
                  .prepared_bytes = sizeof(attention_kernel),
                  .cost_s = cuda_attention_cost(q, &a),
                  .deterministic = 1,
                  .capturable = 1};
  if (attention_is_gradient(q->match)) v.workspace_bytes = (int64_t)tn_type_bytes(q->match->in[4]);
  tn_add_variant(q, &v);
  return TN_OK;
}

/* ---- prepare ---- */

/* The next step: a function whose results are `width` wide at most, for tiles of `rows` rows of each head. */
static tn_status attention_add_step(tn_prepare *p, attention_kernel *keep, const char *what, int32_t width,
                                    int64_t rows) {
  char file[TN_CUDA_FUNCTION_NAME], name[TN_CUDA_FUNCTION_NAME];
  int32_t dtype = p->match->in[0]->dtype;
  int64_t size = dtype == TN_F64 ? ROWS_F64 : ROWS, tiles = (rows + size - 1) / size;
  attention_step *step = &keep->step[keep->n_steps];
  if (rows == 0 || keep->args.heads_of_batch == 0) return TN_OK;
  step->grid = (tn_cuda_grid){.blocks = {(uint32_t)(tiles * keep->args.heads_of_batch), 1, 1},
                              .threads = {ATTENTION_THREADS, 1, 1}};
  snprintf(file, sizeof file, "attention_%s.cu", tn_dtype_name(dtype));
  snprintf(name, sizeof name, "attention_%s_%d", what, width <= 64 ? 64 : width <= 128 ? 128 : 256);
  keep->n_steps++;
  return tn_cuda_request(p, &step->function, file, name);
}

/* The sums of dy y: a warp for each query. */
static tn_status attention_add_delta(tn_prepare *p, attention_kernel *keep) {
  char file[TN_CUDA_FUNCTION_NAME];
  int64_t rows = keep->args.heads_of_batch * keep->args.queries;
  attention_step *step = &keep->step[keep->n_steps];
  if (rows == 0) return TN_OK;
  step->grid = tn_cuda_grid_of(32 * rows, ATTENTION_THREADS, TN_CUDA_BLOCKS);
  snprintf(file, sizeof file, "attention_%s.cu", tn_dtype_name(p->match->in[0]->dtype));
  keep->n_steps++;
  return tn_cuda_request(p, &step->function, file, "attention_delta");
}

static tn_status cuda_attention_prepare(tn_prepare *p, void **made) {
  attention_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *made = keep;
  keep->args = attention_args_of(p->match);
  const struct attention_args *a = &keep->args;
  if (!attention_is_gradient(p->match))
    return attention_add_step(p, keep, "forward", a->value_width, a->queries);
  tn_status status = attention_add_delta(p, keep);
  if (status == TN_OK) status = attention_add_step(p, keep, "grad_query", a->width, a->queries);
  if (status == TN_OK)
    status = attention_add_step(p, keep, "grad_key", a->width > a->value_width ? a->width : a->value_width,
                                a->keys);
  return status;
}

static void cuda_attention_release(tn_env *env, void *made) {
  attention_kernel *k = made;
  for (int32_t i = 0; i < k->n_steps; i++) tn_cuda_withdraw(&k->step[i].function);
  tn_delete(env, k);
}

/* ---- launch ---- */

static void attention_set_data(const tn_launch *l, struct attention_args *a) {
  struct attention_rows *const in[] = {&a->q, &a->k, &a->v, &a->y, NULL, &a->dy};
  struct attention_rows *const out[] = {&a->dq, &a->dk, &a->dv};
  bool gradient = l->n_in > 3;
  for (int32_t i = 0; i < l->n_in; i++)
    if (in[i] != NULL) in[i]->data = l->in[i].data;
  for (int32_t i = 0; i < l->n_out && gradient; i++) out[i]->data = l->out[i].data;
  if (!gradient) a->y.data = l->out[0].data;
  a->lse = gradient ? l->in[4].data : l->out[1].data;
  a->delta = l->workspace;
}

static tn_status cuda_attention_launch(tn_launch *l) {
  const attention_kernel *k = l->prepared;
  struct attention_args a = k->args;
  tn_status status = TN_OK;
  attention_set_data(l, &a);
  for (int32_t i = 0; i < k->n_steps && status == TN_OK; i++)
    status = tn_cuda_launch(l, &k->step[i].function, &k->step[i].grid, &a, sizeof a);
  return status;
}

TN_DEFINE_KERNEL(cuda, attention, "cuda_attention", "y, lse = attention(q, k, v)", "attention over tiles",
                 TN_KERNEL_CALLBACKS(cuda_attention));
TN_DEFINE_KERNEL(cuda, attention_grad, "cuda_attention_grad",
                 "dq, dk, dv = attention_grad(q, k, v, y, lse, dy)", "the gradient of attention over tiles",
                 TN_KERNEL_CALLBACKS(cuda_attention));
