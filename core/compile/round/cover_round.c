/* core/compile/round/cover_round.c: one round of covering a graph with kernels.
 *
 * Greedy. Patterns of several nodes are matched first, larger ones before smaller ones; regions grow over the
 * nodes that are left; single nodes get single kernels, or one that also computes a region behind the node.
 * Of two candidates for the same nodes the one of the better family wins, then the cheaper one; a fused
 * candidate must cost less than its parts. */
#include "core/compile/round/cover_round.h"

#include "core/compile/round/placed_nodes.h"

tn_status tn_round_start(tn_round *r, tn_env *env, tn_catalog *catalog, tn_graph *graph) {
  size_t n = graph->nodes.n;
  *r = (tn_round){.env = env, .catalog = catalog, .graph = graph, .arena = tn_arena_new(env)};
  r->taken = tn_arena_alloc(&r->arena, n * sizeof *r->taken);
  r->swept = tn_arena_alloc(&r->arena, n * sizeof *r->swept);
  r->unmatched = tn_arena_alloc(&r->arena, n * sizeof *r->unmatched);
  r->region_kernel = tn_arena_alloc(&r->arena, n * sizeof *r->region_kernel);
  r->region_single = tn_arena_alloc(&r->arena, n * sizeof *r->region_single);
  r->rejections = tn_arena_alloc(&r->arena, n * sizeof *r->rejections);
  r->group = tn_arena_alloc(&r->arena, n * sizeof *r->group);
  r->uncovered = tn_arena_alloc(&r->arena, n * sizeof *r->uncovered);
  r->fallback = tn_arena_alloc(&r->arena, n * sizeof *r->fallback);
  if (r->taken == NULL || r->swept == NULL || r->unmatched == NULL || r->region_kernel == NULL ||
      r->region_single == NULL || r->rejections == NULL || r->group == NULL || r->uncovered == NULL ||
      r->fallback == NULL)
    return TN_ENOMEM;
  TN_TRY(tn_find_placed_nodes(&r->arena, graph, catalog->target.states, &r->placed));
  for (size_t i = 0; i < n; i++) {
    tn_node_kind kind = tn_node_kind_of(&graph->nodes.v[i]);
    r->taken[i] = (kind != TN_NODE_WORK && kind != TN_NODE_VIEW) || (r->placed != NULL && r->placed[i]);
    r->unmatched[i] = true;
    r->group[i] = -1;
  }
  TN_TRY(tn_uses_create(&r->arena, graph, &r->uses));
  r->recomputed = tn_arena_alloc(&r->arena, (size_t)r->uses.start[graph->values.n] * sizeof *r->recomputed);
  r->borrowed = tn_arena_alloc(&r->arena, graph->values.n * sizeof *r->borrowed);
  r->inner = tn_arena_alloc(&r->arena, graph->values.n * sizeof *r->inner);
  if (r->recomputed == NULL || r->borrowed == NULL || r->inner == NULL) return TN_ENOMEM;
  return tn_contracted_create(&r->arena, graph, &r->uses, &r->contracted);
}

void tn_round_finish(tn_round *r) {
  tn_vec_free(r->env, &r->chosen);
  tn_arena_free(&r->arena);
}

/* ---- patterns ---- */

static int32_t largest_pattern_size(const tn_catalog *catalog) {
  int32_t largest = 0;
  for (size_t i = 0; i < catalog->fixed.n; i++)
    if (catalog->fixed.v[i].pattern->n_nodes > largest) largest = catalog->fixed.v[i].pattern->n_nodes;
  return largest;
}

/* A pattern names the ops that it was written for, so patterns of several nodes go before regions. */
static tn_status cover_patterns(tn_round *r) {
  for (int32_t size = largest_pattern_size(r->catalog); size > 1; size--)
    for (uint32_t i = 0; i < r->graph->nodes.n; i++) {
      tn_candidate best = {0};
      bool fused = false;
      if (r->taken[i]) continue;
      TN_TRY(tn_round_best_match(r, i, size, &best));
      if (best.kernel != NULL) TN_TRY(tn_round_prefers_fused(r, &best, &fused));
      if (best.kernel != NULL && fused) TN_TRY(tn_round_choose(r, &best));
    }
  return TN_OK;
}

/* ---- regions ---- */

/* A kernel that accepts each node may decline all of them together, for instance for too many operands; then
 * the first half of them is tried. A single node is left to cover_single_nodes. */
static tn_status choose_region(tn_round *r, const tn_region_nodes *region) {
  tn_matcher matcher = tn_round_matcher(r);
  for (int32_t n = region->n; n > 1; n /= 2) {
    tn_candidate candidate;
    TN_TRY(tn_region_candidate(&matcher, r->region_kernel[region->node[0]], region->node, n, &candidate));
    TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, &candidate));
    if (candidate.reason == NULL) return tn_round_choose(r, &candidate);
  }
  return TN_OK;
}

/* Regions grow from the end of the graph: a value that only backward reads then joins its users, even if it
 * could be computed in forward, and is not kept alive between the two. */
static tn_status cover_regions(tn_round *r) {
  tn_matcher matcher = tn_round_matcher(r);
  tn_region_nodes region;
  for (uint32_t i = 0; i < r->graph->nodes.n; i++)
    if (!r->taken[i] && tn_node_kind_of(&r->graph->nodes.v[i]) == TN_NODE_WORK)
      TN_TRY(tn_round_region_kernel(r, i));
  for (uint32_t i = (uint32_t)r->graph->nodes.n; i-- > 0;) {
    if (r->taken[i] || r->region_kernel[i] == NULL) continue;
    tn_region_grow(&matcher, r->region_kernel, i, &region);
    TN_TRY(choose_region(r, &region));
  }
  return TN_OK;
}

/* ---- single nodes ---- */

static tn_status cover_single_nodes(tn_round *r) {
  for (uint32_t i = 0; i < r->graph->nodes.n; i++) {
    tn_candidate best = r->region_single[i];
    if (r->taken[i] || tn_node_kind_of(&r->graph->nodes.v[i]) != TN_NODE_WORK) continue;
    TN_TRY(tn_round_best_match(r, i, 1, &best));
    bool joined = false;
    if (best.kernel != NULL) TN_TRY(tn_round_join_epilogue(r, i, &best, &joined));
    if (joined) continue;
    if (best.kernel != NULL) {
      TN_TRY(tn_round_choose(r, &best));
    } else {
      r->uncovered[i] = true;
      r->n_uncovered++;
    }
  }
  return TN_OK;
}

tn_status tn_round_cover(tn_round *r, tn_catalog *catalog) {
  r->catalog = catalog;
  TN_TRY(cover_patterns(r));
  TN_TRY(tn_round_sweep(r));
  TN_TRY(cover_regions(r));
  TN_TRY(tn_round_merge_siblings(r));
  TN_TRY(tn_round_extend_patterns(r));
  return cover_single_nodes(r);
}

tn_status tn_round_has_kernel(tn_round *r, tn_catalog *catalog, uint32_t node, bool *found) {
  tn_catalog *before = r->catalog;
  tn_candidate best = {0};
  r->catalog = catalog;
  r->region_kernel[node] = NULL;
  tn_status status = tn_round_region_kernel(r, node);
  if (status == TN_OK) status = tn_round_best_match(r, node, 1, &best);
  *found = r->region_kernel[node] != NULL || best.kernel != NULL;
  r->catalog = before;
  return status;
}
