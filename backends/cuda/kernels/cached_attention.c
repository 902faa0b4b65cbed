/* backends/cuda/kernels/cached_attention.c: attention of new tokens to a cache of keys and values, which it
 * writes in place (device/cached_attention.cu). The launches are the same for every position. */
#include <stdio.h>

#include "backends/cuda/device/cached_attention.cuh"
#include "backends/cuda/kernels/attention_operands.h"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { CACHED_BLOCKS = 512 /* enough for a GPU */, CACHED_VIEWS = 6 /* with rows of heads */ };

typedef struct cached_kernel {
  tn_cuda_function attend, join; /* join: where there are several parts */
  tn_cuda_grid grid, join_grid;
  tn_cuda_attention_use of;
  struct cached_attention_args args;
} cached_kernel;

/* ---- shapes ---- */

static int64_t cached_queries(const tn_cuda_attention_use *of) { return of->batch * of->heads * of->queries; }

/* Blocks that share the rows of a query: as many as fill a GPU, if they have enough rows. */
static int64_t cached_parts(const tn_cuda_attention_use *of) {
  int64_t most = least(divide_up(of->keys, CACHED_ROWS), CACHED_MOST_PARTS);
  int64_t wanted = divide_up(CACHED_BLOCKS, at_least_1(cached_queries(of)));
  return at_least_1(least(most, wanted));
}

static struct attention_rows cached_rows_of(const tn_cuda_heads *h) {
  return (struct attention_rows){NULL, h->batch, h->head, h->row};
}

/* Whether vectors of 16 bytes divide rows, and their distances from the address of the view. */
static bool cached_has_vectors(const tn_cuda_attention_use *of) {
  const tn_cuda_heads *const heads[CACHED_VIEWS] = {&of->q, &of->k,        &of->v,
                                                    &of->y, &of->cache[0], &of->cache[1]};
  int64_t pack = 16 / (int64_t)tn_dtype_size(of->dtype);
  int64_t all = of->width | of->value_width;
  for (int32_t i = 0; i < CACHED_VIEWS; i++)
    all |= heads[i]->first | heads[i]->batch | heads[i]->head | heads[i]->row;
  return all % pack == 0;
}

/* ---- query ---- */

static tn_status cached_check(tn_query *q, const tn_cuda_attention_use *of) {
  const tn_match *m = q->match;
  const tn_attention_attributes *a = m->nodes[m->n_nodes - 1].node->attributes;
  if (a->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, "math", "products of operands rounded to TF32 have no kernel");
  if (of->width < 1 || of->width > CACHED_WIDTH || of->value_width < 1 || of->value_width > CACHED_WIDTH)
    return tn_fail(q, TN_EUNSUPPORTED, "shape", "heads are %lld and %lld wide, expected 1 to %d",
                   (long long)of->width, (long long)of->value_width, (int)CACHED_WIDTH);
  if (of->keys > INT32_MAX / 2 || cached_queries(of) * cached_parts(of) > INT32_MAX)
    return tn_fail(q, TN_EUNSUPPORTED, "shape",
                   "%lld queries of a cache of %lld rows need more than 2^31 blocks",
                   (long long)cached_queries(of), (long long)of->keys);
  return TN_OK;
}

/* The position is unknown here: half of the rows. In place, only the new rows are written. */
static double cached_cost_s(const tn_query *q, const tn_cuda_attention_use *of) {
  double widths = (double)(of->width + of->value_width), rows = (double)of->keys / 2;
  double queries = (double)cached_queries(of), heads = (double)(of->batch * of->heads);
  double rate = q->device->vector_flops_per_s * (of->dtype == TN_F64 ? 0.5 : 1);
  double bytes = (heads * rows + 3 * queries) * widths * (double)tn_dtype_size(of->dtype);
  double cost =
      tn_cuda_estimate_s(q->device, TN_CUDA_OWN_PRODUCT, bytes, queries * rows * (2 * widths + 5), rate);
  return cost + (cached_parts(of) > 1 ? q->device->launch_s : 0);
}

/* Of all parts of all queries (cached_attention_args). */
static int64_t cached_workspace(const tn_cuda_attention_use *of) {
  int64_t parts = cached_parts(of), size = of->dtype == TN_F64 ? sizeof(double) : sizeof(float);
  return parts > 1 ? cached_queries(of) * parts * (2 + of->value_width) * size : 0;
}

static tn_status cuda_cached_query(tn_query *q) {
  tn_cuda_attention_use of;
  TN_TRY(tn_cuda_attention_use_of(&q->env, q->match, &of));
  TN_TRY(cached_check(q, &of));
  const int32_t inplace[][2] = {{of.cache[0].number, of.all[0]}, {of.cache[1].number, of.all[1]}};
  return tn_offer(q, (tn_variant){.name = "rows in sight",
                                  .workspace_bytes = cached_workspace(&of),
                                  .prepared_bytes = sizeof(cached_kernel),
                                  .n_inplace = 2,
                                  .inplace = inplace,
                                  .cost_s = cached_cost_s(q, &of)});
}

/* ---- prepare ---- */

static struct cached_attention_args cached_args_of(const tn_cuda_attention_use *of) {
  return (struct cached_attention_args){.q = cached_rows_of(&of->q),
                                        .k = cached_rows_of(&of->k),
                                        .v = cached_rows_of(&of->v),
                                        .y = cached_rows_of(&of->y),
                                        .keys = cached_rows_of(&of->cache[0]),
                                        .values = cached_rows_of(&of->cache[1]),
                                        .scale = of->scale,
                                        .heads = (int)of->heads,
                                        .tokens = (int)of->queries,
                                        .room = (int)of->keys,
                                        .width = (int)of->width,
                                        .value_width = (int)of->value_width,
                                        .parts = (int)cached_parts(of),
                                        .vector = cached_has_vectors(of)};
}

static tn_status cached_request(tn_prepare *p, cached_kernel *keep) {
  uint32_t queries = (uint32_t)cached_queries(&keep->of), parts = (uint32_t)keep->args.parts;
  keep->grid = (tn_cuda_grid){.blocks = {queries * parts, 1, 1}, .threads = {CACHED_THREADS, 1, 1}};
  keep->join_grid =
      (tn_cuda_grid){.blocks = {parts > 1 ? queries : 0, 1, 1}, .threads = {CACHED_THREADS, 1, 1}};
  if (queries == 0) return TN_OK;
  tn_status status = tn_cuda_request(p, &keep->attend, "cached_attention.cu", "cached_attention_%s",
                                     tn_dtype_name(keep->of.dtype));
  if (status != TN_OK || parts == 1) return status;
  return tn_cuda_request(p, &keep->join, "cached_attention.cu", "cached_attention_join_%s",
                         tn_dtype_name(keep->of.dtype));
}

static tn_status cuda_cached_prepare(tn_prepare *p, void **made) {
  cached_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  TN_TRY(tn_cuda_attention_use_of(&p->env, p->match, &keep->of));
  keep->args = cached_args_of(&keep->of);
  return cached_request(p, keep);
}

static void cuda_cached_release(tn_env *env, void *made) {
  cached_kernel *k = made;
  tn_cuda_withdraw(&k->attend);
  tn_cuda_withdraw(&k->join);
  tn_delete(env, k);
}

/* ---- launch ---- */

/* The old rows, where a cache is not written in place. */
static tn_status cached_copy(tn_launch *l, const tn_cuda_heads *cache, int32_t all) {
  const tn_view *from = &l->in[cache->number], *to = &l->out[all];
  if (from->data == to->data) return TN_OK;
  return tn_cuda_copy_bytes(&l->env, l->stream, TN_COPY_ON_DEVICE, to->data, from->data,
                            tn_type_bytes(&to->type));
}

static void cached_point(const tn_view *view, const tn_cuda_heads *h, struct attention_rows *rows,
                         int *vector) {
  rows->data = (char *)view->data + h->first * (int64_t)tn_dtype_size(view->type.dtype);
  if (!tn_cuda_is_aligned(view->data)) *vector = 0;
}

static void cached_set_data(const tn_launch *l, const tn_cuda_attention_use *of,
                            struct cached_attention_args *a) {
  cached_point(&l->in[of->q.number], &of->q, &a->q, &a->vector);
  cached_point(&l->in[of->k.number], &of->k, &a->k, &a->vector);
  cached_point(&l->in[of->v.number], &of->v, &a->v, &a->vector);
  cached_point(&l->out[of->y.number], &of->y, &a->y, &a->vector);
  cached_point(&l->out[of->all[0]], &of->cache[0], &a->keys, &a->vector);
  cached_point(&l->out[of->all[1]], &of->cache[1], &a->values, &a->vector);
  a->position = l->in[of->position].data;
  a->sums = l->workspace;
}

static tn_status cuda_cached_launch(tn_launch *l) {
  const cached_kernel *k = l->prepared;
  struct cached_attention_args a = k->args;
  tn_status status = cached_copy(l, &k->of.cache[0], k->of.all[0]);
  if (status == TN_OK) status = cached_copy(l, &k->of.cache[1], k->of.all[1]);
  if (status != TN_OK) return status;
  cached_set_data(l, &k->of, &a);
  status = tn_cuda_launch(l, &k->attend, &k->grid, &a, sizeof a);
  return status == TN_OK ? tn_cuda_launch(l, &k->join, &k->join_grid, &a, sizeof a) : status;
}

#define CACHED(NAME, SLICES, OPERANDS, WHAT)                                                                 \
  TN_DEFINE_KERNEL(cuda, NAME, "cuda_" #NAME,                                                                \
                   SLICES "y, all_keys, all_values = cached_attention(" OPERANDS                             \
                          ", keys, values, position)",                                                       \
                   WHAT, TN_KERNEL_CALLBACKS(cuda_cached))

CACHED(cached_attention, "", "q, k, v",
       "attention to the cached rows up to the position, which it writes in place");
CACHED(cached_attention_split, "&a = slice(x); &b = slice(x); &c = slice(x); ", "a, b, c",
       "the same, on queries, keys and values in one tensor");
