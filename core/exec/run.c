/* core/exec/run.c: one run of a program on a slot. Nothing here allocates, locks, or looks up. */
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"
#include "core/exec/device/pin_threads.h"

/* Profiling and observers need every launch by itself. */
static bool captures_allowed(const tn_executor *e) {
  return e->capture && !e->profile && e->observer == NULL;
}

static tn_status run_part(tn_executor *e, tn_bound_program *bound, int32_t index, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *compute = e->device->streams[TN_STREAM_COMPUTE];
  const tn_capture_part *part = &bound->parts[index];
  void *capture = captures_allowed(e) ? tn_captures_find(bound, index, slot) : NULL;
  if (part->awaits >= 0) TN_TRY(backend->event_await(env, bound->ends[part->awaits], compute));
  return capture == NULL ? tn_launch_part(e, bound, index, slot)
                         : backend->capture_launch(env, capture, compute);
}

static tn_status run_device_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot) {
  const tn_bound_segment *s = &bound->segments[segment];
  for (int32_t i = 0; i < s->n_parts; i++) TN_TRY(run_part(e, bound, s->first_part + i, slot));
  if (s->joined == NULL) return TN_OK;
  return e->device->backend->event_await(&e->device->env, s->joined, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status run_fallback_segment(tn_executor *e, tn_bound_program *bound, int32_t segment,
                                      int32_t slot) {
  TN_TRY(tn_fallback_begin(e, bound, segment, slot));
  TN_TRY(tn_launch_part(e, bound, bound->segments[segment].first_part, slot));
  return tn_fallback_end(e, bound, segment, slot);
}

/* Every segment ends on the compute stream, so the event `computed` marks the end of the program there. */
static tn_status run_segments(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *compute = e->device->streams[TN_STREAM_COMPUTE];
  if (bound->folded_version != e->state_version) TN_TRY(tn_folded_compute(e, bound, slot));
  if (e->profile) TN_TRY(tn_device_wait_stream(e->device, compute));
  for (int32_t i = 0; i < bound->program->n_segments; i++)
    TN_TRY(bound->program->segments[i].fallback ? run_fallback_segment(e, bound, i, slot)
                                                : run_device_segment(e, bound, i, slot));
  if (captures_allowed(e) && !bound->capture_tried) TN_TRY(tn_captures_record(e, bound));
  if (bound->program->cover->graph->commits.n > 0) e->state_version++;
  return backend->event_record(env, e->slots[slot].computed, compute);
}

tn_status tn_launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  tn_pinned pinned;
  tn_pin_enter(&pinned, e->device);
  tn_status status = run_segments(e, bound, slot);
  tn_pin_leave(&pinned);
  return status;
}

/* The copy may run beside the computation of another slot. It awaits this slot's last run, which reads the
 * same memory; this slot's computation awaits the copy. */
static tn_status stage_inputs(tn_executor *e, const tn_program *program, tn_slot_memory *m) {
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

/* The computation awaits `arrived`: it overwrites outputs that the slot's last run may still be copying. */
static tn_status copy_slot_in(tn_executor *e, const tn_program *program, tn_slot_memory *m,
                              bool reuse_inputs) {
  if (reuse_inputs && m->filled < program->slot_bytes)
    return tn_failf(&e->device->env, TN_EINTERNAL,
                    "program %s reads %lld bytes of inputs from a slot whose last run had %lld",
                    program->name, (long long)program->slot_bytes, (long long)m->filled);
  if (!reuse_inputs) TN_TRY(stage_inputs(e, program, m));
  return e->device->backend->event_await(&e->device->env, m->arrived, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status copy_slot_out(tn_executor *e, const tn_program *program, tn_slot_memory *m) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *stream = e->device->streams[TN_STREAM_COPY_OUT];
  TN_TRY(backend->event_await(env, m->computed, stream));
  if (program->output_bytes > 0)
    TN_TRY(backend->copy(env, stream, TN_COPY_TO_HOST, m->host_output, m->output,
                         (uint64_t)program->output_bytes));
  return backend->event_record(env, m->arrived, stream);
}

static tn_status run_program(tn_executor *e, int32_t program, int32_t slot, bool reuse_inputs) {
  tn_bound_program *bound = &e->programs[program];
  tn_slot_memory *m = &e->slots[slot];
  const tn_run_observer *observer = e->observer;
  if (observer != NULL) TN_TRY(observer->begin(observer->context, bound, slot));
  tn_status status = e->host_addressable ? TN_OK : copy_slot_in(e, bound->program, m, reuse_inputs);
  if (status == TN_OK) status = tn_launch_program(e, bound, slot);
  if (status == TN_OK && !e->host_addressable) status = copy_slot_out(e, bound->program, m);
  if (status != TN_OK) return tn_executor_fail(e, status);
  return observer != NULL ? observer->end(observer->context, bound) : TN_OK;
}

tn_status tn_executor_run(tn_executor *e, int32_t program, int32_t slot) {
  return run_program(e, program, slot, false);
}

tn_status tn_executor_run_again(tn_executor *e, int32_t program, int32_t slot) {
  return run_program(e, program, slot, true);
}

tn_status tn_executor_slot_wait(tn_executor *e, int32_t slot) {
  tn_slot_memory *m = &e->slots[slot];
  tn_status status = tn_device_wait_event(e->device, e->host_addressable ? m->computed : m->arrived);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
