/* core/compile/rematerialization/clone_groups.c: clones of groups of the first half, inserted into the
 * second.
 *
 * A clone has nodes and values of its own, with the operands' new values where those are made again; ops,
 * attributes (streams of random numbers among them), kernel, variant and layouts are the same, so the bits
 * are. What a clone reads is there in any case, is made again with it inside its block, or is kept longer.
 * Commits stay with the values of the first half: nothing is committed twice. */
#include "core/compile/rematerialization/clone_groups.h"

#include <string.h>

#include "core/graph/uses.h"

/* An operand this many times smaller than what its reader makes is kept rather than made again. */
enum { SMALL = 16 };

tn_status tn_again_create(const tn_halves *h, tn_arena *arena, tn_again *a) {
  size_t values = h->n_values, groups = (size_t)h->n_groups;
  *a = (tn_again){.halves = h};
  a->given_up = tn_arena_alloc(arena, values * sizeof *a->given_up);
  a->made = tn_arena_alloc(arena, values * sizeof *a->made);
  a->longer = tn_arena_alloc(arena, values * sizeof *a->longer);
  a->stack = tn_arena_alloc(arena, values * sizeof *a->stack);
  a->twin = tn_arena_alloc(arena, values * sizeof *a->twin);
  a->inner = tn_arena_alloc(arena, values * sizeof *a->inner);
  a->cloned = tn_arena_alloc(arena, groups * sizeof *a->cloned);
  a->at = tn_arena_alloc(arena, groups * sizeof *a->at);
  a->moved = tn_arena_alloc(arena, groups * sizeof *a->moved);
  if (a->given_up == NULL || a->made == NULL || a->longer == NULL || a->stack == NULL || a->twin == NULL ||
      a->inner == NULL || a->cloned == NULL || a->at == NULL || a->moved == NULL)
    return TN_ENOMEM;
  return TN_OK;
}

/* ---- what follows ---- */

static bool is_small(const tn_halves *h, tn_val v, int32_t reader) {
  return h->bytes[v] <= h->bytes[h->base[h->groups[reader].out[0]]] / SMALL;
}

/* An operand (a base) of a group that is cloned. */
static void need(tn_again *a, int32_t reader, tn_val v, int32_t *depth) {
  const tn_halves *h = a->halves;
  int32_t maker = h->maker[v];
  if (v == 0 || maker < 0 || a->made[v] || a->longer[v] || h->late[v]) return;
  if (is_small(h, v, reader) || !h->repeatable[maker] || !tn_halves_same_block(h, maker, reader)) {
    a->longer[v] = true;
    a->longer_bytes += h->bytes[v];
    return;
  }
  a->made[v] = true;
  a->stack[(*depth)++] = v;
}

/* A rough estimate that is the same on every machine and for any number of threads, so that what is bought
 * is, too. */
static double seconds_of(const tn_group *g) { return g->cost.flops / 2e10 + g->cost.bytes / 1e10; }

static void find_clones(tn_again *a) {
  const tn_halves *h = a->halves;
  int32_t depth = 0;
  for (tn_val v = 1; v < h->n_values; v++)
    if (a->given_up[v]) {
      a->made[v] = true;
      a->stack[depth++] = v;
    }
  while (depth > 0) {
    int32_t group = h->maker[a->stack[--depth]];
    const tn_group *g = &h->groups[group];
    if (a->cloned[group]) continue;
    a->cloned[group] = true;
    a->cost_s += seconds_of(g);
    a->flops += g->cost.flops;
    for (int32_t k = 0; k < g->n_in; k++) need(a, group, h->base[g->in[k]], &depth);
  }
}

/* The first that reads a result which is made again: a group of the second half, or a clone's place. */
static int32_t first_reader(const tn_again *a, int32_t group) {
  const tn_halves *h = a->halves;
  const tn_group *g = &h->groups[group];
  int32_t first = INT32_MAX;
  for (int32_t k = 0; k < g->n_out; k++) {
    tn_val v = g->out[k];
    if (!a->made[v]) continue;
    for (int32_t r = h->start[v]; r < h->start[v + 1]; r++) {
      int32_t reader = h->readers[r], at = reader;
      if (reader <= h->turn) at = a->cloned[reader] ? a->at[reader] : INT32_MAX;
      if (at < first) first = at;
    }
  }
  return first;
}

/* A clone reads states as they were at entry: no commit may have been made by then. */
static bool states_are_old(const tn_again *a, int32_t group) {
  const tn_halves *h = a->halves;
  const tn_group *g = &h->groups[group];
  for (int32_t k = 0; k < g->n_in; k++) {
    tn_val v = h->base[g->in[k]];
    if (v != 0 && tn_node_kind_of(tn_graph_maker(h->cover->graph, v)) == TN_NODE_STATE &&
        !tn_halves_state_is_old(h, v, a->at[group]))
      return false;
  }
  return true;
}

void tn_again_follow(tn_again *a) {
  const tn_halves *h = a->halves;
  memset(a->made, 0, h->n_values * sizeof *a->made);
  memset(a->longer, 0, h->n_values * sizeof *a->longer);
  memset(a->cloned, 0, (size_t)h->n_groups * sizeof *a->cloned);
  a->longer_bytes = 0;
  a->cost_s = a->flops = 0;
  a->possible = true;
  find_clones(a);
  for (int32_t g = h->turn; g >= 0; g--) {
    if (!a->cloned[g]) continue;
    a->at[g] = first_reader(a, g);
    a->possible = a->possible && a->at[g] != INT32_MAX && states_are_old(a, g);
  }
}

/* ---- nodes and values ---- */

static tn_status clone_node(const tn_again *a, uint32_t index, const tn_val *in, tn_val *first_out) {
  tn_graph *graph = a->halves->cover->graph;
  tn_gnode node = graph->nodes.v[index]; /* adding may move the table */
  TN_TRY(tn_graph_add(graph, node.def, node.attributes, in, node.n_in, node.layer, node.where, first_out));
  for (int32_t k = 0; k < node.n_out; k++)
    graph->values.v[*first_out + (tn_val)k].layout = graph->values.v[node.first_out + (tn_val)k].layout;
  return TN_OK;
}

/* The value that the second half reads in the place of one of the first. Views of what is made again are
 * made again as well, when they are asked for. */
static tn_status second_of(tn_again *a, tn_val v, tn_val *second) {
  const tn_halves *h = a->halves;
  *second = v;
  if (v == 0 || !a->made[h->base[v]]) return TN_OK;
  if (a->twin[v] == 0) {
    const tn_gnode node = *tn_graph_maker(h->cover->graph, v);
    tn_val *in = tn_arena_copy(&h->cover->arena, node.in, (size_t)node.n_in * sizeof *in);
    if (in == NULL) return TN_ENOMEM;
    TN_TRY(second_of(a, in[0], &in[0]));
    TN_TRY(clone_node(a, h->cover->graph->values.v[v].node, in, &a->twin[v]));
  }
  *second = a->twin[v];
  return TN_OK;
}

static tn_status second_operands(tn_again *a, const tn_group *g, const tn_val **in) {
  tn_val *made = tn_arena_copy(&a->halves->cover->arena, g->in, (size_t)g->n_in * sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < g->n_in; k++) TN_TRY(second_of(a, g->in[k], &made[k]));
  *in = made;
  return TN_OK;
}

/* What a node of a clone reads: a value made inside, or an operand of the group. */
static tn_status inner_operand(tn_again *a, tn_val v, tn_val *in) {
  if (a->inner[v] == 0) return second_of(a, v, in);
  *in = a->inner[v];
  return TN_OK;
}

static tn_status clone_inner(tn_again *a, uint32_t index, uint32_t *made) {
  tn_graph *graph = a->halves->cover->graph;
  const tn_gnode node = graph->nodes.v[index];
  tn_val first = 0, *in = tn_arena_copy(&a->halves->cover->arena, node.in, (size_t)node.n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node.n_in; k++)
    if (in[k] != 0) TN_TRY(inner_operand(a, node.in[k], &in[k]));
  TN_TRY(clone_node(a, index, in, &first));
  *made = graph->values.v[first].node;
  for (int32_t k = 0; k < node.n_out; k++) a->inner[node.first_out + (tn_val)k] = first + (tn_val)k;
  return TN_OK;
}

static void forget_inner(tn_again *a, const tn_group *g) {
  for (int32_t i = 0; i < g->n_nodes; i++) {
    const tn_gnode *node = &a->halves->cover->graph->nodes.v[g->nodes[i]];
    for (int32_t k = 0; k < node->n_out; k++) a->inner[node->first_out + (tn_val)k] = 0;
  }
}

/* Results that reorders made of a result, and that lie beside the nodes, are values of their own groups. */
static tn_status clone_group(tn_again *a, int32_t index, tn_group *clone) {
  tn_cover *cover = a->halves->cover;
  const tn_group *g = &a->halves->groups[index];
  uint32_t *nodes = tn_arena_alloc(&cover->arena, (size_t)g->n_nodes * sizeof *nodes);
  tn_val *out = tn_arena_alloc(&cover->arena, (size_t)g->n_out * sizeof *out);
  if (nodes == NULL || out == NULL) return TN_ENOMEM;
  *clone = *g;
  TN_TRY(second_operands(a, g, &clone->in));
  for (int32_t i = 0; i < g->n_nodes; i++) TN_TRY(clone_inner(a, g->nodes[i], &nodes[i]));
  for (int32_t k = 0; k < g->n_out; k++) {
    out[k] = a->inner[g->out[k]];
    a->twin[g->out[k]] = out[k];
  }
  forget_inner(a, g);
  clone->nodes = nodes;
  clone->out = out;
  return TN_OK;
}

/* ---- the new cover ---- */

/* The last group of the second half that makes an operand; the turn where there is none. A clone that waits
 * for it does not run before the second half is there, though it could. */
static int32_t trigger_of(const tn_halves *h, int32_t group) {
  const tn_group *g = &h->groups[group];
  int32_t trigger = h->turn;
  for (int32_t k = 0; k < g->n_in; k++) {
    tn_val v = h->base[g->in[k]];
    if (v != 0 && h->maker[v] > trigger) trigger = h->maker[v];
  }
  return trigger;
}

static tn_status insert_clones(tn_again *a, int32_t before) {
  const tn_halves *h = a->halves;
  for (int32_t g = 0; g <= h->turn; g++) {
    tn_group clone;
    if (!a->cloned[g] || a->at[g] != before) continue;
    TN_TRY(clone_group(a, g, &clone));
    clone.after = a->moved[trigger_of(h, before)] + 1;
    TN_TRY(tn_vec_push(h->env, &h->cover->groups, clone));
  }
  return TN_OK;
}

static tn_status add_group(tn_again *a, int32_t index) {
  const tn_halves *h = a->halves;
  tn_group group = h->groups[index];
  if (index > h->turn) {
    TN_TRY(insert_clones(a, index));
    TN_TRY(second_operands(a, &h->groups[index], &group.in));
  }
  a->moved[index] = (int32_t)h->cover->groups.n;
  return tn_vec_push(h->env, &h->cover->groups, group);
}

tn_status tn_again_apply(tn_again *a) {
  const tn_halves *h = a->halves;
  memset(a->twin, 0, h->n_values * sizeof *a->twin);
  h->cover->groups.n = 0;
  for (int32_t i = 0; i < h->n_groups; i++) TN_TRY(add_group(a, i));
  tn_cover_number(h->cover);
  return TN_OK;
}
