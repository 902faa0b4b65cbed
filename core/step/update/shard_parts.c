/* core/step/update/shard_parts.c: the parts of an update that is divided among ranks
 * (docs/decisions/0063-sharded-optimizer.md), or runs on the host
 * (docs/decisions/0111-optimizer-on-the-host.md).
 *
 * A part is one bucket of gradients, with a region of its own, of which each rank updates a contiguous piece
 * (tn_state_map_divide in core/compile/state_map.h).
 * So the sum of a bucket is one reduce_scatter, which begins when its last gradient is ready, and the new
 * parameters are one all_gather. The parameters of a bucket are of one group, whose options are scalars, and
 * the programs read them in the same dtypes, so that each gathered copy has readers. */
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* ---- the kinds of parameters ---- */

/* The nodes that the step needs. Until the update is emitted, nothing but `params` has the gradients. */
static tn_status shard_parts_find_live(tn_updater *u, bool **live) {
  tn_graph *graph = u->graph;
  size_t n = graph->outputs.n;
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < u->n_params; i++) {
    const char *name = tn_arena_printf(u->arena, "gradient of %s", u->params[i].state->path);
    status = name != NULL ? tn_graph_output(graph, name, u->params[i].gradient) : TN_ENOMEM;
  }
  if (status == TN_OK) status = tn_graph_live(graph, live);
  graph->outputs.n = n;
  return status;
}

static bool shard_parts_reads(const tn_updater *u, const bool *live, const char *path) {
  const tn_gstate *state = path != NULL ? tn_graph_find_state(u->graph, path) : NULL;
  return state != NULL && state->value != 0 && live[u->graph->values.v[state->value].node];
}

/* A bit for each dtype in which the step reads a parameter. */
static int64_t shard_parts_read_dtypes(const tn_updater *u, const bool *live, const char *path) {
  int64_t dtypes = shard_parts_reads(u, live, path);
  dtypes |= shard_parts_reads(u, live, tn_low_precision_path(u->arena, path, TN_F16)) << 1;
  return dtypes | shard_parts_reads(u, live, tn_low_precision_path(u->arena, path, TN_BF16)) << 2;
}

/* Steps that come later use the buckets of the first one, which has chosen the locations. */
tn_status tn_updater_find_kinds(tn_updater *u) {
  bool *live = NULL;
  TN_TRY(shard_parts_find_live(u, &live));
  for (int32_t i = 0; i < u->n_params; i++) {
    tn_trained_parameter *param = &u->params[i];
    const tn_placement *placed = tn_state_map_find(u->map, param->state->path);
    param->kind = placed != NULL && u->buckets
                      ? placed->region
                      : param->group * 8 + shard_parts_read_dtypes(u, live, param->state->path);
  }
  tn_release(u->env, live);
  return TN_OK;
}

/* ---- buckets ---- */

/* Parameters of a kind keep their order. */
void tn_updater_sort_part(const tn_gradient_part *part, tn_trained_parameter *sorted) {
  tn_trained_parameter *params = sorted + part->first;
  for (int32_t i = 1; i < part->n; i++)
    for (int32_t k = i; k > 0 && params[k - 1].kind > params[k].kind; k--) {
      tn_trained_parameter later = params[k - 1];
      params[k - 1] = params[k];
      params[k] = later;
    }
}

static bool shard_parts_ends(const tn_updater *u, int64_t bytes, const tn_trained_parameter *next) {
  bool by_size = u->graph->ranks == 1 && u->settings->bucket == TN_BUCKET_AUTO;
  return by_size ? bytes >= TN_HOST_BUCKET : tn_updater_ends_bucket(u, bytes, next);
}

int32_t tn_updater_bucket_length(const tn_updater *u, const tn_trained_parameter *params, int32_t n) {
  bool placed = u->buckets && tn_state_map_find(u->map, params[0].state->path) != NULL;
  int64_t bytes = 0;
  int32_t taken = 0;
  while (taken < n && params[taken].kind == params[0].kind &&
         (placed || taken == 0 || !shard_parts_ends(u, bytes, &params[taken])))
    bytes += (int64_t)tn_type_bytes(&params[taken++].state->type);
  return taken;
}

tn_status tn_updater_divide_part(tn_updater *u, const tn_gradient_part *part, tn_trained_parameter *sorted) {
  int32_t end = part->first + part->n;
  tn_updater_sort_part(part, sorted);
  for (int32_t i = part->first; i < end;) {
    tn_gradient_part bucket = *part;
    bucket.first = i;
    bucket.n = tn_updater_bucket_length(u, sorted + i, end - i);
    bucket.bucket = u->n_parts;
    u->parts[u->n_parts++] = bucket;
    i += bucket.n;
  }
  return TN_OK;
}

/* ---- numbers of all parts ---- */

tn_val tn_updater_over_shards(tn_updater *u, tn_val value, int32_t reduction) {
  return u->shards > 1 ? tn_all_reduce(u->b, value, reduction) : value;
}
