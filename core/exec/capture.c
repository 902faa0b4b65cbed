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
  bool capturable = backend->capture_begin != NULL && !s->fallback && s->n > 0;
  for (int32_t i = s->first; capturable && i < s->first + s->n; i++)
    capturable = bound->program->steps[i].group->choice.capturable;
  return capturable;
}

/* Records a segment on n slots as one capture. */
static tn_status capture_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot,
                                 int32_t n, void **entry) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *compute = e->device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  tn_status launched = TN_OK;
  TN_TRY(backend->capture_begin(env, e->device->device, compute));
  for (int32_t i = 0; i < n && launched == TN_OK; i++)
    launched = tn_launch_segment(e, bound, segment, slot + i);
  tn_error_record cause = e->device->record;
  tn_status ended = backend->capture_end(env, e->device->device, compute, &capture);
  if (launched == TN_OK) {
    *entry = capture;
    return ended;
  }
  if (capture != NULL) backend->capture_delete(env, capture);
  e->device->record = cause; /* later messages follow from it */
  return launched;
}

static tn_status capture_slots(tn_executor *e, tn_bound_program *bound, int32_t segment) {
  for (int32_t slot = 0; slot < e->n_slots; slot++) {
    TN_TRY(capture_segment(e, bound, segment, slot, 1, capture_entry(bound, segment, slot)));
  }
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

/* ---- several runs in one capture ---- */

/* Between the runs there is nothing but launches of one captured segment. */
static bool can_chain(const tn_bound_program *bound) {
  return bound->captures != NULL && bound->program->n_segments == 1 && bound->captures[0] != NULL &&
         bound->folded == NULL;
}

static tn_status record_chains(tn_executor *e, tn_bound_program *bound, int32_t n) {
  int32_t groups = e->n_slots / n;
  bound->chain_runs = n;
  bound->chains = tn_alloc(&e->device->env, tn_size_mul((size_t)groups + 1, sizeof(void *)));
  if (bound->chains == NULL) return TN_ENOMEM;
  for (int32_t g = 0; g < groups; g++) {
    tn_status status = capture_segment(e, bound, 0, g * n, n, &bound->chains[g]);
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
  int32_t n = bound->captures == NULL ? 0 : e->n_slots * bound->program->n_segments;
  for (int32_t i = 0; i < n; i++)
    if (bound->captures[i] != NULL) e->device->backend->capture_delete(&e->device->env, bound->captures[i]);
  tn_release(e->env, bound->captures);
  destroy_chains(e, bound);
}
