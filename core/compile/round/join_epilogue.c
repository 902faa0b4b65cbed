/* core/compile/round/join_epilogue.c: kernels that compute a node and the region that reads its results, the
 * node's epilogue (`s, q = moments(x); pointwise+`). extend_pattern.c does it for patterns of several nodes.
 */
#include "core/compile/round/cover_round.h"

bool tn_round_region_has_space(const tn_round *r, uint32_t node, const tn_round_region *region) {
  const tn_graph *g = r->graph;
  const tn_type *space = tn_graph_type(g, g->nodes.v[region->node[region->n - 1]].first_out);
  for (int32_t i = 0; i < region->n; i++) {
    const tn_gnode *reader = &g->nodes.v[region->node[i]];
    for (int32_t k = 0; k < reader->n_in; k++)
      if (reader->in[k] != 0 && g->values.v[reader->in[k]].node == node &&
          !tn_type_same_dims(tn_graph_type(g, reader->in[k]), space))
        return false;
  }
  return true;
}

/* A node, its kernel when it has no epilogue, and a region that reads its results. */
typedef struct epilogue_pair {
  uint32_t node;
  const tn_candidate *alone;
  tn_round_region region;
  uint32_t nodes[TN_REGION_NODES + 1]; /* of the region, and the node */
} epilogue_pair;

/* The kernel's pattern fits the node, and its family is not worse than those of the node's own kernel and of
 * the region's. */
static tn_status does_pattern_fit(tn_round *r, const tn_catalog_kernel *kernel, const epilogue_pair *p,
                                  bool *fits) {
  tn_matcher matcher = tn_round_matcher(r);
  const char *refusal = NULL;
  tn_candidate statement;
  *fits = false;
  if (kernel->pattern->n_nodes > 1 || kernel->rank > p->alone->kernel->rank ||
      kernel->rank > p->region.kernel->rank ||
      kernel->pattern->epilogue != p->region.kernel->pattern->op_class)
    return TN_OK;
  TN_TRY(tn_match_at(&matcher, kernel, p->node, &statement, &refusal));
  *fits = statement.kernel != NULL;
  return TN_OK;
}

static tn_status try_epilogue_kernel(tn_round *r, const tn_catalog_kernel *kernel, const epilogue_pair *p,
                                     bool *joined) {
  bool fits = false;
  tn_matcher matcher = tn_round_matcher(r);
  tn_candidate candidate;
  TN_TRY(does_pattern_fit(r, kernel, p, &fits));
  if (!fits) return TN_OK;
  TN_TRY(tn_region_candidate(&matcher, kernel, p->nodes, p->region.n + 1, &candidate));
  TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, &candidate));
  if (candidate.reason != NULL) return tn_round_reject(r, &p->node, 1, kernel, candidate.reason, true);
  *joined = true;
  return tn_round_choose(r, &candidate);
}

/* Joins node and region by the first kernel that accepts them; the best family's come first. */
static tn_status join_region(tn_round *r, epilogue_pair *p, bool *joined) {
  int32_t n = 0;
  const tn_catalog_kernel *kernels =
      tn_catalog_find_epilogues(r->catalog, r->graph->nodes.v[p->node].def, &n);
  for (int32_t i = 0; i < p->region.n; i++) p->nodes[i] = p->region.node[i];
  p->nodes[p->region.n] = p->node;
  tn_contracted_set_of(&r->contracted, p->nodes, p->region.n + 1);
  if (!tn_round_region_has_space(r, p->node, &p->region) ||
      !tn_contracted_set_is_convex(&r->contracted, p->nodes, p->region.n + 1))
    return TN_OK;
  for (int32_t i = 0; i < n && !*joined; i++) TN_TRY(try_epilogue_kernel(r, &kernels[i], p, joined));
  return TN_OK;
}

tn_status tn_round_join_epilogue(tn_round *r, uint32_t node, const tn_candidate *alone, bool *joined) {
  const tn_gnode *maker = &r->graph->nodes.v[node];
  int32_t n = 0, end = r->uses.start[maker->first_out + maker->n_out];
  *joined = false;
  tn_catalog_find_epilogues(r->catalog, maker->def, &n);
  for (int32_t k = r->uses.start[maker->first_out]; n > 0 && k < end && !*joined; k++) {
    epilogue_pair p = {.node = node, .alone = alone};
    if (tn_round_find_region(r, r->uses.node[k], &p.region)) TN_TRY(join_region(r, &p, joined));
  }
  return TN_OK;
}
