/* core/graph/nodes/register.c: the lists of inputs and states of a graph. */
#include "core/graph/nodes/register.h"

/* ---- inputs ---- */

tn_val tn_graph_find_input(const tn_graph *g, const char *name) {
  for (size_t i = 0; i < g->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    if (tn_text_equal(a->name, name)) return g->inputs.v[i];
  }
  return 0;
}

static tn_status register_input(tn_graph *g, const tn_input_attributes *a, tn_val v) {
  if (tn_graph_find_input(g, a->name) != 0)
    return tn_failf(g->env, TN_EINVAL, "input %s exists already, expected each input once", a->name);
  return tn_vec_push(g->env, &g->inputs, v);
}

tn_status tn_graph_check_same_type(const tn_graph *g, const char *kind, const char *name, const tn_type *type,
                                   const tn_type *requested) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  if (tn_type_equal(type, requested)) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "%s %s is asked for as %s, but it is %s already", kind, name,
                  tn_type_format(requested, one), tn_type_format(type, other));
}

/* ---- states ---- */

tn_gstate *tn_graph_find_state(const tn_graph *g, const char *path) {
  int64_t i = path != NULL ? tn_name_index_find(&g->state_paths, path) : TN_NAME_INDEX_NONE;
  return i != TN_NAME_INDEX_NONE ? &g->states.v[i] : NULL;
}

static tn_status register_append_state(tn_graph *g, tn_gstate state) {
  TN_TRY(tn_vec_reserve(g->env, &g->states, g->states.n + 1));
  TN_TRY(tn_name_index_add(&g->state_paths, state.path));
  g->states.v[g->states.n++] = state;
  return TN_OK;
}

static tn_status register_state(tn_graph *g, const tn_state_attributes *a, const char *where, tn_val v) {
  tn_gstate *known = tn_graph_find_state(g, a->path);
  if (known != NULL && known->value != 0)
    return tn_failf(g->env, TN_EINVAL, "state %s is read already, expected one state(path=%s)", a->path,
                    a->path);
  if (known != NULL) {
    TN_TRY(tn_graph_check_same_type(g, "state", a->path, &known->type, &a->type));
    known->value = v;
    return TN_OK;
  }
  tn_gstate state = {.path = a->path, .type = a->type, .what = a->what + 1, .init = a->init, .value = v};
  state.where = tn_arena_strdup(&g->arena, where);
  return state.where != NULL ? register_append_state(g, state) : TN_ENOMEM;
}

tn_status tn_input_state_register(tn_graph *g, const tn_op *op, const void *attributes, const char *where,
                                  tn_val v) {
  if (op == &tn_op_input) return register_input(g, attributes, v);
  return op == &tn_op_state ? register_state(g, attributes, where, v) : TN_OK;
}

tn_status tn_graph_register_state(tn_graph *g, const tn_gstate *state) {
  const tn_gstate *known = tn_graph_find_state(g, state->path);
  if (known != NULL) return tn_graph_check_same_type(g, "state", state->path, &known->type, &state->type);
  tn_gstate copy = *state;
  copy.value = 0;
  copy.path = tn_arena_strdup(&g->arena, state->path);
  copy.init = tn_arena_strdup(&g->arena, state->init != NULL ? state->init : "");
  copy.where = tn_arena_strdup(&g->arena, state->where != NULL ? state->where : "");
  if (copy.path == NULL || copy.init == NULL || copy.where == NULL) return TN_ENOMEM;
  return register_append_state(g, copy);
}
