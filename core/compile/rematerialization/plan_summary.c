/* core/compile/rematerialization/plan_summary.c: plans the memory for a choice of values, and summarizes it.
 */
#include "core/compile/rematerialization/plan_summary.h"

#include <string.h>

#include "core/compile/kernels/transfer_kernel.h"

tn_status tn_plan_summary_create(const tn_forward_backward *fb, tn_arena *arena, tn_plan_summary *summary) {
  summary->step = tn_arena_alloc(arena, (size_t)fb->n_groups * sizeof *summary->step);
  summary->idle = tn_arena_alloc(arena, fb->n_values * sizeof *summary->idle);
  summary->leaving = tn_arena_alloc(arena, fb->n_values * sizeof *summary->leaving);
  summary->back = tn_arena_alloc(arena, fb->n_values * sizeof *summary->back);
  summary->remade = tn_arena_alloc(arena, fb->n_values * sizeof *summary->remade);
  bool complete = summary->step != NULL && summary->idle != NULL && summary->leaving != NULL;
  return complete && summary->back != NULL && summary->remade != NULL ? TN_OK : TN_ENOMEM;
}

static bool is_arena_buffer(const tn_buffer *b) { return b->parent < 0 && !b->fixed && b->first <= b->last; }

typedef struct plan_steps {
  int32_t first, last;
} plan_steps;

/* Of the value or workspace that ends highest in the arena. */
static plan_steps highest_steps(const tn_plan *plan) {
  plan_steps steps = {0, (int32_t)plan->order.n - 1};
  int64_t highest = -1;
  for (size_t i = 0; i < plan->buffers.n; i++) {
    const tn_buffer *b = &plan->buffers.v[i];
    if (!is_arena_buffer(b) || b->location.offset + b->bytes <= highest) continue;
    highest = b->location.offset + b->bytes;
    steps = (plan_steps){b->first, b->last};
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = tn_plan_group_at(plan, (int32_t)s);
    if (g->fallback != NULL || plan->workspace[s] + g->choice.workspace_bytes <= highest) continue;
    highest = plan->workspace[s] + g->choice.workspace_bytes;
    steps = (plan_steps){(int32_t)s, (int32_t)s};
  }
  return steps;
}

/* Sums the buffers of the arena and the workspace at each step. */
static tn_status sum_live_bytes(const tn_plan *plan, int64_t **bytes) {
  int64_t live = 0, *change = *bytes = tn_alloc(plan->env, (plan->order.n + 1) * sizeof *change);
  if (change == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->buffers.n; i++) {
    const tn_buffer *b = &plan->buffers.v[i];
    if (!is_arena_buffer(b)) continue;
    change[b->first] += b->bytes;
    change[b->last + 1] -= b->bytes;
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    live += change[s];
    change[s] = live + tn_plan_group_at(plan, (int32_t)s)->choice.workspace_bytes;
  }
  return TN_OK;
}

static void find_peak_step(const tn_plan *plan, const int64_t *bytes, plan_steps steps,
                           tn_plan_summary *summary) {
  double now_s = 0;
  summary->peak = steps.first;
  summary->excess = 0;
  for (int32_t s = 0; s < (int32_t)plan->order.n; s++) {
    const tn_group *g = tn_plan_group_at(plan, s);
    if (bytes[s] > plan->packing.enough) summary->excess += (double)(bytes[s] - plan->packing.enough);
    if (s == steps.first || (s > steps.first && s <= steps.last && bytes[s] > bytes[summary->peak])) {
      summary->peak = s;
      summary->peak_s = now_s;
    }
    if (g->role == TN_STREAM_COMPUTE) now_s += g->choice.cost_s;
  }
}

/* All steps, unless the live bytes are enough and their offsets are not. */
static plan_steps watched_steps(const tn_plan *plan) {
  int64_t enough = plan->packing.enough;
  if (plan->bound_bytes <= enough && plan->arena_bytes > enough) return highest_steps(plan);
  return (plan_steps){0, (int32_t)plan->order.n - 1};
}

static tn_status find_plan_peak(const tn_plan *plan, tn_plan_summary *summary) {
  int64_t *bytes;
  TN_TRY(sum_live_bytes(plan, &bytes));
  find_peak_step(plan, bytes, watched_steps(plan), summary);
  tn_release(plan->env, bytes);
  return TN_OK;
}

static void find_idle_at_peak(const tn_plan_trial *t, const tn_plan *plan, tn_plan_summary *summary) {
  const tn_forward_backward *fb = t->fb;
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

/* The value whose copy a group fetches; 0: it fetches none. */
static tn_val fetched_value(const tn_plan_trial *t, const tn_group *g) {
  const tn_rematerialization *r = t->rematerialization;
  if (tn_kernel_transfer(g->kernel) != TN_TRANSFER_FETCH) return 0;
  for (size_t i = 0; i < t->fb->idle.n; i++) {
    tn_val v = t->fb->idle.v[i].value;
    if (r->choice[v].offloaded && r->copy[v] == g->out[0]) return v;
  }
  return 0;
}

/* `owner`: per buffer, the value whose copy is in it and has not been read; 0: none. */
static void follow_fetches(const tn_plan_trial *t, const tn_plan *plan, tn_val *owner,
                           tn_plan_summary *summary) {
  int64_t offset;
  for (int32_t s = 0; s <= summary->peak; s++) {
    const tn_group *g = tn_plan_group_at(plan, s);
    tn_val v = fetched_value(t, g);
    if (v != 0) {
      owner[tn_plan_root(plan, plan->buffer_of.v[g->out[0]], &offset)] = v;
      summary->back[v] = true;
    }
    for (int32_t k = 0; k < g->n_in; k++) {
      if (g->in[k] == 0) continue;
      tn_val *held = &owner[tn_plan_root(plan, plan->buffer_of.v[g->in[k]], &offset)];
      summary->back[*held] = false;
      *held = 0;
    }
  }
}

static tn_status find_fetched_at_peak(const tn_plan_trial *t, const tn_plan *plan, tn_plan_summary *summary) {
  memset(summary->back, 0, t->fb->n_values * sizeof *summary->back);
  if (plan->cover->offload_midpoint == 0) return TN_OK;
  tn_val *owner = tn_alloc(plan->env, plan->buffers.n * sizeof *owner);
  if (owner == NULL) return TN_ENOMEM;
  follow_fetches(t, plan, owner, summary);
  tn_release(plan->env, owner);
  return TN_OK;
}

/* Offloaded values whose copies end behind the peak, and that forward has read for the last time before it.
 * `step`: per group of the plan. */
static void find_leaving_at_peak(const tn_plan_trial *t, const tn_plan *plan, const int32_t *step,
                                 tn_plan_summary *summary) {
  const tn_forward_backward *fb = t->fb;
  memset(summary->leaving, 0, fb->n_values * sizeof *summary->leaving);
  for (int32_t s = 0; s < summary->peak && plan->ends != NULL; s++) {
    const tn_group *g = tn_plan_group_at(plan, s);
    if (tn_kernel_transfer(g->kernel) == TN_TRANSFER_OFFLOAD && !g->placed)
      summary->leaving[g->in[0]] = step[plan->ends[plan->order.v[s]]] > summary->peak;
  }
  for (int32_t g = 0; g <= fb->midpoint; g++)
    for (int32_t k = 0; k < fb->groups[g].n_in && summary->step[g] >= summary->peak; k++)
      summary->leaving[fb->base[fb->groups[g].in[k]]] = false;
}

static void find_remade_at_peak(const tn_plan_trial *t, const tn_plan *plan, tn_plan_summary *summary) {
  const tn_rematerialization *r = t->rematerialization;
  memset(summary->remade, 0, t->fb->n_values * sizeof *summary->remade);
  for (size_t i = 0; i < t->fb->idle.n; i++) {
    tn_val v = t->fb->idle.v[i].value;
    int64_t offset;
    if (!r->choice[v].discarded || r->copy[v] == 0) continue;
    const tn_buffer *b = &plan->buffers.v[tn_plan_root(plan, plan->buffer_of.v[r->copy[v]], &offset)];
    summary->remade[v] = is_arena_buffer(b) && b->first <= summary->peak && summary->peak <= b->last;
  }
}

static tn_status find_groups_at_peak(const tn_plan_trial *t, const tn_plan *plan, tn_plan_summary *summary) {
  const tn_forward_backward *fb = t->fb;
  int32_t *step = tn_alloc(plan->env, plan->cover->groups.n * sizeof *step);
  if (step == NULL) return TN_ENOMEM;
  for (size_t s = 0; s < plan->order.n; s++) step[plan->order.v[s]] = (int32_t)s;
  for (int32_t g = 0; g < fb->n_groups; g++) summary->step[g] = step[t->rematerialization->moved[g]];
  find_leaving_at_peak(t, plan, step, summary);
  find_remade_at_peak(t, plan, summary);
  tn_release(plan->env, step);
  return TN_OK;
}

/* Rematerializes the discarded values, plans the memory and summarizes the plan. Groups that the plan adds
 * stay in the cover. */
tn_status tn_plan_try(const tn_plan_trial *t, tn_plan_summary *summary) {
  tn_plan plan = {.env = t->env,
                  .cover = t->fb->cover,
                  .map = t->map,
                  .slot = t->slot,
                  .packing = t->packing,
                  .arena = tn_arena_new(t->env)};
  tn_forward_backward_restore(t->fb);
  tn_rematerialization_update(t->rematerialization);
  tn_status status = tn_rematerialization_apply(t->rematerialization);
  if (status == TN_OK) status = tn_plan_make(&plan);
  if (status == TN_OK) status = find_plan_peak(&plan, summary);
  if (status == TN_OK) status = find_groups_at_peak(t, &plan, summary);
  if (status == TN_OK) status = find_fetched_at_peak(t, &plan, summary);
  if (status == TN_OK) {
    find_idle_at_peak(t, &plan, summary);
    summary->step_s = tn_plan_predict_s(&plan);
    summary->arena_bytes = plan.arena_bytes;
    summary->bound_bytes = plan.bound_bytes;
  }
  tn_plan_free(&plan);
  return status;
}
