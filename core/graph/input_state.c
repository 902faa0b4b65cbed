/* core/graph/input_state.c: inputs and state. */
#include "core/graph/input_state.h"

#include <string.h>

static tn_status input_infer(tn_infer *n) {
  const tn_input_attributes *a = n->node.attributes;
  if (a->type.dtype == TN_ANY)
    return tn_fail(n, TN_EINVAL, NULL,
                   "the type is missing, expected one as in `x: f32[8, 3] = input(name=x)`");
  n->node.out[0] = a->type;
  return TN_OK;
}

static tn_status state_infer(tn_infer *n) {
  const tn_state_attributes *a = n->node.attributes;
  if (a->type.dtype == TN_ANY)
    return tn_fail(n, TN_EINVAL, NULL,
                   "the type is missing, expected one as in `w: f32[8, 3] = state(path=w)`");
  n->node.out[0] = a->type;
  return TN_OK;
}

static const tn_option input_options[] = {
    TN_OPT(tn_input_attributes, name, TN_OPT_TEXT, NULL, NULL, "batch field or control value"), TN_OPT_END};

static const tn_option state_options[] = {
    TN_OPT(tn_state_attributes, path, TN_OPT_TEXT, NULL, NULL, "path in checkpoints"),
    TN_OPT(tn_state_attributes, what, TN_OPT_ENUM, "param", "param|buffer|slot|derived|host|scratch",
           "what it is for"),
    TN_OPT(tn_state_attributes, init, TN_OPT_TEXT, "", NULL, "initializer"), TN_OPT_END};

const tn_op tn_op_input = {
    .item = TN_ITEM(tn_op, TN_OP, "input", "a value from outside: a field of the batch or a control value",
                    tn_input_attributes, input_options),
    .schema = "() -> (value:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_OTHER,
    .infer = input_infer,
};

const tn_op tn_op_state = {
    .item = TN_ITEM(tn_op, TN_OP, "state", "a parameter or other state as it is when the program starts",
                    tn_state_attributes, state_options),
    .schema = "() -> (value:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_OTHER,
    .infer = state_infer,
};

tn_type *tn_special_type(const tn_op *op, void *attributes) {
  return op == &tn_op_input ? &((tn_input_attributes *)attributes)->type
                            : &((tn_state_attributes *)attributes)->type;
}

/* ---- inputs ---- */

static const tn_input_attributes *input_attributes(const tn_graph *g, tn_val input) {
  return tn_graph_maker(g, input)->attributes;
}

static tn_val find_input(const tn_graph *g, const char *name) {
  for (size_t i = 0; i < g->inputs.n; i++)
    if (tn_text_equal(input_attributes(g, g->inputs.v[i])->name, name)) return g->inputs.v[i];
  return 0;
}

static tn_status register_input(tn_graph *g, const tn_input_attributes *a, tn_val v) {
  if (find_input(g, a->name) != 0)
    return tn_failf(g->env, TN_EINVAL, "input %s is there already, expected each input once", a->name);
  return tn_vec_push(g->env, &g->inputs, v);
}

/* Fails where an existing value is asked for with another type. */
static tn_status check_same_type(const tn_graph *g, const char *what, const char *name, const tn_type *type,
                                 const tn_type *asked) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  if (tn_type_equal(type, asked)) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "%s %s is asked for as %s, but it is %s already", what, name,
                  tn_type_format(asked, one), tn_type_format(type, other));
}

tn_val tn_graph_input(tn_graph *g, const char *name, const tn_type *type) {
  if (name == NULL) return 0; /* the caller ran out of memory while making it */
  tn_val v = find_input(g, name);
  if (v != 0) return check_same_type(g, "input", name, tn_graph_type(g, v), type) == TN_OK ? v : 0;
  const tn_op_def *def;
  if (tn_op_table_find(g->ops, g->env, "input", &def) != TN_OK) return 0;
  tn_input_attributes a = {tn_arena_strdup(&g->arena, name), *type};
  const void *attributes = a.name != NULL ? tn_arena_copy(&g->arena, &a, sizeof a) : NULL;
  if (attributes == NULL) return 0;
  if (tn_graph_add(g, def, attributes, NULL, 0, "", "", &v) != TN_OK) return 0;
  return tn_graph_name(g, v, name) == TN_OK ? v : 0;
}

/* ---- state ---- */

tn_gstate *tn_graph_find_state(const tn_graph *g, const char *path) {
  for (size_t i = 0; i < g->states.n; i++)
    if (tn_text_equal(g->states.v[i].path, path)) return &g->states.v[i];
  return NULL;
}

static tn_status register_state(tn_graph *g, const tn_state_attributes *a, const char *where, tn_val v) {
  tn_gstate *known = tn_graph_find_state(g, a->path);
  if (known != NULL && known->value != 0)
    return tn_failf(g->env, TN_EINVAL, "state %s is read already, expected one state(path=%s)", a->path,
                    a->path);
  if (known != NULL) {
    TN_TRY(check_same_type(g, "state", a->path, &known->type, &a->type));
    known->value = v;
    return TN_OK;
  }
  tn_gstate state = {.path = a->path, .type = a->type, .what = a->what + 1, .init = a->init, .value = v};
  state.where = tn_arena_strdup(&g->arena, where);
  return state.where != NULL ? tn_vec_push(g->env, &g->states, state) : TN_ENOMEM;
}

tn_status tn_special_register(tn_graph *g, const tn_op *op, const void *attributes, const char *where,
                              tn_val v) {
  if (op == &tn_op_input) return register_input(g, attributes, v);
  return op == &tn_op_state ? register_state(g, attributes, where, v) : TN_OK;
}

tn_status tn_graph_register_state(tn_graph *g, const tn_gstate *state) {
  const tn_gstate *known = tn_graph_find_state(g, state->path);
  if (known != NULL) return check_same_type(g, "state", state->path, &known->type, &state->type);
  tn_gstate copy = *state;
  copy.value = 0;
  copy.path = tn_arena_strdup(&g->arena, state->path);
  copy.init = tn_arena_strdup(&g->arena, state->init != NULL ? state->init : "");
  copy.where = tn_arena_strdup(&g->arena, state->where != NULL ? state->where : "");
  if (copy.path == NULL || copy.init == NULL || copy.where == NULL) return TN_ENOMEM;
  return tn_vec_push(g->env, &g->states, copy);
}

/* The node that reads a registered state. */
static tn_val read_state(tn_graph *g, const tn_gstate *state) {
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
  tn_gstate asked = {.path = path, .type = *type, .what = what, .init = init, .where = where};
  if (tn_graph_register_state(g, &asked) != TN_OK) return 0;
  const tn_gstate *state = tn_graph_find_state(g, path);
  return state->value != 0 ? state->value : read_state(g, state);
}
