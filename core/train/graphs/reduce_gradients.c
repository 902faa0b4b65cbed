/* core/train/graphs/reduce_gradients.c: reduces the gradients of one rank and micro-batch to those of the
 * global batch, as one flat vector.
 *
 * Gradients form buckets in the order in which they become ready. A bucket is reduced over ranks as soon as
 * its last gradient is ready (Li et al., "PyTorch Distributed", VLDB 2020). A bucket is a slice of the flat
 * vector: the memory pass computes gradients there and runs the collective in place, so there are no copies.
 * [distributed] reduce_dtype = bf16 or f16 casts each bucket, still scaled by the loss scale, before the
 * reduction, and its sum back to f32.
 * Micro-batches accumulate their gradients, bucket by bucket, in a region; only the program of the last
 * micro-batch, the step, reduces the sums. */
#include "core/train/graphs/update_stages.h"
#include "tenon/ops.h"

/* Gradients that are neighbours in the order of readiness. */
typedef struct tn_bucket {
  int32_t first, n;    /* parameters */
  int64_t start, stop; /* elements of the flat region */
} tn_bucket;

static bool bucket_is_full(const tn_updater *u, const tn_bucket *bucket, int64_t stop) {
  int64_t limit = u->graph->ranks > 1 ? u->settings->distributed.bucket : 0;
  return limit > 0 && (stop - bucket->start) * (int64_t)sizeof(float) >= limit;
}

/* The bucket that begins at a parameter. On one rank a single bucket is the whole vector. */
static tn_bucket bucket_from(const tn_updater *u, int32_t first) {
  tn_bucket b = {.first = first, .start = u->params[first].offset};
  do {
    b.n++;
    b.stop = first + b.n < u->n_params ? u->params[first + b.n].offset : u->count;
  } while (first + b.n < u->n_params && !bucket_is_full(u, &b, b.stop));
  return b;
}

/* An elementwise optimizer is independent of the layout of a parameter, so its gradients may have the
 * parameter's layout. An optimizer for one parameter at a time reads row-major slices of the flat vector. */
static bool bucket_is_elementwise(const tn_updater *u) {
  return u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE;
}

static tn_val bucket_pack(tn_updater *u, const tn_bucket *bucket) {
  int64_t *offsets = tn_arena_alloc(u->arena, tn_size_mul((size_t)bucket->n, sizeof *offsets));
  if (offsets == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  tn_op_begin(u->b, "pack");
  for (int32_t i = 0; i < bucket->n; i++) {
    offsets[i] = u->params[bucket->first + i].offset - bucket->start;
    tn_op_arg(u->b, u->params[bucket->first + i].gradient);
  }
  tn_op_set_ints(u->b, "offsets", bucket->n, offsets);
  tn_op_set_int(u->b, "count", bucket->stop - bucket->start);
  if (bucket_is_elementwise(u)) {
    tn_op_set_text(u->b, "region", TN_PARAM_REGION);
    tn_op_set_int(u->b, "start", bucket->start);
  }
  return tn_op_end(u->b);
}

/* The gradients that earlier micro-batches have accumulated. */
static tn_val bucket_accumulated(tn_updater *u, const tn_bucket *bucket, const char **path) {
  int32_t region;
  tn_gstate state = {.path = tn_arena_printf(u->arena, "run.gradient.%d", bucket->first),
                     .type = {TN_F32, 1, {bucket->stop - bucket->start}},
                     .what = TN_STATE_SCRATCH,
                     .init = "",
                     .where = ""};
  tn_status status = state.path ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = tn_state_map_region(u->map, TN_GRADIENT_REGION, TN_F32, &region);
  if (status == TN_OK) status = tn_state_map_add(u->map, &state, region, bucket->start);
  if (status != TN_OK) {
    tn_builder_fail(u->b, status);
    return 0;
  }
  *path = state.path;
  tn_val value = tn_graph_state(u->graph, state.path, &state.type, state.what, "", "");
  if (!value) tn_builder_fail(u->b, u->graph->env->record->code);
  return value;
}

static int32_t bucket_dtype(const tn_updater *u) {
  static const int32_t dtypes[] = {
      [TN_REDUCE_F32] = TN_F32, [TN_REDUCE_BF16] = TN_BF16, [TN_REDUCE_F16] = TN_F16};
  return dtypes[u->settings->distributed.reduce_dtype];
}

/* The sum over ranks, as the op of a layer "bucket 2", so that messages and plans can name it. */
static tn_val bucket_sum_over_ranks(tn_updater *u, int32_t number, tn_val gradient) {
  const char *name = tn_arena_printf(u->arena, "bucket %d", (int)number);
  if (name == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  tn_build_frame frame = {.prefix = name, .where = ""};
  tn_builder_push(u->b, &frame);
  tn_val sum = tn_op1(u->b, "all_reduce", tn_cast(u->b, gradient, bucket_dtype(u)));
  tn_builder_pop(u->b);
  return tn_cast(u->b, sum, TN_F32);
}

static tn_val bucket_reduce(tn_updater *u, const tn_bucket *bucket, int32_t number) {
  const char *path;
  tn_val gradient = bucket_pack(u, bucket);
  if (u->graph->micro_batches > 1) gradient = tn_add(u->b, bucket_accumulated(u, bucket, &path), gradient);
  return u->graph->ranks > 1 ? bucket_sum_over_ranks(u, number, gradient) : gradient;
}

tn_val tn_updater_reduce(tn_updater *u) {
  size_t most = (size_t)u->n_params;
  tn_val *reduced = tn_arena_alloc(u->arena, tn_size_mul(most, sizeof *reduced));
  int64_t *offsets = tn_arena_alloc(u->arena, tn_size_mul(most, sizeof *offsets));
  int32_t n = 0;
  if (reduced == NULL || offsets == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  for (int32_t i = 0; i < u->n_params;) {
    tn_bucket bucket = bucket_from(u, i);
    offsets[n] = bucket.start;
    reduced[n] = bucket_reduce(u, &bucket, n);
    n++;
    i += bucket.n;
  }
  if (n == 1) return reduced[0];
  tn_op_begin(u->b, "pack");
  for (int32_t i = 0; i < n; i++) tn_op_arg(u->b, reduced[i]);
  tn_op_set_ints(u->b, "offsets", n, offsets);
  tn_op_set_int(u->b, "count", u->count);
  return tn_op_end(u->b);
}

/* The first micro-batch overwrites the sums of the previous update. */
tn_status tn_updater_accumulate(tn_updater *u) {
  tn_build *b = u->b;
  tn_val first = tn_op2(b, "lt", tn_build_counter(b, TN_BATCH_BLOCK), tn_scalar(b, TN_I64, u->graph->ranks));
  for (int32_t i = 0; i < u->n_params;) {
    tn_bucket bucket = bucket_from(u, i);
    const char *path = NULL;
    tn_val gradient = bucket_pack(u, &bucket), before = bucket_accumulated(u, &bucket, &path);
    tn_val now = tn_where(b, first, gradient, tn_add(b, before, gradient));
    TN_TRY(tn_build_status(b));
    TN_TRY(tn_graph_commit(u->graph, path, now, 0));
    i += bucket.n;
  }
  return TN_OK;
}
