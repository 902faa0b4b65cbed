/* core/compile/layout/required_layouts.c: the layouts that readers other than kernels require: row-major for
 * views and outputs; the layout of the state for commits, and for values that are packed beside a state. */
#include "core/compile/layout/layout.h"
#include "core/compile/layout/layout_assignment.h"
#include "core/graph/uses.h"
#include "tenon/attributes.h"

tn_layout tn_layout_of_state(const tn_layout_assignment *a, const char *path, int32_t rank) {
  const tn_placement *p = a->map == NULL ? NULL : tn_state_map_find(a->map, path);
  return p != NULL && p->layout.set ? p->layout : tn_layout_row_major(rank);
}

bool tn_layout_set_states(const tn_layout_assignment *a) {
  tn_graph *graph = a->cover->graph;
  bool any = false;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    tn_layout layout = tn_layout_of_state(a, state->path, state->type.rank);
    any |= !tn_layout_is_row_major(&layout, state->type.rank);
    if (state->value != 0) graph->values.v[state->value].layout = layout;
  }
  return any;
}

bool tn_layout_views_rows(const tn_graph *graph, const tn_gnode *node) {
  if (node->group >= 0 || tn_node_kind_of(node) != TN_NODE_VIEW || node->n_in != 1) return false;
  const tn_type *from = tn_graph_type(graph, node->in[0]), *to = tn_graph_type(graph, node->first_out);
  return from->rank > 0 && to->rank > 0 && from->dims[from->rank - 1] == to->dims[to->rank - 1] &&
         tn_type_count(from) == tn_type_count(to);
}

tn_layout tn_layout_of_operand(const tn_layout_assignment *a, const tn_gnode *node, int32_t operand) {
  const tn_gvalue *value = &a->cover->graph->values.v[node->in[operand]];
  const tn_type *type = &value->type;
  const tn_placement *beside = NULL;
  if (tn_layout_views_rows(a->cover->graph, node) && tn_layout_has_padded_rows(&value->layout, type->rank))
    return value->layout;
  if (tn_node_kind_of(node) == TN_NODE_PACK && a->map != NULL) {
    const tn_pack_attributes *pack = node->attributes;
    if (pack->region[0] != '\0')
      beside = tn_state_map_at(a->map, pack->region, pack->start + pack->offsets.v[operand]);
  }
  bool as_state = beside != NULL && beside->layout.set && tn_type_same_dims(&beside->type, type);
  return as_state ? beside->layout : tn_layout_row_major(type->rank);
}

bool tn_layout_reads_memory(const tn_gnode *node) {
  return node->group < 0 && tn_node_kind_of(node) != TN_NODE_WORK;
}

static void require_layout(tn_layout_assignment *a, tn_val v, tn_layout layout) {
  if (!a->required[v].set) a->required[v] = layout;
}

tn_status tn_layout_find_required(tn_layout_assignment *a) {
  const tn_graph *graph = a->cover->graph;
  a->required = tn_alloc(a->cover->env, graph->values.n * sizeof *a->required);
  if (a->required == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    for (int32_t k = 0; tn_layout_reads_memory(node) && k < node->n_in; k++)
      require_layout(a, node->in[k], tn_layout_of_operand(a, node, k));
  }
  for (size_t i = 0; i < graph->commits.n; i++) {
    const tn_gcommit *commit = &graph->commits.v[i];
    int32_t rank = tn_graph_type(graph, commit->value)->rank;
    require_layout(a, commit->value, tn_layout_of_state(a, commit->path, rank));
  }
  for (size_t i = 0; i < graph->outputs.n; i++) {
    tn_val v = graph->outputs.v[i].value;
    require_layout(a, v, tn_layout_row_major(tn_graph_type(graph, v)->rank));
  }
  return TN_OK;
}
