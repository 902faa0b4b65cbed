/* core/exec/run.c: runs of a program on slots. Nothing here allocates, locks, or looks up. */
#include "core/base/system/system.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"
#include "core/exec/device/pin_threads.h"
#include "core/exec/device/range.h"

/* Profiling and observers need every launch by itself. */
static bool captures_allowed(const tn_executor *e) {
  return e->capture && e->times == NULL && e->observer == NULL;
}

static tn_status launch_or_replay(tn_executor *e, tn_bound_program *bound, int32_t index, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *compute = e->device->streams[TN_STREAM_COMPUTE];
  const tn_capture_part *part = &bound->parts[index];
  void *capture = captures_allowed(e) ? tn_captures_find(bound, index, slot) : NULL;
  for (int32_t role = 0; role < TN_STREAMS; role++)
    if (part->awaits.of[role] >= 0) TN_TRY(tn_await_end(e, &bound->ends[part->awaits.of[role]]));
  if (capture == NULL) return tn_launch_part(e, bound, index, slot);
  const int32_t *first = &bound->first_call[index];
  tn_flight_begin_all(e->device->flight, bound->calls + first[0], first[1] - first[0]);
  return backend->capture_launch(env, capture, compute);
}

static tn_status run_part(tn_executor *e, tn_bound_program *bound, int32_t index, int32_t slot) {
  void *end = bound->part_ends[index];
  TN_TRY(launch_or_replay(e, bound, index, slot));
  if (end == NULL) return TN_OK;
  return e->device->backend->event_record(&e->device->env, end, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status run_device_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot) {
  const tn_bound_segment *s = &bound->segments[segment];
  for (int32_t i = 0; i < s->n_parts; i++) TN_TRY(run_part(e, bound, s->first_part + i, slot));
  for (int32_t role = 0; role < TN_STREAMS; role++)
    if (s->joined[role] != NULL) TN_TRY(tn_await_end(e, s->joined[role]));
  return TN_OK;
}

static tn_status run_fallback_segment(tn_executor *e, tn_bound_program *bound, int32_t segment,
                                      int32_t slot) {
  TN_TRY(tn_fallback_begin(e, bound, segment, slot));
  TN_TRY(tn_launch_part(e, bound, bound->segments[segment].first_part, slot));
  return tn_fallback_end(e, bound, segment, slot);
}

/* Every segment ends on the compute stream. */
static tn_status run_segments(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  if (!bound->constants_made || e->observer != NULL) TN_TRY(tn_launch_constants(e, bound, slot));
  if (bound->folded_version != e->state_version) TN_TRY(tn_folded_compute(e, bound, slot));
  for (int32_t i = 0; i < bound->program->n_segments; i++)
    TN_TRY(bound->program->segments[i].fallback ? run_fallback_segment(e, bound, i, slot)
                                                : run_device_segment(e, bound, i, slot));
  if (captures_allowed(e) && !bound->capture_tried) TN_TRY(tn_captures_record(e, bound));
  if (bound->program->cover->graph->commits.n > 0) e->state_version++;
  return TN_OK;
}

/* Slots whose runs are enqueued together. Their memory is adjacent. */
typedef struct slot_range {
  int32_t first, n;
} slot_range;

/* One replay where the runs are one capture. */
static tn_status run_each(tn_executor *e, tn_bound_program *bound, slot_range r) {
  void *chain = NULL;
  if (r.n > 1 && captures_allowed(e)) TN_TRY(tn_captures_find_chain(e, bound, r.first, r.n, &chain));
  for (int32_t i = 0; i < r.n && chain == NULL; i++) TN_TRY(run_segments(e, bound, r.first + i));
  if (chain == NULL) return TN_OK;
  if (bound->program->cover->graph->commits.n > 0) e->state_version++;
  for (int32_t i = 0; i < r.n; i++)
    tn_flight_begin_all(e->device->flight, bound->calls, bound->first_call[bound->n_parts]);
  return e->device->backend->capture_launch(&e->device->env, chain, e->device->streams[TN_STREAM_COMPUTE]);
}

/* The last slot's event `computed` marks the end of the programs on the compute stream. */
static tn_status launch_slots(tn_executor *e, tn_bound_program *bound, slot_range r) {
  int32_t last = r.first + r.n - 1;
  tn_pinned pinned;
  tn_pin_enter(&pinned, e->device);
  tn_status status = run_each(e, bound, r);
  tn_pin_leave(&pinned);
  for (int32_t i = 0; i < r.n; i++) e->slots[r.first + i].end = last;
  e->slots[last].collectives = tn_flight_begun(e->device->flight);
  if (status != TN_OK) return status;
  return e->device->backend->event_record(&e->device->env, e->slots[last].computed,
                                          e->device->streams[TN_STREAM_COMPUTE]);
}

tn_status tn_launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  return launch_slots(e, bound, (slot_range){slot, 1});
}

/* Makes a stream await the ends of the last runs on the slots: their computation, or the copies of their
 * outputs. Runs that were enqueued together have one end. */
static tn_status await_last_runs(tn_executor *e, slot_range r, bool arrived, void *stream) {
  const tn_slot_memory *before = NULL;
  for (int32_t s = r.first; s < r.first + r.n; s++) {
    const tn_slot_memory *end = &e->slots[e->slots[s].end];
    if (end != before)
      TN_TRY(
          e->device->backend->event_await(&e->device->env, arrived ? end->arrived : end->computed, stream));
    before = end;
  }
  return TN_OK;
}

/* The copy may run beside the computation of other slots. It awaits these slots' last runs, which read the
 * same memory; these slots' computation awaits the copy. */
static tn_status stage_inputs(tn_executor *e, const tn_program *program, slot_range r) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  tn_slot_memory *first = &e->slots[r.first], *last = first + r.n - 1;
  void *stream = e->device->streams[TN_STREAM_COPY_IN], *compute = e->device->streams[TN_STREAM_COMPUTE];
  for (int32_t i = 0; i < r.n; i++) first[i].filled = program->slot_bytes;
  if (program->slot_bytes == 0) return TN_OK;
  tn_timed_work work = tn_profile_work(e, TN_SPAN_COPY_IN, TN_STREAM_COPY_IN);
  work.span.number = (r.n - 1) * e->slot_bytes + program->slot_bytes;
  TN_TRY(await_last_runs(e, r, false, stream));
  TN_TRY(tn_profile_from(e, &work));
  TN_TRY(backend->copy(env, stream, TN_COPY_TO_DEVICE, first->input, first->host_input,
                       (uint64_t)work.span.number));
  TN_TRY(tn_profile_to(e, &work));
  TN_TRY(backend->event_record(env, last->staged, stream));
  return backend->event_await(env, last->staged, compute);
}

/* The computation awaits `arrived`: it overwrites outputs that the slots' last runs may still be copying. */
static tn_status copy_slots_in(tn_executor *e, const tn_program *program, slot_range r, bool reuse_inputs) {
  if (reuse_inputs && e->slots[r.first].filled < program->slot_bytes)
    return tn_failf(&e->device->env, TN_EINTERNAL,
                    "program %s reads %lld bytes of inputs from a slot whose last run had %lld",
                    program->name, (long long)program->slot_bytes, (long long)e->slots[r.first].filled);
  if (!reuse_inputs) TN_TRY(stage_inputs(e, program, r));
  return await_last_runs(e, r, true, e->device->streams[TN_STREAM_COMPUTE]);
}

static tn_status copy_slots_out(tn_executor *e, const tn_program *program, slot_range r) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  tn_slot_memory *first = &e->slots[r.first], *last = first + r.n - 1;
  void *stream = e->device->streams[TN_STREAM_COPY_OUT];
  tn_timed_work work = tn_profile_work(e, TN_SPAN_COPY_OUT, TN_STREAM_COPY_OUT);
  work.span.number = (r.n - 1) * e->output_bytes + program->output_bytes;
  TN_TRY(backend->event_await(env, last->computed, stream));
  if (program->output_bytes > 0) {
    TN_TRY(tn_profile_from(e, &work));
    TN_TRY(backend->copy(env, stream, TN_COPY_TO_HOST, first->host_output, first->output,
                         (uint64_t)work.span.number));
    TN_TRY(tn_profile_to(e, &work));
  }
  return backend->event_record(env, last->arrived, stream);
}

/* The times of its earlier runs tell nothing about this one. */
static void note_new_program(tn_executor *e, tn_bound_program *bound, int32_t steps) {
  if (steps <= bound->most_steps) return;
  bound->most_steps = steps;
  tn_flight_new_program(e->device->flight);
}

static tn_status run_slots(tn_executor *e, int32_t program, slot_range r, bool reuse_inputs) {
  tn_bound_program *bound = &e->programs[program];
  const tn_run_observer *observer = e->observer;
  double start = tn_clock_s();
  if (tn_device_check_process(e->device) != TN_OK) return tn_executor_fail(e, TN_EUNAVAILABLE);
  note_new_program(e, bound, r.n);
  if (observer != NULL) TN_TRY(observer->begin(observer->context, bound, r.first));
  tn_status status = tn_profile_make_room(e);
  tn_range_begin(e->device, bound->program->name);
  if (status == TN_OK && !e->host_addressable) status = copy_slots_in(e, bound->program, r, reuse_inputs);
  if (status == TN_OK) status = launch_slots(e, bound, r);
  if (status == TN_OK && !e->host_addressable) status = copy_slots_out(e, bound->program, r);
  tn_range_end(e->device);
  if (status != TN_OK) return tn_executor_fail(e, status);
  tn_profile_run(e, bound, start);
  return observer != NULL ? observer->end(observer->context, bound) : TN_OK;
}

tn_status tn_executor_run(tn_executor *e, int32_t program, int32_t slot) {
  return run_slots(e, program, (slot_range){slot, 1}, false);
}

tn_status tn_executor_run_several(tn_executor *e, int32_t program, int32_t slot, int32_t n) {
  bool together = e->observer == NULL && e->times == NULL;
  if (together) return run_slots(e, program, (slot_range){slot, n}, false);
  for (int32_t i = 0; i < n; i++) TN_TRY(tn_executor_run(e, program, slot + i));
  return TN_OK;
}

tn_status tn_executor_run_again(tn_executor *e, int32_t program, int32_t slot) {
  return run_slots(e, program, (slot_range){slot, 1}, true);
}

tn_status tn_executor_run_several_again(tn_executor *e, int32_t program, int32_t slot, int32_t n) {
  return run_slots(e, program, (slot_range){slot, n}, true);
}

tn_status tn_executor_stage(tn_executor *e, int32_t program, int32_t slot) {
  const tn_program *p = e->programs[program].program;
  if (e->host_addressable || p->slot_bytes == 0) return TN_OK;
  tn_status status = stage_inputs(e, p, (slot_range){slot, 1});
  if (status == TN_OK) status = tn_device_wait_event(e->device, e->slots[slot].staged);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_slot_wait(tn_executor *e, int32_t slot) {
  const tn_slot_memory *m = &e->slots[e->slots[slot].end];
  tn_status status = tn_device_wait_event(e->device, e->host_addressable ? m->computed : m->arrived);
  if (status == TN_OK) tn_flight_end(e->device->flight, m->collectives);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
