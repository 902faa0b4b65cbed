/* core/compile/rematerialization/memory_limit.c: chooses the values that are rematerialized, and their order.
 *
 * Chen et al., "Training deep nets with sublinear memory cost" (2016), keep the borders of segments and
 * recompute everything inside; Korthikanti et al., "Reducing activation recomputation in large transformer
 * models" (2022), choose values that are large and cheap. This is a greedy search over single values: the
 * value that frees the most bytes at the peak per second of its clones is discarded next. Values inside of
 * blocks come before those on the borders of blocks, since the borders are where chains of clones end. After
 * each choice the memory is planned again, and the choice is undone if the peak rose. At the end the choices
 * that the limit does not need are undone. */
#include "core/compile/rematerialization/memory_limit.h"

#include "core/compile/rematerialization/clone_groups.h"

/* The memory plan of a set of discarded values, as far as the search needs it. */
typedef struct plan_summary {
  int64_t arena_bytes, bound_bytes;
  int32_t peak;  /* the step with the most live bytes */
  int32_t *step; /* per group before rematerialization: its step */
  bool *idle;    /* per value: live at the peak, between its uses in forward and those in backward */
} plan_summary;

typedef struct limit_search {
  tn_env *env;
  const tn_state_map *map;
  const tn_slot_layout *slot;
  tn_forward_backward fb;
  tn_rematerialization rematerialization;
  tn_arena arena;
  plan_summary current, trial;
  bool *rejected;  /* per idle value: discarding it raised the peak */
  int32_t *chosen; /* idle values in the order of their choice */
  int32_t n_chosen;
} limit_search;

/* ---- plans ---- */

/* Sums the buffers of the arena and the workspace at each step. */
static tn_status find_plan_peak(const tn_plan *plan, plan_summary *summary) {
  int64_t *change = tn_alloc(plan->env, (plan->order.n + 1) * sizeof *change), live = 0, most = -1;
  if (change == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->buffers.n; i++) {
    const tn_buffer *b = &plan->buffers.v[i];
    if (b->parent >= 0 || b->fixed || b->first > b->last) continue;
    change[b->first] += b->bytes;
    change[b->last + 1] -= b->bytes;
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    int64_t workspace = plan->cover->groups.v[plan->order.v[s]].choice.workspace_bytes;
    live += change[s];
    if (live + workspace <= most) continue;
    most = live + workspace;
    summary->peak = (int32_t)s;
  }
  tn_release(plan->env, change);
  return TN_OK;
}

static void find_idle_at_peak(const limit_search *l, const tn_plan *plan, plan_summary *summary) {
  const tn_forward_backward *fb = &l->fb;
  for (size_t v = 0; v < fb->n_values; v++) summary->idle[v] = true;
  for (int32_t s = 0; s < (int32_t)plan->order.n; s++) {
    int32_t group = plan->order.v[s];
    const tn_group *g = &plan->cover->groups.v[group];
    bool forward = group <= fb->midpoint; /* clones have larger indices */
    if (forward ? s < summary->peak : s > summary->peak) continue;
    for (int32_t k = 0; k < g->n_in; k++)
      if (g->in[k] < fb->n_values) summary->idle[fb->base[g->in[k]]] = false;
    for (int32_t k = 0; k < g->n_out; k++)
      if (g->out[k] < fb->n_values) summary->idle[g->out[k]] = false;
  }
}

static tn_status find_group_steps(const limit_search *l, const tn_plan *plan, plan_summary *summary) {
  const tn_forward_backward *fb = &l->fb;
  int32_t *step = tn_alloc(plan->env, plan->cover->groups.n * sizeof *step);
  if (step == NULL) return TN_ENOMEM;
  for (size_t s = 0; s < plan->order.n; s++) step[plan->order.v[s]] = (int32_t)s;
  for (int32_t g = 0; g < fb->n_groups; g++) summary->step[g] = step[l->rematerialization.moved[g]];
  tn_release(plan->env, step);
  return TN_OK;
}

/* Rematerializes the discarded values, plans the memory and summarizes the plan. Groups that the plan adds
 * stay in the cover. */
static tn_status plan_discarded(limit_search *l, plan_summary *summary) {
  tn_plan plan = {
      .env = l->env, .cover = l->fb.cover, .map = l->map, .slot = l->slot, .arena = tn_arena_new(l->env)};
  tn_forward_backward_restore(&l->fb);
  tn_rematerialization_update(&l->rematerialization);
  tn_status status = tn_rematerialization_apply(&l->rematerialization);
  if (status == TN_OK) status = tn_plan_make(&plan);
  if (status == TN_OK) status = find_plan_peak(&plan, summary);
  if (status == TN_OK) status = find_group_steps(l, &plan, summary);
  if (status == TN_OK) {
    find_idle_at_peak(l, &plan, summary);
    summary->arena_bytes = plan.arena_bytes;
    summary->bound_bytes = plan.bound_bytes;
  }
  tn_plan_free(&plan);
  return status;
}

/* ---- the search ---- */

/* The bytes that discarding one more value would free at the peak. */
static double freed_bytes_at_peak(limit_search *l, const tn_idle_value *idle, int64_t extended_bytes) {
  const tn_forward_backward *fb = &l->fb;
  const tn_rematerialization *r = &l->rematerialization;
  if (!r->possible || l->current.step[r->before[fb->maker[idle->value]]] <= l->current.peak) return 0;
  return (double)(fb->bytes[idle->value] - (r->extended_bytes - extended_bytes));
}

/* The value with the most freed bytes per second, inside of blocks or on their borders; -1: no value frees
 * any. */
static int32_t find_best_idle_value(limit_search *l, bool border) {
  const tn_forward_backward *fb = &l->fb;
  tn_rematerialization *r = &l->rematerialization;
  int32_t best = -1;
  double best_rate = 0;
  tn_rematerialization_update(r);
  double cost_s = r->cost_s;
  int64_t extended_bytes = r->extended_bytes;
  for (size_t i = 0; i < fb->idle.n; i++) {
    const tn_idle_value *idle = &fb->idle.v[i];
    if (l->rejected[i] || r->discarded[idle->value] || idle->border != border ||
        !l->current.idle[idle->value])
      continue;
    r->discarded[idle->value] = true;
    tn_rematerialization_update(r);
    r->discarded[idle->value] = false;
    double rate = freed_bytes_at_peak(l, idle, extended_bytes) / (r->cost_s - cost_s + 1e-9);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = (int32_t)i;
  }
  return best;
}

static void swap_summaries(limit_search *l) {
  plan_summary old = l->current;
  l->current = l->trial;
  l->trial = old;
}

/* Discards an idle value, unless that raises the peak. */
static tn_status try_to_discard(limit_search *l, int32_t index) {
  tn_val value = l->fb.idle.v[index].value;
  l->rematerialization.discarded[value] = true;
  TN_TRY(plan_discarded(l, &l->trial));
  if (l->trial.bound_bytes > l->current.bound_bytes) {
    l->rematerialization.discarded[value] = false;
    l->rejected[index] = true;
    return TN_OK;
  }
  l->chosen[l->n_chosen++] = index;
  swap_summaries(l);
  return TN_OK;
}

static tn_status discard_until_it_fits(limit_search *l, int64_t limit) {
  TN_TRY(plan_discarded(l, &l->current));
  while (l->current.arena_bytes > limit) {
    int32_t best = find_best_idle_value(l, false);
    if (best < 0) best = find_best_idle_value(l, true);
    if (best < 0) break;
    TN_TRY(try_to_discard(l, best));
  }
  return TN_OK;
}

/* Undoes choices that the limit does not need, the last ones first, since they have the smallest rates. */
static tn_status undo_unneeded(limit_search *l, int64_t limit) {
  for (int32_t i = l->n_chosen; i-- > 0;) {
    tn_val value = l->fb.idle.v[l->chosen[i]].value;
    l->rematerialization.discarded[value] = false;
    TN_TRY(plan_discarded(l, &l->trial));
    if (l->trial.arena_bytes > (limit > l->current.arena_bytes ? limit : l->current.arena_bytes))
      l->rematerialization.discarded[value] = true;
  }
  return TN_OK;
}

/* ---- the report ---- */

static tn_rematerialized_block *find_reported_block(tn_rematerialized_block *list, int32_t *n,
                                                    const char *block) {
  for (int32_t i = 0; i < *n; i++)
    if (tn_text_equal(list[i].block, block)) return &list[i];
  list[*n] = (tn_rematerialized_block){.block = block};
  return &list[(*n)++];
}

static tn_status report_blocks(limit_search *l) {
  const tn_forward_backward *fb = &l->fb;
  const tn_rematerialization *r = &l->rematerialization;
  tn_cover *cover = fb->cover;
  int32_t n = 0;
  tn_rematerialized_block *list = tn_arena_alloc(&cover->arena, (size_t)fb->n_groups * sizeof *list);
  if (list == NULL) return TN_ENOMEM;
  for (int32_t g = 0; g < fb->n_groups; g++)
    if (r->cloned[g]) find_reported_block(list, &n, fb->block[g])->flops += fb->groups[g].cost.flops;
  for (size_t i = 0; i < fb->idle.n; i++) {
    tn_val v = fb->idle.v[i].value;
    if (r->discarded[v]) find_reported_block(list, &n, fb->block[fb->maker[v]])->bytes += fb->bytes[v];
  }
  for (int32_t i = 0; i < n; i++) {
    list[i].block = tn_arena_strdup(&cover->arena, list[i].block);
    if (list[i].block == NULL) return TN_ENOMEM;
  }
  cover->rematerialized = list;
  cover->n_rematerialized = n;
  return TN_OK;
}

/* ---- the pass ---- */

static tn_status create_summary(limit_search *l, plan_summary *summary) {
  summary->step = tn_arena_alloc(&l->arena, (size_t)l->fb.n_groups * sizeof *summary->step);
  summary->idle = tn_arena_alloc(&l->arena, l->fb.n_values * sizeof *summary->idle);
  return summary->step != NULL && summary->idle != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status search_discarded(limit_search *l, int64_t limit) {
  size_t idle = l->fb.idle.n;
  l->rejected = tn_arena_alloc(&l->arena, idle * sizeof *l->rejected);
  l->chosen = tn_arena_alloc(&l->arena, idle * sizeof *l->chosen);
  if (l->rejected == NULL || l->chosen == NULL) return TN_ENOMEM;
  TN_TRY(tn_rematerialization_create(&l->fb, &l->arena, &l->rematerialization));
  TN_TRY(create_summary(l, &l->current));
  TN_TRY(create_summary(l, &l->trial));
  TN_TRY(discard_until_it_fits(l, limit));
  TN_TRY(undo_unneeded(l, limit));
  tn_forward_backward_restore(&l->fb);
  tn_rematerialization_update(&l->rematerialization);
  TN_TRY(tn_rematerialization_apply(&l->rematerialization));
  return report_blocks(l);
}

tn_status tn_pass_memory_limit(tn_cover *cover, const tn_state_map *map, const tn_slot_layout *slot,
                               int64_t limit) {
  limit_search l = {.env = cover->env, .map = map, .slot = slot, .arena = tn_arena_new(cover->env)};
  tn_status status = tn_forward_backward_create(cover, &l.fb);
  if (status == TN_OK) status = search_discarded(&l, limit);
  tn_forward_backward_free(&l.fb);
  tn_arena_free(&l.arena);
  return status;
}
