/* core/graph/rewrite/rewrite.c: runs a pass, which writes a new graph node by node. */
#include "core/graph/op/attributes.h"
#include "core/graph/input_state.h"

/* ---- one node ---- */

/* The node's operands in the new graph. */
static tn_status rewrite_map_operands(const tn_rewrite *r, const tn_gnode *node, tn_val *in) {
  for (int32_t i = 0; i < node->n_in; i++) {
    in[i] = node->in[i] != 0 ? r->map[node->in[i]] : 0;
    if (in[i] == 0 && node->in[i] != 0)
      return tn_failf(r->from->env, TN_EINTERNAL, "%s: the pass gave operand %d no value in the new graph",
                      node->op->item.name, i);
  }
  return TN_OK;
}

static tn_status rewrite_copy_input_state(tn_rewrite *r, const tn_gnode *node) {
  tn_graph *to = tn_builder_graph(r->b);
  tn_val v;
  if (node->op == &tn_op_input) {
    const tn_input_attributes *a = node->attributes;
    v = tn_graph_input(to, a->name, &a->type);
  } else {
    const tn_state_attributes *a = node->attributes;
    v = tn_graph_state(to, a->path, &a->type, a->what + 1, a->init, node->where);
  }
  r->map[node->first_out] = v;
  if (v == 0) return to->env->record->code;
  const tn_gvalue *old = &r->from->values.v[node->first_out];
  to->values.v[v].layout = old->layout;
  return old->name != NULL ? tn_graph_name(to, v, old->name) : TN_OK;
}

static tn_status rewrite_copy_op(tn_rewrite *r, const tn_gnode *node, tn_val *in) {
  tn_graph *to = tn_builder_graph(r->b);
  tn_val first;
  TN_TRY(rewrite_map_operands(r, node, in));
  const void *attributes = tn_attributes_copy(&to->arena, &node->op->item, node->attributes);
  if (attributes == NULL) return TN_ENOMEM;
  TN_TRY(tn_graph_add(to, node->def, attributes, in, node->n_in, node->layer, node->where, &first));
  for (int32_t i = 0; i < node->n_out; i++) {
    r->map[node->first_out + (tn_val)i] = first + (tn_val)i;
    to->values.v[first + (tn_val)i].layout = r->from->values.v[node->first_out + (tn_val)i].layout;
  }
  return TN_OK;
}

tn_status tn_rewrite_copy(tn_rewrite *r, const tn_gnode *node) {
  if (tn_op_is_input_or_state(node->op)) return rewrite_copy_input_state(r, node);
  tn_val *in = tn_alloc(r->from->env, (size_t)node->n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  tn_status status = rewrite_copy_op(r, node, in);
  tn_release(r->from->env, in);
  return status;
}

/* ---- a graph ---- */

/* The replacement of a named value takes its name unless it has one already. */
static tn_status rewrite_pass_names(const tn_rewrite *r, const tn_gnode *node) {
  tn_graph *to = tn_builder_graph(r->b);
  for (int32_t i = 0; i < node->n_out; i++) {
    const tn_gvalue *old = &r->from->values.v[node->first_out + (tn_val)i];
    tn_val now = r->map[node->first_out + (tn_val)i];
    if (now != 0 && old->name != NULL && to->values.v[now].name == NULL)
      TN_TRY(tn_graph_name(to, now, old->name));
  }
  return TN_OK;
}

static tn_status rewrite_visit_node(tn_rewrite *r, const tn_gnode *node, tn_rewrite_fn fn, void *context) {
  tn_build_frame frame = {.prefix = node->layer, .where = node->where};
  tn_builder_push(r->b, &frame);
  tn_status status = fn(r, node, context);
  if (status == TN_OK) status = tn_build_status(r->b);
  tn_builder_pop(r->b);
  return status == TN_OK ? rewrite_pass_names(r, node) : status;
}

static tn_status rewrite_copy_ends(const tn_rewrite *r) {
  tn_graph *to = tn_builder_graph(r->b);
  for (size_t i = 0; i < r->from->commits.n; i++) {
    const tn_gcommit *c = &r->from->commits.v[i];
    TN_TRY(tn_graph_commit(to, c->path, r->map[c->value], c->predicate != 0 ? r->map[c->predicate] : 0));
  }
  for (size_t i = 0; i < r->from->outputs.n; i++)
    TN_TRY(tn_graph_output(to, r->from->outputs.v[i].name, r->map[r->from->outputs.v[i].value]));
  return TN_OK;
}

static tn_status rewrite_graph(tn_rewrite *r, tn_rewrite_fn fn, void *context) {
  tn_graph *to = tn_builder_graph(r->b);
  for (size_t i = 0; i < r->from->states.n; i++) TN_TRY(tn_graph_register_state(to, &r->from->states.v[i]));
  for (size_t i = 0; i < r->from->nodes.n; i++)
    if (r->live[i]) TN_TRY(rewrite_visit_node(r, &r->from->nodes.v[i], fn, context));
  return rewrite_copy_ends(r);
}

static tn_status rewrite_into(const tn_graph *from, tn_rewrite_fn fn, void *context, tn_graph *to) {
  tn_builder *builder = NULL;
  bool *live = NULL;
  tn_val *map = tn_alloc(from->env, tn_size_mul(from->values.n, sizeof *map));
  tn_status status = map != NULL ? tn_graph_live(from, &live) : TN_ENOMEM;
  if (status == TN_OK) status = tn_builder_create(to, &builder);
  if (status == TN_OK) {
    tn_rewrite r = {.from = from, .b = tn_builder_handle(builder), .map = map, .live = live};
    status = rewrite_graph(&r, fn, context);
  }
  tn_builder_destroy(builder);
  tn_release(from->env, live);
  tn_release(from->env, map);
  return status;
}

tn_status tn_graph_rewrite(const tn_graph *from, tn_rewrite_fn fn, void *context, tn_graph **out) {
  tn_graph *to;
  *out = NULL;
  TN_TRY(tn_graph_create(from->env, from->ops, &to));
  to->ranks = from->ranks;
  to->micro_batches = from->micro_batches;
  tn_status status = rewrite_into(from, fn, context, to);
  if (status == TN_OK)
    *out = to;
  else
    tn_graph_destroy(to);
  return status;
}
