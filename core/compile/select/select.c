/* core/compile/select/select.c: pass `select`: makes a cover of an assignment.
 *
 * The device's nodes are covered by the last round of pass `assign`. This pass covers the nodes that fall
 * back with the fallback's kernels, then those that are placed on the host, and makes the groups of the
 * chosen candidates. */
#include "core/compile/select/select.h"

/* A rejection is worth a report if the kernel could have been chosen: one of a worse family that declined
 * would have lost anyway. */
static bool is_relevant_rejection(const tn_round_rejection *r, const tn_candidate *c) {
  return r->rejection.kernel != c->kernel->entry->item->name && !(r->declined && r->rank > c->kernel->rank);
}

static bool is_rejection_listed(const tn_group *group, const char *kernel) {
  for (int32_t k = 0; k < group->n_rejected; k++)
    if (group->rejected[k].kernel == kernel) return true;
  return false;
}

static tn_status list_rejections(tn_round *r, const tn_candidate *c, tn_group *group) {
  size_t n = 0;
  for (int32_t i = 0; i < c->n_nodes; i++)
    for (const tn_round_rejection *one = r->rejections[c->nodes[i]]; one != NULL; one = one->next) n++;
  if (n == 0) return TN_OK;
  group->rejected = tn_arena_alloc(&r->arena, n * sizeof *group->rejected);
  if (group->rejected == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n_nodes; i++)
    for (const tn_round_rejection *one = r->rejections[c->nodes[i]]; one != NULL; one = one->next)
      if (is_relevant_rejection(one, c) && !is_rejection_listed(group, one->rejection.kernel))
        group->rejected[group->n_rejected++] = one->rejection;
  return TN_OK;
}

/* A recomputed node that was swept belongs to the groups that recompute it. */
static tn_status keep_shared_nodes(tn_round *r, const tn_candidate *c, tn_group *group) {
  if (c->shared == NULL) return TN_OK;
  bool *shared = tn_arena_copy(&r->arena, c->shared, (size_t)c->n_nodes * sizeof *shared);
  if (shared == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n_nodes; i++) shared[i] = shared[i] && !r->swept[c->nodes[i]];
  group->shared = shared;
  return TN_OK;
}

static tn_status add_chosen_group(tn_round *r, const tn_candidate *c, tn_cover *cover) {
  tn_group group = tn_candidate_group(c);
  group.fallback = r->fallback[tn_candidate_last_node(c)];
  for (int32_t i = 0; i < c->n_nodes && r->placed != NULL; i++)
    group.placed = group.placed || r->placed[c->nodes[i]];
  TN_TRY(list_rejections(r, c, &group));
  TN_TRY(keep_shared_nodes(r, c, &group));
  return tn_vec_push(r->env, &cover->groups, group);
}

/* Groups in the topological order of the contracted graph. The cover takes graph and arena. */
static tn_status make_cover(tn_round *r, tn_cover **cover) {
  tn_cover *made = tn_alloc(r->env, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  tn_status status = tn_vec_reserve(r->env, &made->groups, r->chosen.n);
  const tn_contracted_graph *c = &r->contracted;
  for (int32_t v = tn_contracted_first(c); status == TN_OK && v != c->end; v = c->next[v])
    if (r->group[v] >= 0) status = add_chosen_group(r, &r->chosen.v[r->group[v]], made);
  if (status != TN_OK) {
    tn_vec_free(r->env, &made->groups);
    tn_release(r->env, made);
    return status;
  }
  made->env = r->env;
  made->arena = r->arena;
  r->arena = tn_arena_new(r->env);
  made->graph = r->graph;
  tn_cover_number_groups(made);
  *cover = made;
  return TN_OK;
}

/* All nodes but those that fall back are taken by now. */
static tn_status cover_fallback(tn_assignment *a) {
  tn_round *r = &a->round;
  if (r->n_uncovered == 0) return TN_OK;
  for (size_t i = 0; i < r->graph->nodes.n; i++) r->uncovered[i] = false;
  r->n_uncovered = 0;
  TN_TRY(tn_round_cover(r, a->fallback));
  if (r->n_uncovered == 0) return TN_OK;
  return tn_failf(a->env, TN_EINTERNAL,
                  "a kernel of the fallback accepted an op in pass assign and declined it in pass select");
}

static tn_status cover_placed(tn_assignment *a) {
  tn_round *r = &a->round;
  const char *reasons = NULL;
  uint32_t node = 0;
  if (r->placed == NULL) return TN_OK;
  for (size_t i = 0; i < r->graph->nodes.n; i++) {
    if (r->placed[i] && !r->swept[i]) r->taken[i] = false;
    r->uncovered[i] = false;
  }
  r->n_uncovered = 0;
  TN_TRY(tn_round_cover(r, a->fallback));
  if (r->n_uncovered == 0) return TN_OK;
  while (!r->uncovered[node]) node++;
  TN_TRY(tn_round_reasons(r, node, &reasons));
  return tn_round_fail_unsupported(r, node, reasons, "; [optimizer] place puts it on the host");
}

tn_status tn_pass_select(tn_assignment *a, tn_cover **cover) {
  TN_TRY(cover_fallback(a));
  TN_TRY(cover_placed(a));
  TN_TRY(make_cover(&a->round, cover));
  (*cover)->catalog = a->catalog;
  (*cover)->fallback = a->fallback;
  a->graph = NULL;
  a->catalog = a->fallback = NULL;
  tn_assignment_free(a);
  return TN_OK;
}
