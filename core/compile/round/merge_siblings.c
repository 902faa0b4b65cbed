/* core/compile/round/merge_siblings.c: merges regions that read results of the same node (horizontal
 * fusion).
 *
 * Regions grow along values that one node makes for another, so two regions that only read results of a third
 * node stay two launches. They become one if the iteration space is equal, and is small or all their results
 * are committed. A launch over small tensors costs more than its arithmetic. With large tensors the merged
 * region would keep more bytes alive, but results that are only committed, such as a parameter and its
 * momentum, have their place already. */
#include "core/compile/round/cover_round.h"

#include <string.h>

/* The most bytes that a merged region moves. */
enum { SIBLING_BYTES = 64 << 10 };

static const tn_type *sibling_space(const tn_graph *g, const tn_round_region *region) {
  return tn_graph_type(g, g->nodes.v[region->node[region->n - 1]].first_out);
}

static bool list_has_operand(const tn_val *list, int32_t n, tn_val v) {
  for (int32_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

/* Counts the bytes of the operands of two regions, which are the set of the contracted graph. False: they are
 * too many or have more than `most` bytes. */
static bool count_operands(const tn_matcher *m, const tn_round_region *a, const tn_round_region *b,
                           int64_t most, int64_t *bytes) {
  int32_t n = 0;
  for (int32_t i = 0; i < a->n_in + b->n_in; i++) {
    tn_val v = i < a->n_in ? a->in[i] : b->in[i - a->n_in];
    if (tn_contracted_set_has(m->contracted, m->graph->values.v[v].node)) continue;
    if (i >= a->n_in && list_has_operand(a->in, a->n_in, v)) continue;
    *bytes += tn_type_bytes(tn_graph_type(m->graph, v));
    n++;
  }
  return n <= TN_REGION_OPERANDS && *bytes <= most;
}

/* Adds the bytes of a result to those counted. False: they are too many, or it has not the region's space. */
static bool count_result(const tn_graph *g, tn_val v, const tn_type *space, int64_t most, int64_t *bytes) {
  *bytes += tn_type_bytes(tn_graph_type(g, v));
  return tn_type_same_dims(tn_graph_type(g, v), space) && *bytes <= most;
}

static bool is_committed(const tn_graph *g, tn_val v) {
  for (size_t i = 0; i < g->commits.n; i++)
    if (g->commits.v[i].value == v) return true;
  return false;
}

/* Whether the results of a region that others read are committed and read by no node. */
static bool is_only_committed(const tn_round *r, const tn_round_region *region) {
  bool used = false;
  for (int32_t i = 0; i < region->n; i++) {
    const tn_gnode *node = &r->graph->nodes.v[region->node[i]];
    for (tn_val v = node->first_out; v < node->first_out + (tn_val)node->n_out; v++) {
      for (int32_t k = r->uses.start[v]; k < r->uses.start[v + 1]; k++)
        if (r->contracted.vertex[r->uses.node[k]] != r->contracted.vertex[region->node[0]]) return false;
      if (r->uses.outside[v] == 0) continue;
      if (!is_committed(r->graph, v)) return false;
      used = true;
    }
  }
  return used;
}

/* Whether two regions, which are the set of the contracted graph, have the size and the results of one. A
 * region without users has its last node's result, as in tn_region_candidate. */
static bool is_sibling_legal(const tn_matcher *m, const tn_round_region *a, const tn_round_region *b,
                             const tn_type *space, int64_t most) {
  uint32_t last_a = a->node[a->n - 1], last_b = b->node[b->n - 1], last = last_a > last_b ? last_a : last_b;
  int64_t bytes = 0;
  bool used = false;
  if (!count_operands(m, a, b, most, &bytes)) return false;
  for (int32_t i = 0; i < a->n + b->n; i++) {
    const tn_gnode *node = &m->graph->nodes.v[i < a->n ? a->node[i] : b->node[i - a->n]];
    for (tn_val v = node->first_out; v < node->first_out + (tn_val)node->n_out; v++) {
      if (!tn_region_has_user_outside(m, v)) continue;
      if (!count_result(m->graph, v, space, most, &bytes)) return false;
      used = true;
    }
  }
  return used || count_result(m->graph, m->graph->nodes.v[last].first_out, space, most, &bytes);
}

/* The nodes of a group are one vertex, and a region without a group has one node. */
static void mark_pair(tn_round *r, const tn_round_region *a, const tn_round_region *b) {
  tn_contracted_set_start(&r->contracted);
  tn_contracted_set_add(&r->contracted, a->node[0]);
  tn_contracted_set_add(&r->contracted, b->node[0]);
}

/* Merges two regions if that is legal and their kernel accepts them together. Most pairs are refused, so the
 * cheap checks come first. */
static tn_status merge_pair(tn_round *r, const tn_round_region *a, const tn_round_region *b,
                            const tn_type *space, bool *merged) {
  tn_matcher matcher = tn_round_matcher(r);
  tn_candidate candidate;
  uint32_t nodes[2 * TN_REGION_NODES];
  int32_t n = a->n + b->n;
  if (a->kernel != b->kernel || n > TN_REGION_NODES) return TN_OK;
  mark_pair(r, a, b);
  int64_t most = is_only_committed(r, a) && is_only_committed(r, b) ? INT64_MAX : SIBLING_BYTES;
  if (!is_sibling_legal(&matcher, a, b, space, most)) return TN_OK;
  memcpy(nodes, a->node, (size_t)a->n * sizeof *nodes);
  memcpy(nodes + a->n, b->node, (size_t)b->n * sizeof *nodes);
  if (!tn_contracted_set_is_convex(&r->contracted, nodes, n)) return TN_OK;
  TN_TRY(tn_region_candidate(&matcher, a->kernel, nodes, n, &candidate));
  TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, &candidate));
  if (candidate.reason != NULL) return TN_OK;
  *merged = true;
  return tn_round_choose(r, &candidate);
}

/* Merges a region with one that also reads a result of `maker`. Several nodes of one region read it, mostly
 * one after the other: the region is tried once. */
static tn_status merge_with_reader(tn_round *r, const tn_round_region *region, const tn_gnode *maker,
                                   const tn_type *space, bool *merged) {
  const int32_t *vertex = r->contracted.vertex;
  int32_t end = r->uses.start[maker->first_out + maker->n_out];
  int32_t own = vertex[region->node[0]], tried = own;
  for (int32_t k = r->uses.start[maker->first_out]; k < end && !*merged; k++) {
    tn_round_region other;
    uint32_t user = r->uses.node[k];
    if (vertex[user] == own || vertex[user] == tried) continue;
    tried = vertex[user];
    if (tn_round_find_region(r, user, &other)) TN_TRY(merge_pair(r, region, &other, space, merged));
  }
  return TN_OK;
}

/* Nodes with a result that a region reads, or that are in it. */
typedef struct sibling_makers {
  uint32_t node[TN_REGION_OPERANDS + TN_REGION_NODES];
  int32_t n;
} sibling_makers;

/* Adds a node; false if it is there. */
static bool add_sibling_maker(sibling_makers *makers, uint32_t node) {
  for (int32_t i = 0; i < makers->n; i++)
    if (makers->node[i] == node) return false;
  if (makers->n < TN_REGION_OPERANDS + TN_REGION_NODES) makers->node[makers->n++] = node;
  return true;
}

/* Merges a region with one other. Operands that repeat in the iteration space, such as a learning rate, make
 * no siblings: everything reads them. */
static tn_status merge_one(tn_round *r, const tn_round_region *region, bool *merged) {
  const tn_graph *g = r->graph;
  const tn_type *space = sibling_space(g, region);
  sibling_makers makers = {.n = 0};
  if (tn_type_bytes(space) > SIBLING_BYTES && !is_only_committed(r, region)) return TN_OK;
  for (int32_t i = 0; i < region->n; i++) {
    const tn_gnode *node = &g->nodes.v[region->node[i]];
    for (int32_t k = 0; k < node->n_in && !*merged; k++) {
      if (node->in[k] == 0 || !tn_type_same_dims(tn_graph_type(g, node->in[k]), space)) continue;
      if (add_sibling_maker(&makers, g->values.v[node->in[k]].node))
        TN_TRY(merge_with_reader(r, region, tn_graph_maker(g, node->in[k]), space, merged));
    }
  }
  return TN_OK;
}

/* A region is merged when its last node is visited; of a merged one, that comes later. */
tn_status tn_round_merge_siblings(tn_round *r) {
  for (uint32_t i = 0; i < r->graph->nodes.n; i++) {
    tn_round_region region;
    bool merged = true;
    while (merged && tn_round_find_region(r, i, &region) && region.node[region.n - 1] == i) {
      merged = false;
      TN_TRY(merge_one(r, &region, &merged));
    }
  }
  return TN_OK;
}
