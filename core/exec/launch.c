/* core/exec/launch.c: the launches of a part, and those of constants. Nothing here allocates, locks, or looks
 * up. */
#include "core/base/system.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"

static tn_status launch_step(tn_executor *e, tn_bound_step *b) {
  tn_device *device = tn_device_of(e, b->step);
  const tn_backend *backend = device->backend;
  void *stream = b->host.pub.stream;
  if (b->handoff != NULL) {
    TN_TRY(backend->event_record(&device->env, b->handoff, device->streams[TN_STREAM_COMPUTE]));
    TN_TRY(backend->event_await(&device->env, b->handoff, stream));
  }
  if (b->awaited != NULL) TN_TRY(backend->event_await(&device->env, b->awaited, stream));
  TN_TRY(tn_device_enqueue(device, b->foreign, b->launch, &b->host.pub));
  return b->end != NULL ? backend->event_record(&device->env, b->end, stream) : TN_OK;
}

/* The device's own time, which is the launch's without the host's. */
static tn_status launch_between_events(tn_executor *e, tn_bound_step *b, tn_step_time *time) {
  tn_env *env = &e->device->env;
  const tn_backend *backend = e->device->backend;
  void *stream = b->host.pub.stream;
  double seconds = 0;
  TN_TRY(backend->event_record(env, e->profile_from, stream));
  TN_TRY(launch_step(e, b));
  TN_TRY(backend->event_record(env, e->profile_to, stream));
  TN_TRY(backend->stream_wait(env, stream));
  time->end_s = tn_clock_s();
  TN_TRY(backend->event_seconds(env, e->profile_from, e->profile_to, &seconds));
  time->start_s = time->end_s - seconds;
  return TN_OK;
}

/* Waits for the launch, so that the time covers it alone. */
static tn_status launch_timed(tn_executor *e, tn_bound_step *b, tn_step_time *time) {
  tn_device *device = tn_device_of(e, b->step);
  if (device == e->device && e->profile_to != NULL) return launch_between_events(e, b, time);
  time->start_s = tn_clock_s();
  TN_TRY(launch_step(e, b));
  TN_TRY(tn_device_wait_stream(device, b->host.pub.stream));
  time->end_s = tn_clock_s();
  return TN_OK;
}

static tn_status launch_observed(tn_executor *e, tn_bound_step *b) {
  tn_device *device = tn_device_of(e, b->step);
  const tn_run_observer *observer = e->observer;
  if (observer->launching != NULL) TN_TRY(observer->launching(observer->context, b));
  TN_TRY(launch_step(e, b));
  TN_TRY(tn_device_wait_stream(device, b->host.pub.stream));
  return observer->launched(observer->context, b);
}

static tn_status launch_as_asked(tn_executor *e, tn_bound_program *bound, tn_bound_step *b, int32_t i) {
  if (e->observer != NULL) return launch_observed(e, b);
  return e->profile ? launch_timed(e, b, &bound->times[i]) : launch_step(e, b);
}

static tn_status launch_steps(tn_executor *e, tn_bound_program *bound, const tn_capture_part *part,
                              int32_t slot) {
  tn_bound_step *steps = bound->slots[slot];
  for (int32_t i = part->first; i < part->first + part->n; i++) {
    tn_status status = launch_as_asked(e, bound, &steps[i], i);
    if (status == TN_OK) continue;
    if (bound->program->segments[part->segment].fallback)
      tn_error_move(&e->device->env, &e->device->fallback->env);
    return tn_executor_wrap_step(e, bound, steps[i].step, status);
  }
  return TN_OK;
}

tn_status tn_launch_part(tn_executor *e, tn_bound_program *bound, int32_t index, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  const tn_capture_part *part = &bound->parts[index];
  TN_TRY(launch_steps(e, bound, part, slot));
  if (part->joins < 0) return TN_OK;
  return backend->event_await(&e->device->env, bound->ends[part->joins],
                              e->device->streams[TN_STREAM_COMPUTE]);
}

/* No time is taken: only the first run launches them. */
tn_status tn_launch_constants(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  for (int32_t i = bound->program->n_steps; i < tn_program_all_steps(bound->program); i++) {
    tn_bound_step *b = &bound->slots[slot][i];
    tn_status status = e->observer != NULL ? launch_observed(e, b) : launch_step(e, b);
    if (status != TN_OK) return tn_executor_wrap_step(e, bound, b->step, status);
  }
  bound->constants_made = true;
  return TN_OK;
}
