/* core/graph/nodes/add_node.c: appends nodes to a graph and infers the types of their results. */
#include "core/graph/nodes/register.h"
#include "core/graph/op/infer.h"

/* Copies the operands into the arena; absent trailing ones become 0. */
static tn_status node_copy_operands(tn_graph *g, const tn_op_def *def, const tn_val *in, int32_t n_in,
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

/* Consecutive nodes mostly have the same layer and line; they share one copy of the text. */
static const char *node_copy_text(tn_graph *g, const char *text, const char *neighbour) {
  if (text == NULL) text = "";
  return neighbour != NULL && tn_text_equal(text, neighbour) ? neighbour : tn_arena_strdup(&g->arena, text);
}

static tn_status node_set_origin(tn_graph *g, tn_gnode *node, const char *layer, const char *where) {
  const tn_gnode *last = g->nodes.n > 0 ? &g->nodes.v[g->nodes.n - 1] : NULL;
  node->layer = node_copy_text(g, layer, last != NULL ? last->layer : NULL);
  node->where = node_copy_text(g, where, last != NULL ? last->where : NULL);
  return node->layer != NULL && node->where != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status node_reserve(tn_graph *g, int32_t n_out) {
  size_t values = g->values.n + (size_t)n_out;
  if (values > UINT32_MAX || g->nodes.n >= UINT32_MAX)
    return tn_failf(g->env, TN_ENOMEM, "a graph holds at most 2^32 - 1 values");
  TN_TRY(tn_vec_reserve(g->env, &g->values, values));
  TN_TRY(tn_vec_reserve(g->env, &g->types, values));
  return tn_vec_reserve(g->env, &g->nodes, g->nodes.n + 1);
}

/* After node_reserve. */
static void node_append(tn_graph *g, const tn_gnode *node, const tn_type *out) {
  for (int32_t i = 0; i < node->n_out; i++) {
    g->values.v[g->values.n++] = (tn_gvalue){.type = out[i], .node = (uint32_t)g->nodes.n, .result = i};
    g->types.v[g->types.n++] = &out[i];
  }
  g->nodes.v[g->nodes.n++] = *node;
}

tn_status tn_graph_add(tn_graph *g, const tn_op_def *def, const void *attributes, const tn_val *in,
                       int32_t n_in, const char *layer, const char *where, tn_val *first_out) {
  tn_gnode node = {.def = def,
                   .op = def->op,
                   .attributes = attributes,
                   .n_out = tn_op_n_results(def, attributes),
                   .group = -1};
  *first_out = 0;
  TN_TRY(node_copy_operands(g, def, in, n_in, &node));
  TN_TRY(node_set_origin(g, &node, layer, where));
  tn_type *out = tn_arena_alloc(&g->arena, (size_t)node.n_out * sizeof *out);
  if (out == NULL) return TN_ENOMEM;
  TN_TRY(tn_graph_infer(g, def, attributes, node.in, node.n_in, out));
  TN_TRY(node_reserve(g, node.n_out));
  node.first_out = (tn_val)g->values.n;
  TN_TRY(tn_input_state_register(g, def->op, attributes, node.where, node.first_out));
  node_append(g, &node, out);
  if (node.n_out > 0) *first_out = node.first_out;
  return TN_OK;
}

tn_status tn_graph_name(tn_graph *g, tn_val v, const char *name) {
  const char *copy = tn_arena_strdup(&g->arena, name);
  if (copy == NULL) return TN_ENOMEM;
  g->values.v[v].name = copy;
  return TN_OK;
}
