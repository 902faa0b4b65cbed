/* core/compile/memory/overlap_collectives.c: what runs beside a collective.
 *
 * A collective has a stream of its own, on which it begins when all before it has ended. The steps behind it
 * need not wait, up to the first that reads what it writes, or writes what it reads or writes. That one
 * awaits it; at the latest the segment does, which ends on the compute stream. Until then its operands and
 * its result stay where they are: their lifetimes grow. Collectives follow each other, so that to await one
 * is to await those before it. */
#include "core/compile/memory/memory_plan.h"

/* Bytes of a buffer, or of what has a place already. */
typedef struct range {
  int32_t base, root; /* base: TN_BASE_NONE for bytes of the buffer `root`, else root is the region */
  int64_t start, end;
} range;

static const tn_group *group_at(const tn_plan *plan, int32_t step) {
  return &plan->cover->groups.v[plan->order.v[step]];
}

static range range_of(const tn_plan *plan, tn_val value) {
  range r = {TN_BASE_NONE, -1, 0, 0};
  if (value == 0) return r;
  r.root = tn_plan_root(plan, plan->buffer_of.v[value], &r.start);
  const tn_buffer *b = &plan->buffers.v[r.root];
  if (b->fixed) {
    r.base = b->place.base;
    r.root = b->place.region;
    r.start += b->place.offset;
  }
  r.end = r.start + tn_plan_value_bytes(plan, value);
  return r;
}

static bool share_bytes(const tn_plan *plan, tn_val x, tn_val y) {
  range a = range_of(plan, x), b = range_of(plan, y);
  return a.base == b.base && a.root == b.root && a.start < b.end && b.start < a.end;
}

static bool any_shared(const tn_plan *plan, const tn_val *x, int32_t n_x, const tn_val *y, int32_t n_y) {
  for (int32_t i = 0; i < n_x; i++)
    for (int32_t k = 0; k < n_y; k++)
      if (x[i] != 0 && y[k] != 0 && share_bytes(plan, x[i], y[k])) return true;
  return false;
}

static bool must_await(const tn_plan *plan, const tn_group *g, const tn_group *collective) {
  return any_shared(plan, collective->out, collective->n_out, g->in, g->n_in) ||
         any_shared(plan, collective->out, collective->n_out, g->out, g->n_out) ||
         any_shared(plan, collective->in, collective->n_in, g->out, g->n_out);
}

static void keep_until(tn_plan *plan, tn_val value, int32_t step) {
  int64_t offset;
  if (value == 0) return;
  tn_buffer *b = &plan->buffers.v[tn_plan_root(plan, plan->buffer_of.v[value], &offset)];
  if (step > b->last) b->last = step;
}

static void keep_operands(tn_plan *plan, int32_t collective, int32_t step) {
  const tn_group *g = group_at(plan, collective);
  for (int32_t i = 0; i < g->n_in; i++) keep_until(plan, g->in[i], step);
  for (int32_t i = 0; i < g->n_out; i++) keep_until(plan, g->out[i], step);
}

static bool is_collective(const tn_plan *plan, int32_t step) {
  return group_at(plan, step)->role == TN_STREAM_COMM;
}

/* The last collective from `first` on, before `step`, that the step must await; -1: none. */
static int32_t awaited_by(const tn_plan *plan, int32_t step, int32_t first) {
  for (int32_t c = step - 1; c >= first; c--)
    if (is_collective(plan, c) && must_await(plan, group_at(plan, step), group_at(plan, c))) return c;
  return -1;
}

/* Those from `first` to `last` have ended when `step` begins. */
static void await(tn_plan *plan, int32_t first, int32_t last, int32_t step) {
  for (int32_t c = first; c <= last; c++)
    if (is_collective(plan, c)) keep_operands(plan, c, step - 1);
}

/* `first` is where those begin that nobody has awaited. */
static void overlap_segment(tn_plan *plan, tn_plan_segment *s) {
  int32_t first = s->first, end = s->first + s->n;
  s->awaits = -1;
  for (int32_t i = s->first; i < end; i++) {
    if (is_collective(plan, i)) s->awaits = i;
    if (is_collective(plan, i) || s->awaits < first) continue;
    plan->awaits[i] = awaited_by(plan, i, first);
    if (plan->awaits[i] < 0) continue;
    await(plan, first, plan->awaits[i], i);
    first = plan->awaits[i] + 1;
  }
  if (s->awaits < first) s->awaits = -1;
  await(plan, first, s->awaits, end);
}

tn_status tn_plan_overlap(tn_plan *plan) {
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
