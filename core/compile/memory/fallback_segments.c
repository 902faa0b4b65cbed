/* core/compile/memory/fallback_segments.c: cuts a program into segments around the steps that fall back.
 *
 * Consecutive steps that fall back are one cut. Their operands are copied to the host once, before the first
 * of them, and the results that the device needs are copied back once, after the last. Both have images in
 * the host memory, whose offsets are planned like those of the arena. A value that only the fallback uses is
 * never on the device. A program's inputs are on the host in any case.
 *
 * Groups that are placed on the host (tn_group.placed) are segments without copies: those are steps of their
 * own. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/packing/pack_intervals.h"
#include "core/compile/memory/memory_plan.h"

typedef struct segment_plan {
  tn_plan *plan;
  bool *read;    /* per buffer: a step on the device reads it */
  int32_t *step; /* per group */
} segment_plan;

/* ---- segments ---- */

static bool is_written_in_segment(const segment_plan *c, int32_t buffer, const tn_plan_segment *segment) {
  int32_t writer = c->plan->buffers.v[buffer].writer;
  return writer >= 0 && c->step[writer] >= segment->first;
}

/* A pack is complete only on the device: a step that reads it must come after the copies of its parts. */
static bool reads_unfinished_pack(const segment_plan *c, const tn_group *g, const tn_plan_segment *segment) {
  const tn_plan *plan = c->plan;
  for (int32_t k = 0; k < g->n_in; k++) {
    int32_t part = g->in[k] == 0 ? -1 : plan->buffers.v[plan->buffer_of.v[g->in[k]]].first_part;
    for (; part >= 0; part = plan->buffers.v[part].next_part)
      if (is_written_in_segment(c, part, segment)) return true;
  }
  return false;
}

/* The last step that copies an operand of a placed group to the host; -1: none does. */
static int32_t last_placed_read(const segment_plan *c, const tn_group *g) {
  const tn_plan *plan = c->plan;
  int32_t last = -1;
  for (int32_t k = 0; k < g->n_in; k++) {
    int32_t writer = g->in[k] == 0 ? -1 : plan->buffers.v[plan->buffer_of.v[g->in[k]]].writer;
    if (writer < 0 || !tn_plan_is_placed_transfer(&plan->cover->groups.v[writer], TN_TRANSFER_OFFLOAD))
      continue;
    if (c->step[writer] > last) last = c->step[writer];
  }
  return last;
}

/* A placed group that waits for a later copy than those before it has a segment of its own. */
static bool starts_segment(const segment_plan *c, const tn_group *g) {
  if (c->plan->segments.n == 0) return true;
  const tn_plan_segment *last = &c->plan->segments.v[c->plan->segments.n - 1];
  if (last->fallback != (g->fallback != NULL) || last->placed != (last->fallback && g->placed)) return true;
  if (last->placed) return last_placed_read(c, g) > last->reads;
  return last->fallback && reads_unfinished_pack(c, g, last);
}

static tn_status list_segments(segment_plan *c) {
  tn_plan *plan = c->plan;
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = tn_plan_group_at(plan, (int32_t)s);
    bool fallback = g->fallback != NULL, placed = fallback && g->placed;
    tn_plan_segment segment = {.first = (int32_t)s,
                               .fallback = fallback,
                               .placed = placed,
                               .reads = placed ? last_placed_read(c, g) : -1};
    if (starts_segment(c, g)) TN_TRY(tn_vec_push(plan->env, &plan->segments, segment));
    plan->segments.v[plan->segments.n - 1].n++;
  }
  return TN_OK;
}

/* ---- transfers ---- */

static bool is_slot_buffer(const tn_buffer *b) { return b->fixed && b->location.base == TN_BASE_SLOT; }

/* A step on the device reads the buffer, or it has a location there. */
static bool is_buffer_needed_on_device(const segment_plan *c, int32_t buffer) {
  const tn_buffer *b = &c->plan->buffers.v[buffer];
  return c->read[buffer] || b->fixed || b->commit >= 0 || b->parent >= 0;
}

static tn_status add_buffer_image(tn_plan *plan, int32_t buffer, int32_t first, int32_t last) {
  tn_image image = {plan->buffers.v[buffer].bytes, 0, first, last};
  plan->buffers.v[buffer].image = (int32_t)plan->images.n;
  return tn_vec_push(plan->env, &plan->images, image);
}

static tn_status transfer_operand(segment_plan *c, const tn_plan_segment *cut, int32_t step, tn_val value) {
  tn_plan *plan = c->plan;
  int32_t buffer = value == 0 ? -1 : plan->buffer_of.v[value];
  if (buffer < 0 || is_slot_buffer(&plan->buffers.v[buffer])) return TN_OK;
  int32_t image = plan->buffers.v[buffer].image;
  if (image >= 0) {
    if (step > plan->images.v[image].last) plan->images.v[image].last = step;
    return TN_OK;
  }
  tn_plan_transfer transfer = {value, step};
  if (plan->buffers.v[buffer].bytes > 0) TN_TRY(tn_vec_push(plan->env, &plan->out, transfer));
  return add_buffer_image(plan, buffer, cut->first, step);
}

static tn_status transfer_result(segment_plan *c, const tn_plan_segment *cut, int32_t step, tn_val value) {
  tn_plan *plan = c->plan;
  int32_t buffer = plan->buffer_of.v[value];
  tn_plan_transfer transfer = {value, step};
  if (!is_buffer_needed_on_device(c, buffer)) return add_buffer_image(plan, buffer, step, step);
  if (plan->buffers.v[buffer].bytes > 0) TN_TRY(tn_vec_push(plan->env, &plan->in, transfer));
  return add_buffer_image(plan, buffer, step, cut->first + cut->n - 1);
}

static tn_status list_transfers(segment_plan *c, tn_plan_segment *cut) {
  tn_plan *plan = c->plan;
  cut->first_out = (int32_t)plan->out.n;
  cut->first_in = (int32_t)plan->in.n;
  for (int32_t s = cut->first; cut->fallback && !cut->placed && s < cut->first + cut->n; s++) {
    const tn_group *g = tn_plan_group_at(plan, s);
    for (int32_t k = 0; k < g->n_in; k++) TN_TRY(transfer_operand(c, cut, s, g->in[k]));
    for (int32_t k = 0; k < g->n_out; k++) TN_TRY(transfer_result(c, cut, s, g->out[k]));
  }
  cut->n_out = (int32_t)plan->out.n - cut->first_out;
  cut->n_in = (int32_t)plan->in.n - cut->first_in;
  return TN_OK;
}

static void mark_device_reads(segment_plan *c) {
  const tn_plan *plan = c->plan;
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = tn_plan_group_at(plan, (int32_t)s);
    c->step[plan->order.v[s]] = (int32_t)s;
    for (int32_t k = 0; k < g->n_in && g->fallback == NULL; k++)
      if (g->in[k] != 0) c->read[plan->buffer_of.v[g->in[k]]] = true;
  }
}

tn_status tn_plan_fallback_segments(tn_plan *plan) {
  segment_plan c = {plan, tn_alloc(plan->env, plan->buffers.n * sizeof *c.read),
                    tn_alloc(plan->env, plan->cover->groups.n * sizeof *c.step)};
  tn_status status = c.read == NULL || c.step == NULL ? TN_ENOMEM : TN_OK;
  if (status == TN_OK) mark_device_reads(&c);
  if (status == TN_OK) status = list_segments(&c);
  for (size_t i = 0; status == TN_OK && i < plan->segments.n; i++)
    status = list_transfers(&c, &plan->segments.v[i]);
  tn_release(plan->env, c.read);
  tn_release(plan->env, c.step);
  return status;
}

/* ---- the host memory ---- */

tn_location tn_plan_host_location(const tn_plan *plan, tn_val value) {
  const tn_buffer *b = value == 0 ? NULL : &plan->buffers.v[plan->buffer_of.v[value]];
  if (b == NULL || b->image < 0) return tn_plan_location(plan, value);
  return (tn_location){TN_BASE_HOST, 0, plan->images.v[b->image].offset};
}

/* Images first, then the workspaces of the steps on the fallback. */
static int32_t list_host_intervals(const tn_plan *plan, tn_live_interval *intervals) {
  int32_t n = 0;
  for (size_t i = 0; i < plan->images.n; i++) {
    const tn_image *image = &plan->images.v[i];
    if (image->bytes > 0) intervals[n++] = (tn_live_interval){image->bytes, image->first, image->last, 0};
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = tn_plan_group_at(plan, (int32_t)s);
    int64_t bytes = g->choice.workspace_bytes;
    if (g->fallback != NULL && bytes > 0)
      intervals[n++] = (tn_live_interval){bytes, (int32_t)s, (int32_t)s, 0};
  }
  return n;
}

static void store_host_offsets(tn_plan *plan, const tn_live_interval *intervals) {
  for (size_t i = 0; i < plan->images.n; i++)
    if (plan->images.v[i].bytes > 0) plan->images.v[i].offset = (intervals++)->offset;
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = tn_plan_group_at(plan, (int32_t)s);
    if (g->fallback != NULL && g->choice.workspace_bytes > 0) plan->workspace[s] = (intervals++)->offset;
  }
}

tn_status tn_plan_host_offsets(tn_plan *plan) {
  tn_live_interval *intervals = tn_alloc(plan->env, (plan->images.n + plan->order.n) * sizeof *intervals);
  if (intervals == NULL) return TN_ENOMEM;
  int32_t n = list_host_intervals(plan, intervals);
  const tn_packing_goal goal = {0};
  tn_status status = tn_intervals_pack(plan->env, intervals, n, &goal, &plan->host_bytes);
  if (status == TN_OK) store_host_offsets(plan, intervals);
  tn_release(plan->env, intervals);
  return status;
}
