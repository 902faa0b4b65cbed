/* core/compile/match/match.c: subgraph matching by backtracking, from the last node of the pattern outward.
 *
 * A match of the right shape must also be legal: no node is in another group, no inner value has a user
 * outside (commits and outputs are users), and the nodes are a convex set. Nodes that the kernel only
 * recomputes (`&`) may be in another group and have users outside. After an illegal match the search
 * goes on, since the other order of a commutative op's operands may be legal. */
#include "core/compile/match/match.h"

#include "core/compile/kernels/loop_kernel.h"

enum { UNBOUND = -1 };

typedef struct match_search {
  const tn_matcher *m;
  const tn_catalog_kernel *kernel;
  const tn_pattern *pattern;
  int64_t bound[TN_PATTERN_VALUES]; /* graph value per pattern value; 0 absent; UNBOUND */
  int32_t trail[TN_PATTERN_VALUES]; /* pattern values in the order in which they were bound */
  int32_t n_trail;
  uint32_t node[TN_PATTERN_NODES]; /* graph node per pattern node */
  bool found[TN_PATTERN_NODES], swapped[TN_PATTERN_NODES];
  const char *refusal;
} match_search;

static bool bind_value(match_search *s, int32_t value, tn_val v) {
  if (s->bound[value] != UNBOUND) return s->bound[value] == (int64_t)v;
  s->bound[value] = v;
  s->trail[s->n_trail++] = value;
  return true;
}

static void unbind_values(match_search *s, int32_t depth) {
  while (s->n_trail > depth) s->bound[s->trail[--s->n_trail]] = UNBOUND;
}

/* A pattern value with a maker matches only the same result of a node of the same op, and of the very node if
 * that is found. */
static bool fits_pattern_maker(const match_search *s, const tn_pattern_value *value, tn_val v) {
  const tn_graph *g = s->m->graph;
  if (v == 0 || g->values.v[v].result != value->result) return false;
  if (s->found[value->maker]) return s->node[value->maker] == g->values.v[v].node;
  return tn_graph_maker(g, v)->def == s->kernel->defs[value->maker];
}

static bool bind_pattern_operand(match_search *s, int32_t value, tn_val v) {
  if (value < 0) return v == 0;
  const tn_pattern_value *pv = &s->pattern->values[value];
  if (pv->maker >= 0 ? !fits_pattern_maker(s, pv, v) : v == 0 && !pv->optional) return false;
  return bind_value(s, value, v);
}

static bool bind_pattern_operands(match_search *s, const tn_pattern_node *pnode, const tn_gnode *node,
                                  bool swapped) {
  for (int32_t i = 0; i < pnode->n_in; i++) {
    int32_t k = swapped && i < 2 ? 1 - i : i;
    if (pnode->in[i] >= 0 && s->pattern->values[pnode->in[i]].rest) return true;
    if (!bind_pattern_operand(s, pnode->in[i], k < node->n_in ? node->in[k] : 0)) return false;
  }
  for (int32_t k = pnode->n_in; k < node->n_in; k++)
    if (node->in[k] != 0) return false;
  return true;
}

static bool bind_pattern_results(match_search *s, int32_t p, const tn_gnode *node) {
  const tn_pattern_node *pnode = &s->pattern->nodes[p];
  for (int32_t i = 0; i < pnode->n_out; i++) {
    if (i >= node->n_out) return false;
    if (pnode->out[i] >= 0 && !bind_value(s, pnode->out[i], node->first_out + i)) return false;
  }
  return true;
}

static bool is_node_matched(const match_search *s, uint32_t node) {
  for (int32_t i = 0; i < s->pattern->n_nodes; i++)
    if (s->found[i] && s->node[i] == node) return true;
  return false;
}

/* ---- legality ---- */

static const char *find_use_outside(const match_search *s, const tn_gnode *node, int32_t p) {
  const tn_pattern *pattern = s->pattern;
  const tn_uses *uses = s->m->uses;
  if (tn_is_loop(node)) return NULL; /* all of its results leave */
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = node->first_out + i;
    int32_t value = i < pattern->nodes[p].n_out ? pattern->nodes[p].out[i] : -1;
    bool leaves = false;
    for (int32_t k = 0; k < pattern->n_outs; k++) leaves |= pattern->outs[k] == value;
    if (leaves && value >= 0) continue;
    if (uses->outside[v] > 0) return "a value inside it is committed or an output";
    if (s->m->borrowed[v]) return "a value inside it is used outside";
    for (int32_t k = uses->start[v]; k < uses->start[v + 1]; k++)
      if (!s->m->recomputed[k] && !is_node_matched(s, uses->node[k]))
        return "a value inside it is used outside";
  }
  return NULL;
}

/* A kernel would read an operand that one of its own nodes makes before it is written. An operand of a node
 * that it recomputes may be inside another group, which computes that node, too. */
static const char *find_operand_inside(const match_search *s) {
  const tn_graph *g = s->m->graph;
  for (int32_t i = 0; i < s->pattern->n_operands; i++) {
    int64_t v = s->bound[s->pattern->operands[i]];
    if (v > 0 && is_node_matched(s, g->values.v[v].node)) return "an operand is made inside the match";
    if (v > 0 && s->m->inner[v]) return "an operand is made inside another match";
  }
  return NULL;
}

/* The nodes that the match takes: all but those that it only recomputes. */
static int32_t list_taken_nodes(const match_search *s, uint32_t *nodes) {
  int32_t n = 0;
  for (int32_t i = 0; i < s->pattern->n_nodes; i++)
    if (!s->pattern->nodes[i].shared) nodes[n++] = s->node[i];
  return n;
}

/* Edges from the recomputed nodes into the match remain in the contracted graph. They are not real, but a
 * node that is recomputed comes after its operands in any case, so they add no order that is wrong. */
static bool is_match_convex(const match_search *s) {
  tn_contracted_graph *contracted = s->m->contracted;
  uint32_t nodes[TN_PATTERN_NODES];
  int32_t n = list_taken_nodes(s, nodes);
  if (n == 1) return true;
  tn_contracted_set_of(contracted, nodes, n);
  return tn_contracted_set_is_convex(contracted, nodes, n);
}

static const char *find_illegality(const match_search *s) {
  const tn_matcher *m = s->m;
  const tn_pattern_node *nodes = s->pattern->nodes;
  int32_t n = s->pattern->n_nodes;
  for (int32_t i = 0; i < n; i++)
    if (!nodes[i].shared && m->taken[s->node[i]]) return "a larger or earlier match has one of its nodes";
  const char *why = find_operand_inside(s);
  for (int32_t i = 0; i < n && why == NULL; i++)
    why = nodes[i].shared ? NULL : find_use_outside(s, &m->graph->nodes.v[s->node[i]], i);
  if (why != NULL) return why;
  return is_match_convex(s) ? NULL : "a path leaves the match and re-enters it";
}

/* ---- search ---- */

static bool match_from_step(match_search *s, int32_t step);

static bool try_pattern_node(match_search *s, int32_t step, uint32_t index, bool swapped) {
  int32_t p = s->pattern->steps[step].node, depth = s->n_trail;
  const tn_gnode *node = &s->m->graph->nodes.v[index];
  s->node[p] = index;
  s->found[p] = true;
  s->swapped[p] = swapped;
  if (bind_pattern_results(s, p, node) && bind_pattern_operands(s, &s->pattern->nodes[p], node, swapped) &&
      match_from_step(s, step + 1))
    return true;
  s->found[p] = false;
  unbind_values(s, depth);
  return false;
}

static bool match_pattern_node(match_search *s, int32_t step, uint32_t index) {
  int32_t p = s->pattern->steps[step].node;
  const tn_gnode *node = &s->m->graph->nodes.v[index];
  if (node->def != s->kernel->defs[p] || is_node_matched(s, index)) return false;
  if (try_pattern_node(s, step, index, false)) return true;
  bool commutes =
      (node->op->flags & TN_OP_COMMUTATIVE) != 0 && node->n_in >= 2 && s->pattern->nodes[p].n_in >= 2;
  return commutes && try_pattern_node(s, step, index, true);
}

/* The value of the step is bound. Its maker is one node; its users are tried in order. */
static bool match_from_step(match_search *s, int32_t step) {
  const tn_uses *uses = s->m->uses;
  if (step == s->pattern->n_nodes) {
    const char *why = find_illegality(s);
    if (why != NULL) s->refusal = why;
    return why == NULL;
  }
  int64_t v = s->bound[s->pattern->steps[step].value];
  if (v <= 0) return false;
  if (!s->pattern->steps[step].forward) return match_pattern_node(s, step, s->m->graph->values.v[v].node);
  for (int32_t k = uses->start[v]; k < uses->start[v + 1]; k++)
    if (match_pattern_node(s, step, uses->node[k])) return true;
  return false;
}

/* ---- the candidate ---- */

/* An operand marked * stands for the operands of this node from *first on. */
static const tn_gnode *find_rest_node(const match_search *s, int32_t value, int32_t *first) {
  for (int32_t p = 0; p < s->pattern->n_nodes; p++) {
    const tn_pattern_node *pnode = &s->pattern->nodes[p];
    for (int32_t i = 0; i < pnode->n_in; i++)
      if (pnode->in[i] == value) {
        *first = i;
        return &s->m->graph->nodes.v[s->node[p]];
      }
  }
  *first = 0;
  return NULL;
}

static int32_t count_rest_operands(const tn_gnode *node, int32_t first) {
  return node != NULL && node->n_in > first ? node->n_in - first : 0;
}

/* Lists the operands; number[value] is the index of the value's first one. */
static tn_status list_match_operands(const match_search *s, int32_t *number, tn_candidate *c) {
  const tn_pattern *pattern = s->pattern;
  int32_t first = 0, n = 0;
  for (int32_t i = 0; i < pattern->n_operands; i++) {
    int32_t value = pattern->operands[i];
    number[value] = n;
    n += pattern->values[value].rest ? count_rest_operands(find_rest_node(s, value, &first), first) : 1;
  }
  tn_val *in = tn_arena_alloc(s->m->arena, (size_t)n * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < pattern->n_operands; i++) {
    int32_t value = pattern->operands[i];
    if (!pattern->values[value].rest) {
      in[number[value]] = (tn_val)s->bound[value];
      continue;
    }
    const tn_gnode *node = find_rest_node(s, value, &first);
    for (int32_t k = 0; k < count_rest_operands(node, first); k++)
      in[number[value] + k] = node->in[first + k];
  }
  c->in = in;
  c->n_in = n;
  return TN_OK;
}

/* Results are numbered after the operands, node by node. */
static void number_match_results(const match_search *s, int32_t n_in, int32_t *number) {
  int32_t first[TN_PATTERN_NODES], n = n_in;
  for (int32_t p = 0; p < s->pattern->n_nodes; p++) {
    first[p] = n;
    n += s->m->graph->nodes.v[s->node[p]].n_out;
  }
  for (int32_t v = 0; v < s->pattern->n_values; v++) {
    const tn_pattern_value *value = &s->pattern->values[v];
    if (value->maker >= 0) number[v] = first[value->maker] + value->result;
  }
}

static void number_node_operands(const match_search *s, int32_t p, const int32_t *number, int32_t *in) {
  const tn_pattern_node *pnode = &s->pattern->nodes[p];
  const tn_gnode *node = &s->m->graph->nodes.v[s->node[p]];
  for (int32_t k = 0; k < node->n_in; k++) {
    int32_t last = pnode->n_in - 1, value = k <= last ? pnode->in[k] : last >= 0 ? pnode->in[last] : -1;
    bool rest = value >= 0 && s->pattern->values[value].rest;
    if (rest)
      in[k] = node->in[k] != 0 ? number[value] + k - last : -1;
    else
      in[k] = k <= last && value >= 0 && s->bound[value] > 0 ? number[value] : -1;
  }
}

static tn_status number_match_operands(const match_search *s, const int32_t *number, tn_candidate *c) {
  int32_t total = 0;
  for (int32_t p = 0; p < c->n_nodes; p++) total += s->m->graph->nodes.v[s->node[p]].n_in;
  int32_t *numbers = tn_arena_alloc(s->m->arena, (size_t)total * sizeof *numbers);
  if (numbers == NULL) return TN_ENOMEM;
  c->numbers = numbers;
  for (int32_t p = 0; p < c->n_nodes; p++) {
    number_node_operands(s, p, number, numbers);
    numbers += s->m->graph->nodes.v[s->node[p]].n_in;
  }
  return TN_OK;
}

/* NULL if the match takes all nodes. */
static tn_status list_shared_nodes(const match_search *s, const bool **shared) {
  bool any = false, flags[TN_PATTERN_NODES];
  for (int32_t i = 0; i < s->pattern->n_nodes; i++) any |= flags[i] = s->pattern->nodes[i].shared;
  *shared = any ? tn_arena_copy(s->m->arena, flags, (size_t)s->pattern->n_nodes * sizeof *flags) : NULL;
  return any && *shared == NULL ? TN_ENOMEM : TN_OK;
}

/* The results of the pattern; of a loop, all that it has. */
static tn_status list_match_results(const match_search *s, tn_candidate *c) {
  const tn_pattern *pattern = s->pattern;
  const tn_gnode *node = &s->m->graph->nodes.v[s->node[0]];
  c->n_out = tn_is_loop(node) ? node->n_out : pattern->n_outs;
  tn_val *out = tn_arena_alloc(s->m->arena, (size_t)c->n_out * sizeof *out);
  if (out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n_out; i++)
    out[i] = tn_is_loop(node) ? node->first_out + (tn_val)i : (tn_val)s->bound[pattern->outs[i]];
  c->out = out;
  return TN_OK;
}

static tn_status fill_match_candidate(const match_search *s, tn_candidate *c) {
  const tn_pattern *pattern = s->pattern;
  int32_t number[TN_PATTERN_VALUES] = {0};
  *c = (tn_candidate){.kernel = s->kernel, .n_nodes = pattern->n_nodes};
  TN_TRY(list_match_results(s, c));
  c->nodes = tn_arena_copy(s->m->arena, s->node, (size_t)c->n_nodes * sizeof *s->node);
  c->swapped = tn_arena_copy(s->m->arena, s->swapped, (size_t)c->n_nodes * sizeof *s->swapped);
  if (c->nodes == NULL || c->swapped == NULL) return TN_ENOMEM;
  TN_TRY(list_shared_nodes(s, &c->shared));
  TN_TRY(list_match_operands(s, number, c));
  number_match_results(s, c->n_in, number);
  return number_match_operands(s, number, c);
}

tn_status tn_match_at(const tn_matcher *matcher, const tn_catalog_kernel *kernel, uint32_t anchor,
                      tn_candidate *candidate, const char **refusal) {
  match_search s = {.m = matcher, .kernel = kernel, .pattern = kernel->pattern};
  for (int32_t i = 0; i < s.pattern->n_values; i++) s.bound[i] = UNBOUND;
  *candidate = (tn_candidate){0};
  bool fits = match_pattern_node(&s, 0, anchor);
  *refusal = fits ? NULL : s.refusal;
  return fits ? fill_match_candidate(&s, candidate) : TN_OK;
}
