/* core/compile/memory/overlap_streams.c: finds the steps that run concurrently with those of other streams.
 *
 * A collective runs on the communication stream, and the copy of an offloaded value on a stream of copies,
 * after all compute steps before it. The following compute steps run concurrently, up to the first one that
 * reads the result or writes the operand or the result; that step awaits it. An offload has ended also where
 * place_transfers says. If there is no such step, the end of the segment awaits it. The live intervals of
 * operand and result extend to that point, so that memory is not used again before the compute stream has
 * awaited its last use on another stream. Steps of a stream run in order, so awaiting one awaits those before
 * it.
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
  if (b->fixed && b->location.base != TN_BASE_OFFLOAD) { /* those offsets are planned last */
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

static bool must_await(const tn_plan *plan, const tn_group *g, const tn_group *other) {
  return any_values_share_bytes(plan, other->out, other->n_out, g->in, g->n_in) ||
         any_values_share_bytes(plan, other->out, other->n_out, g->out, g->n_out) ||
         any_values_share_bytes(plan, other->in, other->n_in, g->out, g->n_out);
}

static void extend_value_interval(tn_plan *plan, tn_val value, int32_t step) {
  int64_t offset;
  if (value == 0) return;
  tn_buffer *b = &plan->buffers.v[tn_plan_root(plan, plan->buffer_of.v[value], &offset)];
  if (step > b->last) b->last = step;
}

static void extend_group_intervals(tn_plan *plan, const tn_group *g, int32_t step) {
  for (int32_t i = 0; i < g->n_in; i++) extend_value_interval(plan, g->in[i], step);
  for (int32_t i = 0; i < g->n_out; i++) extend_value_interval(plan, g->out[i], step);
}

/* An offload whose copy must have ended before the step. */
static bool ends_before(const tn_plan *plan, int32_t offload, int32_t step) {
  return plan->ends != NULL && plan->ends[plan->order.v[offload]] == plan->order.v[step];
}

/* The last step of a stream in [first, last] that the step must await; -1: it awaits none. */
static int32_t last_awaited(const tn_plan *plan, int32_t step, int32_t role, int32_t first, int32_t last) {
  for (int32_t i = last; i >= first; i--) {
    const tn_group *other = tn_plan_group_at(plan, i);
    if (other->role != role) continue;
    if (ends_before(plan, i, step) || must_await(plan, tn_plan_group_at(plan, step), other)) return i;
  }
  return -1;
}

/* The steps of a stream in [first, last] have ended when `step` begins. */
static void end_steps(tn_plan *plan, int32_t role, int32_t first, int32_t last, int32_t step) {
  for (int32_t i = first; i <= last; i++)
    if (tn_plan_group_at(plan, i)->role == role)
      extend_group_intervals(plan, tn_plan_group_at(plan, i), step - 1);
}

/* One stream beside the compute stream. Its steps from `first` on are not awaited yet. */
static void overlap_stream(tn_plan *plan, tn_plan_segment *s, int32_t role) {
  int32_t first = s->first, end = s->first + s->n, last = -1; /* a fetch may await an offload */
  for (int32_t i = s->first; i < end; i++) {
    int32_t own = tn_plan_group_at(plan, i)->role;
    if (own == role) last = i;
    if (own == role || own == TN_STREAM_COMM || last < first) continue;
    int32_t awaited = last_awaited(plan, i, role, first, last);
    plan->awaits[i].of[role] = awaited;
    if (awaited < 0 || own != TN_STREAM_COMPUTE) continue;
    end_steps(plan, role, first, awaited, i);
    first = awaited + 1;
  }
  s->awaits.of[role] = last >= first ? last : -1;
  end_steps(plan, role, first, s->awaits.of[role], end);
}

/* ---- prediction ---- */

/* `end_s`: per step. */
static void await_predicted(double *now_s, const tn_awaits *awaits, const double *end_s) {
  for (int32_t role = TN_STREAM_COMPUTE + 1; role < TN_STREAMS; role++)
    if (awaits->of[role] >= 0 && end_s[awaits->of[role]] > *now_s) *now_s = end_s[awaits->of[role]];
}

/* Steps that are placed on the host run beside the device, after the last copy that they read. */
static void overlap_predict_placed(const tn_plan *plan, const tn_plan_segment *s, double *host_s,
                                   double *end_s) {
  if (s->reads >= 0 && end_s[s->reads] > *host_s) *host_s = end_s[s->reads];
  for (int32_t i = s->first; i < s->first + s->n; i++)
    end_s[i] = *host_s += tn_plan_group_at(plan, i)->choice.cost_s;
}

/* The host enqueues nothing while it computes, so later steps begin after it. */
static void overlap_predict_segment(const tn_plan *plan, const tn_plan_segment *s, double *now_s,
                                    double *host_s, double *end_s) {
  if (s->placed) {
    overlap_predict_placed(plan, s, host_s, end_s);
    return;
  }
  if (now_s[TN_STREAM_COMPUTE] < *host_s) now_s[TN_STREAM_COMPUTE] = *host_s;
  for (int32_t i = s->first; i < s->first + s->n; i++) {
    const tn_group *g = tn_plan_group_at(plan, i);
    double *own = &now_s[g->role];
    await_predicted(own, &plan->awaits[i], end_s);
    if (*own < now_s[TN_STREAM_COMPUTE]) *own = now_s[TN_STREAM_COMPUTE];
    end_s[i] = *own += g->choice.cost_s;
  }
  await_predicted(&now_s[TN_STREAM_COMPUTE], &s->awaits, end_s);
}

double tn_plan_predict_s(const tn_plan *plan) {
  double now_s[TN_STREAMS] = {0}, host_s = 0, *end_s = tn_alloc(plan->env, plan->order.n * sizeof *end_s);
  for (size_t i = 0; end_s != NULL && i < plan->segments.n; i++)
    overlap_predict_segment(plan, &plan->segments.v[i], now_s, &host_s, end_s);
  tn_release(plan->env, end_s);
  return now_s[TN_STREAM_COMPUTE] > host_s ? now_s[TN_STREAM_COMPUTE] : host_s;
}

tn_status tn_plan_overlap_streams(tn_plan *plan) {
  static const tn_awaits none = TN_AWAITS_NONE;
  plan->awaits = tn_arena_alloc(&plan->arena, plan->order.n * sizeof *plan->awaits);
  if (plan->awaits == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->order.n; i++) plan->awaits[i] = none;
  for (size_t i = 0; i < plan->segments.n; i++) {
    plan->segments.v[i].awaits = none;
    for (int32_t role = TN_STREAM_COMPUTE + 1; role < TN_STREAMS; role++)
      if (!plan->segments.v[i].fallback) overlap_stream(plan, &plan->segments.v[i], role);
  }
  return TN_OK;
}
