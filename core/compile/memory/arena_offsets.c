/* core/compile/memory/arena_offsets.c: offsets in the arena for buffers and workspaces. */
#include "core/compile/packing/pack_intervals.h"
#include "core/compile/memory/memory_plan.h"

static bool is_arena_root(const tn_buffer *b) {
  return b->parent < 0 && !b->fixed && b->first <= b->last && b->bytes > 0;
}

/* The workspace of a step on the fallback is in the host memory. */
static int64_t arena_workspace_bytes(const tn_plan *plan, size_t step) {
  const tn_group *g = &plan->cover->groups.v[plan->order.v[step]];
  return g->fallback != NULL ? 0 : g->choice.workspace_bytes;
}

/* Buffers first, then workspaces, each of which is live during one step. */
static int32_t list_arena_intervals(const tn_plan *plan, tn_live_interval *intervals) {
  int32_t n = 0;
  for (size_t b = 0; b < plan->buffers.n; b++) {
    const tn_buffer *buffer = &plan->buffers.v[b];
    if (is_arena_root(buffer))
      intervals[n++] = (tn_live_interval){buffer->bytes, buffer->first, buffer->last, 0};
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    int64_t bytes = arena_workspace_bytes(plan, s);
    if (bytes > 0) intervals[n++] = (tn_live_interval){bytes, (int32_t)s, (int32_t)s, 0};
  }
  return n;
}

static void store_arena_offsets(tn_plan *plan, const tn_live_interval *intervals) {
  for (size_t b = 0; b < plan->buffers.n; b++) {
    tn_buffer *buffer = &plan->buffers.v[b];
    /* an empty buffer has a location, too: TN_BASE_NONE would mean an absent operand */
    if (!buffer->fixed)
      buffer->location = (tn_location){TN_BASE_ARENA, 0, is_arena_root(buffer) ? (intervals++)->offset : 0};
  }
  for (size_t s = 0; s < plan->order.n; s++)
    if (arena_workspace_bytes(plan, s) > 0) plan->workspace[s] = (intervals++)->offset;
}

/* The guard is on either side of each interval; the offsets are those of the bytes between the guards. */
static tn_status pack_guarded_intervals(tn_plan *plan, tn_live_interval *intervals, int32_t n) {
  for (int32_t i = 0; i < n; i++) intervals[i].bytes += 2 * plan->guard;
  TN_TRY(tn_intervals_pack(plan->env, intervals, n, &plan->packing, &plan->arena_bytes));
  for (int32_t i = 0; i < n; i++) intervals[i].offset += plan->guard;
  return TN_OK;
}

tn_status tn_plan_arena_offsets(tn_plan *plan) {
  tn_live_interval *intervals = tn_alloc(plan->env, (plan->buffers.n + plan->order.n) * sizeof *intervals);
  plan->workspace = tn_arena_alloc(&plan->arena, plan->order.n * sizeof *plan->workspace);
  tn_status status = intervals == NULL || plan->workspace == NULL ? TN_ENOMEM : TN_OK;
  if (status == TN_OK) {
    int32_t n = list_arena_intervals(plan, intervals);
    status = pack_guarded_intervals(plan, intervals, n);
    if (status == TN_OK)
      status = tn_intervals_lower_bound(plan->env, intervals, n, (int32_t)plan->order.n, &plan->bound_bytes);
  }
  if (status == TN_OK) store_arena_offsets(plan, intervals);
  tn_release(plan->env, intervals);
  return status;
}
