/* core/compile/select/lower.c: decomposition of composite ops, and predicated commits as `where`. */
#include "core/compile/select/lower.h"

#include "tenon/ops.h"

typedef struct lowering {
  const bool *marked;
} lowering;

static tn_status lower_by_decomposition(tn_rewrite *r, const tn_gnode *node) {
  const void *handle = r->from->env;
  size_t n_in = (size_t)node->n_in, n_out = (size_t)node->n_out;
  tn_val *values = tn_alloc(handle, tn_size_mul(n_in + n_out, sizeof *values));
  if (values == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n_in; i++) values[i] = node->in[i] == 0 ? 0 : r->map[node->in[i]];
  tn_val *out = values + n_in;
  tn_build_frame frame = {.prefix = node->layer, .where = node->where};
  tn_builder_push(r->b, &frame);
  tn_status status = tn_decompose(r->b, node->def, node->attributes, values, node->n_in, node->n_out, out);
  tn_builder_pop(r->b);
  for (size_t i = 0; status == TN_OK && i < n_out; i++) r->map[node->first_out + i] = out[i];
  tn_release(handle, values);
  return tn_wrap(handle, status, "decomposition of %s (%s)", node->op->item.name, node->layer);
}

static tn_status lower_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  const lowering *l = context;
  size_t index = (size_t)(node - r->from->nodes.v);
  return l->marked[index] ? lower_by_decomposition(r, node) : tn_rewrite_copy(r, node);
}

tn_status tn_lower_decompose(const tn_graph *from, const bool *marked, tn_graph **graph) {
  lowering l = {marked};
  tn_graph *parts = NULL;
  TN_TRY(tn_graph_rewrite(from, lower_node, &l, &parts));
  tn_status status = tn_graph_merge(parts, graph);
  tn_graph_destroy(parts);
  return status;
}

static tn_status lower_predicate(tn_graph *graph, tn_build *b, tn_gcommit *commit) {
  const tn_gstate *state = tn_graph_find_state(graph, commit->path);
  if (state == NULL)
    return tn_failf(graph->env, TN_EINTERNAL, "commit of %s: there is no such state", commit->path);
  /* a copy: the call below may move the table of states */
  tn_gstate s = *state;
  tn_val old = tn_graph_state(graph, s.path, &s.type, s.what, s.init, s.where);
  if (old == 0) return graph->env->record->code;
  commit->value = tn_where(b, commit->predicate, commit->value, old);
  commit->predicate = 0;
  return tn_build_status(b);
}

tn_status tn_lower_predicates(tn_graph *graph) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(graph, &builder));
  tn_status status = TN_OK;
  for (size_t i = 0; status == TN_OK && i < graph->commits.n; i++)
    if (graph->commits.v[i].predicate != 0)
      status = lower_predicate(graph, tn_builder_handle(builder), &graph->commits.v[i]);
  tn_builder_destroy(builder);
  return tn_wrap(graph->env, status, "predicated commits");
}
