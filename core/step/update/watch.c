/* core/step/update/watch.c: what [run] watch shows of each trained parameter: its gradient, without the scale
 * of the loss and before clipping, its weights before the update, and the update. The sums are those of the
 * whole parameter on every rank, also with a divided optimizer. */
#include "core/step/update/watch.h"

#include "core/step/update/update_stages.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

tn_status tn_updater_watch(tn_updater *u) {
  tn_watched_parameters *watched = u->watched;
  size_t n = (size_t)u->n_params;
  if (watched == NULL) return TN_OK;
  u->watch_sums = tn_arena_alloc(u->arena, tn_size_mul(n, TN_WATCH_SUMS * sizeof *u->watch_sums));
  u->watch_counts = tn_arena_alloc(u->arena, tn_size_mul(n, 2 * sizeof *u->watch_counts));
  watched->paths = tn_arena_alloc(u->arena, tn_size_mul(n, sizeof *watched->paths));
  if (!u->watch_sums || !u->watch_counts || !watched->paths) return TN_ENOMEM;
  watched->n = u->n_params;
  for (int32_t i = 0; i < u->n_params; i++) watched->paths[i] = u->params[i].state->path;
  return TN_OK;
}

/* ---- one parameter ---- */

static tn_val watch_squares(tn_build *b, tn_val x) { return tn_reduce_sum(b, tn_mul(b, x, x), 0, NULL, 0); }

/* The bucket of each number: its sign times the steps of its magnitude above the smallest one. */
static tn_val watch_bucket(tn_build *b, tn_val x) {
  double shift = -(double)TN_WATCH_LEAST * TN_WATCH_PER_OCTAVE;
  tn_val step = tn_floor(b, tn_affine(b, tn_log2(b, tn_abs(b, x)), TN_WATCH_PER_OCTAVE, shift + 1));
  tn_val at = tn_mul(b, tn_sign(b, x), tn_clip(b, step, 0, TN_WATCH_MAGNITUDES));
  at = tn_affine(b, at, 1, TN_WATCH_MAGNITUDES);
  at = tn_where(b, tn_is_nan(b, x), tn_scalar(b, TN_F32, TN_WATCH_FINITE), at);
  return tn_cast(b, at, TN_I32);
}

/* Integers: a sum of ones in f32 stays at 2^24. */
static tn_val watch_counts(tn_build *b, tn_val x) {
  tn_type zeros = {TN_I32, 1, {TN_WATCH_BUCKETS}}, ones = {TN_I32, 1, {tn_type_count(tn_val_type(b, x))}};
  tn_val flat = tn_reshape(b, x, 1, ones.dims);
  return tn_scatter(b, tn_full(b, &zeros, 0), watch_bucket(b, flat), tn_full(b, &ones, 1), 0, TN_SCATTER_ADD);
}

/* The histogram of a parameter's gradient, which 0, or of its weights, which 1. */
static void watch_histogram(tn_updater *u, int32_t i, int32_t which, tn_val x) {
  tn_val *range = u->watch_sums + (size_t)i * TN_WATCH_SUMS + TN_WATCH_RANGES + 3 * which;
  tn_val empty = tn_scalar(u->b, TN_F32, 0);
  bool asked = u->settings->run.watch_histograms;
  range[0] = asked ? tn_reduce_min(u->b, x, 0, NULL, 0) : empty;
  range[1] = asked ? tn_reduce_max(u->b, x, 0, NULL, 0) : empty;
  range[2] = asked ? tn_reduce_sum(u->b, x, 0, NULL, 0) : empty;
  if (asked) u->watch_counts[2 * i + which] = watch_counts(u->b, x);
}

static void watch_step(tn_updater *u, int32_t i, tn_val now, tn_val next) {
  tn_val *sums = u->watch_sums + (size_t)i * TN_WATCH_SUMS;
  sums[TN_WATCH_WEIGHT_SQUARES] = watch_squares(u->b, now);
  sums[TN_WATCH_UPDATE_SQUARES] = watch_squares(u->b, tn_sub(u->b, next, now));
  watch_histogram(u, i, 1, now);
}

/* ---- the stages ---- */

/* Of a vector of which each rank has a piece, the whole. */
static tn_val watch_whole(tn_updater *u, tn_val flat) {
  return u->shards > 1 ? tn_all_gather(u->b, flat, u->shards) : flat;
}

static tn_val watch_slice(const tn_updater *u, int32_t i, tn_val flat) {
  const tn_trained_parameter *param = &u->params[i];
  return tn_slice_axis(u->b, flat, 0, param->offset, param->offset + tn_type_count(&param->state->type));
}

tn_status tn_updater_watch_gradients(tn_updater *u) {
  for (int32_t k = 0; u->watched != NULL && k < u->n_parts; k++) {
    const tn_gradient_part *part = &u->parts[k];
    tn_val whole = watch_whole(u, part->gradient);
    for (int32_t i = part->first; i < part->first + part->n; i++) {
      tn_val gradient = watch_slice(u, i, whole);
      u->watch_sums[(size_t)i * TN_WATCH_SUMS + TN_WATCH_SQUARES] = watch_squares(u->b, gradient);
      watch_histogram(u, i, 0, gradient);
    }
  }
  return tn_build_status(u->b);
}

void tn_updater_watch_region(tn_updater *u, const tn_gradient_part *part, tn_val now, tn_val next) {
  if (u->watched == NULL) return;
  now = watch_whole(u, now);
  next = watch_whole(u, next);
  for (int32_t i = part->first; i < part->first + part->n; i++)
    watch_step(u, i, watch_slice(u, i, now), watch_slice(u, i, next));
}

void tn_updater_watch_parameter(tn_updater *u, const tn_trained_parameter *param, tn_val now, tn_val next) {
  if (u->watched != NULL) watch_step(u, (int32_t)(param - u->params), now, next);
}

/* Packs n values of `count` elements each. */
static tn_status watch_output(tn_updater *u, const char *name, const tn_val *values, int32_t n,
                              int64_t count) {
  int64_t *offsets = tn_arena_alloc(u->arena, tn_size_mul((size_t)n, sizeof *offsets));
  if (offsets == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) offsets[i] = i * count;
  tn_val packed = tn_pack(u->b, n, values, n, offsets, n * count, NULL, 0);
  TN_TRY(tn_build_status(u->b));
  return tn_graph_output(u->graph, name, packed);
}

tn_status tn_updater_watch_outputs(tn_updater *u) {
  if (u->watched == NULL) return TN_OK;
  TN_TRY(watch_output(u, TN_OUTPUT_WATCH_SUMS, u->watch_sums, u->n_params * TN_WATCH_SUMS, 1));
  if (!u->settings->run.watch_histograms) return TN_OK;
  return watch_output(u, TN_OUTPUT_WATCH_COUNTS, u->watch_counts, u->n_params * 2, TN_WATCH_BUCKETS);
}
