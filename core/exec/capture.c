/* core/exec/capture.c: the launches of a segment, recorded once and replayed with one call. Copies of inputs
 * and outputs are not part of a capture: they run on streams of their own beside the computation of another
 * slot, and a replay would wait for all earlier work on its stream. */
#include "core/exec/bound_program.h"

/* The table entry for a segment on a slot. */
static void **capture_entry(const tn_bound_program *bound, int32_t segment, int32_t slot) {
  return &bound->captures[slot * bound->program->n_segments + segment];
}

void *tn_captures_find(const tn_bound_program *bound, int32_t segment, int32_t slot) {
  return bound->captures == NULL ? NULL : *capture_entry(bound, segment, slot);
}

static bool can_capture(const tn_executor *e, const tn_bound_program *bound, const tn_segment *s) {
  const tn_backend *backend = e->device->backend;
  bool capturable = backend->capture != NULL && !s->fallback && s->n > 0;
  for (int32_t i = s->first; capturable && i < s->first + s->n; i++)
    capturable = bound->program->steps[i].group->choice.capturable;
  return capturable;
}

/* The launches to capture, and their failure. */
typedef struct captured_segment {
  tn_executor *e;
  tn_bound_program *bound;
  int32_t segment, slot;
  tn_status launched;
  tn_error_record cause;
} captured_segment;

static tn_status launch_captured(void *arg) {
  captured_segment *s = arg;
  s->launched = tn_launch_segment(s->e, s->bound, s->segment, s->slot);
  s->cause = s->e->device->record;
  return s->launched;
}

static tn_status capture_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot) {
  captured_segment s = {.e = e, .bound = bound, .segment = segment, .slot = slot};
  tn_device *device = e->device;
  void *compute = device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  tn_status status =
      device->backend->capture(&device->env, device->device, compute, launch_captured, &s, &capture);
  if (s.launched != TN_OK) {
    status = s.launched;
    device->record = s.cause; /* later messages follow from it */
  }
  if (status == TN_OK)
    *capture_entry(bound, segment, slot) = capture;
  else if (capture != NULL)
    device->backend->capture_delete(&device->env, capture);
  return status;
}

static tn_status capture_slots(tn_executor *e, tn_bound_program *bound, int32_t segment) {
  for (int32_t slot = 0; slot < e->n_slots; slot++) TN_TRY(capture_segment(e, bound, segment, slot));
  return TN_OK;
}

tn_status tn_captures_record(tn_executor *e, tn_bound_program *bound) {
  const tn_program *program = bound->program;
  bound->capture_tried = true;
  size_t n = tn_size_mul((size_t)e->n_slots, (size_t)program->n_segments);
  bound->captures = tn_alloc(&e->device->env, tn_size_mul(n, sizeof(void *)));
  if (bound->captures == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < program->n_segments; i++) {
    if (!can_capture(e, bound, &program->segments[i])) continue;
    tn_status status = capture_slots(e, bound, i);
    if (status != TN_OK && status != TN_EUNSUPPORTED) return status;
    if (status == TN_OK) continue;
    tn_logf(e->env, TN_LOG_WARN, "program '%s' is launched step by step, without capture: %s", program->name,
            tn_error_text(&e->device->env));
    tn_error_clear(&e->device->env); /* logged; the run goes on */
  }
  return TN_OK;
}

void tn_captures_destroy(tn_executor *e, tn_bound_program *bound) {
  int32_t n = bound->captures == NULL ? 0 : e->n_slots * bound->program->n_segments;
  for (int32_t i = 0; i < n; i++)
    if (bound->captures[i] != NULL) e->device->backend->capture_delete(&e->device->env, bound->captures[i]);
  tn_release(e->env, bound->captures);
}
