/* core/compile/kernels/describe_match.c: a candidate as its kernel sees it: nodes, types and operand numbers;
 * and its cost. */
#include "core/compile/kernels/describe_match.h"

#include <math.h>

#include "core/compile/state_map.h"
#include "core/config/options/options.h"
#include "core/graph/input_state.h"
#include "core/graph/loop/loop.h"
#include "core/graph/uses.h"

/* ---- the match as the kernel sees it ---- */

static const tn_type **list_value_types(tn_arena *arena, const tn_graph *g, const tn_val *values, int32_t n) {
  const tn_type **types = tn_arena_alloc(arena, (size_t)n * sizeof *types);
  for (int32_t i = 0; types != NULL && i < n; i++)
    if (values[i] != 0) types[i] = g->types.v[values[i]];
  return types;
}

static tn_status describe_node(tn_arena *arena, const tn_graph *g, const tn_gnode *node, bool swapped,
                               tn_node *out) {
  const tn_type **in = list_value_types(arena, g, node->in, node->n_in);
  tn_type *results = tn_arena_alloc(arena, (size_t)node->n_out * sizeof *results);
  if (in == NULL || results == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_out; i++) results[i] = *tn_graph_type(g, node->first_out + i);
  if (swapped) {
    const tn_type *first = in[0];
    in[0] = in[1];
    in[1] = first;
  }
  *out = (tn_node){sizeof *out, node->n_in, node->n_out, node->op->item.name, node->attributes, in, results};
  return TN_OK;
}

static tn_status describe_nodes(tn_arena *arena, const tn_graph *g, const tn_candidate *c, tn_node *described,
                                tn_match_node *nodes) {
  int32_t number = c->n_in, operand = 0;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const tn_gnode *node = &g->nodes.v[c->nodes[i]];
    TN_TRY(describe_node(arena, g, node, c->swapped != NULL && c->swapped[i], &described[i]));
    nodes[i].node = &described[i];
    nodes[i].in = c->numbers + operand;
    nodes[i].first_out = number;
    operand += node->n_in;
    number += node->n_out;
  }
  return TN_OK;
}

static int32_t result_number(const tn_graph *g, const tn_candidate *c, const tn_match_node *nodes,
                             tn_val value) {
  uint32_t maker = g->values.v[value].node;
  for (int32_t i = 0; i < c->n_nodes; i++)
    if (c->nodes[i] == maker) return nodes[i].first_out + g->values.v[value].result;
  return -1;
}

/* The path of a state, or of the one that a value is a view of; NULL: it is another value. */
static const char *state_value_path(const tn_graph *g, tn_val v) {
  while (v != 0) {
    const tn_gnode *node = &g->nodes.v[g->values.v[v].node];
    if (tn_node_kind_of(node) == TN_NODE_STATE) return ((const tn_state_attributes *)node->attributes)->path;
    if (tn_node_kind_of(node) != TN_NODE_VIEW) return NULL;
    v = node->in[0];
  }
  return NULL;
}

/* A state whose memory keeps its values from run to run: it is not fetched in each of them. */
static bool is_kept_state(const tn_graph *g, const tn_target *target, tn_val v) {
  const char *path = state_value_path(g, v);
  return path != NULL && !tn_state_map_is_streamed(target->states, path);
}

static uint8_t *mark_constant_operands(tn_arena *arena, const tn_graph *g, const tn_target *target,
                                       const tn_candidate *c) {
  uint8_t *constant = tn_arena_alloc(arena, (size_t)c->n_in);
  for (int32_t i = 0; constant != NULL && i < c->n_in; i++)
    constant[i] = target->constant_state && g->commits.n == 0 && is_kept_state(g, target, c->in[i]);
  return constant;
}

/* The node `full` of which a value has copies only; NULL: it is another value. */
static const tn_gnode *find_full_node(const tn_graph *g, tn_val v) {
  while (v != 0) {
    const tn_gnode *node = tn_graph_maker(g, v);
    if (tn_graph_is(g, v, "full")) return node;
    if (tn_node_kind_of(node) != TN_NODE_VIEW && !tn_graph_is(g, v, "broadcast")) return NULL;
    v = node->in[0];
  }
  return NULL;
}

static tn_status describe_constants(tn_arena *arena, const tn_graph *g, const tn_candidate *c,
                                    const tn_node *const **constants) {
  const tn_node **described = tn_arena_alloc(arena, (size_t)c->n_in * sizeof *described);
  if (described == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n_in; i++) {
    const tn_gnode *full = find_full_node(g, c->in[i]);
    if (full == NULL) continue;
    tn_node *node = tn_arena_alloc(arena, sizeof *node);
    if (node == NULL) return TN_ENOMEM;
    TN_TRY(describe_node(arena, g, full, false, node));
    described[i] = node;
  }
  *constants = described;
  return TN_OK;
}

tn_status tn_describe_match(tn_arena *arena, const tn_graph *g, const tn_target *target,
                            const tn_candidate *c, tn_match **match) {
  tn_match *m = tn_arena_alloc(arena, sizeof *m);
  tn_match_node *nodes = tn_arena_alloc(arena, (size_t)c->n_nodes * sizeof *nodes);
  tn_node *described = tn_arena_alloc(arena, (size_t)c->n_nodes * sizeof *described);
  int32_t *out_number = tn_arena_alloc(arena, (size_t)c->n_out * sizeof *out_number);
  if (m == NULL || nodes == NULL || described == NULL || out_number == NULL) return TN_ENOMEM;
  TN_TRY(describe_nodes(arena, g, c, described, nodes));
  for (int32_t i = 0; i < c->n_out; i++) out_number[i] = result_number(g, c, nodes, c->out[i]);
  const tn_type **in = list_value_types(arena, g, c->in, c->n_in),
                **out = list_value_types(arena, g, c->out, c->n_out);
  uint8_t *constant = mark_constant_operands(arena, g, target, c);
  if (in == NULL || out == NULL || constant == NULL) return TN_ENOMEM;
  const tn_node *const *constants = NULL;
  TN_TRY(describe_constants(arena, g, c, &constants));
  *m = (tn_match){sizeof *m, c->n_in, c->n_out, c->n_nodes, in, out, out_number, nodes, constant, constants};
  *match = m;
  return TN_OK;
}

/* ---- the match as a tuner sees it ---- */

/* "conv2d(0, 1; stride=2)" */
static void describe_tuned_node(tn_text *text, const tn_op *op, const tn_match_node *node) {
  tn_text_addf(text, "%s(", op->item.name);
  for (int32_t i = 0; i < node->node->n_in; i++)
    tn_text_addf(text, "%s%d", i > 0 ? ", " : "", (int)node->in[i]);
  size_t before = text->n;
  tn_text_addf(text, "; ");
  size_t start = text->n;
  tn_options_print(text, &op->item, node->node->attributes);
  if (text->n == start) text->n = before; /* no attributes */
  tn_text_addf(text, ")");
}

tn_status tn_describe_tuning(tn_arena *arena, const tn_graph *g, const tn_candidate *c, tn_tuning *tuning) {
  const tn_match *m = c->match;
  tn_text text = tn_text_new(g->env);
  uint8_t *cold = tn_arena_alloc(arena, (size_t)m->n_in + 1);
  for (int32_t i = 0; i < m->n_nodes; i++) {
    if (i > 0) tn_text_addf(&text, "+");
    describe_tuned_node(&text, g->nodes.v[c->nodes[i]].op, &m->nodes[i]);
  }
  for (int32_t i = 0; cold != NULL && i < m->n_in; i++) cold[i] = state_value_path(g, c->in[i]) != NULL;
  *tuning = (tn_tuning){.entry = c->kernel->entry,
                        .match = m,
                        .nodes = text.failed ? NULL : tn_arena_strdup(arena, text.v),
                        .cold = cold,
                        .key = c->key};
  tn_text_free(&text);
  return tuning->nodes != NULL && cold != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- cost ---- */

static double sum_type_bytes(const tn_type *const *types, int32_t n) {
  double bytes = 0;
  for (int32_t i = 0; i < n; i++)
    if (types[i] != NULL) bytes += (double)tn_type_bytes(types[i]);
  return bytes;
}

static bool is_cost(double number) { return number >= 0 && isfinite(number); }

static void op_cost(const tn_graph *g, const tn_op *op, const tn_node *node, tn_cost *cost);

/* The operations of the body, once for each step. */
static double loop_flops(const tn_graph *g, const tn_loop_attributes *a) {
  tn_error_record record = {0};
  tn_env env = {g->env->api, &record};
  tn_arena arena = tn_arena_new(&env);
  tn_graph *body = NULL;
  double flops = 0;
  tn_status status = tn_loop_parse(&env, g->ops, a, &body);
  for (size_t i = 0; status == TN_OK && i < body->nodes.n; i++) {
    tn_cost one = {.struct_size = sizeof one};
    status = tn_node_cost(&arena, body, &body->nodes.v[i], &one);
    flops += one.flops;
  }
  tn_graph_destroy(body);
  tn_arena_free(&arena);
  return flops * (double)a->steps;
}

/* Without a cost of its own, or with one that is no number: every element is read or written once. */
static void op_cost(const tn_graph *g, const tn_op *op, const tn_node *node, tn_cost *cost) {
  *cost = (tn_cost){.struct_size = sizeof *cost};
  if (op->cost != NULL) op->cost(node, cost);
  if (op->cost != NULL && is_cost(cost->flops) && is_cost(cost->bytes)) return;
  *cost = (tn_cost){.struct_size = sizeof *cost};
  cost->bytes = sum_type_bytes(node->in, node->n_in);
  for (int32_t i = 0; i < node->n_out; i++) {
    cost->flops += (double)tn_type_count(&node->out[i]);
    cost->bytes += (double)tn_type_bytes(&node->out[i]);
  }
  if (op == &tn_op_loop) cost->flops = loop_flops(g, node->attributes);
}

tn_status tn_node_cost(tn_arena *arena, const tn_graph *graph, const tn_gnode *node, tn_cost *cost) {
  tn_node described;
  TN_TRY(describe_node(arena, graph, node, false, &described));
  op_cost(graph, node->op, &described, cost);
  return TN_OK;
}

/* Values inside of a match stay in registers or caches; only the values that cross its border count. */
tn_cost tn_match_cost(const tn_graph *g, const tn_candidate *c, const tn_match *m) {
  tn_cost total = {.struct_size = sizeof total}, one = total;
  for (int32_t i = 0; i < m->n_nodes; i++) {
    op_cost(g, g->nodes.v[c->nodes[i]].op, m->nodes[i].node, &one);
    total.flops += one.flops;
  }
  total.bytes =
      m->n_nodes == 1 ? one.bytes : sum_type_bytes(m->in, m->n_in) + sum_type_bytes(m->out, m->n_out);
  return total;
}

static double node_flops_per_s(const tn_op *op, const tn_node *node, const tn_device_properties *d) {
  bool matrix = op->op_class == TN_CLASS_MATMUL && node->n_in > 0 && node->in[0] != NULL;
  return matrix ? d->matrix_flops_per_s[node->in[0]->dtype] : d->vector_flops_per_s;
}

double tn_match_seconds(const tn_graph *g, const tn_candidate *c, const tn_match *m,
                        const tn_device_properties *d) {
  tn_cost one;
  double arithmetic_s = 0;
  for (int32_t i = 0; i < m->n_nodes; i++) {
    const tn_op *op = g->nodes.v[c->nodes[i]].op;
    op_cost(g, op, m->nodes[i].node, &one);
    arithmetic_s += one.flops / node_flops_per_s(op, m->nodes[i].node, d);
  }
  return tn_estimate_s(d, tn_match_cost(g, c, m).bytes, arithmetic_s, 1);
}
