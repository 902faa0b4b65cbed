/* core/compile/memory/place_transfers.c: when offloaded values are copied.
 *
 * The schedule launches an offload as soon as its value is made, and a fetch directly before the first
 * reader. This phase predicts when the compute steps begin, and when the copies begin and end: copies in one
 * direction share the link one after another. An offload has ended, and its value's memory is free, before
 * the first step that begins after that time, and at the latest before the midpoint, or of an awaited one
 * before the step behind the last reader in forward. A fetch moves forward so far that its copy ends when the
 * reader begins, but not beyond the midpoint; a late one stays, to hold less memory. Where the link is too
 * slow, steps wait.
 *
 * Copies to the host for groups that are placed there, such as those of gradients, have ended before the
 * first step that begins after the predicted time; copies back stay behind the groups that make their values.
 *
 * Streamed weights (rematerialization/stream_states.h) have a window of bytes, which has room for the largest
 * of them twice. Each is fetched as early as it fits into the window beside those that were fetched before it
 * and are still to be read. So the next one is always on its way while one is read, and the arena needs no
 * more than the window for them. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/memory/memory_plan.h"

/* A fetch begins earlier than predicted by this part of its copy. */
static const double early_part = 0.1;

typedef struct transfer_times {
  tn_plan *plan;
  double *begin_s;  /* per step, and the end: when it begins, if no step waits but for awaited offloads */
  int32_t midpoint; /* a compute step, behind all offloads */
  int32_t *before;  /* per step: of a fetch, the step before which it is launched */
} transfer_times;

static int32_t step_transfer(const tn_plan *plan, int32_t step) {
  return tn_kernel_transfer(tn_plan_group_at(plan, step)->kernel);
}

static bool is_compute_step(const tn_plan *plan, int32_t step) {
  return tn_plan_group_at(plan, step)->role == TN_STREAM_COMPUTE;
}

/* A copy for a group that is placed on the host. */
static bool is_placed(const tn_plan *plan, int32_t step) { return tn_plan_group_at(plan, step)->placed; }

static int64_t step_result_bytes(const tn_plan *plan, int32_t step) {
  return tn_plan_value_bytes(plan, tn_plan_group_at(plan, step)->out[0]);
}

static void predict_begins(transfer_times *t) {
  int32_t n = (int32_t)t->plan->order.n;
  double now_s = 0;
  for (int32_t i = 0; i < n; i++) {
    t->begin_s[i] = now_s;
    if (is_compute_step(t->plan, i)) now_s += tn_plan_group_at(t->plan, i)->choice.cost_s;
    if (t->plan->order.v[i] == t->plan->cover->offload_midpoint - 1 ||
        (step_transfer(t->plan, i) == TN_TRANSFER_OFFLOAD && !is_placed(t->plan, i)))
      t->midpoint = i;
  }
  t->begin_s[n] = now_s;
  while (t->midpoint + 1 < n && !is_compute_step(t->plan, t->midpoint)) t->midpoint++;
}

/* ---- offloads ---- */

/* The first compute step from `step` on that begins at a time or later, `latest` at the latest. */
static int32_t first_step_after(const transfer_times *t, int32_t step, double time_s, int32_t latest) {
  while (step < latest && (t->begin_s[step] < time_s || !is_compute_step(t->plan, step))) step++;
  return step;
}

static bool reads_root(const tn_plan *plan, int32_t step, int32_t root) {
  const tn_group *g = tn_plan_group_at(plan, step);
  int64_t offset;
  for (int32_t k = 0; k < g->n_in; k++)
    if (g->in[k] != 0 && tn_plan_root(plan, plan->buffer_of.v[g->in[k]], &offset) == root) return true;
  return false;
}

/* The compute step behind the last reader of an offloaded value in forward. */
static int32_t step_behind_readers(const transfer_times *t, int32_t offload) {
  const tn_plan *plan = t->plan;
  int64_t offset;
  int32_t root = tn_plan_root(plan, plan->buffer_of.v[tn_plan_group_at(plan, offload)->in[0]], &offset);
  int32_t step = t->midpoint;
  while (step > offload + 1 && !reads_root(plan, step - 1, root)) step--;
  while (step < t->midpoint && !is_compute_step(plan, step)) step++;
  return step;
}

static int32_t latest_end(const transfer_times *t, int32_t offload) {
  if (is_placed(t->plan, offload)) return (int32_t)t->plan->order.n - 1;
  bool awaited = tn_plan_group_at(t->plan, offload)->choice.id == TN_OFFLOAD_AWAITED;
  return awaited ? step_behind_readers(t, offload) : t->midpoint;
}

/* A step before the midpoint waits until a time, and delays those behind it. */
static void delay_steps(transfer_times *t, int32_t step, double time_s) {
  double wait_s = time_s - t->begin_s[step];
  if (step >= t->midpoint || wait_s <= 0) return;
  for (int32_t i = step; i <= (int32_t)t->plan->order.n; i++) t->begin_s[i] += wait_s;
}

static void end_offloads(transfer_times *t) {
  tn_plan *plan = t->plan;
  double link_s = 0;
  for (int32_t i = 0; i + 1 < (int32_t)plan->order.n; i++) {
    if (step_transfer(plan, i) != TN_TRANSFER_OFFLOAD) continue;
    if (t->begin_s[i] > link_s) link_s = t->begin_s[i];
    link_s += tn_plan_group_at(plan, i)->choice.cost_s;
    int32_t end = first_step_after(t, i + 1, link_s, latest_end(t, i));
    plan->ends[plan->order.v[i]] = plan->order.v[end];
    delay_steps(t, end, link_s);
  }
}

/* ---- fetches ---- */

/* The last compute step up to `step` that begins at a time or earlier, but the one after the midpoint at the
 * earliest. */
static int32_t last_step_before(const transfer_times *t, int32_t step, double time_s) {
  while (step > t->midpoint + 1 && (t->begin_s[step] > time_s || !is_compute_step(t->plan, step))) step--;
  return step;
}

static void place_fetches(transfer_times *t) {
  tn_plan *plan = t->plan;
  double link_s = t->begin_s[plan->order.n];
  for (int32_t i = (int32_t)plan->order.n - 1; i > t->midpoint; i--) {
    if (step_transfer(plan, i) != TN_TRANSFER_FETCH || is_placed(plan, i)) continue;
    if (tn_plan_is_streamed_fetch(plan, tn_plan_group_at(plan, i))) continue;
    const tn_choice *choice = &tn_plan_group_at(plan, i)->choice;
    if (t->begin_s[i] < link_s) link_s = t->begin_s[i];
    t->before[i] = i;
    if (choice->id == TN_FETCH_LATE) continue;
    link_s -= choice->cost_s;
    t->before[i] = last_step_before(t, i, link_s - early_part * choice->cost_s);
  }
}

/* ---- streamed weights ---- */

typedef struct stream_window {
  int64_t *freed;      /* per step: the bytes that it reads last, of the weights placed so far */
  int32_t *last;       /* per buffer: the last step that reads it */
  int64_t bytes, held; /* in all; by weights that are placed and still to be read */
} stream_window;

static bool is_streamed_step(const tn_plan *plan, int32_t step) {
  return tn_plan_is_streamed_fetch(plan, tn_plan_group_at(plan, step));
}

static int32_t step_result_buffer(const tn_plan *plan, int32_t step) {
  int64_t offset;
  return tn_plan_root(plan, plan->buffer_of.v[tn_plan_group_at(plan, step)->out[0]], &offset);
}

static void note_last_reads(const tn_plan *plan, int32_t *last) {
  for (int32_t i = 0; i < (int32_t)plan->order.n; i++) {
    const tn_group *g = tn_plan_group_at(plan, i);
    int64_t offset;
    for (int32_t k = 0; k < g->n_in; k++)
      if (g->in[k] != 0) last[tn_plan_root(plan, plan->buffer_of.v[g->in[k]], &offset)] = i;
  }
}

/* The next weight is fetched before step `at`: those that steps in front of it read last are gone. */
static void place_streamed(const transfer_times *t, stream_window *w) {
  const tn_plan *plan = t->plan;
  int32_t at = 0;
  for (int32_t i = 0; i < (int32_t)plan->order.n; i++) {
    if (!is_streamed_step(plan, i)) continue;
    int64_t bytes = step_result_bytes(plan, i);
    bool late = tn_plan_group_at(plan, i)->choice.id == TN_FETCH_LATE;
    while (at < i && (late || w->held + bytes > w->bytes)) w->held -= w->freed[at++];
    int32_t last = w->last[step_result_buffer(plan, i)];
    t->before[i] = at;
    w->held += bytes;
    w->freed[last > i ? last : i] += bytes;
  }
}

static tn_status place_streamed_fetches(const transfer_times *t) {
  tn_plan *plan = t->plan;
  stream_window w = {.freed = tn_arena_alloc(&plan->arena, (plan->order.n + 1) * sizeof *w.freed),
                     .last = tn_arena_alloc(&plan->arena, (plan->buffers.n + 1) * sizeof *w.last)};
  if (w.freed == NULL || w.last == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < (int32_t)plan->order.n; i++)
    if (is_streamed_step(plan, i) && 2 * step_result_bytes(plan, i) > w.bytes)
      w.bytes = 2 * step_result_bytes(plan, i);
  if (w.bytes == 0) return TN_OK;
  note_last_reads(plan, w.last);
  place_streamed(t, &w);
  return TN_OK;
}

/* ---- the order ---- */

/* Fetches before a step stay in their order. */
static tn_status move_fetches(transfer_times *t) {
  tn_plan *plan = t->plan;
  int32_t n = (int32_t)plan->order.n, at = 0, next = 0;
  int32_t *old = tn_arena_copy(&plan->arena, plan->order.v, plan->order.n * sizeof *old);
  if (old == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    for (; next < n && (t->before[next] < 0 || t->before[next] <= i); next++)
      if (t->before[next] >= 0) plan->order.v[at++] = old[next];
    if (t->before[i] < 0) plan->order.v[at++] = old[i];
  }
  return TN_OK;
}

static bool has_transfers(const tn_plan *plan) {
  bool any = plan->cover->offload_midpoint != 0;
  for (int32_t i = 0; !any && i < (int32_t)plan->order.n; i++)
    any = step_transfer(plan, i) == TN_TRANSFER_OFFLOAD || is_streamed_step(plan, i);
  return any;
}

tn_status tn_plan_place_transfers(tn_plan *plan) {
  size_t n = plan->order.n;
  transfer_times t = {.plan = plan};
  if (!has_transfers(plan)) return TN_OK;
  t.begin_s = tn_arena_alloc(&plan->arena, (n + 1) * sizeof *t.begin_s);
  t.before = tn_arena_alloc(&plan->arena, n * sizeof *t.before);
  plan->ends = tn_arena_alloc(&plan->arena, n * sizeof *plan->ends);
  if (t.begin_s == NULL || t.before == NULL || plan->ends == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) t.before[i] = plan->ends[i] = -1;
  predict_begins(&t);
  end_offloads(&t);
  place_fetches(&t);
  TN_TRY(place_streamed_fetches(&t));
  return move_fetches(&t);
}

/* ---- the memory of the host ---- */

static bool is_offload_buffer(const tn_buffer *b) { return b->fixed && b->location.base == TN_BASE_OFFLOAD; }

tn_status tn_plan_offload_offsets(tn_plan *plan) {
  int32_t n = 0;
  const tn_packing_goal goal = {0};
  tn_live_interval *intervals = tn_alloc(plan->env, (plan->buffers.n + 1) * sizeof *intervals);
  if (intervals == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->buffers.n; i++) {
    const tn_buffer *b = &plan->buffers.v[i];
    if (is_offload_buffer(b)) intervals[n++] = (tn_live_interval){b->bytes, b->first, b->last, 0};
  }
  tn_status status = n > 0 ? tn_intervals_pack(plan->env, intervals, n, &goal, &plan->offload_bytes) : TN_OK;
  n = 0;
  for (size_t i = 0; status == TN_OK && i < plan->buffers.n; i++)
    if (is_offload_buffer(&plan->buffers.v[i])) plan->buffers.v[i].location.offset = intervals[n++].offset;
  tn_release(plan->env, intervals);
  return status;
}
