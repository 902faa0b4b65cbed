/* core/compile/round/round_candidates.c: the candidates of a round for a node, and the best of them. */
#include "core/compile/round/cover_round.h"
#include "core/compile/match/region.h"

tn_matcher tn_round_matcher(tn_round *r) {
  return (tn_matcher){r->graph,      &r->uses,    &r->contracted, r->taken,
                      r->recomputed, r->borrowed, r->inner,       &r->arena};
}

/* The candidate of an earlier compilation goes first, then one with which the device has not failed, then the
 * better family's, then the cheaper one. */
static bool is_better_candidate(const tn_candidate *a, const tn_candidate *b) {
  if (a->replayed != b->replayed) return a->replayed;
  if (a->choice.faulted != b->choice.faulted) return b->choice.faulted;
  if (a->kernel->rank != b->kernel->rank) return a->kernel->rank < b->kernel->rank;
  return tn_candidate_cost_beside(a, b) < tn_candidate_cost_beside(b, a);
}

static tn_status query_candidate(tn_round *r, tn_candidate *candidate) {
  TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, candidate));
  if (candidate->reason == NULL) return TN_OK;
  return tn_round_reject(r, candidate->nodes, candidate->n_nodes, candidate->kernel, candidate->reason, true);
}

/* *best becomes the better of two; best->kernel is NULL at first. */
static tn_status keep_better_candidate(tn_round *r, const tn_candidate *candidate, tn_candidate *best) {
  if (best->kernel == NULL) {
    *best = *candidate;
    return TN_OK;
  }
  bool better = is_better_candidate(candidate, best);
  TN_TRY(tn_round_reject_worse(r, better ? best : candidate, better ? candidate : best));
  if (better) *best = *candidate;
  return TN_OK;
}

tn_status tn_round_best_match(tn_round *r, uint32_t node, int32_t size, tn_candidate *best) {
  tn_matcher matcher = tn_round_matcher(r);
  int32_t n = 0;
  const tn_catalog_kernel *kernels = tn_catalog_find(r->catalog, r->graph->nodes.v[node].def, &n);
  for (int32_t i = 0; i < n; i++) {
    tn_candidate candidate;
    const char *refusal = NULL;
    if (kernels[i].pattern->n_nodes != size) continue;
    TN_TRY(tn_match_at(&matcher, &kernels[i], node, &candidate, &refusal));
    if (refusal != NULL) TN_TRY(tn_round_reject(r, &node, 1, &kernels[i], refusal, true));
    if (candidate.kernel == NULL) continue;
    TN_TRY(query_candidate(r, &candidate));
    if (candidate.reason == NULL) TN_TRY(keep_better_candidate(r, &candidate, best));
  }
  return TN_OK;
}

tn_status tn_round_region_kernel(tn_round *r, uint32_t node) {
  const tn_gnode *n = &r->graph->nodes.v[node];
  if (r->region_kernel[node] != NULL) return TN_OK;
  tn_matcher matcher = tn_round_matcher(r);
  for (size_t i = 0; i < r->catalog->regions.n; i++) {
    const tn_catalog_kernel *kernel = &r->catalog->regions.v[i];
    tn_candidate candidate;
    if (kernel->pattern->op_class != (int32_t)n->op->op_class) continue;
    TN_TRY(tn_region_candidate(&matcher, kernel, &node, 1, &candidate));
    TN_TRY(query_candidate(r, &candidate));
    if (candidate.reason != NULL) continue;
    r->region_kernel[node] = kernel;
    r->region_single[node] = candidate;
    return TN_OK;
  }
  return TN_OK;
}
