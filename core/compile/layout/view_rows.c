/* core/compile/layout/view_rows.c: a reshape that keeps the innermost dimension is a view of the same rows,
 * so it also takes a value whose rows are padded, such as the gradient of logits. */
#include "core/compile/layout/layout.h"
#include "core/compile/layout/layout_assignment.h"

/* Marks the values of which a reader other than a kernel requires one layout: not those that only such views
 * read, unless one of the views is marked itself. */
static void mark_strict_values(const tn_layout_assignment *a, bool *strict) {
  const tn_graph *graph = a->cover->graph;
  for (size_t i = 0; i < graph->commits.n; i++) strict[graph->commits.v[i].value] = true;
  for (size_t i = 0; i < graph->outputs.n; i++) strict[graph->outputs.v[i].value] = true;
  for (size_t i = graph->nodes.n; i-- > 0;) {
    const tn_gnode *node = &graph->nodes.v[i];
    bool rows = tn_layout_views_rows(graph, node) && !strict[node->first_out];
    for (int32_t k = 0; tn_layout_reads_memory(node) && k < node->n_in; k++)
      strict[node->in[k]] = strict[node->in[k]] || !rows;
  }
}

tn_status tn_layout_find_row_views(tn_layout_assignment *a) {
  const tn_graph *graph = a->cover->graph;
  a->only_rows = tn_alloc(a->cover->env, graph->values.n * sizeof *a->only_rows);
  if (a->only_rows == NULL) return TN_ENOMEM;
  mark_strict_values(a, a->only_rows);
  for (size_t v = 0; v < graph->values.n; v++) a->only_rows[v] = a->required[v].set && !a->only_rows[v];
  return TN_OK;
}

/* The layout that readers of views of a value request, for the value; unset: no padded rows. */
static tn_layout requested_rows(const tn_layout_assignment *a, tn_val v) {
  const tn_graph *graph = a->cover->graph;
  int32_t rank = tn_graph_type(graph, v)->rank;
  for (size_t i = 0; i < a->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->n_in < 1 || node->in[0] != v || !tn_layout_views_rows(graph, node)) continue;
    int32_t view_rank = tn_graph_type(graph, node->first_out)->rank;
    tn_layout rows = a->requested[node->first_out];
    if (a->only_rows[node->first_out] && !tn_layout_has_padded_rows(&rows, view_rank))
      rows = requested_rows(a, node->first_out);
    if (tn_layout_has_padded_rows(&rows, view_rank)) return tn_layout_padded_rows_of(&rows, view_rank, rank);
  }
  return (tn_layout){0};
}

void tn_layout_request_rows(tn_layout_assignment *a, tn_val v) {
  if (!a->only_rows[v]) return;
  tn_layout rows = requested_rows(a, v);
  if (rows.set) a->required[v] = a->requested[v] = rows;
}

void tn_layout_set_row_views(const tn_layout_assignment *a, tn_val v) {
  tn_graph *graph = a->cover->graph;
  const tn_gvalue *value = &graph->values.v[v];
  if (!a->only_rows[v] || !tn_layout_has_padded_rows(&value->layout, value->type.rank)) return;
  for (size_t i = 0; i < a->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->n_in < 1 || node->in[0] != v || !tn_layout_views_rows(graph, node)) continue;
    tn_gvalue *view = &graph->values.v[node->first_out];
    view->layout = tn_layout_padded_rows_of(&value->layout, value->type.rank, view->type.rank);
    tn_layout_set_row_views(a, node->first_out);
  }
}
