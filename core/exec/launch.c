/* core/exec/launch.c: the launches of a part, and those of constants. Nothing here allocates, locks, or looks
 * up. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"
#include "core/exec/device/range.h"

tn_launch_host tn_step_launch(const tn_device *device, const tn_step *step, tn_view *views, void *prepared,
                              void *stream) {
  const tn_choice *choice = &step->group->choice;
  return (tn_launch_host){.pub = {.env = device->env,
                                  .struct_size = sizeof(tn_launch),
                                  .n_in = step->n_in,
                                  .n_out = step->n_out,
                                  .in = views,
                                  .out = views + step->n_in,
                                  .prepared = prepared,
                                  .workspace_bytes = choice->workspace_bytes,
                                  .stream = stream,
                                  .name = step->name,
                                  .folded_bytes = choice->folded_bytes,
                                  .cost_s = choice->cost_s},
                          .parallel = device->backend->parallel,
                          .device = device->device};
}

static tn_status launch_await_end(tn_executor *e, const tn_awaited_end *end, void *stream) {
  if (stream == e->device->streams[TN_STREAM_COMPUTE]) return tn_await_end(e, end);
  TN_TRY(tn_comm_await(e->device, end->number));
  return e->device->backend->event_await(&e->device->env, end->event, stream);
}

/* The waits of a launch on its stream. */
static tn_status launch_await(tn_executor *e, tn_bound_step *b) {
  tn_device *device = tn_device_of(e, b->step);
  const tn_backend *backend = device->backend;
  void *stream = b->host.pub.stream;
  if (b->handoff != NULL) {
    TN_TRY(backend->event_record(&device->env, b->handoff, device->streams[TN_STREAM_COMPUTE]));
    TN_TRY(backend->event_await(&device->env, b->handoff, stream));
  }
  if (b->followed != NULL) TN_TRY(backend->event_await(&device->env, b->followed, stream));
  for (int32_t role = 0; b->awaits && role < TN_STREAMS; role++)
    if (b->awaited[role] != NULL) TN_TRY(launch_await_end(e, b->awaited[role], stream));
  return TN_OK;
}

static tn_status launch_enqueue(tn_executor *e, tn_bound_step *b) {
  tn_range_begin(e->device, b->step->name);
  tn_status status = tn_device_enqueue(tn_device_of(e, b->step), b->foreign, b->launch, &b->host.pub);
  tn_range_end(e->device);
  return status;
}

static tn_status launch_mark_end(tn_executor *e, tn_bound_step *b) {
  tn_device *device = tn_device_of(e, b->step);
  if (b->end == NULL) return TN_OK;
  b->end->number = b->step->group->role == TN_STREAM_COMM ? tn_comm_begun(device) : 0;
  if (b->step->group->placed && b->step->group->role == TN_STREAM_COPY_IN) e->fetched = b->end->event;
  return device->backend->event_record(&device->env, b->end->event, b->host.pub.stream);
}

static tn_status launch_step(tn_executor *e, tn_bound_step *b) {
  TN_TRY(launch_await(e, b));
  TN_TRY(launch_enqueue(e, b));
  return launch_mark_end(e, b);
}

static int32_t launch_track(const tn_executor *e, const tn_step *step) {
  int32_t role = step->group->role;
  if (tn_device_of(e, step) != e->device) return TN_TRACK_FALLBACK;
  return TN_TRACK_STREAM + (role >= 0 && role < TN_STREAMS ? role : TN_STREAM_COMPUTE);
}

static tn_status launch_timed(tn_executor *e, tn_bound_program *bound, tn_bound_step *b, int32_t i) {
  tn_timed_work work = {.span = {.kind = TN_SPAN_LAUNCH,
                                 .track = launch_track(e, b->step),
                                 .program = (int32_t)(bound - e->programs),
                                 .step = i},
                        .device = tn_device_of(e, b->step),
                        .stream = b->host.pub.stream};
  TN_TRY(launch_await(e, b));
  TN_TRY(tn_profile_from(e, &work));
  TN_TRY(launch_enqueue(e, b));
  TN_TRY(tn_profile_to(e, &work));
  return launch_mark_end(e, b);
}

/* A copy of an offloaded value has nothing to observe. */
static tn_status launch_observed(tn_executor *e, tn_bound_step *b) {
  tn_device *device = tn_device_of(e, b->step);
  const tn_run_observer *observer = e->observer;
  if (tn_kernel_is_transfer(b->step->group->kernel)) return launch_step(e, b);
  if (observer->launching != NULL) TN_TRY(observer->launching(observer->context, b));
  TN_TRY(launch_step(e, b));
  TN_TRY(tn_device_wait_stream(device, b->host.pub.stream));
  return observer->launched(observer->context, b);
}

static tn_status launch_as_asked(tn_executor *e, tn_bound_program *bound, tn_bound_step *b, int32_t i) {
  if (e->observer != NULL) return launch_observed(e, b);
  return e->times != NULL ? launch_timed(e, bound, b, i) : launch_step(e, b);
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
  const tn_capture_part *part = &bound->parts[index];
  TN_TRY(launch_steps(e, bound, part, slot));
  for (int32_t role = 0; role < TN_STREAMS; role++)
    if (part->joins.of[role] >= 0) TN_TRY(tn_await_end(e, &bound->ends[part->joins.of[role]]));
  return TN_OK;
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
