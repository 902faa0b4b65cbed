/* backends/cuda/kernels/cached_attention.c: attention of new tokens to a cache of keys and values, which it
 * writes in place (device/cached_attention.cu). The launches are the same for every position. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/device/cached_attention.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/threads.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { Q, K, V, KEYS, VALUES, POSITION };
enum { CACHED_BLOCKS = 512 /* enough for a GPU */ };

typedef struct cached_kernel {
  tn_cuda_function attend, join; /* join: where there are several parts */
  tn_cuda_grid grid, join_grid;
  struct cached_attention_args args;
} cached_kernel;

/* ---- shapes ---- */

static int64_t cached_heads(const tn_match *m) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  return a->heads > 0 ? a->heads : m->in[Q]->dims[1];
}

static int64_t cached_tokens(const tn_type *x) { return x->dims[x->rank - 2]; }

static int64_t cached_width(const tn_match *m, int32_t operand) {
  const tn_type *x = m->in[operand];
  return x->dims[x->rank - 1] / (x->rank == 3 ? cached_heads(m) : 1);
}

static int64_t cached_queries(const tn_match *m) {
  return m->in[Q]->dims[0] * cached_heads(m) * cached_tokens(m->in[Q]);
}

/* Blocks that share the rows of a query: as many as fill a GPU, if they have enough rows. */
static int64_t cached_parts(const tn_match *m) {
  int64_t most = tn_cuda_least(tn_cuda_divide_up(cached_tokens(m->in[KEYS]), CACHED_ROWS), CACHED_MOST_PARTS);
  return tn_cuda_at_least_1(
      tn_cuda_least(most, tn_cuda_divide_up(CACHED_BLOCKS, tn_cuda_at_least_1(cached_queries(m)))));
}

static struct attention_rows cached_rows_of(const tn_match *m, int32_t operand) {
  const tn_type *x = m->in[operand];
  int64_t width = cached_width(m, operand);
  if (x->rank == 3) return (struct attention_rows){NULL, x->dims[1] * x->dims[2], width, x->dims[2]};
  return (struct attention_rows){NULL, x->dims[1] * x->dims[2] * width, x->dims[2] * width, width};
}

/* ---- query ---- */

static tn_status cached_check(tn_query *q) {
  const tn_match *m = q->match;
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  long long width = cached_width(m, Q), values = cached_width(m, V), room = cached_tokens(m->in[KEYS]);
  if (a->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, "math", "products of operands rounded to TF32 have no kernel");
  if (width < 1 || width > CACHED_WIDTH || values < 1 || values > CACHED_WIDTH)
    return tn_fail(q, TN_EUNSUPPORTED, "shape", "heads are %lld and %lld wide, expected 1 to %d", width,
                   values, (int)CACHED_WIDTH);
  if (room > INT32_MAX / 2 || cached_queries(m) * cached_parts(m) > INT32_MAX)
    return tn_fail(q, TN_EUNSUPPORTED, "shape",
                   "%lld queries of a cache of %lld rows need more than 2^31 blocks",
                   (long long)cached_queries(m), room);
  return TN_OK;
}

/* The position is unknown here: half of the rows. In place, only the new rows are written. */
static double cached_cost_s(const tn_query *q) {
  const tn_match *m = q->match;
  double widths = (double)(cached_width(m, Q) + cached_width(m, V)),
         room = (double)cached_tokens(m->in[KEYS]) / 2;
  double heads = (double)m->in[Q]->dims[0] * (double)cached_heads(m), queries = (double)cached_queries(m);
  double rate = q->device->vector_flops_per_s * (m->in[Q]->dtype == TN_F64 ? 0.2 : 0.4);
  double bytes = (heads * room + 3 * queries) * widths * (double)tn_dtype_size(m->in[Q]->dtype);
  double cost = tn_estimate_s(q->device, bytes, queries * room * (2 * widths + 5), rate);
  return cost + (cached_parts(m) > 1 ? q->device->launch_s : 0);
}

/* Of all parts of all queries (cached_attention_args). */
static int64_t cached_workspace(const tn_match *m) {
  int64_t parts = cached_parts(m), size = m->in[Q]->dtype == TN_F64 ? sizeof(double) : sizeof(float);
  return parts > 1 ? cached_queries(m) * parts * (2 + cached_width(m, V)) * size : 0;
}

static tn_status cuda_cached_query(tn_query *q) {
  static const int32_t inplace[][2] = {{KEYS, 1}, {VALUES, 2}};
  tn_status status = cached_check(q);
  if (status != TN_OK) return status;
  tn_variant v = {.struct_size = sizeof v,
                  .name = "rows in sight",
                  .workspace_bytes = cached_workspace(q->match),
                  .prepared_bytes = sizeof(cached_kernel),
                  .n_inplace = 2,
                  .inplace = inplace,
                  .cost_s = cached_cost_s(q),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* ---- prepare ---- */

static struct cached_attention_args cached_args_of(const tn_match *m) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  int64_t width = cached_width(m, Q), values = cached_width(m, V),
          pack = 16 / (int64_t)tn_dtype_size(m->in[Q]->dtype);
  return (struct cached_attention_args){.q = cached_rows_of(m, Q),
                                        .k = cached_rows_of(m, K),
                                        .v = cached_rows_of(m, V),
                                        .y = cached_rows_of(m, V),
                                        .keys = cached_rows_of(m, KEYS),
                                        .values = cached_rows_of(m, VALUES),
                                        .scale = a->scale != 0 ? a->scale : 1 / sqrt((double)width),
                                        .heads = (int)cached_heads(m),
                                        .tokens = (int)cached_tokens(m->in[Q]),
                                        .room = (int)cached_tokens(m->in[KEYS]),
                                        .width = (int)width,
                                        .value_width = (int)values,
                                        .parts = (int)cached_parts(m),
                                        .vector = width % pack == 0 && values % pack == 0};
}

static tn_status cuda_cached_prepare(tn_prepare *p, void **made) {
  const tn_match *m = p->match;
  const char *dtype = tn_dtype_name(m->in[Q]->dtype);
  char name[TN_CUDA_FUNCTION_NAME];
  cached_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *made = keep;
  keep->args = cached_args_of(m);
  uint32_t queries = (uint32_t)cached_queries(m), parts = (uint32_t)keep->args.parts;
  keep->grid = (tn_cuda_grid){.blocks = {queries * parts, 1, 1}, .threads = {CACHED_THREADS, 1, 1}};
  keep->join_grid =
      (tn_cuda_grid){.blocks = {parts > 1 ? queries : 0, 1, 1}, .threads = {CACHED_THREADS, 1, 1}};
  if (queries == 0) return TN_OK;
  snprintf(name, sizeof name, "cached_attention_%s", dtype);
  tn_status status = tn_cuda_request(p, &keep->attend, "cached_attention.cu", name);
  if (status != TN_OK || parts == 1) return status;
  snprintf(name, sizeof name, "cached_attention_join_%s", dtype);
  return tn_cuda_request(p, &keep->join, "cached_attention.cu", name);
}

static void cuda_cached_release(tn_env *env, void *made) {
  cached_kernel *k = made;
  tn_cuda_withdraw(&k->attend);
  tn_cuda_withdraw(&k->join);
  tn_delete(env, k);
}

/* ---- launch ---- */

/* The old rows, where a cache is not written in place. */
static tn_status cached_copy(tn_launch *l, int32_t cache, int32_t result) {
  const tn_view *from = &l->in[cache], *to = &l->out[result];
  if (from->data == to->data) return TN_OK;
  return tn_cuda_copy_bytes(&l->env, l->stream, TN_COPY_ON_DEVICE, to->data, from->data,
                            tn_type_bytes(&to->type));
}

static void cached_set_data(const tn_launch *l, struct cached_attention_args *a) {
  struct attention_rows *const rows[] = {&a->q, &a->k, &a->v, &a->y, &a->keys, &a->values};
  void *const data[] = {l->in[Q].data,  l->in[K].data,  l->in[V].data,
                        l->out[0].data, l->out[1].data, l->out[2].data};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rows[i]->data = data[i];
    if (!tn_cuda_is_aligned(data[i])) a->vector = 0;
  }
  a->position = l->in[POSITION].data;
  a->sums = l->workspace;
}

static tn_status cuda_cached_launch(tn_launch *l) {
  const cached_kernel *k = l->prepared;
  struct cached_attention_args a = k->args;
  tn_status status = cached_copy(l, KEYS, 1);
  if (status == TN_OK) status = cached_copy(l, VALUES, 2);
  if (status != TN_OK) return status;
  cached_set_data(l, &a);
  status = tn_cuda_launch(l, &k->attend, &k->grid, &a, sizeof a);
  return status == TN_OK ? tn_cuda_launch(l, &k->join, &k->join_grid, &a, sizeof a) : status;
}

TN_DEFINE_KERNEL(cuda, cached_attention, "cuda_cached_attention",
                 "y, all_keys, all_values = cached_attention(q, k, v, keys, values, position)",
                 "attention to the cached rows up to the position, which it writes in place",
                 TN_KERNEL_CALLBACKS(cuda_cached));
