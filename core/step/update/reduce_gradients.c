/* core/step/update/reduce_gradients.c: reduces the gradients of one rank and micro-batch to those of the
 * global batch, as one flat vector for each dtype.
 *
 * Gradients form buckets in the order in which they become ready. A bucket is reduced over ranks as soon as
 * its last gradient is ready (Li et al., "PyTorch Distributed", VLDB 2020). A bucket is a slice of the flat
 * vector: the memory pass computes gradients there and runs the collective in place, so there are no copies.
 * [distributed] reduce_dtype is the dtype of the sums over ranks: each bucket, still scaled by the loss
 * scale, is cast to it before the reduction. The update casts the sums to f32.
 * With a sharded optimizer a bucket is a part, and a rank gets the sums of the elements that it updates. With
 * one on the host a bucket is a part as well, and copied to the host as soon as it is complete.
 * Micro-batches accumulate their gradients in f32, bucket by bucket, in a region; only the program of the
 * last micro-batch, the step, reduces the sums. */
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* Gradients of a part that are neighbours in the order of readiness. */
typedef struct tn_bucket {
  const tn_gradient_part *part;
  int32_t first, n;    /* parameters */
  int64_t start, stop; /* elements of the part's region */
} tn_bucket;

bool tn_updater_ends_bucket(const tn_updater *u, int64_t bytes, const tn_trained_parameter *next) {
  const tn_bucket_cuts *cuts = u->cuts;
  if (u->settings->bucket != TN_BUCKET_AUTO) return bytes >= u->settings->bucket;
  for (int32_t i = 0; cuts != NULL && i < cuts->n; i++)
    if (tn_text_equal(cuts->first[i], next->state->path)) return true;
  return cuts != NULL && cuts->each;
}

static bool bucket_is_reduced(const tn_updater *u) {
  return u->graph->ranks > 1 || u->settings->reduces_alone;
}

static bool bucket_ends(const tn_updater *u, const tn_bucket *bucket) {
  int64_t bytes = (bucket->stop - bucket->start) * (int64_t)sizeof(float);
  return bucket_is_reduced(u) && tn_updater_ends_bucket(u, bytes, &u->params[bucket->first + bucket->n]);
}

/* The bucket that begins at a parameter. On one rank a single bucket is the whole vector. */
static tn_bucket bucket_from(const tn_updater *u, const tn_gradient_part *part, int32_t first) {
  tn_bucket b = {.part = part, .first = first, .start = u->params[first].offset};
  int32_t end = part->first + part->n;
  if (part->bucket >= 0) {
    b.n = part->n;
    b.stop = part->count;
    return b;
  }
  do {
    b.n++;
    b.stop = first + b.n < end ? u->params[first + b.n].offset : part->count;
  } while (first + b.n < end && !bucket_ends(u, &b));
  return b;
}

/* The operands of a pack of the bucket's parameters, and where each begins. */
static void bucket_pack_values(tn_updater *u, const tn_bucket *bucket, const tn_val *values) {
  int64_t *offsets = tn_arena_alloc(u->arena, tn_size_mul((size_t)bucket->n, sizeof *offsets));
  if (offsets == NULL) tn_builder_fail(u->b, TN_ENOMEM);
  for (int32_t i = 0; offsets != NULL && i < bucket->n; i++) {
    const tn_trained_parameter *param = &u->params[bucket->first + i];
    offsets[i] = param->offset - bucket->start;
    tn_op_arg(u->b, values != NULL ? values[i] : param->gradient);
  }
  if (offsets != NULL) tn_op_set_ints(u->b, "offsets", bucket->n, offsets);
}

/* The values of a bucket's parameters as one vector; NULL: their gradients. An elementwise optimizer is
 * independent of the layout of a parameter, so its gradients may have the parameter's layout. An optimizer
 * for one parameter at a time reads row-major slices of the flat vector. */
static tn_val bucket_pack(tn_updater *u, const tn_bucket *bucket, const tn_val *values, bool layouts) {
  tn_op_begin(u->b, "pack");
  bucket_pack_values(u, bucket, values);
  tn_op_set_int(u->b, "count", bucket->stop - bucket->start);
  if (layouts) {
    const char *region = tn_updater_region(u, bucket->part, TN_PARAM_REGION);
    if (region == NULL) tn_builder_fail(u->b, TN_ENOMEM);
    tn_op_set_text(u->b, "region", region != NULL ? region : "");
    tn_op_set_int(u->b, "start", bucket->start);
  }
  return tn_op_end(u->b);
}

tn_val tn_updater_pack(tn_updater *u, const tn_gradient_part *part, const tn_val *values) {
  tn_bucket all = {.part = part, .first = part->first, .n = part->n, .start = 0, .stop = part->count};
  return bucket_pack(u, &all, values, u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE);
}

tn_val tn_updater_slice(const tn_updater *u, const tn_trained_parameter *param, tn_val flat) {
  const tn_type *type = &param->state->type;
  int64_t start = param->offset, stop = start + tn_type_count(type);
  return tn_reshape(u->b, tn_slice_axis(u->b, flat, 0, start, stop), type->rank, type->dims);
}

/* The gradients that earlier micro-batches have accumulated. */
static tn_val bucket_accumulated(tn_updater *u, const tn_bucket *bucket, const char **path) {
  int32_t region;
  const char *number = tn_arena_printf(u->arena, "%d", bucket->first);
  tn_gstate state = {.path = number != NULL ? tn_updater_own(u, "run.gradient", number) : NULL,
                     .type = {TN_F32, 1, {bucket->stop - bucket->start}},
                     .what = TN_STATE_SCRATCH,
                     .init = "",
                     .where = ""};
  tn_status status = state.path ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = tn_state_map_region(u->map, TN_GRADIENT_REGION, TN_F32, &region);
  if (status == TN_OK) status = tn_state_map_add(u->map, &state, region, -1);
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

/* The sum over ranks, or the rank's part of it, as the op of a layer "bucket 2", so that messages and plans
 * can name it. */
static tn_val bucket_sum_over_ranks(tn_updater *u, int32_t number, tn_val gradient) {
  const char *name = tn_arena_printf(u->arena, "bucket %d", (int)number);
  if (name == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  tn_build_frame frame = {.prefix = name, .where = ""};
  tn_builder_push(u->b, &frame);
  gradient = tn_to_dtype(u->b, gradient, bucket_dtype(u));
  tn_val sum = u->shards > 1 ? tn_reduce_scatter(u->b, gradient, u->shards, TN_REDUCTION_SUM)
                             : tn_all_reduce(u->b, gradient, TN_REDUCTION_SUM);
  tn_builder_pop(u->b);
  return sum;
}

/* Whether the micro-batch of the program is the first one of its update. */
static tn_val bucket_is_first(const tn_updater *u) {
  return tn_lt(u->b, tn_build_counter(u->b, TN_BATCH_BLOCK), tn_scalar(u->b, TN_I64, u->graph->ranks));
}

/* The sums of all micro-batches. With [schedule.accumulate] the last one may be the only one, and the sums of
 * the others are those of an earlier update. */
static tn_val bucket_add_accumulated(tn_updater *u, const tn_bucket *bucket, tn_val gradient) {
  const char *path;
  tn_val last = tn_to_dtype(u->b, gradient, TN_F32),
         sum = tn_add(u->b, bucket_accumulated(u, bucket, &path), last);
  bool alone = tn_settings_schedule_of(u->settings, TN_SCHEDULES_ACCUMULATE) != NULL;
  return alone ? tn_where(u->b, bucket_is_first(u), last, sum) : sum;
}

static tn_val bucket_reduce(tn_updater *u, const tn_bucket *bucket, int32_t number) {
  tn_val gradient = bucket_pack(u, bucket, NULL, !u->row_major);
  if (u->graph->micro_batches > 1) gradient = bucket_add_accumulated(u, bucket, gradient);
  return bucket_is_reduced(u) ? bucket_sum_over_ranks(u, number, gradient) : gradient;
}

/* A part of one bucket each, with a sharded optimizer: those that may share one count as one part. */
static int32_t bucket_part(const tn_updater *u, const tn_gradient_part *part) {
  int32_t number = 0;
  for (const tn_gradient_part *p = u->parts + 1; p <= part; p++)
    number += p->bucket < 0 || p->until != p[-1].until || p->dtype != p[-1].dtype ||
              u->params[p->first].kind != u->params[p[-1].first].kind;
  return number;
}

static void bucket_note(tn_updater *u, const tn_bucket *bucket, int32_t number) {
  tn_update_info *info = u->info;
  info->buckets[number] = (tn_reduced_bucket){.first = u->params[bucket->first].state->path,
                                              .part = bucket_part(u, bucket->part)};
  info->n_buckets = number + 1;
}

static tn_val reduce_join_buckets(tn_updater *u, const tn_gradient_part *part, const tn_val *reduced,
                                  const int64_t *offsets, int32_t n) {
  if (n == 1) return reduced[0];
  return tn_pack(u->b, n, reduced, n, offsets, part->count, NULL, 0);
}

/* `number` counts the buckets of all parts. */
static tn_status reduce_part(tn_updater *u, tn_gradient_part *part, int32_t *number) {
  tn_val *reduced = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *reduced));
  int64_t *offsets = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *offsets));
  int32_t n = 0;
  if (reduced == NULL || offsets == NULL) return TN_ENOMEM;
  for (int32_t i = part->first; i < part->first + part->n;) {
    tn_bucket bucket = bucket_from(u, part, i);
    offsets[n] = bucket.start;
    bucket_note(u, &bucket, *number);
    reduced[n++] = bucket_reduce(u, &bucket, (*number)++);
    i += bucket.n;
  }
  part->gradient = reduce_join_buckets(u, part, reduced, offsets, n);
  return tn_build_status(u->b);
}

tn_status tn_updater_reduce(tn_updater *u) {
  int32_t number = 0;
  u->info->buckets = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *u->info->buckets));
  if (u->info->buckets == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < u->n_parts; i++) TN_TRY(reduce_part(u, &u->parts[i], &number));
  return TN_OK;
}

/* ---- of the first pass of [optimizer] sharpness ---- */

/* As a bucket, of the parameters from `first` on; without a region, which the second pass has. */
static tn_status sum_bucket(tn_updater *u, int32_t first, int32_t n, tn_val *sums) {
  tn_build *b = u->b;
  int64_t end = 0, *offsets = tn_arena_alloc(u->arena, tn_size_mul((size_t)n, sizeof *offsets));
  if (offsets == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    int64_t count = tn_type_count(&u->params[first + i].state->type), align = TN_REGION_ALIGN_ELEMENTS;
    offsets[i] = end;
    end += (count + align - 1) / align * align;
  }
  tn_build_frame frame = {.prefix = "sharpness", .where = ""};
  tn_builder_push(b, &frame);
  tn_val flat = tn_to_dtype(b, tn_pack(b, n, sums + first, n, offsets, end, NULL, 0), bucket_dtype(u));
  tn_val sum = tn_to_dtype(b, tn_all_reduce(b, flat, TN_REDUCTION_SUM), TN_F32);
  for (int32_t i = 0; i < n; i++) {
    const tn_type *type = &u->params[first + i].state->type;
    tn_val own = tn_slice_axis(b, sum, 0, offsets[i], offsets[i] + tn_type_count(type));
    sums[first + i] = tn_reshape(b, own, type->rank, type->dims);
  }
  tn_builder_pop(b);
  return tn_build_status(b);
}

tn_status tn_updater_sum_gradients(tn_updater *u, tn_val *sums) {
  int64_t bytes = 0;
  int32_t first = 0;
  for (int32_t i = 0; i < u->n_params; i++) sums[i] = tn_to_dtype(u->b, u->params[i].gradient, TN_F32);
  TN_TRY(tn_build_status(u->b));
  for (int32_t i = 0; bucket_is_reduced(u) && i < u->n_params; i++) {
    bytes += (int64_t)tn_type_bytes(&u->params[i].state->type);
    if (i + 1 < u->n_params && !tn_updater_ends_bucket(u, bytes, &u->params[i + 1])) continue;
    TN_TRY(sum_bucket(u, first, i + 1 - first, sums));
    first = i + 1;
    bytes = 0;
  }
  return TN_OK;
}

/* ---- micro-batches ---- */

/* The first micro-batch overwrites the sums of the previous update. */
static tn_status accumulate_bucket(tn_updater *u, const tn_bucket *bucket, tn_val first) {
  tn_build *b = u->b;
  const char *path = NULL;
  tn_val packed = bucket_pack(u, bucket, NULL, !u->row_major);
  tn_val gradient = tn_to_dtype(b, packed, TN_F32), before = bucket_accumulated(u, bucket, &path);
  tn_val now = tn_where(b, first, gradient, tn_add(b, before, gradient));
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(u->graph, path, now, 0);
}

tn_status tn_updater_accumulate(tn_updater *u) {
  tn_val first = bucket_is_first(u);
  for (int32_t k = 0; k < u->n_parts; k++) {
    const tn_gradient_part *part = &u->parts[k];
    for (int32_t i = part->first; i < part->first + part->n;) {
      tn_bucket bucket = bucket_from(u, part, i);
      TN_TRY(accumulate_bucket(u, &bucket, first));
      i += bucket.n;
    }
  }
  return TN_OK;
}
