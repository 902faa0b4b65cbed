/* core/compile/round/sweep.c: nodes that all of their users recompute.
 *
 * A kernel whose pattern marks a node with `&` recomputes that node and does not read its result. Where all
 * users of a node do so, the node is not needed, nor are the nodes that only it reads. Patterns of
 * several nodes are the only ones that recompute, so the sweep follows them: swept nodes then neither
 * join regions nor need kernels. */
#include "core/compile/round/cover_round.h"

/* The state of a sweep: the nodes and groups that are needed, found from the ends of the graph. */
typedef struct round_sweep {
  tn_round *r;
  bool *node, *group; /* per node of the graph, per chosen candidate */
  uint32_t *stack;    /* nodes whose operands are to be visited */
  int32_t depth;
} round_sweep;

static void note_recomputed_value(tn_round *r, const tn_candidate *c, tn_val v) {
  for (int32_t k = r->uses.start[v]; k < r->uses.start[v + 1]; k++)
    for (int32_t i = 0; i < c->n_nodes; i++)
      if (c->nodes[i] == r->uses.node[k] && tn_candidate_takes(c, i)) r->recomputed[k] = true;
}

void tn_round_note_recomputed(tn_round *r, const tn_candidate *c) {
  for (int32_t i = 0; c->shared != NULL && i < c->n_in; i++) r->borrowed[c->in[i]] = true;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    if (tn_candidate_takes(c, i)) continue;
    const tn_gnode *node = &r->graph->nodes.v[c->nodes[i]];
    r->shares = true;
    for (int32_t k = 0; k < node->n_out; k++) note_recomputed_value(r, c, node->first_out + (tn_val)k);
  }
}

/* ---- needed nodes ---- */

static int32_t chosen_group_of(const tn_round *r, uint32_t node) {
  return r->taken[node] ? r->group[r->contracted.vertex[node]] : -1;
}

/* A node with effects, or one without any user, is there for its own sake. */
static bool is_needed_by_itself(const tn_round *r, const tn_gnode *node) {
  int32_t used = r->uses.start[node->first_out + (tn_val)node->n_out] - r->uses.start[node->first_out];
  for (int32_t k = 0; k < node->n_out; k++)
    if (r->uses.outside[node->first_out + (tn_val)k] > 0) return true;
  return used == 0 || (node->op->flags & TN_OP_EFFECT) != 0;
}

static void need_node(round_sweep *s, uint32_t node) {
  int32_t group = chosen_group_of(s->r, node);
  bool *needed = group >= 0 ? &s->group[group] : &s->node[node];
  if (*needed) return;
  *needed = true;
  s->stack[s->depth++] = node;
}

static void need_values(round_sweep *s, const tn_val *values, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (values[i] != 0) need_node(s, s->r->graph->values.v[values[i]].node);
}

static void find_needed(round_sweep *s) {
  const tn_graph *graph = s->r->graph;
  for (uint32_t i = 0; i < graph->nodes.n; i++)
    if (is_needed_by_itself(s->r, &graph->nodes.v[i])) need_node(s, i);
  while (s->depth > 0) {
    uint32_t node = s->stack[--s->depth];
    int32_t group = chosen_group_of(s->r, node);
    if (group >= 0)
      need_values(s, s->r->chosen.v[group].in, s->r->chosen.v[group].n_in);
    else
      need_values(s, graph->nodes.v[node].in, graph->nodes.v[node].n_in);
  }
}

/* ---- the sweep ---- */

/* The operands of a swept node lose a user; the groups that recompute the node have borrowed them. */
static void sweep_node(tn_round *r, uint32_t index) {
  const tn_gnode *node = &r->graph->nodes.v[index];
  r->taken[index] = r->swept[index] = true;
  for (int32_t i = 0; i < node->n_in; i++)
    for (int32_t k = r->uses.start[node->in[i]]; k < r->uses.start[node->in[i] + 1]; k++)
      if (r->uses.node[k] == index) r->recomputed[k] = true;
}

static void sweep_unneeded(const round_sweep *s) {
  tn_round *r = s->r;
  for (uint32_t i = 0; i < r->graph->nodes.n; i++) {
    tn_node_kind kind = tn_node_kind_of(&r->graph->nodes.v[i]);
    int32_t group = chosen_group_of(r, i);
    if (kind != TN_NODE_WORK && kind != TN_NODE_VIEW) continue;
    if (group >= 0 ? !s->group[group] : !s->node[i]) sweep_node(r, i);
  }
  for (uint32_t i = 0; i < r->graph->nodes.n; i++)
    if (r->swept[i]) r->group[r->contracted.vertex[i]] = -1;
}

tn_status tn_round_sweep(tn_round *r) {
  size_t n = r->graph->nodes.n;
  if (!r->shares) return TN_OK;
  round_sweep s = {.r = r};
  s.node = tn_arena_alloc(&r->arena, n * sizeof *s.node);
  s.group = tn_arena_alloc(&r->arena, r->chosen.n * sizeof *s.group);
  s.stack = tn_arena_alloc(&r->arena, (n + r->chosen.n) * sizeof *s.stack);
  if (s.node == NULL || s.group == NULL || s.stack == NULL) return TN_ENOMEM;
  find_needed(&s);
  sweep_unneeded(&s);
  return TN_OK;
}
