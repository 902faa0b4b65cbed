/* core/export/decompose.c: see decompose.h. */
#include "core/export/decompose.h"

#include "core/graph/input_state.h"
#include "core/graph/op/schema.h"
#include "core/graph/rewrite/widen.h"

enum { MOST_ROUNDS = 64 };

typedef struct decompose_round {
  const tn_export_target *target;
  const int32_t *reads;
  bool changed;
} decompose_round;

int32_t *tn_export_reads(tn_arena *arena, const tn_graph *g) {
  bool *live;
  int32_t *reads = tn_arena_alloc(arena, g->values.n * sizeof *reads);
  if (reads == NULL || tn_graph_live(g, &live) != TN_OK) return NULL;
  for (size_t i = 0; i < g->nodes.n; i++)
    for (int32_t k = 0; live[i] && k < g->nodes.v[i].n_in; k++) reads[g->nodes.v[i].in[k]]++;
  for (size_t i = 0; i < g->outputs.n; i++) reads[g->outputs.v[i].value]++;
  tn_release(g->env, live);
  return reads;
}

static bool decompose_wants(const decompose_round *round, const tn_graph *g, const tn_gnode *node) {
  bool composite = tn_op_is_composite(node->op) || tn_node_widens(g, node->def, node->in, node->n_in);
  return composite && !tn_op_is_input_or_state(node->op) &&
         !round->target->has(round->target->context, g, round->reads, node);
}

static tn_status decompose_node(tn_rewrite *r, const tn_gnode *node) {
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

static tn_status decompose_visit(tn_rewrite *r, const tn_gnode *node, void *context) {
  decompose_round *round = context;
  if (!decompose_wants(round, r->from, node)) return tn_rewrite_copy(r, node);
  round->changed = true;
  return decompose_node(r, node);
}

static tn_status decompose_replace(tn_graph **graph, tn_status status, tn_graph *to) {
  if (status != TN_OK) return status;
  tn_graph_destroy(*graph);
  *graph = to;
  return TN_OK;
}

static tn_status decompose_run(tn_graph **graph, decompose_round *round) {
  tn_arena arena = tn_arena_new((*graph)->env);
  tn_graph *to = NULL;
  round->changed = false;
  round->reads = tn_export_reads(&arena, *graph);
  tn_status status = round->reads != NULL ? tn_graph_rewrite(*graph, decompose_visit, round, &to) : TN_ENOMEM;
  tn_arena_free(&arena);
  return decompose_replace(graph, status, to);
}

tn_status tn_export_decompose(tn_graph **graph, const tn_export_target *target) {
  decompose_round round = {.target = target, .changed = true};
  tn_graph *merged = NULL;
  for (int i = 0; i < MOST_ROUNDS && round.changed; i++) TN_TRY(decompose_run(graph, &round));
  tn_status status = tn_graph_merge(*graph, &merged);
  return decompose_replace(graph, status, merged);
}
