/* core/export/onnx/express.c: a graph as nodes of ONNX. Ops without a row are decomposed until every op has
 * one or has no decomposition. */
#include <stdio.h>
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "core/graph/input_state.h"
#include "core/graph/op/schema.h"
#include "core/graph/rewrite/widen.h"
#include "core/graph/uses.h"

enum { MOST_ROUNDS = 64 };

/* ---- reads ---- */

static tn_status express_count_reads(export_graph *x) {
  const tn_graph *g = x->graph;
  bool *live;
  TN_TRY(tn_graph_live(g, &live));
  x->reads = tn_arena_alloc(&x->arena, g->values.n * sizeof *x->reads);
  for (size_t i = 0; x->reads != NULL && i < g->nodes.n; i++)
    for (int32_t k = 0; live[i] && k < g->nodes.v[i].n_in; k++) x->reads[g->nodes.v[i].in[k]]++;
  for (size_t i = 0; x->reads != NULL && i < g->outputs.n; i++) x->reads[g->outputs.v[i].value]++;
  tn_release(x->env, live);
  return x->reads != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- decomposition ---- */

typedef struct express_round {
  export_graph *x;
  bool changed;
} express_round;

static bool express_decomposes(export_graph *x, const tn_gnode *node) {
  int32_t least;
  bool composite = tn_op_is_composite(node->op) || tn_node_widens(x->graph, node->def, node->in, node->n_in);
  return composite && !tn_op_is_input_or_state(node->op) && export_row_of(x, node, &least) == NULL;
}

static tn_status express_decompose(tn_rewrite *r, const tn_gnode *node) {
  tn_env *env = r->from->env;
  tn_val *in = tn_alloc(env, tn_size_mul((size_t)(node->n_in + node->n_out) + 1, sizeof *in));
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_in; i++) in[i] = node->in[i] != 0 ? r->map[node->in[i]] : 0;
  tn_val *out = in + node->n_in;
  tn_status status = tn_decompose(r->b, node->def, node->attributes, in, node->n_in, node->n_out, out);
  for (int32_t k = 0; status == TN_OK && k < node->n_out; k++) r->map[node->first_out + (tn_val)k] = out[k];
  tn_release(env, in);
  return status;
}

static tn_status express_visit(tn_rewrite *r, const tn_gnode *node, void *context) {
  express_round *round = context;
  if (!express_decomposes(round->x, node)) return tn_rewrite_copy(r, node);
  round->changed = true;
  return express_decompose(r, node);
}

/* Replaces x->graph. */
static tn_status express_run_round(express_round *round) {
  export_graph *x = round->x;
  tn_graph *to;
  round->changed = false;
  TN_TRY(express_count_reads(x));
  TN_TRY(tn_graph_rewrite(x->graph, express_visit, round, &to));
  tn_graph_destroy(x->graph);
  x->graph = to;
  return TN_OK;
}

static tn_status express_all(export_graph *x) {
  express_round round = {.x = x, .changed = true};
  tn_graph *merged;
  for (int i = 0; i < MOST_ROUNDS && round.changed; i++) TN_TRY(express_run_round(&round));
  TN_TRY(tn_graph_merge(x->graph, &merged));
  tn_graph_destroy(x->graph);
  x->graph = merged;
  return express_count_reads(x);
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
