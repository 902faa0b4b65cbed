/* core/compile/memory/arena_offsets.c: pass `memory`: offsets in the arena for buffers and workspaces. */
#include "core/compile/memory/pack_intervals.h"
#include "core/compile/memory/memory_plan.h"

static bool is_in_arena(const tn_buffer *b) {
  return b->parent < 0 && !b->fixed && b->first <= b->last && b->bytes > 0;
}

/* That of a step that falls back is the host's. */
static int64_t workspace_of(const tn_plan *plan, size_t step) {
  const tn_group *g = &plan->cover->groups.v[plan->order.v[step]];
  return g->fallback != NULL ? 0 : g->choice.workspace_bytes;
}

/* Buffers first, then the workspace of each step that has one. */
static int32_t list_intervals(const tn_plan *plan, tn_interval *intervals) {
  int32_t n = 0;
  for (size_t b = 0; b < plan->buffers.n; b++) {
    const tn_buffer *buffer = &plan->buffers.v[b];
    if (is_in_arena(buffer)) intervals[n++] = (tn_interval){buffer->bytes, buffer->first, buffer->last, 0};
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    int64_t bytes = workspace_of(plan, s);
    if (bytes > 0) intervals[n++] = (tn_interval){bytes, (int32_t)s, (int32_t)s, 0};
  }
  return n;
}

static void store_offsets(tn_plan *plan, const tn_interval *intervals) {
  for (size_t b = 0; b < plan->buffers.n; b++) {
    tn_buffer *buffer = &plan->buffers.v[b];
    /* An empty buffer lies somewhere, too: a base of none would mean an absent operand. */
    if (!buffer->fixed)
      buffer->place = (tn_place){TN_BASE_ARENA, 0, is_in_arena(buffer) ? (intervals++)->offset : 0};
  }
  for (size_t s = 0; s < plan->order.n; s++)
    if (workspace_of(plan, s) > 0) plan->workspace[s] = (intervals++)->offset;
}

/* With a guard, each interval has it on either side; offsets are those of what lies between. */
static tn_status assign_guarded(tn_plan *plan, tn_interval *intervals, int32_t n) {
  for (int32_t i = 0; i < n; i++) intervals[i].bytes += 2 * plan->guard;
  TN_TRY(tn_offsets_assign(plan->env, intervals, n, &plan->arena_bytes));
  for (int32_t i = 0; i < n; i++) intervals[i].offset += plan->guard;
  return TN_OK;
}

tn_status tn_plan_arena(tn_plan *plan) {
  tn_interval *intervals = tn_alloc(plan->env, (plan->buffers.n + plan->order.n) * sizeof *intervals);
  plan->workspace = tn_arena_alloc(&plan->arena, plan->order.n * sizeof *plan->workspace);
  tn_status status = intervals == NULL || plan->workspace == NULL ? TN_ENOMEM : TN_OK;
  if (status == TN_OK) {
    int32_t n = list_intervals(plan, intervals);
    status = assign_guarded(plan, intervals, n);
    if (status == TN_OK)
      status = tn_offsets_bound(plan->env, intervals, n, (int32_t)plan->order.n, &plan->bound_bytes);
  }
  if (status == TN_OK) store_offsets(plan, intervals);
  tn_release(plan->env, intervals);
  return status;
}
