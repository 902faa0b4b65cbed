/* core/train/graphs/init_graph.c: the graph of the init program, which commits every state's initializer. */
#include "core/train/graphs/training_graph.h"
#include "tenon/random.h"

static tn_status init_graph_add_state(tn_graph *graph, tn_build *b, const tn_placement *place,
                                      uint64_t seed) {
  if (place->init == NULL || *place->init == '\0') return TN_OK;
  if (!tn_graph_state(graph, place->path, &place->type, place->what, place->init, place->where))
    return TN_ENOMEM;
  uint64_t stream = tn_hash_mix(seed, tn_hash_text(TN_HASH_START, place->path));
  tn_val value = tn_initializer_emit(b, place->init, &place->type, stream);
  tn_status status = tn_build_status(b);
  if (status != TN_OK)
    return tn_wrap(b, status, "%s: '%s'", place->where && *place->where ? place->where : "state",
                   place->path);
  return tn_graph_commit(graph, place->path, value, 0);
}

tn_status tn_init_graph(tn_env *env, struct tn_op_table *ops, uint64_t seed, const tn_state_map *map,
                        tn_graph **out) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  *out = NULL;
  TN_TRY(tn_graph_create(env, ops, &graph));
  tn_status status = tn_builder_create(graph, &builder);
  for (size_t i = 0; status == TN_OK && i < map->states.n; i++)
    status = init_graph_add_state(graph, tn_builder_handle(builder), &map->states.v[i], seed);
  tn_builder_destroy(builder);
  if (status == TN_OK)
    *out = graph;
  else
    tn_graph_destroy(graph);
  return status;
}
