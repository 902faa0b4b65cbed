/* core/compare/group_graph.c: the ops of one launch as a graph of their own. */
#include "core/compare/group_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph/input_state.h"

const char *tn_group_graph_in(int32_t i, char name[TN_GROUP_NAME]) {
  snprintf(name, TN_GROUP_NAME, "in.%" PRId32, i);
  return name;
}

const char *tn_group_graph_out(int32_t i, char name[TN_GROUP_NAME]) {
  snprintf(name, TN_GROUP_NAME, "out.%" PRId32, i);
  return name;
}

int32_t tn_group_graph_operand(const tn_graph *graph, tn_val v) {
  const tn_gnode *node = v != 0 ? tn_graph_maker(graph, v) : NULL;
  int64_t operand;
  if (node == NULL || node->op != &tn_op_input) return -1;
  const char *name = ((const tn_input_attributes *)node->attributes)->name;
  bool known = tn_text_starts(name, "in.") && tn_text_to_int(name + 3, &operand) && operand >= 0;
  return known && operand < INT32_MAX ? (int32_t)operand : -1;
}

tn_val tn_group_graph_find(const tn_graph *graph, int32_t operand) {
  for (size_t k = 0; k < graph->inputs.n; k++)
    if (tn_group_graph_operand(graph, graph->inputs.v[k]) == operand) return graph->inputs.v[k];
  return 0;
}

/* The work of tn_group_graph_make. */
typedef struct extraction {
  const tn_graph *from;
  const tn_group *group;
  tn_graph *to;
  tn_val *map;     /* value of `from` -> value of `to`; 0: not there yet */
  uint32_t *nodes; /* of the group, in the order of the graph */
} extraction;

static int group_graph_compare(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* After pass layout, an operand may be a reorder of the value that the ops read. */
static void extract_reordered(extraction *x, tn_val v) {
  for (tn_val w = v; tn_graph_is(x->from, w, "reorder");) {
    w = tn_graph_maker(x->from, w)->in[0];
    if (x->map[w] == 0) x->map[w] = x->map[v];
  }
}

/* An operand that comes twice has the name of its first place. */
static tn_status extract_operands(extraction *x) {
  char name[TN_GROUP_NAME];
  for (int32_t i = 0; i < x->group->n_in; i++) {
    tn_val v = x->group->in[i];
    if (v == 0 || x->map[v] != 0) continue;
    x->map[v] = tn_graph_input(x->to, tn_group_graph_in(i, name), tn_graph_type(x->from, v));
    if (x->map[v] == 0) return x->to->env->record->code;
  }
  for (int32_t i = 0; i < x->group->n_in; i++)
    if (x->group->in[i] != 0) extract_reordered(x, x->group->in[i]);
  return TN_OK;
}

static bool is_view(const tn_gnode *node) { return node->group < 0 && node->n_in > 0; }

static tn_status extract_node(extraction *x, const tn_gnode *node);

/* A view or a pack belongs to no group: a launch may read the values behind it. */
static tn_status extract_view(extraction *x, tn_val v) {
  const tn_gnode *maker = tn_graph_maker(x->from, v);
  if (is_view(maker)) return extract_node(x, maker);
  return tn_failf(x->to->env, TN_EUNSUPPORTED, "a result of op '%s' is read and is no operand of the launch",
                  maker->op->item.name);
}

static tn_status extract_node(extraction *x, const tn_gnode *node) {
  tn_val *in = tn_arena_alloc(&x->to->arena, ((size_t)node->n_in + 1) * sizeof *in), first;
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] != 0 && x->map[node->in[i]] == 0) TN_TRY(extract_view(x, node->in[i]));
    in[i] = node->in[i] != 0 ? x->map[node->in[i]] : 0;
  }
  TN_TRY(tn_graph_add(x->to, node->def, node->attributes, in, node->n_in, node->layer, node->where, &first));
  for (int32_t i = 0; i < node->n_out; i++)
    if (x->map[node->first_out + (tn_val)i] == 0) x->map[node->first_out + (tn_val)i] = first + (tn_val)i;
  return TN_OK;
}

/* Likewise a result may be a reorder of the value that the ops compute: the launch makes the copy, in its own
 * layout, and the reorder runs in the other direction. */
static tn_val extract_result(const extraction *x, tn_val v) {
  while (x->map[v] == 0 && tn_graph_is(x->from, v, "reorder")) v = tn_graph_maker(x->from, v)->in[0];
  return x->map[v];
}

static tn_status extract_results(extraction *x) {
  char name[TN_GROUP_NAME];
  for (int32_t i = 0; i < x->group->n_out; i++) {
    tn_val v = extract_result(x, x->group->out[i]);
    if (v == 0)
      return tn_failf(x->to->env, TN_EUNSUPPORTED, "result %d is computed by no op of the launch", (int)i);
    TN_TRY(tn_graph_output(x->to, tn_group_graph_out(i, name), v));
  }
  return TN_OK;
}

static tn_status extract_group(extraction *x) {
  size_t n = (size_t)x->group->n_nodes;
  x->map = tn_arena_alloc(&x->to->arena, tn_size_mul(x->from->values.n, sizeof *x->map));
  x->nodes = tn_arena_copy(&x->to->arena, x->group->nodes, n * sizeof *x->nodes);
  if (x->map == NULL || x->nodes == NULL) return TN_ENOMEM;
  qsort(x->nodes, n, sizeof *x->nodes, group_graph_compare);
  TN_TRY(extract_operands(x));
  for (size_t i = 0; i < n; i++) TN_TRY(extract_node(x, &x->from->nodes.v[x->nodes[i]]));
  return extract_results(x);
}

tn_status tn_group_graph_make(const tn_graph *from, const tn_group *group, tn_graph **made) {
  extraction x = {.from = from, .group = group};
  *made = NULL;
  TN_TRY(tn_graph_create(from->env, from->ops, &x.to));
  x.to->ranks = from->ranks;
  x.to->micro_batches = from->micro_batches;
  tn_status status = extract_group(&x);
  if (status == TN_OK)
    *made = x.to;
  else
    tn_graph_destroy(x.to);
  return status;
}

static tn_status group_graph_copy_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  (void)context;
  return tn_rewrite_copy(r, node);
}

tn_status tn_group_graph_copy(const tn_graph *from, tn_graph **made) {
  return tn_graph_rewrite(from, group_graph_copy_node, NULL, made);
}
