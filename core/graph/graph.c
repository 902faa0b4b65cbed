/* core/graph/graph.c: a graph and what can be added to it. */
#include "core/graph/graph.h"

#include "core/graph/op/infer.h"
#include "core/graph/input_state.h"

tn_status tn_graph_create(tn_env *env, struct tn_op_table *ops, tn_graph **graph) {
  *graph = NULL;
  tn_graph *g = tn_alloc(env, sizeof *g);
  if (g == NULL) return TN_ENOMEM;
  g->env = env;
  g->ops = ops;
  g->arena = tn_arena_new(env);
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
  tn_arena_free(&g->arena);
  tn_release(env, g);
}

/* ---- nodes ---- */

/* Operands copied into the arena, absent trailing ones filled in. */
static tn_status copy_operands(tn_graph *g, const tn_op_def *def, const tn_val *in, int32_t n_in,
                               tn_gnode *node) {
  int32_t least = def->variadic ? def->n_operands - 1 : def->n_operands;
  node->n_in = n_in > least ? n_in : least;
  tn_val *copy = tn_arena_alloc(&g->arena, (size_t)node->n_in * sizeof *copy);
  if (copy == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n_in; i++) {
    if (in[i] >= g->values.n)
      return tn_failf(g->env, TN_EINVAL, "%s: operand %d is value %u, which is not of this graph",
                      def->op->item.name, i, in[i]);
    copy[i] = in[i];
  }
  node->in = copy;
  return TN_OK;
}

tn_status tn_graph_infer(const tn_graph *g, const tn_op_def *def, const void *attributes, const tn_val *in,
                         int32_t n_in, tn_type *out) {
  const tn_type **types = tn_alloc(g->env, (size_t)n_in * sizeof *types);
  if (types == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n_in; i++) types[i] = in[i] != 0 ? g->types.v[in[i]] : NULL;
  tn_status status = tn_infer_types(g->env, def, attributes, types, n_in, out);
  tn_release(g->env, types);
  return status;
}

/* Neighbours mostly share their layer and line, hence their text. */
static const char *share_text(tn_graph *g, const char *text, const char *neighbour) {
  if (text == NULL) text = "";
  return neighbour != NULL && tn_text_equal(text, neighbour) ? neighbour : tn_arena_strdup(&g->arena, text);
}

static tn_status describe(tn_graph *g, tn_gnode *node, const char *layer, const char *where) {
  const tn_gnode *last = g->nodes.n > 0 ? &g->nodes.v[g->nodes.n - 1] : NULL;
  node->layer = share_text(g, layer, last != NULL ? last->layer : NULL);
  node->where = share_text(g, where, last != NULL ? last->where : NULL);
  return node->layer != NULL && node->where != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status make_room(tn_graph *g, int32_t n_out) {
  size_t values = g->values.n + (size_t)n_out;
  if (values > UINT32_MAX || g->nodes.n >= UINT32_MAX)
    return tn_failf(g->env, TN_ENOMEM, "a graph holds at most 2^32 - 1 values");
  TN_TRY(tn_vec_reserve(g->env, &g->values, values));
  TN_TRY(tn_vec_reserve(g->env, &g->types, values));
  return tn_vec_reserve(g->env, &g->nodes, g->nodes.n + 1);
}

/* There is room. */
static void append(tn_graph *g, const tn_gnode *node, const tn_type *out) {
  for (int32_t i = 0; i < node->n_out; i++) {
    g->values.v[g->values.n++] = (tn_gvalue){.type = out[i], .node = (uint32_t)g->nodes.n, .result = i};
    g->types.v[g->types.n++] = &out[i];
  }
  g->nodes.v[g->nodes.n++] = *node;
}

tn_status tn_graph_add(tn_graph *g, const tn_op_def *def, const void *attributes, const tn_val *in,
                       int32_t n_in, const char *layer, const char *where, tn_val *first_out) {
  tn_gnode node = {.def = def, .op = def->op, .attributes = attributes, .n_out = def->n_results, .group = -1};
  *first_out = 0;
  TN_TRY(copy_operands(g, def, in, n_in, &node));
  TN_TRY(describe(g, &node, layer, where));
  tn_type *out = tn_arena_alloc(&g->arena, (size_t)node.n_out * sizeof *out);
  if (out == NULL) return TN_ENOMEM;
  TN_TRY(tn_graph_infer(g, def, attributes, node.in, node.n_in, out));
  TN_TRY(make_room(g, node.n_out));
  node.first_out = (tn_val)g->values.n;
  TN_TRY(tn_special_register(g, def->op, attributes, node.where, node.first_out));
  append(g, &node, out);
  if (node.n_out > 0) *first_out = node.first_out;
  return TN_OK;
}

tn_status tn_graph_name(tn_graph *g, tn_val v, const char *name) {
  const char *copy = tn_arena_strdup(&g->arena, name);
  if (copy == NULL) return TN_ENOMEM;
  g->values.v[v].name = copy;
  return TN_OK;
}

/* ---- what leaves a graph ---- */

static tn_status check_value(const tn_graph *g, const char *what, const char *name, tn_val v) {
  if (v != 0 && v < g->values.n) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "%s %s: value %u is not of this graph", what, name, v);
}

static tn_status check_predicate(const tn_graph *g, const char *path, tn_val predicate) {
  char type[TN_TYPE_TEXT];
  if (predicate == 0) return TN_OK;
  TN_TRY(check_value(g, "predicate of commit", path, predicate));
  const tn_type *t = tn_graph_type(g, predicate);
  if (t->dtype == TN_BOOL && t->rank == 0) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "commit %s: the predicate is %s, expected bool[]", path,
                  tn_type_format(t, type));
}

static tn_status check_commit(const tn_graph *g, const char *path, tn_val value) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_gstate *state = tn_graph_find_state(g, path);
  if (state == NULL) return tn_failf(g->env, TN_EINVAL, "commit %s: there is no state of this path", path);
  TN_TRY(check_value(g, "commit", path, value));
  for (size_t i = 0; i < g->commits.n; i++)
    if (tn_text_equal(g->commits.v[i].path, path))
      return tn_failf(g->env, TN_EINVAL, "state %s is committed twice, expected one commit in a program",
                      path);
  if (tn_type_equal(tn_graph_type(g, value), &state->type)) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "commit %s: the value is %s, expected %s as the state is", path,
                  tn_type_format(tn_graph_type(g, value), one), tn_type_format(&state->type, other));
}

tn_status tn_graph_commit(tn_graph *g, const char *path, tn_val value, tn_val predicate) {
  TN_TRY(check_commit(g, path, value));
  TN_TRY(check_predicate(g, path, predicate));
  tn_gcommit commit = {tn_graph_find_state(g, path)->path, value, predicate};
  return tn_vec_push(g->env, &g->commits, commit);
}

tn_status tn_graph_output(tn_graph *g, const char *name, tn_val value) {
  if (name == NULL) return TN_ENOMEM; /* the caller ran out of memory while making it */
  TN_TRY(check_value(g, "output", name, value));
  if (tn_graph_find_output(g, name) != 0)
    return tn_failf(g->env, TN_EINVAL, "output %s is there already, expected each output once", name);
  tn_goutput output = {tn_arena_strdup(&g->arena, name), value};
  return output.name != NULL ? tn_vec_push(g->env, &g->outputs, output) : TN_ENOMEM;
}

tn_val tn_graph_find_output(const tn_graph *g, const char *name) {
  for (size_t i = 0; i < g->outputs.n; i++)
    if (tn_text_equal(g->outputs.v[i].name, name)) return g->outputs.v[i].value;
  return 0;
}
