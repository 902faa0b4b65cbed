/* core/compile/memory/overlap_collectives.c: finds the steps that run concurrently with a collective.
 *
 * A collective runs on the communication stream, after all steps before it. The following steps run
 * concurrently, up to the first one that reads the collective's result or writes its operand or result; that
 * step awaits the collective. If there is no such step, the end of the segment does. The live intervals of
 * operand and result extend to that point. Collectives run in order, so awaiting one awaits those before it.
 */
#include "core/compile/memory/memory_plan.h"

/* Bytes of a buffer, or of memory at a fixed location. */
typedef struct byte_range {
  int32_t base, root; /* base: TN_BASE_NONE for bytes of the buffer `root`, else root is the region */
  int64_t start, end;
} byte_range;

/* Bytes in a region that lies inside of another one are anywhere in that one: where, depends on the rank. */
static byte_range range_around(const tn_plan *plan, byte_range r) {
  int32_t around = tn_plan_region_around(plan, r.root);
  return around == r.root ? r : (byte_range){r.base, around, 0, INT64_MAX};
}

static byte_range value_range(const tn_plan *plan, tn_val value) {
  byte_range r = {TN_BASE_NONE, -1, 0, 0};
  if (value == 0) return r;
  r.root = tn_plan_root(plan, plan->buffer_of.v[value], &r.start);
  const tn_buffer *b = &plan->buffers.v[r.root];
  if (b->fixed) {
    r.base = b->location.base;
    r.root = b->location.region;
    r.start += b->location.offset;
  }
  r.end = r.start + tn_plan_value_bytes(plan, value);
  return b->fixed && b->location.base == TN_BASE_REGION ? range_around(plan, r) : r;
}

static bool values_share_bytes(const tn_plan *plan, tn_val x, tn_val y) {
  byte_range a = value_range(plan, x), b = value_range(plan, y);
  return a.base == b.base && a.root == b.root && a.start < b.end && b.start < a.end;
}

static bool any_values_share_bytes(const tn_plan *plan, const tn_val *x, int32_t n_x, const tn_val *y,
                                   int32_t n_y) {
  for (int32_t i = 0; i < n_x; i++)
    for (int32_t k = 0; k < n_y; k++)
      if (x[i] != 0 && y[k] != 0 && values_share_bytes(plan, x[i], y[k])) return true;
  return false;
}

static bool must_await_collective(const tn_plan *plan, const tn_group *g, const tn_group *collective) {
  return any_values_share_bytes(plan, collective->out, collective->n_out, g->in, g->n_in) ||
         any_values_share_bytes(plan, collective->out, collective->n_out, g->out, g->n_out) ||
         any_values_share_bytes(plan, collective->in, collective->n_in, g->out, g->n_out);
}

static void extend_value_interval(tn_plan *plan, tn_val value, int32_t step) {
  int64_t offset;
  if (value == 0) return;
  tn_buffer *b = &plan->buffers.v[tn_plan_root(plan, plan->buffer_of.v[value], &offset)];
  if (step > b->last) b->last = step;
}

static void extend_collective_intervals(tn_plan *plan, int32_t collective, int32_t step) {
  const tn_group *g = tn_plan_group_at(plan, collective);
  for (int32_t i = 0; i < g->n_in; i++) extend_value_interval(plan, g->in[i], step);
  for (int32_t i = 0; i < g->n_out; i++) extend_value_interval(plan, g->out[i], step);
}

static bool is_collective_step(const tn_plan *plan, int32_t step) {
  return tn_plan_group_at(plan, step)->role == TN_STREAM_COMM;
}

/* The last collective in [first, step) that the step must await; -1: the step awaits no collective. */
static int32_t last_awaited_collective(const tn_plan *plan, int32_t step, int32_t first) {
  for (int32_t c = step - 1; c >= first; c--)
    if (is_collective_step(plan, c) &&
        must_await_collective(plan, tn_plan_group_at(plan, step), tn_plan_group_at(plan, c)))
      return c;
  return -1;
}

/* The collectives in [first, last] have ended when `step` begins. */
static void end_collectives(tn_plan *plan, int32_t first, int32_t last, int32_t step) {
  for (int32_t c = first; c <= last; c++)
    if (is_collective_step(plan, c)) extend_collective_intervals(plan, c, step - 1);
}

/* Collectives from `first` on are not awaited yet. */
static void overlap_segment(tn_plan *plan, tn_plan_segment *s) {
  int32_t first = s->first, end = s->first + s->n;
  s->awaits = -1;
  for (int32_t i = s->first; i < end; i++) {
    if (is_collective_step(plan, i)) s->awaits = i;
    if (is_collective_step(plan, i) || s->awaits < first) continue;
    plan->awaits[i] = last_awaited_collective(plan, i, first);
    if (plan->awaits[i] < 0) continue;
    end_collectives(plan, first, plan->awaits[i], i);
    first = plan->awaits[i] + 1;
  }
  if (s->awaits < first) s->awaits = -1;
  end_collectives(plan, first, s->awaits, end);
}

tn_status tn_plan_overlap_collectives(tn_plan *plan) {
  plan->awaits = tn_arena_alloc(&plan->arena, plan->order.n * sizeof *plan->awaits);
  if (plan->awaits == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->order.n; i++) plan->awaits[i] = -1;
  for (size_t i = 0; i < plan->segments.n; i++)
    if (!plan->segments.v[i].fallback)
      overlap_segment(plan, &plan->segments.v[i]);
    else
      plan->segments.v[i].awaits = -1;
  return TN_OK;
}
