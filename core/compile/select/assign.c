/* core/compile/select/assign.c: pass `assign`.
 *
 * An op belongs to the device if one of its kernels takes it, alone or in a larger match, or if what it
 * decomposes into does; so the rounds of select decide. What is left over are ops without a
 * decomposition, which the fallback does if one of its kernels takes them. */
#include "core/compile/select/assign.h"

#include "core/compile/select/lower.h"

static tn_status find_lacking(const tn_assignment *a, uint32_t *node) {
  for (*node = 0; *node < a->graph->nodes.n; ++*node)
    if (a->round.lacking[*node]) return TN_OK;
  return tn_failf(a->env, TN_EINTERNAL, "select lacks an op that is not in the graph");
}

/* What the one kernel of the fallback that would do it, or all that would not, mean for the user. */
static tn_status refuse(tn_assignment *a, uint32_t node, const char *reason, bool can) {
  const char *family = a->fallback->target.families[0], *why_not = NULL;
  TN_TRY(tn_selection_reasons(&a->round, node, &why_not));
  const char *more =
      can ? tn_arena_printf(&a->round.arena, "; %s can do it: [backend] fallback = warn lets it run there",
                            family)
          : tn_arena_printf(&a->round.arena, "; nor can the fallback %s: %s", family, why_not);
  return more == NULL ? TN_ENOMEM : tn_selection_unsupported(&a->round, node, reason, more);
}

/* The device's reasons are taken away before the fallback's kernels give theirs. */
static tn_status give_away(tn_assignment *a, uint32_t node) {
  const char *reason = NULL;
  bool can = false;
  TN_TRY(tn_selection_reasons(&a->round, node, &reason));
  a->round.notes[node] = NULL;
  TN_TRY(tn_selection_can(&a->round, a->fallback, node, &can));
  if (!can || a->catalog->target.fallback_refused) return refuse(a, node, reason, can);
  a->round.fallback[node] = reason;
  a->round.notes[node] = NULL;
  return TN_OK;
}

static tn_status give_all_away(tn_assignment *a) {
  uint32_t lacking = 0;
  if (a->round.n_lacking == 0) return TN_OK;
  TN_TRY(find_lacking(a, &lacking));
  if (a->fallback == NULL) {
    const char *reason = NULL;
    TN_TRY(tn_selection_reasons(&a->round, lacking, &reason));
    return tn_selection_unsupported(&a->round, lacking, reason, "");
  }
  for (uint32_t i = lacking; i < a->graph->nodes.n; i++)
    if (a->round.lacking[i]) TN_TRY(give_away(a, i));
  return TN_OK;
}

static tn_status make_catalogs(tn_assignment *a, tn_registry *registry, const tn_target *target,
                               struct tn_op_table *ops) {
  TN_TRY(tn_catalog_create(a->env, registry, target, ops, &a->catalog));
  if (target->fallback == NULL) return TN_OK;
  return tn_catalog_create(a->env, registry, target->fallback, ops, &a->fallback);
}

tn_status tn_pass_assign(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                         tn_assignment *a) {
  *a = (tn_assignment){.env = env, .round = {.env = env, .arena = tn_arena_new(env)}};
  tn_status status = make_catalogs(a, registry, target, graph->ops);
  if (status == TN_OK) status = tn_graph_merge(graph, &a->graph);
  if (status == TN_OK) status = tn_lower_predicates(a->graph);
  if (status == TN_OK) status = tn_select_rounds(&a->round, env, a->catalog, &a->graph);
  if (status == TN_OK) status = give_all_away(a);
  if (status != TN_OK) tn_assignment_free(a);
  return status;
}

void tn_assignment_free(tn_assignment *a) {
  tn_selection_finish(&a->round);
  tn_graph_destroy(a->graph);
  tn_catalog_destroy(a->catalog);
  tn_catalog_destroy(a->fallback);
  *a = (tn_assignment){.env = a->env, .round = {.env = a->env, .arena = tn_arena_new(a->env)}};
}
