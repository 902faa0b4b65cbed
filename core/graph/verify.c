/* core/graph/verify.c: checks the invariants of a graph. Each failure names its statement. */
#include "core/graph/op/infer.h"
#include "core/graph/text/print.h"
#include "core/graph/input_state.h"

static tn_status verify_fail(const tn_graph *g, const char *statement, const char *rule) {
  return tn_failf(g->env, TN_EINTERNAL, "graph: %s: %s", statement, rule);
}

static tn_status verify_fail_node(const tn_graph *g, const tn_gnode *node, const char *rule) {
  tn_text text = tn_text_new(g->env);
  tn_print_node(g, NULL, node, &text);
  verify_fail(g, text.v != NULL ? text.v : node->op->item.name, rule);
  tn_text_free(&text);
  return TN_EINTERNAL;
}

/* ---- nodes ---- */

static tn_status verify_operands(const tn_graph *g, size_t i) {
  const tn_gnode *node = &g->nodes.v[i];
  for (int32_t k = 0; k < node->n_in; k++) {
    if (node->in[k] >= g->values.n) return verify_fail_node(g, node, "an operand is no value of the graph");
    if (node->in[k] != 0 && g->values.v[node->in[k]].node >= i)
      return verify_fail_node(g, node, "an operand is made by a later statement");
  }
  return TN_OK;
}

static bool verify_layout_fits(const tn_layout *layout, int32_t rank) {
  uint32_t seen = 0;
  if (!layout->set) return true;
  if (layout->n_blocks > TN_MAX_BLOCKS) return false;
  for (int32_t i = 0; i < rank; i++) seen |= 1u << (layout->order[i] & 31);
  for (int32_t i = 0; i < layout->n_blocks; i++)
    if (layout->block[i].dim >= rank || layout->block[i].size == 0) return false;
  return seen == (1u << rank) - 1;
}

static tn_status verify_result(const tn_graph *g, size_t i, int32_t k, const tn_type *inferred) {
  const tn_gnode *node = &g->nodes.v[i];
  tn_val v = node->first_out + (tn_val)k;
  if (v == 0 || v >= g->values.n) return verify_fail_node(g, node, "a result is no value of the graph");
  const tn_gvalue *value = &g->values.v[v];
  if (value->node != i || value->result != k)
    return verify_fail_node(g, node, "a result is recorded for another node");
  if (!tn_type_equal(&value->type, inferred))
    return verify_fail_node(g, node, "a result's type is not the inferred one");
  if (!tn_type_equal(g->types.v[v], inferred))
    return verify_fail_node(g, node, "the two copies of a result's type differ");
  if (!verify_layout_fits(&value->layout, inferred->rank))
    return verify_fail_node(g, node,
                            "a layout's order is no permutation of the dimensions, or a block fits none");
  return TN_OK;
}

static tn_status verify_node(const tn_graph *g, size_t i) {
  const tn_gnode *node = &g->nodes.v[i];
  TN_TRY(verify_operands(g, i));
  if (node->n_out != tn_op_n_results(node->def, node->attributes))
    return verify_fail_node(g, node, "the number of results is not the schema's");
  tn_type *inferred = tn_alloc(g->env, (size_t)node->n_out * sizeof *inferred);
  if (inferred == NULL) return TN_ENOMEM;
  tn_status status = tn_graph_infer(g, node->def, node->attributes, node->in, node->n_in, inferred);
  if (status != TN_OK)
    status = status == TN_ENOMEM ? status : verify_fail_node(g, node, tn_error_text(g->env));
  for (int32_t k = 0; k < node->n_out && status == TN_OK; k++) status = verify_result(g, i, k, &inferred[k]);
  tn_release(g->env, inferred);
  return status;
}

/* Every `input` and `state` node is in its list exactly once. */
static tn_status verify_input_state(const tn_graph *g, const tn_gnode *node) {
  if (node->op == &tn_op_input) {
    for (size_t i = 0; i < g->inputs.n; i++)
      if (g->inputs.v[i] == node->first_out) return TN_OK;
    return verify_fail_node(g, node, "the input is not listed, or made twice");
  }
  if (node->op == &tn_op_state) {
    const tn_state_attributes *a = node->attributes;
    const tn_gstate *state = tn_graph_find_state(g, a->path);
    if (state == NULL || state->value != node->first_out)
      return verify_fail_node(g, node, "the state is not listed, or read twice");
  }
  return TN_OK;
}

/* ---- lists ---- */

/* Fails if the name is in the index, and adds it. */
static tn_status verify_new_name(const tn_graph *g, tn_name_index *names, const char *name,
                                 const char *rule) {
  if (tn_name_index_find(names, name) != TN_NAME_INDEX_NONE) return verify_fail(g, name, rule);
  return tn_name_index_add(names, name);
}

static tn_status verify_state(const tn_graph *g, tn_name_index *paths, const tn_gstate *s) {
  TN_TRY(verify_new_name(g, paths, s->path, "two states have this path"));
  if (s->value == 0) return TN_OK;
  if (s->value >= g->values.n || tn_graph_maker(g, s->value)->op != &tn_op_state)
    return verify_fail(g, s->path, "the state's value is made by no `state` statement");
  if (!tn_type_equal(tn_graph_type(g, s->value), &s->type))
    return verify_fail(g, s->path, "the state's value has another type than the state");
  return TN_OK;
}

static tn_status verify_commit(const tn_graph *g, tn_name_index *paths, const tn_gcommit *c) {
  const tn_gstate *state = tn_graph_find_state(g, c->path);
  if (state == NULL) return verify_fail(g, c->path, "a commit to a state that is not known");
  if (c->value == 0 || c->value >= g->values.n)
    return verify_fail(g, c->path, "a commit of no value of the graph");
  if (!tn_type_equal(tn_graph_type(g, c->value), &state->type))
    return verify_fail(g, c->path, "the committed value has another type than the state");
  TN_TRY(verify_new_name(g, paths, c->path, "a state is committed twice"));
  if (c->predicate == 0) return TN_OK;
  if (c->predicate >= g->values.n)
    return verify_fail(g, c->path, "the predicate of a commit is no value of the graph");
  const tn_type *type = tn_graph_type(g, c->predicate);
  return type->dtype == TN_BOOL && type->rank == 0
             ? TN_OK
             : verify_fail(g, c->path, "the predicate of a commit is not bool[]");
}

static tn_status verify_output(const tn_graph *g, tn_name_index *names, const tn_goutput *o) {
  if (o->value == 0 || o->value >= g->values.n)
    return verify_fail(g, o->name, "an output of no value of the graph");
  return verify_new_name(g, names, o->name, "two outputs have this name");
}

/* States, commits and outputs, each with names of their own. */
static tn_status verify_lists(const tn_graph *g) {
  tn_name_index names[3];
  tn_status status = TN_OK;
  for (int i = 0; i < 3; i++) names[i] = tn_name_index_new(g->env);
  for (size_t i = 0; i < g->states.n && status == TN_OK; i++)
    status = verify_state(g, &names[0], &g->states.v[i]);
  for (size_t i = 0; i < g->commits.n && status == TN_OK; i++)
    status = verify_commit(g, &names[1], &g->commits.v[i]);
  for (size_t i = 0; i < g->outputs.n && status == TN_OK; i++)
    status = verify_output(g, &names[2], &g->outputs.v[i]);
  for (int i = 0; i < 3; i++) tn_name_index_free(&names[i]);
  return status;
}

tn_status tn_graph_verify(const tn_graph *g) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    TN_TRY(verify_node(g, i));
    TN_TRY(verify_input_state(g, &g->nodes.v[i]));
  }
  return verify_lists(g);
}
