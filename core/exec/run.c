/* core/exec/run.c: one run of a program on a slot. Nothing here allocates, locks, or looks up. */
#include "core/base/thread.h"
#include "core/exec/bound_program.h"
#include "core/exec/nonfinite/search_hooks.h"
#include "core/exec/device/pin_threads.h"

static tn_status launch_one(tn_executor *e, tn_bound_step *b) {
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

/* Waiting for each launch, so that its time is its own. */
static tn_status launch_timed(tn_executor *e, tn_bound_step *b, tn_interval *interval) {
  tn_device *device = tn_device_of(e, b->step);
  interval->start_s = tn_clock_s();
  TN_TRY(launch_one(e, b));
  TN_TRY(device->backend->stream_wait(&device->env, b->host.pub.stream));
  interval->end_s = tn_clock_s();
  return TN_OK;
}

static tn_status launch_watched(tn_executor *e, tn_bound_step *b) {
  tn_device *device = tn_device_of(e, b->step);
  TN_TRY(launch_one(e, b));
  TN_TRY(device->backend->stream_wait(&device->env, b->host.pub.stream));
  return tn_finite_launched(e, b);
}

static tn_status launch(tn_executor *e, tn_bound_program *bound, tn_bound_step *b, int32_t i) {
  if (tn_finite_looks(e)) return launch_watched(e, b);
  return e->profile ? launch_timed(e, b, &bound->intervals[i]) : launch_one(e, b);
}

static tn_status launch_steps(tn_executor *e, tn_bound_program *bound, const tn_segment *s, int32_t slot) {
  tn_bound_step *steps = bound->slots[slot];
  for (int32_t i = s->first; i < s->first + s->n; i++) {
    tn_status status = launch(e, bound, &steps[i], i);
    if (status == TN_OK) continue;
    if (s->fallback) tn_error_move(&e->device->env, &e->device->fallback->env);
    return tn_wrap_step(e, bound, steps[i].step, status);
  }
  return TN_OK;
}

/* A segment of the device: everything here is enqueued and nothing waited for, so it can be captured. */
tn_status tn_launch_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot) {
  const tn_segment *s = &bound->program->segments[segment];
  const tn_backend *backend = e->device->backend;
  void *joined = bound->segments[segment].joined;
  TN_TRY(launch_steps(e, bound, s, slot));
  if (joined == NULL) return TN_OK;
  return backend->event_await(&e->device->env, joined, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status run_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot) {
  bool replays = e->capture && !e->profile && !tn_finite_looks(e);
  void *capture = replays ? tn_capture_of(bound, segment, slot) : NULL;
  if (capture == NULL) return tn_launch_segment(e, bound, segment, slot);
  return e->device->backend->capture_launch(&e->device->env, capture, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status run_cut(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot) {
  TN_TRY(tn_cut_enter(e, bound, segment, slot));
  TN_TRY(launch_steps(e, bound, &bound->program->segments[segment], slot));
  return tn_cut_leave(e, bound, segment, slot);
}

/* Other streams see the end of the program on the compute stream, where every segment ends. */
static tn_status launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *compute = e->device->streams[TN_STREAM_COMPUTE];
  if (bound->folded_from != e->state_version) TN_TRY(tn_fold_program(e, bound, slot));
  if (e->profile) TN_TRY(backend->stream_wait(env, compute));
  for (int32_t i = 0; i < bound->program->n_segments; i++)
    TN_TRY(bound->program->segments[i].fallback ? run_cut(e, bound, i, slot)
                                                : run_segment(e, bound, i, slot));
  if (e->capture && !e->profile && !bound->captured) TN_TRY(tn_capture_program(e, bound));
  if (bound->program->cover->graph->commits.n > 0) e->state_version++;
  return backend->event_record(env, e->slots[slot].computed, compute);
}

tn_status tn_launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  tn_pinned pinned;
  tn_pin_enter(&pinned, e->device);
  tn_status status = launch_program(e, bound, slot);
  tn_pin_leave(&pinned);
  return status;
}

/* Copies may run beside another slot's computing. They wait for what this slot's last run still does
 * with the same memory, and its computing waits for them. */
static tn_status fill(tn_executor *e, const tn_program *program, tn_slot_memory *m) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *stream = e->device->streams[TN_STREAM_COPY_IN], *compute = e->device->streams[TN_STREAM_COMPUTE];
  m->filled = program->slot_bytes;
  if (program->slot_bytes == 0) return TN_OK;
  TN_TRY(backend->event_await(env, m->computed, stream));
  TN_TRY(
      backend->copy(env, stream, TN_COPY_TO_DEVICE, m->input, m->host_input, (uint64_t)program->slot_bytes));
  TN_TRY(backend->event_record(env, m->staged, stream));
  return backend->event_await(env, m->staged, compute);
}

/* Results go where those of the slot's last run may still be copied from. */
static tn_status copy_in(tn_executor *e, const tn_program *program, tn_slot_memory *m, bool again) {
  if (again && m->filled < program->slot_bytes)
    return tn_failf(&e->device->env, TN_EINTERNAL, "program %s needs %lld bytes of a slot that has %lld",
                    program->name, (long long)program->slot_bytes, (long long)m->filled);
  if (!again) TN_TRY(fill(e, program, m));
  return e->device->backend->event_await(&e->device->env, m->arrived, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status copy_out(tn_executor *e, const tn_program *program, tn_slot_memory *m) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *stream = e->device->streams[TN_STREAM_COPY_OUT];
  TN_TRY(backend->event_await(env, m->computed, stream));
  if (program->output_bytes > 0)
    TN_TRY(backend->copy(env, stream, TN_COPY_TO_HOST, m->host_output, m->output,
                         (uint64_t)program->output_bytes));
  return backend->event_record(env, m->arrived, stream);
}

static tn_status run(tn_executor *e, int32_t program, int32_t slot, bool again) {
  tn_bound_program *bound = &e->programs[program];
  tn_slot_memory *m = &e->slots[slot];
  bool watched = tn_finite_looks(e);
  if (watched) TN_TRY(tn_finite_begin(e, bound, slot));
  tn_status status = e->near ? TN_OK : copy_in(e, bound->program, m, again);
  if (status == TN_OK) status = tn_launch_program(e, bound, slot);
  if (status == TN_OK && !e->near) status = copy_out(e, bound->program, m);
  if (status != TN_OK) return tn_executor_fail(e, status);
  return watched ? tn_finite_end(e, bound) : TN_OK;
}

tn_status tn_executor_run(tn_executor *e, int32_t program, int32_t slot) {
  return run(e, program, slot, false);
}

tn_status tn_executor_run_again(tn_executor *e, int32_t program, int32_t slot) {
  return run(e, program, slot, true);
}

tn_status tn_executor_slot_wait(tn_executor *e, int32_t slot) {
  tn_slot_memory *m = &e->slots[slot];
  tn_status status = e->device->backend->event_wait(&e->device->env, e->near ? m->computed : m->arrived);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static void forget_profile(tn_executor *e) {
  for (int32_t p = 0; p < e->n_programs; p++) {
    tn_release(e->env, e->programs[p].intervals);
    e->programs[p].intervals = NULL;
  }
}

tn_status tn_executor_profile(tn_executor *e, bool on) {
  forget_profile(e);
  e->profile = false;
  for (int32_t p = 0; on && p < e->n_programs; p++) {
    tn_bound_program *bound = &e->programs[p];
    bound->intervals =
        tn_alloc(e->env, tn_size_mul((size_t)bound->program->n_steps, sizeof *bound->intervals));
    if (bound->intervals != NULL) continue;
    forget_profile(e);
    return TN_ENOMEM;
  }
  e->profile = on;
  return TN_OK;
}

const tn_interval *tn_executor_intervals(const tn_executor *e, int32_t program) {
  return e->programs[program].intervals;
}
