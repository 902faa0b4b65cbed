/* core/commands/summary.c: tn_run_summary: the layers of a model, with shapes, parameters and FLOPs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/model/model.h"
#include "core/run/result.h"

/* One row: a layer path, its last op, the shape of its result, and its FLOPs. */
typedef struct tn_summary_row {
  const char *layer, *op;
  tn_type out;
  double flops;
} tn_summary_row;

static double summary_flops(const tn_graph *g, const tn_gnode *node) {
  const tn_type *in[256];
  tn_type out[16];
  if (node->n_in > 256 || node->n_out > 16) return 0.0;
  for (int32_t i = 0; i < node->n_in; i++) in[i] = node->in[i] ? tn_graph_type(g, node->in[i]) : NULL;
  for (int32_t i = 0; i < node->n_out; i++) out[i] = *tn_graph_type(g, node->first_out + (tn_val)i);
  tn_node seen = {sizeof seen, node->n_in, node->n_out, node->op->item.name, node->attributes, in, out};
  double elements = node->n_out > 0 ? (double)tn_type_count(&out[0]) : 0.0;
  tn_cost cost = {.struct_size = sizeof cost, .flops = elements};
  if (node->op->cost) node->op->cost(&seen, &cost);
  return isfinite(cost.flops) ? cost.flops : elements; /* JSON has no other numbers */
}

/* The part of a state's path before the last dot: the layer. */
static size_t summary_layer_length(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? (size_t)(dot - path) : 0;
}

/* Adds the parameters to an index by the paths of their layers. */
static tn_status summary_index_parameters(const tn_graph *g, tn_hash_index *by_layer) {
  for (size_t i = 0; i < g->states.n; i++) {
    const tn_gstate *state = &g->states.v[i];
    size_t length = summary_layer_length(state->path);
    if (length > 0 && state->what == TN_STATE_PARAM)
      TN_TRY(tn_hash_index_add(by_layer, tn_hash_bytes(TN_HASH_START, state->path, length), (uint32_t)i));
  }
  return TN_OK;
}

static int64_t summary_count_parameters(const tn_graph *g, const tn_hash_index *by_layer, const char *layer) {
  size_t length = strlen(layer), probe = 0;
  uint64_t hash = tn_hash_bytes(TN_HASH_START, layer, length);
  int64_t count = 0;
  for (int64_t i; (i = tn_hash_index_next(by_layer, hash, &probe)) != TN_HASH_INDEX_NONE;) {
    const tn_gstate *state = &g->states.v[i];
    if (summary_layer_length(state->path) == length && strncmp(state->path, layer, length) == 0)
      count += tn_type_count(&state->type);
  }
  return count;
}

static void summary_add_row(const tn_graph *g, const tn_hash_index *by_layer, const tn_summary_row *row,
                            json_t *layers) {
  const char *at = strchr(row->layer, '@'); /* the line has no name */
  char name[256];
  snprintf(name, sizeof name, "%.*s", at ? (int)(at - row->layer) : (int)strlen(row->layer), row->layer);
  json_array_append_new(layers, json_pack("{s:s, s:s, s:o, s:I, s:f}", "name", name, "op", row->op, "output",
                                          tn_json_type(&row->out), "parameters",
                                          (json_int_t)summary_count_parameters(g, by_layer, row->layer),
                                          "flops", row->flops));
}

static json_t *summary_json(const tn_graph *g, const tn_hash_index *by_layer) {
  json_t *layers = json_array();
  double total = 0.0;
  int64_t parameters = 0;
  tn_summary_row row = {.layer = NULL};
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    if (tn_text_equal(node->op->item.name, "input") || tn_text_equal(node->op->item.name, "state")) continue;
    if (row.layer == NULL || !tn_text_equal(row.layer, node->layer)) {
      if (row.layer) summary_add_row(g, by_layer, &row, layers);
      row = (tn_summary_row){.layer = node->layer};
    }
    row.op = node->op->item.name;
    row.out = *tn_graph_type(g, node->first_out);
    row.flops += summary_flops(g, node);
    total += summary_flops(g, node);
  }
  if (row.layer) summary_add_row(g, by_layer, &row, layers);
  for (size_t i = 0; i < g->states.n; i++)
    if (g->states.v[i].what == TN_STATE_PARAM) parameters += tn_type_count(&g->states.v[i].type);
  return json_pack("{s:o, s:I, s:f}", "layers", layers, "parameters", (json_int_t)parameters, "flops", total);
}

tn_status tn_run_summary(tn_run *run, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  tn_model_request request = {.ini = &run->ini,
                              .length = tn_settings_longest(&run->settings),
                              .registry = run->registry,
                              .ops = run->ops,
                              .batch = 1,
                              .seed = (uint64_t)run->settings.run.seed,
                              .quantize = &run->settings.quantize,
                              .emit = run->emit,
                              .user = run->emit_user};
  tn_model model;
  *json = NULL;
  TN_TRY(tn_model_build(&run->env, &request, &model));
  tn_hash_index by_layer = tn_hash_index_new(&run->env);
  tn_status status = summary_index_parameters(model.graph, &by_layer);
  if (status == TN_OK) status = tn_json_take(run, summary_json(model.graph, &by_layer), json);
  tn_hash_index_free(&by_layer);
  tn_model_free(&model);
  return status;
}
