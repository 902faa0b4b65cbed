/* core/compile/select/merge_siblings.c: merges regions that read results of the same node (horizontal
 * fusion).
 *
 * Regions grow along values that one node makes for another, so two regions that only read results of a third
 * node stay two launches. They become one if the iteration space is equal and small. A launch over small
 * tensors costs more than its arithmetic, and with large tensors the merged region would keep more bytes
 * alive. */
#include "core/compile/select/cover_round.h"

/* The most bytes that a merged region moves. */
enum { SIBLING_BYTES = 64 << 10 };

static int64_t sibling_bytes(const tn_graph *g, const tn_val *values, int32_t n) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < n; i++)
    if (values[i] != 0) bytes += tn_type_bytes(tn_graph_type(g, values[i]));
  return bytes;
}

static const tn_type *sibling_space(const tn_graph *g, const tn_round_region *region) {
  return tn_graph_type(g, g->nodes.v[region->node[region->n - 1]].first_out);
}

/* Whether the merged region has the size and the results of one. */
static bool is_sibling_legal(const tn_graph *g, const tn_candidate *c, const tn_type *space) {
  if (c->n_in > TN_REGION_OPERANDS) return false;
  for (int32_t i = 0; i < c->n_out; i++)
    if (!tn_type_same_dims(tn_graph_type(g, c->out[i]), space)) return false;
  return sibling_bytes(g, c->in, c->n_in) + sibling_bytes(g, c->out, c->n_out) <= SIBLING_BYTES;
}

/* Merges two regions if that is legal and their kernel accepts them together. */
static tn_status merge_pair(tn_round *r, const tn_round_region *a, const tn_round_region *b,
                            const tn_type *space, bool *merged) {
  tn_matcher matcher = tn_round_matcher(r);
  tn_candidate candidate;
  uint32_t nodes[2 * TN_REGION_NODES];
  int32_t n = a->n + b->n;
  if (a->kernel != b->kernel || n > TN_REGION_NODES) return TN_OK;
  for (int32_t i = 0; i < n; i++) nodes[i] = i < a->n ? a->node[i] : b->node[i - a->n];
  if (!tn_round_is_convex(r, nodes, n)) return TN_OK;
  TN_TRY(tn_region_candidate(&matcher, a->kernel, nodes, n, &candidate));
  if (!is_sibling_legal(r->graph, &candidate, space)) return TN_OK;
  TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, &candidate));
  if (candidate.reason != NULL) return TN_OK;
  *merged = true;
  return tn_round_choose(r, &candidate);
}

static bool region_has_node(const tn_round_region *region, uint32_t node) {
  for (int32_t i = 0; i < region->n; i++)
    if (region->node[i] == node) return true;
  return false;
}

/* Merges a region with one that also reads a result of `maker`. */
static tn_status merge_with_reader(tn_round *r, const tn_round_region *region, const tn_gnode *maker,
                                   const tn_type *space, bool *merged) {
  int32_t end = r->uses.start[maker->first_out + maker->n_out];
  for (int32_t k = r->uses.start[maker->first_out]; k < end && !*merged; k++) {
    tn_round_region other;
    uint32_t user = r->uses.node[k];
    if (region_has_node(region, user) || !tn_round_find_region(r, user, &other)) continue;
    TN_TRY(merge_pair(r, region, &other, space, merged));
  }
  return TN_OK;
}

/* Merges a region with one other. Operands that repeat in the iteration space, such as a learning rate, make
 * no siblings: everything reads them. */
static tn_status merge_one(tn_round *r, const tn_round_region *region, bool *merged) {
  const tn_graph *g = r->graph;
  const tn_type *space = sibling_space(g, region);
  if (tn_type_bytes(space) > SIBLING_BYTES) return TN_OK;
  for (int32_t i = 0; i < region->n; i++) {
    const tn_gnode *node = &g->nodes.v[region->node[i]];
    for (int32_t k = 0; k < node->n_in && !*merged; k++)
      if (node->in[k] != 0 && tn_type_same_dims(tn_graph_type(g, node->in[k]), space))
        TN_TRY(merge_with_reader(r, region, tn_graph_maker(g, node->in[k]), space, merged));
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
