/* core/compile/memory/fallback_segments.c: cuts a program into segments around the steps that fall back.
 *
 * A cut is as long as steps that fall back follow each other. What they read is copied to the host once,
 * before the first of them, what the device needs of their results once, after the last; both have images
 * in the host memory, whose offsets are planned like those of the arena. A value that only the fallback
 * uses never reaches the device. A program's inputs lie on the host anyway. */
#include "core/compile/memory/pack_intervals.h"
#include "core/compile/memory/memory_plan.h"

typedef struct cutting {
  tn_plan *plan;
  bool *read;    /* per buffer: by a step of the device */
  int32_t *step; /* per group */
} cutting;

static const tn_group *group_at(const tn_plan *plan, size_t step) {
  return &plan->cover->groups.v[plan->order.v[step]];
}

/* ---- segments ---- */

static bool is_written_in(const cutting *c, int32_t buffer, const tn_plan_segment *segment) {
  int32_t writer = c->plan->buffers.v[buffer].writer;
  return writer >= 0 && c->step[writer] >= segment->first;
}

/* A pack is whole only on the device: a step that reads one must come after the copies of its parts. */
static bool reads_unfinished_pack(const cutting *c, const tn_group *g, const tn_plan_segment *segment) {
  const tn_plan *plan = c->plan;
  for (int32_t k = 0; k < g->n_in; k++) {
    int32_t part = g->in[k] == 0 ? -1 : plan->buffers.v[plan->buffer_of.v[g->in[k]]].first_part;
    for (; part >= 0; part = plan->buffers.v[part].next_part)
      if (is_written_in(c, part, segment)) return true;
  }
  return false;
}

static bool starts_segment(const cutting *c, const tn_group *g) {
  if (c->plan->segments.n == 0) return true;
  const tn_plan_segment *last = &c->plan->segments.v[c->plan->segments.n - 1];
  if (last->fallback != (g->fallback != NULL)) return true;
  return last->fallback && reads_unfinished_pack(c, g, last);
}

static tn_status list_segments(cutting *c) {
  tn_plan *plan = c->plan;
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = group_at(plan, s);
    tn_plan_segment segment = {.first = (int32_t)s, .fallback = g->fallback != NULL};
    if (starts_segment(c, g)) TN_TRY(tn_vec_push(plan->env, &plan->segments, segment));
    plan->segments.v[plan->segments.n - 1].n++;
  }
  return TN_OK;
}

/* ---- what crosses ---- */

static bool lies_in_slot(const tn_buffer *b) { return b->fixed && b->place.base == TN_BASE_SLOT; }

/* Something other than a step that falls back reads the buffer, or it has a place of its own there. */
static bool is_needed_on_device(const cutting *c, int32_t buffer) {
  const tn_buffer *b = &c->plan->buffers.v[buffer];
  return c->read[buffer] || b->fixed || b->commit >= 0 || b->parent >= 0;
}

static tn_status add_image(tn_plan *plan, int32_t buffer, int32_t first, int32_t last) {
  tn_image image = {plan->buffers.v[buffer].bytes, 0, first, last};
  plan->buffers.v[buffer].image = (int32_t)plan->images.n;
  return tn_vec_push(plan->env, &plan->images, image);
}

static tn_status bring_operand(cutting *c, const tn_plan_segment *cut, int32_t step, tn_val value) {
  tn_plan *plan = c->plan;
  int32_t buffer = value == 0 ? -1 : plan->buffer_of.v[value];
  if (buffer < 0 || lies_in_slot(&plan->buffers.v[buffer])) return TN_OK;
  int32_t image = plan->buffers.v[buffer].image;
  if (image >= 0) {
    if (step > plan->images.v[image].last) plan->images.v[image].last = step;
    return TN_OK;
  }
  tn_plan_transfer transfer = {value, step};
  if (plan->buffers.v[buffer].bytes > 0) TN_TRY(tn_vec_push(plan->env, &plan->out, transfer));
  return add_image(plan, buffer, cut->first, step);
}

static tn_status return_result(cutting *c, const tn_plan_segment *cut, int32_t step, tn_val value) {
  tn_plan *plan = c->plan;
  int32_t buffer = plan->buffer_of.v[value];
  tn_plan_transfer transfer = {value, step};
  if (!is_needed_on_device(c, buffer)) return add_image(plan, buffer, step, step);
  if (plan->buffers.v[buffer].bytes > 0) TN_TRY(tn_vec_push(plan->env, &plan->in, transfer));
  return add_image(plan, buffer, step, cut->first + cut->n - 1);
}

static tn_status list_transfers(cutting *c, tn_plan_segment *cut) {
  tn_plan *plan = c->plan;
  cut->first_out = (int32_t)plan->out.n;
  cut->first_in = (int32_t)plan->in.n;
  for (int32_t s = cut->first; cut->fallback && s < cut->first + cut->n; s++) {
    const tn_group *g = group_at(plan, (size_t)s);
    for (int32_t k = 0; k < g->n_in; k++) TN_TRY(bring_operand(c, cut, s, g->in[k]));
    for (int32_t k = 0; k < g->n_out; k++) TN_TRY(return_result(c, cut, s, g->out[k]));
  }
  cut->n_out = (int32_t)plan->out.n - cut->first_out;
  cut->n_in = (int32_t)plan->in.n - cut->first_in;
  return TN_OK;
}

static void mark_readers(cutting *c) {
  const tn_plan *plan = c->plan;
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = group_at(plan, s);
    c->step[plan->order.v[s]] = (int32_t)s;
    for (int32_t k = 0; k < g->n_in && g->fallback == NULL; k++)
      if (g->in[k] != 0) c->read[plan->buffer_of.v[g->in[k]]] = true;
  }
}

tn_status tn_plan_segment_steps(tn_plan *plan) {
  cutting c = {plan, tn_alloc(plan->env, plan->buffers.n * sizeof *c.read),
               tn_alloc(plan->env, plan->cover->groups.n * sizeof *c.step)};
  tn_status status = c.read == NULL || c.step == NULL ? TN_ENOMEM : TN_OK;
  if (status == TN_OK) mark_readers(&c);
  if (status == TN_OK) status = list_segments(&c);
  for (size_t i = 0; status == TN_OK && i < plan->segments.n; i++)
    status = list_transfers(&c, &plan->segments.v[i]);
  tn_release(plan->env, c.read);
  tn_release(plan->env, c.step);
  return status;
}

/* ---- the host memory ---- */

tn_place tn_plan_host_place_of(const tn_plan *plan, tn_val value) {
  const tn_buffer *b = value == 0 ? NULL : &plan->buffers.v[plan->buffer_of.v[value]];
  if (b == NULL || b->image < 0) return tn_plan_place_of(plan, value);
  return (tn_place){TN_BASE_HOST, 0, plan->images.v[b->image].offset};
}

/* Images first, then the workspaces of the steps that fall back. */
static int32_t list_intervals(const tn_plan *plan, tn_interval *intervals) {
  int32_t n = 0;
  for (size_t i = 0; i < plan->images.n; i++) {
    const tn_image *image = &plan->images.v[i];
    if (image->bytes > 0) intervals[n++] = (tn_interval){image->bytes, image->first, image->last, 0};
  }
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = group_at(plan, s);
    int64_t bytes = g->choice.workspace_bytes;
    if (g->fallback != NULL && bytes > 0) intervals[n++] = (tn_interval){bytes, (int32_t)s, (int32_t)s, 0};
  }
  return n;
}

static void store_offsets(tn_plan *plan, const tn_interval *intervals) {
  for (size_t i = 0; i < plan->images.n; i++)
    if (plan->images.v[i].bytes > 0) plan->images.v[i].offset = (intervals++)->offset;
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = group_at(plan, s);
    if (g->fallback != NULL && g->choice.workspace_bytes > 0) plan->workspace[s] = (intervals++)->offset;
  }
}

tn_status tn_plan_host(tn_plan *plan) {
  tn_interval *intervals = tn_alloc(plan->env, (plan->images.n + plan->order.n) * sizeof *intervals);
  if (intervals == NULL) return TN_ENOMEM;
  int32_t n = list_intervals(plan, intervals);
  tn_status status = tn_offsets_assign(plan->env, intervals, n, &plan->host_bytes);
  if (status == TN_OK) store_offsets(plan, intervals);
  tn_release(plan->env, intervals);
  return status;
}
