/* core/step/graphs/init_graph.c: the graph of the init program, which commits every state's initializer. */
#include "core/step/graphs/training_graph.h"
#include "tenon/ops.h"
#include "tenon/random.h"

static bool init_graph_has_value(const tn_placement *place) {
  return place->init != NULL && *place->init != '\0';
}

static tn_status init_graph_value(tn_build *b, const tn_placement *place, uint64_t seed, tn_val *value) {
  uint64_t stream = tn_hash_mix(seed, tn_hash_text(TN_HASH_START, place->path));
  *value = tn_initializer_emit(b, place->init, &place->type, stream);
  return tn_wrap(b, tn_build_status(b), "%s: '%s'", place->where && *place->where ? place->where : "state",
                 place->path);
}

static tn_status init_graph_add_state(tn_graph *graph, tn_build *b, const tn_state_map *map,
                                      const tn_placement *place, uint64_t seed) {
  tn_val value;
  if (!init_graph_has_value(place) || tn_state_map_shards(map, place) > 1) return TN_OK;
  if (map->regions.v[place->region].mapped != NULL) return TN_OK; /* the file has the values */
  if (!tn_graph_state(graph, place->path, &place->type, place->what, place->init, place->where))
    return TN_ENOMEM;
  TN_TRY(init_graph_value(b, place, seed, &value));
  return tn_graph_commit(graph, place->path, value, 0);
}

/* ---- regions that are divided among ranks ---- */

/* The initial values of a region's states as one vector; 0: it has none. */
static tn_status init_graph_pack(tn_graph *graph, tn_build *b, const tn_state_map *map, size_t index,
                                 uint64_t seed, tn_val *packed) {
  const tn_region *region = &map->regions.v[index];
  int64_t *offsets = tn_arena_alloc(&graph->arena, tn_size_mul(map->states.n + 1, sizeof *offsets));
  tn_val *values = tn_arena_alloc(&graph->arena, tn_size_mul(map->states.n + 1, sizeof *values));
  int64_t n = 0;
  *packed = 0;
  if (offsets == NULL || values == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *place = &map->states.v[i];
    if ((size_t)place->region != index || !init_graph_has_value(place)) continue;
    TN_TRY(init_graph_value(b, place, seed, &values[n]));
    offsets[n++] = place->offset;
  }
  if (n == 0) return TN_OK;
  *packed = tn_pack(b, n, values, n, offsets, region->count, region->name, 0);
  return tn_build_status(b);
}

/* All ranks make the same values, so that the maximum over the ranks is a rank's part of them. */
static tn_status init_graph_add_region(tn_graph *graph, tn_build *b, const tn_state_map *map, size_t index,
                                       uint64_t seed) {
  const tn_region *region = &map->regions.v[index];
  const tn_placement *whole = &region->whole;
  tn_val all;
  if (region->shards == 1) return TN_OK;
  TN_TRY(init_graph_pack(graph, b, map, index, seed, &all));
  if (all == 0) return TN_OK;
  graph->ranks = region->shards;
  if (!tn_graph_state(graph, whole->path, &whole->type, whole->what, "", "")) return TN_ENOMEM;
  tn_val part = tn_reduce_scatter(b, all, region->shards, TN_REDUCTION_MAX);
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(graph, whole->path, part, 0);
}

tn_status tn_init_graph(tn_env *env, struct tn_op_table *ops, uint64_t seed, const tn_state_map *map,
                        tn_graph **out) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  *out = NULL;
  TN_TRY(tn_graph_create(env, ops, &graph));
  tn_status status = tn_builder_create(graph, &builder);
  for (size_t i = 0; status == TN_OK && i < map->states.n; i++)
    status = init_graph_add_state(graph, tn_builder_handle(builder), map, &map->states.v[i], seed);
  for (size_t i = 0; status == TN_OK && i < map->regions.n; i++)
    status = init_graph_add_region(graph, tn_builder_handle(builder), map, i, seed);
  tn_builder_destroy(builder);
  if (status == TN_OK)
    *out = graph;
  else
    tn_graph_destroy(graph);
  return status;
}
