/* core/exec/bound_program.c: binds the locations of a program to addresses, once per slot, and makes its
 * events. */
#include "core/exec/bound_program.h"

#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/kernels/transfer_kernel.h"
#include "core/exec/collective.h"
#include "core/exec/loop.h"

static void bind_views(const tn_executor *e, const tn_bound_program *bound, const tn_operand *operands,
                       int32_t n, int32_t slot, bool host, tn_view *views) {
  for (int32_t i = 0; i < n; i++)
    views[i] = (tn_view){operands[i].type, operands[i].layout,
                         tn_executor_address(e, bound, &operands[i].location, slot, host)};
}

static void *step_stream(const tn_executor *e, const tn_step *step) {
  int32_t role = step->group->role;
  return tn_device_of(e, step)->streams[role >= 0 && role < TN_STREAMS ? role : TN_STREAM_COMPUTE];
}

/* Of the executor, or of the step's kernel. */
static tn_status (*bound_launch(const tn_step *step))(tn_launch *l) {
  if (tn_kernel_is_collective(step->group->kernel)) return tn_collective_launch;
  if (tn_kernel_is_transfer(step->group->kernel)) return tn_transfer_launch;
  return step->body != NULL ? tn_loop_launch : step->group->kernel->launch;
}

static tn_status make_step_event(tn_executor *e, void **event) {
  return *event != NULL ? TN_OK : e->device->backend->event_new(&e->device->env, e->device->device, event);
}

static const tn_capture_part *part_of_step(const tn_bound_program *bound, int32_t step) {
  const tn_capture_part *part = bound->parts;
  while (part->first + part->n <= step) part++;
  return part;
}

/* The step of a stream that the launch of another step awaits; -1. Steps of other parts are awaited between
 * parts, if one of the two is captured. */
static int32_t awaited_step(const tn_bound_program *bound, int32_t step, int32_t role) {
  int32_t awaited = bound->program->steps[step].awaits.of[role];
  if (awaited < 0) return -1;
  const tn_capture_part *part = part_of_step(bound, step), *from = part_of_step(bound, awaited);
  return from == part || (!from->captured && !part->captured) ? awaited : -1;
}

static tn_status make_awaited_event(tn_executor *e, tn_bound_program *bound, int32_t step) {
  return step < 0 ? TN_OK : make_step_event(e, &bound->ends[step].event);
}

static tn_status make_awaited_events(tn_executor *e, tn_bound_program *bound, const tn_awaits *awaits) {
  for (int32_t role = 0; role < TN_STREAMS; role++) TN_TRY(make_awaited_event(e, bound, awaits->of[role]));
  return TN_OK;
}

/* Orders the compute stream and the other streams of a part. The first step of another stream after compute
 * steps awaits the compute stream; a step that reads its result awaits its end. A captured part begins and
 * ends on the compute stream, and so does a segment. */
static tn_status make_part_events(tn_executor *e, const tn_capture_part *part, tn_bound_program *bound) {
  const tn_step *steps = bound->program->steps;
  int32_t computed = part->first, after[TN_STREAMS];
  for (int32_t role = 0; role < TN_STREAMS; role++) after[role] = -1;
  for (int32_t i = part->first; i < part->first + part->n; i++) {
    int32_t role = steps[i].group->role;
    if (steps[i].follows > 0) continue; /* it awaits that step alone */
    if (role == TN_STREAM_COMPUTE)
      computed = i;
    else if (after[role] < computed)
      TN_TRY(make_step_event(e, &bound->events[i]));
    after[role] = i;
    for (int32_t other = 0; other < TN_STREAMS; other++)
      TN_TRY(make_awaited_event(e, bound, awaited_step(bound, i, other)));
  }
  TN_TRY(make_awaited_events(e, bound, &part->awaits));
  return make_awaited_events(e, bound, &part->joins);
}

/* The event of a step that another one follows: its own, or that of the end of its captured part. */
static void **followed_event(const tn_bound_program *bound, int32_t step) {
  const tn_capture_part *part = part_of_step(bound, step);
  return part->captured ? &bound->part_ends[part - bound->parts] : &bound->ends[step].event;
}

static tn_status make_followed_events(tn_executor *e, tn_bound_program *bound) {
  for (int32_t i = 0; i < bound->program->n_steps; i++)
    if (bound->program->steps[i].follows > 0)
      TN_TRY(make_step_event(e, followed_event(bound, bound->program->steps[i].follows - 1)));
  return TN_OK;
}

static tn_status make_events(tn_executor *e, tn_bound_program *bound) {
  tn_status status = make_followed_events(e, bound);
  for (int32_t i = 0; status == TN_OK && i < bound->n_parts; i++)
    if (!bound->program->segments[bound->parts[i].segment].fallback)
      status = make_part_events(e, &bound->parts[i], bound);
  for (int32_t i = 0; status == TN_OK && i < bound->program->n_segments; i++) {
    const tn_segment *s = &bound->program->segments[i];
    status = make_awaited_events(e, bound, &s->awaits);
    if (status == TN_OK && s->placed) status = make_awaited_event(e, bound, s->reads);
  }
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static void bind_awaits(const tn_bound_program *bound, int32_t step, tn_bound_step *b) {
  for (int32_t role = 0; role < TN_STREAMS; role++) {
    int32_t awaited = awaited_step(bound, step, role);
    b->awaited[role] = awaited >= 0 ? &bound->ends[awaited] : NULL;
    b->awaits = b->awaits || awaited >= 0;
  }
}

static void bind_slot_launches(tn_executor *e, tn_bound_program *bound, int32_t slot, tn_view *views) {
  for (int32_t i = 0; i < tn_program_all_steps(bound->program); i++) {
    const tn_step *step = &bound->program->steps[i];
    tn_bound_step *b = &bound->slots[slot][i];
    const tn_device *device = tn_device_of(e, step);
    bool host = device != e->device;
    bind_views(e, bound, step->in, step->n_in, slot, host, views);
    bind_views(e, bound, step->out, step->n_out, slot, host, views + step->n_in);
    b->host = tn_step_launch(device, step, views, bound->prepared[i], step_stream(e, step));
    if (b->host.pub.workspace_bytes > 0)
      b->host.pub.workspace = (char *)(host ? e->host : e->arena) + step->workspace_offset;
    if (b->host.pub.folded_bytes > 0) b->host.pub.folded = (char *)bound->folded + step->folded_offset;
    bool loop = step->body != NULL;
    b->launch = bound_launch(step);
    b->foreign =
        b->launch == step->group->kernel->launch && tn_device_is_foreign(device, step->group->family);
    if (loop) b->host.pub.prepared = bound->loops[slot * tn_program_all_steps(bound->program) + i];
    b->step = step;
    b->handoff = bound->events[i];
    b->followed = step->follows > 0 ? *followed_event(bound, step->follows - 1) : NULL;
    bind_awaits(bound, i, b);
    b->end = bound->ends[i].event != NULL ? &bound->ends[i] : NULL;
    views += step->n_in + step->n_out;
  }
}

static tn_status list_parts(tn_executor *e, tn_bound_program *bound) {
  size_t most = tn_capture_parts_most(bound->program);
  bound->parts = tn_alloc(e->env, tn_size_mul(most, sizeof *bound->parts));
  if (bound->parts == NULL) return TN_ENOMEM;
  bound->n_parts = tn_capture_parts_list(bound->program, e->capture, bound->parts);
  bound->part_ends = tn_alloc(e->env, tn_size_mul((size_t)bound->n_parts + 1, sizeof(void *)));
  return bound->part_ends != NULL ? TN_OK : TN_ENOMEM;
}

static size_t count_views(const tn_program *program) {
  size_t views = 0;
  for (int32_t i = 0; i < tn_program_all_steps(program); i++)
    views += (size_t)(program->steps[i].n_in + program->steps[i].n_out);
  return views;
}

static tn_status allocate_tables(tn_executor *e, tn_bound_program *bound, size_t views) {
  size_t steps = (size_t)tn_program_all_steps(bound->program), slots = (size_t)e->n_slots;
  bound->prepared = tn_alloc(e->env, tn_size_mul(steps, sizeof(void *)));
  bound->events = tn_alloc(e->env, tn_size_mul(steps, sizeof(void *)));
  bound->ends = tn_alloc(e->env, tn_size_mul(steps, sizeof *bound->ends));
  bound->slots = tn_alloc(e->env, tn_size_mul(slots, sizeof(tn_bound_step *)));
  bound->views = tn_alloc(e->env, tn_size_mul(tn_size_mul(views, slots), sizeof(tn_view)));
  if (bound->prepared == NULL || bound->events == NULL || bound->ends == NULL || bound->slots == NULL ||
      bound->views == NULL)
    return TN_ENOMEM;
  for (int32_t s = 0; s < e->n_slots; s++) {
    bound->slots[s] = tn_alloc(e->env, tn_size_mul(steps, sizeof(tn_bound_step)));
    if (bound->slots[s] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* The collectives of all parts, which replays record. */
static tn_status list_calls(tn_executor *e, tn_bound_program *bound) {
  int32_t n = 0;
  size_t steps = (size_t)bound->program->n_steps;
  bound->calls = tn_alloc(e->env, tn_size_mul(steps + 1, sizeof(void *)));
  bound->first_call = tn_alloc(e->env, tn_size_mul((size_t)bound->n_parts + 1, sizeof *bound->first_call));
  if (bound->calls == NULL || bound->first_call == NULL) return TN_ENOMEM;
  for (int32_t p = 0; p < bound->n_parts; p++) {
    const tn_capture_part *part = &bound->parts[p];
    bound->first_call[p] = n;
    for (int32_t i = part->first; i < part->first + part->n; i++) {
      bool collective = tn_kernel_is_collective(bound->program->steps[i].group->kernel);
      const tn_flight_call *call = collective ? tn_collective_call(bound->prepared[i]) : NULL;
      if (call != NULL) bound->calls[n++] = call;
    }
  }
  bound->first_call[bound->n_parts] = n;
  return TN_OK;
}

static tn_status create_loop_runs(tn_executor *e, tn_bound_program *bound) {
  int32_t n = tn_program_all_steps(bound->program);
  bound->loops = tn_alloc(e->env, tn_size_mul((size_t)e->n_slots, (size_t)n * sizeof *bound->loops));
  if (bound->loops == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < e->n_slots * n; i++) {
    const tn_step *step = &bound->program->steps[i % n];
    if (step->body == NULL) continue;
    TN_TRY(tn_loop_run_create(e, bound->prepared[i % n], step_stream(e, step), &bound->loops[i]));
  }
  return TN_OK;
}

static void destroy_loop_runs(tn_executor *e, tn_bound_program *bound) {
  int32_t n = bound->loops != NULL ? e->n_slots * tn_program_all_steps(bound->program) : 0;
  for (int32_t i = 0; i < n; i++) tn_loop_run_destroy(e, bound->loops[i]);
  tn_release(e->env, bound->loops);
}

tn_status tn_bound_program_init(tn_executor *e, const tn_program *program, tn_bound_program *bound) {
  bound->program = program;
  size_t views = count_views(program);
  TN_TRY(allocate_tables(e, bound, views));
  TN_TRY(list_parts(e, bound));
  TN_TRY(tn_prepared_steps_create(e, bound));
  TN_TRY(list_calls(e, bound));
  TN_TRY(create_loop_runs(e, bound));
  TN_TRY(tn_folded_create(e, bound));
  TN_TRY(tn_executor_allocate(e, TN_MEMORY_DEVICE, program->constant_bytes, &bound->constants));
  TN_TRY(make_events(e, bound));
  TN_TRY(tn_bound_segments_create(e, bound));
  for (int32_t s = 0; s < e->n_slots; s++) bind_slot_launches(e, bound, s, bound->views + (size_t)s * views);
  return TN_OK;
}

static void destroy_events(tn_executor *e, void **events, int32_t n) {
  for (int32_t i = 0; events != NULL && i < n; i++)
    if (events[i] != NULL) e->device->backend->event_delete(&e->device->env, events[i]);
  tn_release(e->env, events);
}

static void destroy_ends(tn_executor *e, tn_awaited_end *ends, int32_t n) {
  for (int32_t i = 0; ends != NULL && i < n; i++)
    if (ends[i].event != NULL) e->device->backend->event_delete(&e->device->env, ends[i].event);
  tn_release(e->env, ends);
}

void tn_bound_program_free(tn_executor *e, tn_bound_program *bound) {
  if (bound->program == NULL) return;
  destroy_loop_runs(e, bound);
  tn_prepared_steps_destroy(e, bound);
  tn_folded_destroy(e, bound);
  tn_executor_free(e, TN_MEMORY_DEVICE, bound->constants, bound->program->constant_bytes);
  tn_captures_destroy(e, bound);
  tn_bound_segments_destroy(e, bound);
  destroy_events(e, bound->events, bound->program->n_steps);
  destroy_ends(e, bound->ends, bound->program->n_steps);
  destroy_events(e, bound->part_ends, bound->n_parts);
  for (int32_t s = 0; bound->slots != NULL && s < e->n_slots; s++) tn_release(e->env, bound->slots[s]);
  tn_release(e->env, bound->slots);
  tn_release(e->env, bound->views);
  tn_release(e->env, bound->parts);
  tn_release(e->env, bound->calls);
  tn_release(e->env, bound->first_call);
  *bound = (tn_bound_program){0};
}
