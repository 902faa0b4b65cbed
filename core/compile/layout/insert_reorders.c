/* core/compile/layout/insert_reorders.c: inserts `reorder` groups between values in one layout and readers
 * that require another. */
#include <string.h>

#include "core/compile/layout/layout.h"
#include "core/compile/layout/layout_assignment.h"
#include "core/compile/select/inserted_groups.h"
#include "core/graph/uses.h"

/* The group's node always reads the value and makes the copy. The group may run in the other direction: its
 * elements are the same. */
tn_status tn_reorder_add(tn_layout_assignment *a, tn_group *reorder, tn_val from, tn_val to) {
  tn_arena *arena = &a->cover->arena;
  tn_val *in = tn_arena_copy(arena, &from, sizeof from), *out = tn_arena_copy(arena, &to, sizeof to);
  if (in == NULL || out == NULL) return TN_ENOMEM;
  reorder->in = in;
  reorder->out = out;
  return tn_vec_push(a->cover->env, &a->groups, *reorder);
}

static tn_status make_reordered_copy(tn_layout_assignment *a, tn_val v, const tn_layout *layout,
                                     tn_group *reorder, tn_val *copy) {
  TN_TRY(tn_make_reorder_group(a->cover, v, reorder));
  *copy = reorder->out[0];
  a->cover->graph->values.v[*copy].layout = *layout;
  tn_reordered reordered = {v, *copy, *layout};
  return tn_vec_push(a->cover->env, &a->reordered, reordered);
}

tn_val tn_reorder_find(const tn_layout_assignment *a, tn_val v, const tn_layout *layout) {
  int32_t rank = tn_graph_type(a->cover->graph, v)->rank;
  for (size_t i = a->reordered.n; i-- > 0;)
    if (a->reordered.v[i].value == v && tn_layout_same(&a->reordered.v[i].layout, layout, rank))
      return a->reordered.v[i].copy;
  return 0;
}

tn_status tn_reorder_operand(tn_layout_assignment *a, tn_val *operand, const tn_layout *layout) {
  const tn_gvalue *value = &a->cover->graph->values.v[*operand];
  tn_group reorder;
  if (tn_layout_same(&value->layout, layout, value->type.rank)) return TN_OK;
  tn_val known = tn_reorder_find(a, *operand, layout), from = *operand;
  if (known != 0) {
    *operand = known;
    return TN_OK;
  }
  TN_TRY(make_reordered_copy(a, from, layout, &reorder, operand));
  return tn_reorder_add(a, &reorder, from, *operand);
}

tn_status tn_reorder_result(tn_layout_assignment *a, tn_val *result, const tn_layout *layout,
                            tn_group *reorder) {
  tn_gvalue *value = &a->cover->graph->values.v[*result];
  const tn_layout *required = &a->required[*result];
  reorder->kernel = NULL;
  bool row_major = a->only_rows[*result] && tn_layout_is_row_major(layout, value->type.rank);
  bool fits = !required->set || row_major || tn_layout_same(required, layout, value->type.rank);
  value->layout = fits ? *layout : *required;
  tn_layout_set_row_views(a, *result);
  if (fits) return TN_OK;
  return make_reordered_copy(a, *result, layout, reorder, result);
}

/* ---- readers other than kernels ---- */

/* The position behind the group that makes a value, or the value that it is a view of; 0 for states and
 * inputs. */
static size_t position_after_maker(const tn_layout_assignment *a, tn_val v) {
  const tn_graph *graph = a->cover->graph;
  const tn_gnode *node = tn_graph_maker(graph, v);
  for (; tn_node_kind_of(node) == TN_NODE_VIEW; node = tn_graph_maker(graph, v)) v = node->in[0];
  if (tn_node_kind_of(node) == TN_NODE_STATE || tn_node_kind_of(node) == TN_NODE_INPUT) return 0;
  for (size_t i = 0; i + 1 < a->groups.n; i++)
    for (int32_t k = 0; k < a->groups.v[i].n_out; k++)
      if (a->groups.v[i].out[k] == v) return i + 1;
  return a->groups.n - 1;
}

/* *use becomes the value in the required layout. */
static tn_status reorder_use(tn_layout_assignment *a, tn_val *use, const tn_layout *required) {
  const tn_gvalue *value = &a->cover->graph->values.v[*use];
  tn_group reorder;
  tn_val copy;
  if (tn_layout_same(&value->layout, required, value->type.rank)) return TN_OK;
  TN_TRY(make_reordered_copy(a, *use, required, &reorder, &copy));
  TN_TRY(tn_reorder_add(a, &reorder, *use, copy));
  size_t last = a->groups.n - 1, at = position_after_maker(a, *use);
  reorder = a->groups.v[last];
  memmove(&a->groups.v[at + 1], &a->groups.v[at], (last - at) * sizeof reorder);
  a->groups.v[at] = reorder;
  *use = copy;
  return TN_OK;
}

static tn_status reorder_node_operands(tn_layout_assignment *a, size_t index) {
  tn_graph *graph = a->cover->graph;
  tn_gnode node = graph->nodes.v[index]; /* a copy: the table grows */
  tn_val *in = tn_arena_copy(&graph->arena, node.in, (size_t)node.n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node.n_in; k++) {
    tn_layout required = tn_layout_of_operand(a, &node, k);
    TN_TRY(reorder_use(a, &in[k], &required));
  }
  graph->nodes.v[index].in = in;
  return TN_OK;
}

tn_status tn_reorder_remaining(tn_layout_assignment *a) {
  tn_graph *graph = a->cover->graph;
  for (size_t i = 0; i < a->n_nodes; i++)
    if (tn_layout_reads_memory(&graph->nodes.v[i]) && graph->nodes.v[i].n_in > 0)
      TN_TRY(reorder_node_operands(a, i));
  for (size_t i = 0; i < graph->commits.n; i++) {
    tn_gcommit *commit = &graph->commits.v[i];
    tn_layout required = tn_layout_of_state(a, commit->path, tn_graph_type(graph, commit->value)->rank);
    TN_TRY(reorder_use(a, &commit->value, &required));
  }
  for (size_t i = 0; i < graph->outputs.n; i++) {
    tn_val *v = &graph->outputs.v[i].value;
    tn_layout required = tn_layout_row_major(tn_graph_type(graph, *v)->rank);
    TN_TRY(reorder_use(a, v, &required));
  }
  return TN_OK;
}
