/* core/graph/graph.c: creates and destroys graphs. */
#include "core/graph/graph.h"

tn_status tn_graph_create(tn_env *env, struct tn_op_table *ops, tn_graph **graph) {
  *graph = NULL;
  tn_graph *g = tn_alloc(env, sizeof *g);
  if (g == NULL) return TN_ENOMEM;
  g->env = env;
  g->ops = ops;
  g->arena = tn_arena_new(env);
  g->state_paths = tn_name_index_new(env);
  g->commit_paths = tn_name_index_new(env);
  g->ranks = g->micro_batches = 1;
  static const tn_type absent = {.dtype = TN_ANY};
  tn_gvalue none = {.type = absent};
  if (tn_vec_push(env, &g->values, none) != TN_OK || tn_vec_push(env, &g->types, &absent) != TN_OK) {
    tn_graph_destroy(g);
    return TN_ENOMEM;
  }
  *graph = g;
  return TN_OK;
}

void tn_graph_destroy(tn_graph *g) {
  if (g == NULL) return;
  const tn_env *env = g->env;
  tn_vec_free(env, &g->nodes);
  tn_vec_free(env, &g->values);
  tn_vec_free(env, &g->types);
  tn_vec_free(env, &g->inputs);
  tn_vec_free(env, &g->states);
  tn_vec_free(env, &g->commits);
  tn_vec_free(env, &g->outputs);
  tn_name_index_free(&g->state_paths);
  tn_name_index_free(&g->commit_paths);
  tn_arena_free(&g->arena);
  tn_release(env, g);
}
