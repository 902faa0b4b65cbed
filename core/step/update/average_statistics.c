/* core/step/update/average_statistics.c: the graph that averages running statistics over ranks. Each rank
 * has statistics of its own part of the batches. Layers that span ranks have equal statistics on all of them,
 * which the average keeps. */
#include "core/step/graphs/training_graph.h"
#include "core/step/update/averages.h"
#include "tenon/ops.h"

typedef struct tn_average_pass {
  tn_graph *graph;
  tn_build *b;
  tn_arena arena;
  const tn_state_map *map;
  const tn_freeze *freeze;
  int64_t epoch;
  bool *included; /* per state of the map */
  int32_t dtype;  /* the dtype that is averaged; one collective each */
} tn_average_pass;

static bool average_includes(const tn_average_pass *a, const tn_placement *state) {
  return a->included[state - a->map->states.v] && state->type.dtype == a->dtype;
}

/* A running statistic, or its average over updates. */
static tn_status average_mark(tn_average_pass *a, const tn_placement *state) {
  const tn_placement *of = state;
  if (state->what == TN_STATE_OPTIMIZER) TN_TRY(tn_averaged_state(a->map, state, &of));
  a->included[state - a->map->states.v] = of != NULL && of->what == TN_STATE_BUFFER &&
                                          tn_type_count(&of->type) > 0 &&
                                          !tn_is_frozen(a->freeze, of->path, a->epoch);
  return TN_OK;
}

/* The offsets of all buffers of the dtype in one packed vector; returns the vector's length. */
static int64_t average_offsets(const tn_average_pass *a, int64_t *offsets) {
  int64_t count = 0, n = 0;
  for (size_t i = 0; i < a->map->states.n; i++) {
    const tn_placement *state = &a->map->states.v[i];
    if (!average_includes(a, state)) continue;
    offsets[n++] = count;
    count += tn_type_count(&state->type);
  }
  return count;
}

static tn_val average_read(tn_average_pass *a, const int64_t *offsets, int64_t count) {
  int64_t n = 0;
  tn_op_begin(a->b, "pack");
  for (size_t i = 0; i < a->map->states.n; i++) {
    const tn_placement *s = &a->map->states.v[i];
    if (!average_includes(a, s)) continue;
    tn_val value = tn_graph_state(a->graph, s->path, &s->type, s->what, s->init, s->where);
    if (!value) tn_builder_fail(a->b, a->graph->env->record->code);
    tn_op_arg(a->b, value);
    n++;
  }
  tn_op_set_ints(a->b, "offsets", n, offsets);
  tn_op_set_int(a->b, "count", count);
  return tn_op_end(a->b);
}

static tn_status average_commit(tn_average_pass *a, tn_val mean, const int64_t *offsets) {
  int64_t n = 0;
  for (size_t i = 0; i < a->map->states.n; i++) {
    const tn_placement *s = &a->map->states.v[i];
    if (!average_includes(a, s)) continue;
    int64_t start = offsets[n++], stop = start + tn_type_count(&s->type);
    tn_val now = tn_reshape(a->b, tn_slice_axis(a->b, mean, 0, start, stop), s->type.rank, s->type.dims);
    TN_TRY(tn_build_status(a->b));
    TN_TRY(tn_graph_commit(a->graph, s->path, now, 0));
  }
  return TN_OK;
}

static tn_status average_dtype(tn_average_pass *a) {
  int64_t *offsets = tn_arena_alloc(&a->arena, tn_size_mul(a->map->states.n + 1, sizeof *offsets));
  if (offsets == NULL) return TN_ENOMEM;
  int64_t count = average_offsets(a, offsets);
  if (count == 0) return TN_OK;
  tn_val sum = tn_all_reduce(a->b, average_read(a, offsets, count), TN_REDUCTION_SUM);
  tn_val ranks = tn_scalar(a->b, a->dtype, (double)a->graph->ranks);
  return average_commit(a, tn_div(a->b, sum, ranks), offsets);
}

static tn_status average_all_dtypes(tn_average_pass *a) {
  a->included = tn_arena_alloc(&a->arena, tn_size_mul(a->map->states.n + 1, sizeof *a->included));
  if (a->included == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < a->map->states.n; i++) TN_TRY(average_mark(a, &a->map->states.v[i]));
  for (a->dtype = TN_F16; a->dtype <= TN_F64; a->dtype++) TN_TRY(average_dtype(a));
  return tn_build_status(a->b);
}

tn_status tn_average_statistics_graph(tn_env *env, struct tn_op_table *ops, int32_t ranks,
                                      const tn_state_map *map, const tn_freeze *freeze, int64_t epoch,
                                      tn_graph **out) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  *out = NULL;
  if (ranks == 1) return TN_OK;
  TN_TRY(tn_graph_create(env, ops, &graph));
  graph->ranks = ranks;
  tn_status status = tn_builder_create(graph, &builder);
  if (status == TN_OK) {
    tn_average_pass a = {.graph = graph,
                         .b = tn_builder_handle(builder),
                         .arena = tn_arena_new(env),
                         .map = map,
                         .freeze = freeze,
                         .epoch = epoch};
    status = average_all_dtypes(&a);
    tn_arena_free(&a.arena);
  }
  tn_builder_destroy(builder);
  if (status == TN_OK && graph->commits.n > 0)
    *out = graph;
  else
    tn_graph_destroy(graph);
  return status;
}
