/* core/export/onnx/rows/rows.c: finds the row of a node. */
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "core/graph/op/schema.h"

static const export_row *const families[] = {
    export_rows_pointwise, export_rows_activations, export_rows_reductions, export_rows_shape,
    export_rows_fill,      export_rows_index,       export_rows_products,   export_rows_windows,
    export_rows_norms,     export_rows_quantize,    export_rows_recurrence};

/* Whether results that the row does not compute are read. */
static bool row_lacks_result(const export_graph *x, const export_row *row, const tn_gnode *node) {
  for (int32_t k = row->results > 0 ? row->results : 1; k < node->n_out; k++)
    if (x->reads[node->first_out + (tn_val)k] > 0) return true;
  return false;
}

/* ONNX has no element type of these operands that the op is computed in a wider one for. */
static bool row_widens(const export_graph *x, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != 0 && tn_op_def_widens(node->def, i, tn_graph_type(x->graph, node->in[i]))) return true;
  return false;
}

const export_row *export_row_of(export_graph *x, const tn_gnode *node, int32_t *least) {
  *least = 0;
  if (row_widens(x, node)) return NULL;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (const export_row *row = families[f]; row->op != NULL; row++) {
      const export_use use = {x, node, row};
      if (strcmp(row->op, node->op->item.name) != 0 || row_lacks_result(x, row, node)) continue;
      if (row->takes != NULL && !row->takes(&use)) continue;
      if (row->since <= x->opset) return row;
      if (*least == 0 || row->since < *least) *least = row->since;
    }
  return NULL;
}
