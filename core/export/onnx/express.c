/* core/export/onnx/express.c: a graph as nodes of ONNX. Ops without a row are decomposed
 * (core/export/decompose.h). */
#include <stdio.h>
#include <string.h>

#include "core/export/decompose.h"
#include "core/export/onnx/nodes.h"
#include "core/graph/input_state.h"

/* ---- decomposition ---- */

static bool express_has(void *context, const tn_graph *graph, const int32_t *reads, const tn_gnode *node) {
  export_graph here = *(const export_graph *)context;
  int32_t least;
  here.graph = (tn_graph *)(uintptr_t)graph;
  here.reads = reads;
  return export_row_of(&here, node, &least) != NULL;
}

static tn_status express_all(export_graph *x) {
  TN_TRY(tn_export_decompose(&x->graph, &(tn_export_target){express_has, x}));
  x->reads = tn_export_reads(&x->arena, x->graph);
  return x->reads != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- missing ops ---- */

static tn_status express_miss(export_graph *x, const char *op, const char *reason) {
  for (size_t i = 0; i < x->missing.n; i++)
    if (strcmp(x->missing.v[i].op, op) == 0 && strcmp(x->missing.v[i].reason, reason) == 0) {
      x->missing.v[i].count++;
      return TN_OK;
    }
  const export_missing missing = {tn_arena_strdup(&x->arena, op), tn_arena_strdup(&x->arena, reason), 1};
  return missing.op != NULL && missing.reason != NULL ? tn_vec_push(x->env, &x->missing, missing) : TN_ENOMEM;
}

static tn_status express_lack(export_graph *x, const tn_gnode *node, int32_t least) {
  char reason[96] = "ONNX has no operator for it";
  if (least > 0)
    snprintf(reason, sizeof reason, "opset %d lacks it, expected %d or later", (int)x->opset, (int)least);
  return express_miss(x, node->op->item.name, reason);
}

/* ---- nodes ---- */

/* Names for the results of a node that is listed, so that those behind it are looked at, too. */
static void express_lose(export_graph *x, const tn_gnode *node) {
  for (int32_t k = 0; k < node->n_out; k++) x->names[node->first_out + (tn_val)k] = "lost";
}

/* Whether no result has an element: then they are constants, as runtimes differ in what they do with nothing.
 */
static bool express_is_empty(const export_graph *x, const tn_gnode *node) {
  for (int32_t k = 0; k < node->n_out; k++) {
    const tn_type *type = tn_graph_type(x->graph, node->first_out + (tn_val)k);
    if (tn_type_count(type) != 0) return false;
    for (int32_t i = 0; i < type->rank; i++)
      if (export_is_batch(x, type->dims[i])) return false;
  }
  return true;
}

static tn_status express_empty(export_graph *x, const tn_gnode *node) {
  for (int32_t k = 0; k < node->n_out; k++) {
    tn_val v = node->first_out + (tn_val)k;
    x->names[v] = export_constant(x, tn_graph_type(x->graph, v), NULL);
    if (x->names[v] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status express_node(export_graph *x, const tn_gnode *node) {
  int32_t least;
  const export_row *row = export_row_of(x, node, &least);
  const export_use use = {x, node, row};
  if (express_is_empty(x, node)) return express_empty(x, node);
  if (row == NULL) {
    express_lose(x, node);
    return express_lack(x, node, least);
  }
  tn_status status = row->emit != NULL ? row->emit(&use) : export_yield(&use, "%s", row->call);
  if (status != TN_EUNSUPPORTED) return tn_wrap(x->env, status, "%s", node->op->item.name);
  TN_TRY(express_miss(x, node->op->item.name, tn_error_text(x->env)));
  tn_error_clear(x->env);
  express_lose(x, node);
  return TN_OK;
}

static tn_status express_input(export_graph *x, const tn_gnode *node) {
  const tn_input_attributes *a = node->attributes;
  x->names[node->first_out] = a->name;
  return TN_OK;
}

/* Names of inputs and outputs come first, so that no other value gets one. An output that is an input, or
 * stands twice in the list, is written as a copy. */
static tn_status express_reserve(export_graph *x) {
  const tn_graph *g = x->graph;
  for (size_t i = 0; i < g->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    TN_TRY(tn_name_index_add(&x->taken, a->name));
  }
  for (size_t i = 0; i < g->outputs.n; i++)
    if (tn_name_index_find(&x->taken, g->outputs.v[i].name) == TN_NAME_INDEX_NONE)
      TN_TRY(tn_name_index_add(&x->taken, g->outputs.v[i].name));
  return TN_OK;
}

static tn_status express_output(export_graph *x, const tn_goutput *output) {
  const tn_gnode *maker = tn_graph_maker(x->graph, output->value);
  const tn_gnode reader = {
      .def = maker->def, .op = maker->op, .n_in = 1, .in = &output->value, .layer = "", .where = ""};
  const export_use use = {x, &reader, NULL};
  const char *name = export_operand(&use, 0);
  if (name == NULL) return TN_ENOMEM;
  if (strcmp(name, output->name) == 0) return TN_OK;
  tn_text node = tn_text_new(x->env);
  tn_proto_put_text(&node, ONNX_NODE_INPUT, name);
  const char *label = export_new_name(x, "copy");
  return label != NULL ? export_put_node(x, &node, label, "Identity", &output->name, 1) : TN_ENOMEM;
}

static tn_status express_write(export_graph *x) {
  const tn_graph *g = x->graph;
  bool *live;
  TN_TRY(express_reserve(x));
  TN_TRY(export_fold_find(x));
  TN_TRY(tn_graph_live(g, &live));
  tn_status status = TN_OK;
  for (size_t i = 0; i < g->nodes.n && status == TN_OK; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    if (!live[i] || node->op == &tn_op_state) continue;
    status = tn_check_stop(x->env);
    if (status == TN_OK) status = node->op == &tn_op_input ? express_input(x, node) : express_node(x, node);
  }
  tn_release(x->env, live);
  for (size_t i = 0; i < g->outputs.n && status == TN_OK; i++) status = express_output(x, &g->outputs.v[i]);
  return status;
}

tn_status export_express(export_graph *x) {
  TN_TRY(express_all(x));
  x->names = tn_arena_alloc(&x->arena, x->graph->values.n * sizeof *x->names);
  if (x->names == NULL) return TN_ENOMEM;
  return express_write(x);
}
