/* core/compile/select/cover_graph.c: rounds of covering, until every composite op is covered or decomposed.
 *
 * Composites that no pattern names are decomposed first. After each round the composites that no kernel took
 * are decomposed, and the next round starts anew, so that their parts can join their neighbours. A kernel for
 * a whole op therefore wins over kernels for its parts. */
#include "core/compile/select/cover_graph.h"

#include "core/compile/select/lower.h"
#include "core/graph/rewrite/widen.h"

/* Deeper nesting than this means an op that decomposes into itself. */
enum { ROUNDS = 32 };

/* Marks composites that no pattern names, which no kernel can accept, and ops that are computed in a wider
 * dtype. */
static tn_status mark_without_pattern(const tn_catalog *catalog, const tn_graph *graph, bool **marked,
                                      bool *any) {
  bool *marks = tn_alloc(catalog->env, graph->nodes.n * sizeof *marks);
  if (marks == NULL) return TN_ENOMEM;
  *any = false;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    marks[i] = tn_node_kind_of(node) == TN_NODE_WORK &&
               ((tn_op_is_composite(node->op) && !tn_catalog_mentions(catalog, node->def, node->op)) ||
                tn_node_widens(graph, node->def, node->in, node->n_in));
    *any |= marks[i];
  }
  *marked = marks;
  return TN_OK;
}

/* Replaces *graph by a graph in which the marked nodes are decomposed. */
static tn_status decompose_marked(tn_graph **graph, const bool *marked) {
  tn_graph *next = NULL;
  TN_TRY(tn_lower_decompose(*graph, marked, &next));
  tn_graph_destroy(*graph);
  *graph = next;
  return TN_OK;
}

static tn_status fail_endless(const tn_graph *graph) {
  return tn_failf(graph->env, TN_EINVAL,
                  "the decompositions do not end after %d rounds: an op's decomposition leads back to itself",
                  ROUNDS);
}

static tn_status decompose_without_pattern(const tn_catalog *catalog, tn_graph **graph) {
  for (int round = 0; round < ROUNDS; round++) {
    bool *marked = NULL, any = false;
    TN_TRY(mark_without_pattern(catalog, *graph, &marked, &any));
    tn_status status = any ? decompose_marked(graph, marked) : TN_OK;
    tn_release(catalog->env, marked);
    if (status != TN_OK || !any) return status;
  }
  return fail_endless(*graph);
}

/* The op and its rejections are gone after the decomposition, so they are logged. */
static void log_rejections(const tn_round *r, uint32_t i) {
  const tn_gnode *node = &r->graph->nodes.v[i];
  for (const tn_round_rejection *one = r->rejections[i]; one != NULL; one = one->next)
    tn_logf(r->env, TN_LOG_DEBUG, "%s (%s) is decomposed: kernel %s: %s", node->op->item.name, node->layer,
            one->rejection.kernel, one->rejection.reason);
}

/* Marks the placed nodes for which the host has no kernel. */
static tn_status mark_placed(tn_round *r, tn_catalog *host, bool *lacks) {
  for (uint32_t i = 0; r->placed != NULL && host != NULL && i < r->graph->nodes.n; i++) {
    bool found = true;
    if (r->placed[i] && tn_op_is_composite(r->graph->nodes.v[i].op))
      TN_TRY(tn_round_has_kernel(r, host, i, &found));
    lacks[i] = !found;
  }
  return TN_OK;
}

/* Marks uncovered nodes, and such placed nodes, that can be decomposed. */
static tn_status mark_uncovered(tn_round *r, tn_catalog *host, bool **marked, bool *any) {
  bool *marks = tn_arena_alloc(&r->arena, r->graph->nodes.n * sizeof *marks);
  bool *lacks = tn_arena_alloc(&r->arena, r->graph->nodes.n * sizeof *lacks);
  if (marks == NULL || lacks == NULL) return TN_ENOMEM;
  TN_TRY(mark_placed(r, host, lacks));
  *any = false;
  for (uint32_t i = 0; i < r->graph->nodes.n; i++) {
    marks[i] = (r->uncovered[i] || lacks[i]) && tn_op_is_composite(r->graph->nodes.v[i].op);
    *any |= marks[i];
    if (marks[i]) log_rejections(r, i);
  }
  *marked = marks;
  return TN_OK;
}

tn_status tn_run_rounds(tn_round *r, tn_env *env, tn_catalog *catalog, tn_catalog *host, tn_graph **graph) {
  for (int round = 0; round < ROUNDS; round++) {
    bool *marked = NULL, any = false;
    tn_round_finish(r);
    TN_TRY(decompose_without_pattern(catalog, graph));
    TN_TRY(tn_round_start(r, env, catalog, *graph));
    TN_TRY(tn_round_cover(r, catalog));
    if (r->n_uncovered == 0 && r->placed == NULL) return TN_OK;
    TN_TRY(mark_uncovered(r, host, &marked, &any));
    if (!any) return TN_OK;
    TN_TRY(decompose_marked(graph, marked));
  }
  return fail_endless(*graph);
}
