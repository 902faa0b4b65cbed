/* backends/cuda/kernels/attention.c: attention and its gradient over tiles, without libraries
 * (device/attention_kernels.cuh), with the slices in front of it and the concatenation behind it. */
#include <stdio.h>

#include "backends/cuda/device/attention.cuh"
#include "backends/cuda/kernels/attention_operands.h"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum { ROWS = 64, ROWS_F64 = 32 /* of a tile */ };

/* One kernel of device code. */
typedef struct attention_step {
  tn_cuda_function function;
  tn_cuda_grid grid;
} attention_step;

typedef struct attention_kernel {
  int32_t n_steps;
  attention_step step[3];
  tn_cuda_attention_use of;
  struct attention_args args;
} attention_kernel;

/* ---- shapes ---- */

static struct attention_rows cuda_attention_rows_of(const tn_cuda_heads *h) {
  return (struct attention_rows){NULL, h->batch, h->head, h->row};
}

static struct attention_args attention_args_of(const tn_cuda_attention_use *of) {
  return (struct attention_args){.q = cuda_attention_rows_of(&of->q),
                                 .k = cuda_attention_rows_of(&of->k),
                                 .v = cuda_attention_rows_of(&of->v),
                                 .y = cuda_attention_rows_of(&of->y),
                                 .dy = cuda_attention_rows_of(&of->dy),
                                 .dq = cuda_attention_rows_of(&of->dq),
                                 .dk = cuda_attention_rows_of(&of->dk),
                                 .dv = cuda_attention_rows_of(&of->dv),
                                 .scale = of->scale,
                                 .heads = (int)of->heads,
                                 .heads_of_batch = of->batch * of->heads,
                                 .queries = (int)of->queries,
                                 .keys = (int)of->keys,
                                 .width = (int)of->width,
                                 .value_width = (int)of->value_width,
                                 .causal = of->causal};
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
static double cuda_attention_cost(const tn_query *q, const tn_cuda_attention_use *of) {
  const struct attention_args args = attention_args_of(of), *a = &args;
  double pairs = (double)a->heads_of_batch * a->queries * a->keys * (a->causal ? 0.5 : 1);
  double products = of->gradient ? 3.5 : 1;
  double flops = 2 * pairs * (a->width + a->value_width) * products;
  double rate = q->device->vector_flops_per_s * (of->dtype == TN_F64 ? 0.5 : 1);
  return tn_cuda_estimate_s(q->device, TN_CUDA_OWN_PRODUCT, tn_match_bytes(q->match), flops, rate);
}

static tn_status cuda_attention_query(tn_query *q) {
  tn_cuda_attention_use of;
  TN_TRY(tn_cuda_attention_use_of(&q->env, q->match, &of));
  const struct attention_args a = attention_args_of(&of);
  TN_TRY(attention_check_sizes(q, &a));
  return tn_offer(
      q, (tn_variant){.name = "tiles",
                      .workspace_bytes = of.gradient ? (int64_t)tn_type_bytes(q->match->in[of.lse]) : 0,
                      .prepared_bytes = sizeof(attention_kernel),
                      .cost_s = cuda_attention_cost(q, &of)});
}

/* ---- prepare ---- */

/* The next step: a function whose results are `width` wide at most, for tiles of `rows` rows of each head. */
static tn_status attention_add_step(tn_prepare *p, attention_kernel *keep, const char *what, int32_t width,
                                    int64_t rows) {
  char file[TN_CUDA_FUNCTION_NAME];
  int32_t dtype = keep->of.dtype;
  int64_t size = dtype == TN_F64 ? ROWS_F64 : ROWS, tiles = (rows + size - 1) / size;
  attention_step *step = &keep->step[keep->n_steps];
  if (rows == 0 || keep->args.heads_of_batch == 0) return TN_OK;
  step->grid = (tn_cuda_grid){.blocks = {(uint32_t)(tiles * keep->args.heads_of_batch), 1, 1},
                              .threads = {ATTENTION_THREADS, 1, 1}};
  snprintf(file, sizeof file, "attention_%s.cu", tn_dtype_name(dtype));
  keep->n_steps++;
  return tn_cuda_request(p, &step->function, file, "attention_%s_%d", what,
                         width <= 64    ? 64
                         : width <= 128 ? 128
                                        : 256);
}

/* The sums of dy y: a warp for each query. */
static tn_status attention_add_delta(tn_prepare *p, attention_kernel *keep) {
  char file[TN_CUDA_FUNCTION_NAME];
  int64_t rows = keep->args.heads_of_batch * keep->args.queries;
  attention_step *step = &keep->step[keep->n_steps];
  if (rows == 0) return TN_OK;
  step->grid = tn_cuda_grid_of(32 * rows, ATTENTION_THREADS, TN_CUDA_BLOCKS);
  snprintf(file, sizeof file, "attention_%s.cu", tn_dtype_name(keep->of.dtype));
  keep->n_steps++;
  return tn_cuda_request(p, &step->function, file, "attention_delta");
}

static tn_status cuda_attention_prepare(tn_prepare *p, void **made) {
  attention_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  TN_TRY(tn_cuda_attention_use_of(&p->env, p->match, &keep->of));
  keep->args = attention_args_of(&keep->of);
  const struct attention_args *a = &keep->args;
  if (!keep->of.gradient) return attention_add_step(p, keep, "forward", a->value_width, a->queries);
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

static void *attention_data_of(const tn_view *views, const tn_cuda_heads *h) {
  const tn_view *v = &views[h->number];
  return (char *)v->data + h->first * (int64_t)tn_dtype_size(v->type.dtype);
}

static void attention_set_data(const tn_launch *l, const tn_cuda_attention_use *of,
                               struct attention_args *a) {
  a->q.data = attention_data_of(l->in, &of->q);
  a->k.data = attention_data_of(l->in, &of->k);
  a->v.data = attention_data_of(l->in, &of->v);
  a->y.data = attention_data_of(of->gradient ? l->in : l->out, &of->y);
  a->lse = (of->gradient ? l->in : l->out)[of->lse].data;
  a->delta = l->workspace;
  if (!of->gradient) return;
  a->dy.data = attention_data_of(l->in, &of->dy);
  a->dq.data = attention_data_of(l->out, &of->dq);
  a->dk.data = attention_data_of(l->out, &of->dk);
  a->dv.data = attention_data_of(l->out, &of->dv);
}

static tn_status cuda_attention_launch(tn_launch *l) {
  const attention_kernel *k = l->prepared;
  struct attention_args a = k->args;
  tn_status status = TN_OK;
  attention_set_data(l, &k->of, &a);
  for (int32_t i = 0; i < k->n_steps && status == TN_OK; i++)
    status = tn_cuda_launch(l, &k->step[i].function, &k->step[i].grid, &a, sizeof a);
  return status;
}

#define SLICES "&a = slice(x); &b = slice(x); &c = slice(x); "
#define ATTENTION(NAME, PATTERN, WHAT)                                                                       \
  TN_DEFINE_KERNEL(cuda, NAME, "cuda_" #NAME, PATTERN, WHAT, TN_KERNEL_CALLBACKS(cuda_attention))

ATTENTION(attention, "y, lse = attention(q, k, v)", "attention over tiles");
ATTENTION(attention_split, SLICES "y, lse = attention(a, b, c)",
          "attention over tiles, on queries, keys and values in one tensor");
ATTENTION(attention_grad, "dq, dk, dv = attention_grad(q, k, v, y, lse, dy)",
          "the gradient of attention over tiles");
ATTENTION(attention_grad_joined, "dq, dk, dv = attention_grad(q, k, v, y, lse, dy); d = concat(dq, dk, dv)",
          "the gradient of attention over tiles, in one tensor");
ATTENTION(attention_grad_split,
          SLICES "dq, dk, dv = attention_grad(a, b, c, y, lse, dy); d = concat(dq, dk, dv)",
          "the gradient of attention over tiles, on queries, keys and values in one tensor and into another");
