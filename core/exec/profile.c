/* core/exec/profile.c: the times of every step. */
#include "core/exec/bound_program.h"

static void profile_delete_event(tn_executor *e, void **event) {
  if (*event != NULL) e->device->backend->event_delete(&e->device->env, *event);
  *event = NULL;
}

static void profile_end(tn_executor *e) {
  for (int32_t p = 0; p < e->n_programs; p++) {
    tn_release(e->env, e->programs[p].times);
    e->programs[p].times = NULL;
  }
  profile_delete_event(e, &e->profile_from);
  profile_delete_event(e, &e->profile_to);
  e->profile = false;
}

static tn_status profile_begin(tn_executor *e) {
  tn_device *d = e->device;
  for (int32_t p = 0; p < e->n_programs; p++) {
    tn_bound_program *bound = &e->programs[p];
    bound->times = tn_alloc(e->env, tn_size_mul((size_t)bound->program->n_steps, sizeof *bound->times));
    if (bound->times == NULL) return TN_ENOMEM;
  }
  if (d->backend->event_seconds == NULL) return TN_OK;
  tn_status status = d->backend->event_new(&d->env, d->device, &e->profile_from);
  if (status == TN_OK) status = d->backend->event_new(&d->env, d->device, &e->profile_to);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_profile(tn_executor *e, bool on) {
  profile_end(e);
  tn_status status = on ? profile_begin(e) : TN_OK;
  if (status != TN_OK) profile_end(e);
  e->profile = on && status == TN_OK;
  return status;
}

const tn_step_time *tn_executor_step_times(const tn_executor *e, int32_t program) {
  return e->programs[program].times;
}
