/* core/exec/capture.c: the captured parts of a program (core/compile/capture_parts.h), recorded once and
 * replayed with one call each. Copies of inputs and outputs are not part of a capture: they run on streams of
 * their own beside the computation of another slot, and a replay would wait for all earlier work on its
 * stream. The backend records (tn_backend.capture). */
#include "core/exec/bound_program.h"
#include "core/exec/flight_recorder.h"

/* The table entry for a part on a slot. */
static void **capture_entry(const tn_bound_program *bound, int32_t part, int32_t slot) {
  return &bound->captures[slot * bound->n_parts + part];
}

void *tn_captures_find(const tn_bound_program *bound, int32_t part, int32_t slot) {
  return bound->captures == NULL ? NULL : *capture_entry(bound, part, slot);
}

/* The launches to capture, on n slots from `slot` on, and their failure. */
typedef struct captured_part {
  tn_executor *e;
  tn_bound_program *bound;
  int32_t part, slot, n;
  tn_status launched;
  tn_error_record cause;
} captured_part;

static tn_status launch_captured(void *arg) {
  captured_part *p = arg;
  for (int32_t i = 0; i < p->n && p->launched == TN_OK; i++)
    p->launched = tn_launch_part(p->e, p->bound, p->part, p->slot + i);
  p->cause = p->e->device->record;
  return p->launched;
}

/* Records a part on n slots as one capture. */
static tn_status capture_part(tn_executor *e, tn_bound_program *bound, int32_t part, int32_t slot, int32_t n,
                              void **entry) {
  captured_part p = {.e = e, .bound = bound, .part = part, .slot = slot, .n = n};
  tn_device *device = e->device;
  void *compute = device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  tn_flight *flight = device->flight;
  device->flight = NULL; /* its collectives run in replays */
  tn_status status =
      device->backend->capture(&device->env, device->device, compute, launch_captured, &p, &capture);
  device->flight = flight;
  if (p.launched != TN_OK) {
    if (status != TN_EUNSUPPORTED) status = p.launched; /* else the backend knows that the device goes on */
    device->record = p.cause;                           /* later messages follow from it */
  }
  if (status == TN_OK)
    *entry = capture;
  else if (capture != NULL)
    device->backend->capture_delete(&device->env, capture);
  return status;
}

static tn_status capture_slots(tn_executor *e, tn_bound_program *bound, int32_t part) {
  for (int32_t slot = 0; slot < e->n_slots; slot++)
    TN_TRY(capture_part(e, bound, part, slot, 1, capture_entry(bound, part, slot)));
  return TN_OK;
}

/* A collective is captured on all ranks or on none (NCCL), and the others may have recorded the part. A
 * rehearsal is refused on every rank. */
static bool must_record(const tn_executor *e, const tn_bound_program *bound, int32_t part) {
  bool rehearses = e->device->rehearsed != NULL;
  return e->device->comm != NULL && !rehearses && bound->first_call[part + 1] > bound->first_call[part];
}

static tn_status refuse_part(tn_executor *e, const tn_bound_program *bound, const tn_capture_part *part) {
  const tn_error_record cause = e->device->record;
  return tn_failf(
      &e->device->env, TN_EDEVICE,
      "program '%s': launches %d to %d of %d cannot be captured, and have collectives, which all ranks "
      "capture or none; set [backend] capture = no: %s",
      bound->program->name, (int)part->first, (int)(part->first + part->n - 1), (int)bound->program->n_steps,
      cause.text);
}

/* Records a part. Where the backend refuses, its launches are enqueued one by one. */
static tn_status record_part(tn_executor *e, tn_bound_program *bound, int32_t index) {
  const tn_capture_part *part = &bound->parts[index];
  tn_status status = capture_slots(e, bound, index);
  if (status != TN_EUNSUPPORTED) return status;
  if (must_record(e, bound, index)) return refuse_part(e, bound, part);
  tn_logf(e->env, TN_LOG_WARN, "program '%s': launches %d to %d of %d are enqueued one by one: %s",
          bound->program->name, (int)part->first, (int)(part->first + part->n - 1),
          (int)bound->program->n_steps, tn_error_text(&e->device->env));
  tn_error_clear(&e->device->env); /* logged; the run goes on */
  return TN_OK;
}

/* Names the launches that are not captured beside those that are. */
static void log_uncaptured(const tn_executor *e, const tn_bound_program *bound) {
  tn_text text = tn_text_new(e->env);
  if (tn_capture_parts_describe(bound->program, bound->parts, bound->n_parts, &text) > 0 && !text.failed)
    tn_logf(e->env, TN_LOG_WARN, "program '%s': %s", bound->program->name, text.v);
  tn_text_free(&text);
}

tn_status tn_captures_record(tn_executor *e, tn_bound_program *bound) {
  bound->capture_tried = true;
  size_t n = tn_size_mul((size_t)e->n_slots, (size_t)bound->n_parts);
  bound->captures = tn_alloc(&e->device->env, tn_size_mul(n, sizeof(void *)));
  if (bound->captures == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < bound->n_parts; i++)
    if (bound->parts[i].captured) TN_TRY(record_part(e, bound, i));
  log_uncaptured(e, bound);
  return TN_OK;
}

/* ---- several runs in one capture ---- */

/* A run has nothing but the launches of one captured part. */
static bool can_chain(const tn_bound_program *bound) {
  return bound->captures != NULL && bound->program->n_segments == 1 && bound->n_parts == 1 &&
         bound->parts[0].n == bound->program->n_steps && bound->captures[0] != NULL && bound->folded == NULL;
}

static tn_status record_chains(tn_executor *e, tn_bound_program *bound, int32_t n) {
  int32_t groups = e->n_slots / n;
  bound->chain_runs = n;
  bound->chains = tn_alloc(&e->device->env, tn_size_mul((size_t)groups + 1, sizeof(void *)));
  if (bound->chains == NULL) return TN_ENOMEM;
  for (int32_t g = 0; g < groups; g++) {
    tn_status status = capture_part(e, bound, 0, g * n, n, &bound->chains[g]);
    if (status != TN_OK && status != TN_EUNSUPPORTED) return status;
    if (status == TN_OK) continue;
    tn_logf(e->env, TN_LOG_WARN, "program '%s': %d runs are replayed one by one: %s", bound->program->name,
            (int)n, tn_error_text(&e->device->env));
    tn_error_clear(&e->device->env); /* logged; the run goes on */
    return TN_OK;
  }
  return TN_OK;
}

tn_status tn_captures_find_chain(tn_executor *e, tn_bound_program *bound, int32_t slot, int32_t n,
                                 void **capture) {
  *capture = NULL;
  if (!can_chain(bound)) return TN_OK;
  if (bound->chain_runs == 0) TN_TRY(record_chains(e, bound, n));
  if (n == bound->chain_runs && slot % n == 0) *capture = bound->chains[slot / n];
  return TN_OK;
}

static void destroy_chains(tn_executor *e, tn_bound_program *bound) {
  int32_t groups = bound->chains == NULL ? 0 : e->n_slots / bound->chain_runs;
  for (int32_t g = 0; g < groups; g++)
    if (bound->chains[g] != NULL) e->device->backend->capture_delete(&e->device->env, bound->chains[g]);
  tn_release(e->env, bound->chains);
}

void tn_captures_destroy(tn_executor *e, tn_bound_program *bound) {
  int32_t n = bound->captures == NULL ? 0 : e->n_slots * bound->n_parts;
  for (int32_t i = 0; i < n; i++)
    if (bound->captures[i] != NULL) e->device->backend->capture_delete(&e->device->env, bound->captures[i]);
  tn_release(e->env, bound->captures);
  destroy_chains(e, bound);
}
