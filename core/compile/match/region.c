/* core/compile/match/region.c: greedy growth of regions (operator fusion).
 *
 * The iteration space of a region is the dims of its seed's result. A neighbour joins if its results have
 * these dims, or if they broadcast to them and have no user outside of the region: such a value is computed
 * once per element and never stored. The region must stay convex. */
#include "core/compile/match/region.h"

#include <stdlib.h>

typedef struct region_growth {
  const tn_matcher *m;
  const tn_catalog_kernel *const *kernel;
  const tn_type *space;
  tn_region_nodes *region;
} region_growth;

static bool broadcasts_to_space(const tn_type *small, const tn_type *space) {
  int32_t lead = space->rank - small->rank;
  if (lead < 0) return false;
  for (int32_t i = 0; i < small->rank; i++)
    if (small->dims[i] != 1 && small->dims[i] != space->dims[lead + i]) return false;
  return true;
}

bool tn_region_has_user_outside(const tn_matcher *m, tn_val v) {
  const tn_uses *uses = m->uses;
  if (uses->outside[v] > 0 || m->borrowed[v]) return true;
  for (int32_t k = uses->start[v]; k < uses->start[v + 1]; k++)
    if (!m->recomputed[k] && !tn_contracted_set_has(m->contracted, uses->node[k])) return true;
  return false;
}

static bool has_users_inside_only(const region_growth *g, const tn_gnode *node) {
  for (tn_val v = node->first_out; v < node->first_out + node->n_out; v++)
    if (tn_region_has_user_outside(g->m, v)) return false;
  return true;
}

static bool fits_iteration_space(const region_growth *g, const tn_gnode *node) {
  bool same = true;
  for (int32_t i = 0; i < node->n_out; i++) {
    const tn_type *type = tn_graph_type(g->m->graph, node->first_out + i);
    if (tn_type_same_dims(type, g->space)) continue;
    same = false;
    if (!broadcasts_to_space(type, g->space)) return false;
  }
  return same || has_users_inside_only(g, node);
}

static bool list_has_value(const tn_val *list, int32_t n, tn_val v) {
  for (int32_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

/* Appends the operands of a node that neither the region nor the newcomer makes. -1: they are too many. */
static int32_t add_outer_operands(const region_growth *g, uint32_t index, uint32_t newcomer, tn_val *list,
                                  int32_t n) {
  const tn_graph *graph = g->m->graph;
  const tn_gnode *node = &graph->nodes.v[index];
  for (int32_t k = 0; k < node->n_in && n >= 0; k++) {
    tn_val v = node->in[k];
    if (v == 0) continue;
    uint32_t maker = graph->values.v[v].node;
    if (maker == newcomer || tn_contracted_set_has(g->m->contracted, maker) || list_has_value(list, n, v))
      continue;
    if (n == TN_REGION_OPERANDS) return -1;
    list[n++] = v;
  }
  return n;
}

static bool has_few_operands(const region_growth *g, uint32_t newcomer) {
  tn_val list[TN_REGION_OPERANDS];
  int32_t n = add_outer_operands(g, newcomer, newcomer, list, 0);
  for (int32_t i = 0; i < g->region->n && n >= 0; i++)
    n = add_outer_operands(g, g->region->node[i], newcomer, list, n);
  return n >= 0;
}

static void try_to_join(region_growth *g, uint32_t index) {
  const tn_matcher *m = g->m;
  tn_region_nodes *r = g->region;
  if (r->n == TN_REGION_NODES || m->taken[index] || tn_contracted_set_has(m->contracted, index)) return;
  if (g->kernel[index] == NULL || g->kernel[index] != g->kernel[r->node[0]]) return;
  if (!fits_iteration_space(g, &m->graph->nodes.v[index]) || !has_few_operands(g, index)) return;
  if (!tn_contracted_set_admits(m->contracted, index)) return;
  tn_contracted_set_add(m->contracted, index);
  r->node[r->n++] = index;
}

void tn_region_grow(const tn_matcher *matcher, const tn_catalog_kernel *const *kernel, uint32_t seed,
                    tn_region_nodes *region) {
  const tn_graph *graph = matcher->graph;
  const tn_uses *uses = matcher->uses;
  region_growth g = {matcher, kernel, tn_graph_type(graph, graph->nodes.v[seed].first_out), region};
  region->node[0] = seed;
  region->n = 1;
  tn_contracted_set_start(matcher->contracted);
  tn_contracted_set_add(matcher->contracted, seed);
  for (int32_t i = 0; i < region->n; i++) {
    const tn_gnode *node = &graph->nodes.v[region->node[i]];
    for (int32_t k = 0; k < node->n_in; k++)
      if (node->in[k] != 0) try_to_join(&g, graph->values.v[node->in[k]].node);
    for (int32_t k = uses->start[node->first_out]; k < uses->start[node->first_out + node->n_out]; k++)
      try_to_join(&g, uses->node[k]);
  }
}

/* ---- the border ---- */

static int compare_node_indices(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static int32_t find_sorted_node(const uint32_t *nodes, int32_t n, uint32_t node) {
  const uint32_t *found = bsearch(&node, nodes, (size_t)n, sizeof node, compare_node_indices);
  return found == NULL ? -1 : (int32_t)(found - nodes);
}

static bool has_user_outside(const tn_matcher *m, const uint32_t *nodes, int32_t n, tn_val v) {
  if (m->uses->outside[v] > 0 || m->borrowed[v]) return true;
  for (int32_t k = m->uses->start[v]; k < m->uses->start[v + 1]; k++)
    if (!m->recomputed[k] && find_sorted_node(nodes, n, m->uses->node[k]) < 0) return true;
  return false;
}

static int32_t find_listed_node(const uint32_t *nodes, int32_t n, uint32_t node) {
  int32_t i = 0;
  while (i < n && nodes[i] != node) i++;
  return i < n ? i : -1;
}

/* Operands in order of first use. `in` has room for all operands of all nodes. */
static int32_t list_border_operands(const tn_graph *g, const uint32_t *nodes, int32_t n, tn_val *in) {
  int32_t n_in = 0;
  for (int32_t i = 0; i < n; i++) {
    const tn_gnode *node = &g->nodes.v[nodes[i]];
    for (int32_t k = 0; k < node->n_in; k++) {
      tn_val v = node->in[k];
      if (v != 0 && find_listed_node(nodes, n, g->values.v[v].node) < 0 && !list_has_value(in, n_in, v))
        in[n_in++] = v;
    }
  }
  return n_in;
}

/* A region without users exists for its effect; its result is the last node's. */
static int32_t list_region_results(const tn_matcher *m, const uint32_t *nodes, int32_t n, tn_val *out) {
  int32_t n_out = 0;
  for (int32_t i = 0; i < n; i++) {
    const tn_gnode *node = &m->graph->nodes.v[nodes[i]];
    for (int32_t k = 0; k < node->n_out; k++)
      if (has_user_outside(m, nodes, n, node->first_out + k)) out[n_out++] = node->first_out + k;
  }
  if (n_out == 0) out[n_out++] = m->graph->nodes.v[nodes[n - 1]].first_out;
  return n_out;
}

static void number_border_operands(const tn_graph *g, const tn_candidate *c, int32_t *first,
                                   int32_t *numbers) {
  int32_t n = c->n_in;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    first[i] = n;
    n += g->nodes.v[c->nodes[i]].n_out;
  }
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const tn_gnode *node = &g->nodes.v[c->nodes[i]];
    for (int32_t k = 0; k < node->n_in; k++) {
      tn_val v = node->in[k];
      int32_t maker = v == 0 ? -1 : find_listed_node(c->nodes, c->n_nodes, g->values.v[v].node), number = -1;
      for (int32_t o = 0; v != 0 && maker < 0 && o < c->n_in; o++)
        if (c->in[o] == v) number = o;
      *numbers++ = maker >= 0 ? first[maker] + g->values.v[v].result : number;
    }
  }
}

static size_t count_border_operands(const tn_graph *g, const uint32_t *nodes, int32_t n) {
  size_t total = 0;
  for (int32_t i = 0; i < n; i++) total += (size_t)g->nodes.v[nodes[i]].n_in;
  return total;
}

tn_status tn_nodes_border(tn_arena *arena, const tn_graph *graph, const tn_catalog_kernel *kernel,
                          const uint32_t *nodes, int32_t n, const tn_val *out, int32_t n_out,
                          tn_candidate *candidate) {
  size_t operands = count_border_operands(graph, nodes, n);
  uint32_t *kept = tn_arena_copy(arena, nodes, (size_t)n * sizeof *nodes);
  tn_val *in = tn_arena_alloc(arena, operands * sizeof *in);
  tn_val *results = tn_arena_copy(arena, out, (size_t)n_out * sizeof *out);
  int32_t *numbers = tn_arena_alloc(arena, operands * sizeof *numbers);
  int32_t *first = tn_arena_alloc(arena, (size_t)n * sizeof *first);
  if (kept == NULL || in == NULL || results == NULL || numbers == NULL || first == NULL) return TN_ENOMEM;
  *candidate = (tn_candidate){.kernel = kernel,
                              .n_nodes = n,
                              .nodes = kept,
                              .numbers = numbers,
                              .in = in,
                              .n_out = n_out,
                              .out = results};
  candidate->n_in = list_border_operands(graph, kept, n, in);
  number_border_operands(graph, candidate, first, numbers);
  return TN_OK;
}

tn_status tn_region_border(tn_arena *arena, const tn_graph *graph, const tn_catalog_kernel *kernel,
                           const uint32_t *nodes, int32_t n, const tn_val *out, int32_t n_out,
                           tn_candidate *candidate) {
  uint32_t *sorted = tn_arena_copy(arena, nodes, (size_t)n * sizeof *nodes);
  if (sorted == NULL) return TN_ENOMEM;
  qsort(sorted, (size_t)n, sizeof *sorted, compare_node_indices);
  return tn_nodes_border(arena, graph, kernel, sorted, n, out, n_out, candidate);
}

tn_status tn_region_candidate(const tn_matcher *m, const tn_catalog_kernel *kernel, const uint32_t *nodes,
                              int32_t n, tn_candidate *candidate) {
  size_t results = 1;
  for (int32_t i = 0; i < n; i++) results += (size_t)m->graph->nodes.v[nodes[i]].n_out;
  uint32_t *sorted = tn_arena_copy(m->arena, nodes, (size_t)n * sizeof *nodes);
  tn_val *out = tn_arena_alloc(m->arena, results * sizeof *out);
  if (sorted == NULL || out == NULL) return TN_ENOMEM;
  qsort(sorted, (size_t)n, sizeof *sorted, compare_node_indices);
  return tn_region_border(m->arena, m->graph, kernel, sorted, n, out, list_region_results(m, sorted, n, out),
                          candidate);
}
