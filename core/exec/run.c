/* core/exec/run.c: one run of a program on a slot. Nothing here allocates, locks, or looks up. */
#include "core/base/thread.h"
#include "core/exec/bound.h"

static tn_status launch_one(tn_executor *e, tn_bound_step *b) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  if (b->handoff != NULL) {
    TN_TRY(backend->event_record(b->handoff, env, b->from_stream));
    TN_TRY(backend->event_await(b->handoff, env, b->host.pub.stream));
  }
  if (b->foreign) return backend->enqueue(b->host.pub.stream, env, b->launch, &b->host.pub);
  return b->launch(&b->host.pub);
}

static tn_status launch_all(tn_executor *e, const tn_bound_program *bound, tn_bound_step *steps) {
  for (int32_t i = 0; i < bound->program->n_steps; i++) {
    tn_status status = launch_one(e, &steps[i]);
    if (status != TN_OK) return tn_wrap_step(e, bound, steps[i].step, status);
  }
  return TN_OK;
}

/* The same, waiting for each launch, so that its time is its own. */
static tn_status launch_timed(tn_executor *e, tn_bound_program *bound, tn_bound_step *steps) {
  const tn_backend *backend = e->device->backend;
  TN_TRY(backend->stream_wait(e->device->streams[TN_STREAM_COMPUTE], &e->device->env));
  for (int32_t i = 0; i < bound->program->n_steps; i++) {
    double start = tn_clock_s();
    tn_status status = launch_one(e, &steps[i]);
    if (status == TN_OK) status = backend->stream_wait(steps[i].host.pub.stream, &e->device->env);
    if (status != TN_OK) return tn_wrap_step(e, bound, steps[i].step, status);
    bound->seconds[i] += tn_clock_s() - start;
  }
  bound->runs++;
  return TN_OK;
}

/* Other streams see the end of the program on the compute stream, whichever its last step used. */
tn_status tn_launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  tn_slot_memory *m = &e->slots[slot];
  void *compute = e->device->streams[TN_STREAM_COMPUTE];
  TN_TRY(e->profile ? launch_timed(e, bound, bound->slots[slot]) : launch_all(e, bound, bound->slots[slot]));
  TN_TRY(backend->event_record(m->computed, env, bound->last_stream));
  return bound->last_stream == compute ? TN_OK : backend->event_await(m->computed, env, compute);
}

/* Copies may run beside another slot's computing. They wait for what this slot's last run still does
 * with the same memory, and its computing waits for them. */
static tn_status copy_in(tn_executor *e, const tn_program *program, tn_slot_memory *m) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *stream = e->device->streams[TN_STREAM_COPY_IN], *compute = e->device->streams[TN_STREAM_COMPUTE];
  if (program->slot_bytes > 0) {
    TN_TRY(backend->event_await(m->computed, env, stream));
    TN_TRY(backend->copy(stream, env, TN_COPY_TO_DEVICE, m->input, m->host_input,
                         (uint64_t)program->slot_bytes));
    TN_TRY(backend->event_record(m->staged, env, stream));
    TN_TRY(backend->event_await(m->staged, env, compute));
  }
  return backend->event_await(m->arrived, env, compute);
}

static tn_status copy_out(tn_executor *e, const tn_program *program, tn_slot_memory *m) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  void *stream = e->device->streams[TN_STREAM_COPY_OUT];
  TN_TRY(backend->event_await(m->computed, env, stream));
  if (program->output_bytes > 0)
    TN_TRY(backend->copy(stream, env, TN_COPY_TO_HOST, m->host_output, m->output,
                         (uint64_t)program->output_bytes));
  return backend->event_record(m->arrived, env, stream);
}

tn_status tn_executor_run(tn_executor *e, int32_t program, int32_t slot) {
  tn_bound_program *bound = &e->programs[program];
  tn_slot_memory *m = &e->slots[slot];
  tn_status status = e->near ? TN_OK : copy_in(e, bound->program, m);
  if (status == TN_OK) status = tn_launch_program(e, bound, slot);
  if (status == TN_OK && !e->near) status = copy_out(e, bound->program, m);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_slot_wait(tn_executor *e, int32_t slot) {
  tn_slot_memory *m = &e->slots[slot];
  tn_status status = e->device->backend->event_wait(e->near ? m->computed : m->arrived, &e->device->env);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static void forget_profile(tn_executor *e) {
  for (int32_t p = 0; p < e->n_programs; p++) {
    tn_release(e->env, e->programs[p].seconds);
    tn_release(e->env, e->programs[p].average);
    e->programs[p].seconds = e->programs[p].average = NULL;
    e->programs[p].runs = 0;
  }
}

tn_status tn_executor_profile(tn_executor *e, bool on) {
  forget_profile(e);
  e->profile = false;
  for (int32_t p = 0; on && p < e->n_programs; p++) {
    tn_bound_program *bound = &e->programs[p];
    size_t bytes = tn_size_mul((size_t)bound->program->n_steps, sizeof(double));
    bound->seconds = tn_alloc(e->env, bytes);
    bound->average = tn_alloc(e->env, bytes);
    if (bound->seconds != NULL && bound->average != NULL) continue;
    forget_profile(e);
    return TN_ENOMEM;
  }
  e->profile = on;
  return TN_OK;
}

const double *tn_executor_step_seconds(tn_executor *e, int32_t program) {
  tn_bound_program *bound = &e->programs[program];
  for (int32_t i = 0; e->profile && i < bound->program->n_steps; i++)
    bound->average[i] = bound->runs > 0 ? bound->seconds[i] / (double)bound->runs : 0;
  return bound->average;
}
