/* core/compile/select/assign.c: pass `assign`.
 *
 * An op runs on the device if one of its kernels accepts the op, by itself or in a larger match, or if
 * kernels of the device accept all parts of its decomposition. Therefore the rounds of covering decide. The
 * ops that they leave uncovered have no decomposition; such an op falls back if the fallback has a kernel for
 * it. Nodes whose states are in memory of the host run on the fallback as well: they are placed. */
#include "core/compile/select/assign.h"

#include "core/compile/round/placed_nodes.h"
#include "core/compile/select/lower.h"
#include "core/compile/select/cover_graph.h"

static tn_status find_uncovered_node(const tn_assignment *a, uint32_t *node) {
  for (*node = 0; *node < a->graph->nodes.n; ++*node)
    if (a->round.uncovered[*node]) return TN_OK;
  return tn_failf(a->env, TN_EINTERNAL, "the uncovered op is not in the graph");
}

/* The error says whether the fallback could run the op (`found`), and otherwise why it could not. */
static tn_status refuse_fallback(tn_assignment *a, uint32_t node, const char *reason, bool found) {
  const char *family = a->fallback->target.families[0], *why_not = NULL;
  TN_TRY(tn_round_reasons(&a->round, node, &why_not));
  const char *more =
      found ? tn_arena_printf(&a->round.arena, "; %s can do it: [backend] fallback = warn lets it run there",
                              family)
            : tn_arena_printf(&a->round.arena, "; nor can the fallback %s: %s", family, why_not);
  return more == NULL ? TN_ENOMEM : tn_round_fail_unsupported(&a->round, node, reason, more);
}

/* The device's reasons are removed before the reasons of the fallback's kernels are recorded. */
static tn_status assign_to_fallback(tn_assignment *a, uint32_t node) {
  const char *reason = NULL;
  bool found = false;
  TN_TRY(tn_round_reasons(&a->round, node, &reason));
  a->round.rejections[node] = NULL;
  TN_TRY(tn_round_has_kernel(&a->round, a->fallback, node, &found));
  if (!found || a->catalog->target.fallback_refused) return refuse_fallback(a, node, reason, found);
  a->round.fallback[node] = reason;
  a->round.rejections[node] = NULL;
  return TN_OK;
}

static tn_status assign_uncovered(tn_assignment *a) {
  uint32_t uncovered = 0;
  if (a->round.n_uncovered == 0) return TN_OK;
  TN_TRY(find_uncovered_node(a, &uncovered));
  if (a->fallback == NULL) {
    const char *reason = NULL;
    TN_TRY(tn_round_reasons(&a->round, uncovered, &reason));
    return tn_round_fail_unsupported(&a->round, uncovered, reason, "");
  }
  for (uint32_t i = uncovered; i < a->graph->nodes.n; i++)
    if (a->round.uncovered[i]) TN_TRY(assign_to_fallback(a, i));
  return TN_OK;
}

/* States are placed on the host of a device with a fallback only. */
static tn_status assign_placed(tn_assignment *a) {
  const tn_round *r = &a->round;
  for (uint32_t i = 0; r->placed != NULL && i < a->graph->nodes.n; i++)
    if (r->placed[i]) r->fallback[i] = tn_placed_reason;
  if (r->placed == NULL || a->fallback != NULL) return TN_OK;
  return tn_failf(a->env, TN_EINTERNAL, "states are in memory of the host, and the device has no fallback");
}

static tn_status create_assignment_catalogs(tn_assignment *a, tn_registry *registry, const tn_target *target,
                                            struct tn_op_table *ops) {
  TN_TRY(tn_catalog_create(a->env, registry, target, ops, &a->catalog));
  if (target->fallback == NULL) return TN_OK;
  TN_TRY(tn_catalog_create(a->env, registry, target->fallback, ops, &a->fallback));
  a->fallback->target.program = target->program;
  return TN_OK;
}

tn_status tn_pass_assign(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                         tn_assignment *a) {
  *a = (tn_assignment){.env = env, .round = {.env = env, .arena = tn_arena_new(env)}};
  tn_status status = create_assignment_catalogs(a, registry, target, graph->ops);
  if (status == TN_OK) status = tn_graph_merge(graph, &a->graph);
  if (status == TN_OK) status = tn_lower_predicates(a->graph);
  if (status == TN_OK) status = tn_run_rounds(&a->round, env, a->catalog, a->fallback, &a->graph);
  if (status == TN_OK) status = assign_uncovered(a);
  if (status == TN_OK) status = assign_placed(a);
  if (status != TN_OK) tn_assignment_free(a);
  return status;
}

void tn_assignment_free(tn_assignment *a) {
  tn_round_finish(&a->round);
  tn_graph_destroy(a->graph);
  tn_catalog_destroy(a->catalog);
  tn_catalog_destroy(a->fallback);
  *a = (tn_assignment){.env = a->env, .round = {.env = a->env, .arena = tn_arena_new(a->env)}};
}
