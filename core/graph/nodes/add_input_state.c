/* core/graph/nodes/add_input_state.c: adds `input` and `state` nodes, one for each name or path. */
#include "core/graph/nodes/register.h"

tn_val tn_graph_input(tn_graph *g, const char *name, const tn_type *type) {
  if (name == NULL) return 0; /* the caller ran out of memory while making it */
  tn_val v = tn_graph_find_input(g, name);
  if (v != 0) return tn_graph_check_same_type(g, "input", name, tn_graph_type(g, v), type) == TN_OK ? v : 0;
  const tn_op_def *def;
  if (tn_op_table_find(g->ops, g->env, "input", &def) != TN_OK) return 0;
  tn_input_attributes a = {tn_arena_strdup(&g->arena, name), *type};
  const void *attributes = a.name != NULL ? tn_arena_copy(&g->arena, &a, sizeof a) : NULL;
  if (attributes == NULL) return 0;
  if (tn_graph_add(g, def, attributes, NULL, 0, "", "", &v) != TN_OK) return 0;
  return tn_graph_name(g, v, name) == TN_OK ? v : 0;
}

/* Adds the node that reads a registered state. */
static tn_val state_add_node(tn_graph *g, const tn_gstate *state) {
  tn_val v;
  const tn_op_def *def;
  tn_state_attributes a = {state->path, state->what - 1, state->init, state->type};
  const char *where = state->where;
  if (tn_op_table_find(g->ops, g->env, "state", &def) != TN_OK) return 0;
  const void *attributes = tn_arena_copy(&g->arena, &a, sizeof a);
  if (attributes == NULL) return 0;
  if (tn_graph_add(g, def, attributes, NULL, 0, "", where, &v) != TN_OK) return 0;
  return tn_graph_name(g, v, a.path) == TN_OK ? v : 0;
}

tn_val tn_graph_state(tn_graph *g, const char *path, const tn_type *type, int32_t what, const char *init,
                      const char *where) {
  if (path == NULL) return 0; /* the caller ran out of memory while making it */
  tn_gstate requested = {.path = path, .type = *type, .what = what, .init = init, .where = where};
  if (tn_graph_register_state(g, &requested) != TN_OK) return 0;
  const tn_gstate *state = tn_graph_find_state(g, path);
  return state->value != 0 ? state->value : state_add_node(g, state);
}
