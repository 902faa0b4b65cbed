/* core/exec/executor.c: creates and destroys executors: state regions, arena, slots, bound programs. */
#include "core/exec/executor.h"

#include "core/exec/bound_program.h"
#include "core/exec/collective.h"

/* Programs run one after another, so each area has the size of the largest need. */
static void executor_sizes(tn_program *const *programs, int32_t n, int64_t *arena, int64_t *slot,
                           int64_t *output, int64_t *host) {
  *arena = *slot = *output = *host = 0;
  for (int32_t i = 0; i < n; i++) {
    if (programs[i]->host_bytes > *host) *host = programs[i]->host_bytes;
    if (programs[i]->arena_bytes > *arena) *arena = programs[i]->arena_bytes;
    if (programs[i]->slot_bytes > *slot) *slot = programs[i]->slot_bytes;
    if (programs[i]->output_bytes > *output) *output = programs[i]->output_bytes;
  }
}

int64_t tn_executor_planned_bytes(const tn_state_map *map, tn_program *const *programs, int32_t n_programs,
                                  int32_t slots, bool host_addressable) {
  int64_t arena, slot, output, host;
  int64_t kept = 0;
  executor_sizes(programs, n_programs, &arena, &slot, &output, &host);
  for (int32_t i = 0; i < n_programs; i++) kept += programs[i]->folded_bytes + programs[i]->constant_bytes;
  return tn_state_map_bytes(map) + arena + kept + host + slots * (slot + output) * (host_addressable ? 1 : 2);
}

/* ---- slots ---- */

static tn_status create_slot(tn_executor *e, tn_slot_memory *m) {
  tn_device *device = e->device;
  void **events[] = {&m->staged, &m->computed, &m->arrived};
  for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
    tn_status status = device->backend->event_new(&device->env, device->device, events[i]);
    if (status != TN_OK) return tn_executor_fail(e, status);
  }
  return TN_OK;
}

/* One block for the inputs of all slots and one for the outputs, so that those of several slots are copied at
 * once. */
static tn_status create_slot_memory(tn_executor *e) {
  int64_t inputs = e->n_slots * e->slot_bytes, outputs = e->n_slots * e->output_bytes;
  TN_TRY(tn_executor_allocate_zeroed(e, inputs, &e->slot_inputs));
  TN_TRY(tn_executor_allocate_zeroed(e, outputs, &e->slot_outputs));
  e->host_inputs = e->slot_inputs;
  e->host_outputs = e->slot_outputs;
  if (e->host_addressable) return TN_OK;
  e->host_inputs = e->host_outputs = NULL;
  TN_TRY(tn_executor_allocate(e, TN_MEMORY_STAGING, inputs, &e->host_inputs));
  return tn_executor_allocate(e, TN_MEMORY_STAGING, outputs, &e->host_outputs);
}

static void *slot_address(void *base, int32_t slot, int64_t bytes) {
  return base == NULL ? NULL : (char *)base + slot * bytes;
}

static void place_slot(const tn_executor *e, int32_t slot) {
  tn_slot_memory *m = &e->slots[slot];
  m->input = slot_address(e->slot_inputs, slot, e->slot_bytes);
  m->output = slot_address(e->slot_outputs, slot, e->output_bytes);
  m->host_input = slot_address(e->host_inputs, slot, e->slot_bytes);
  m->host_output = slot_address(e->host_outputs, slot, e->output_bytes);
  m->end = slot;
}

static tn_status create_slots(tn_executor *e, int32_t n) {
  e->slots = tn_alloc(e->env, tn_size_mul((size_t)n, sizeof(tn_slot_memory)));
  if (e->slots == NULL) return TN_ENOMEM;
  e->n_slots = n;
  TN_TRY(create_slot_memory(e));
  for (int32_t s = 0; s < n; s++) {
    place_slot(e, s);
    TN_TRY(create_slot(e, &e->slots[s]));
  }
  return TN_OK;
}

/* The fallback's device is opened by the first executor with a program that needs it. */
static tn_status start_fallback(tn_executor *e, tn_program *const *programs, int32_t n) {
  bool needed = false;
  for (int32_t i = 0; i < n; i++)
    for (int32_t s = 0; s < programs[i]->n_segments; s++) needed |= programs[i]->segments[s].fallback;
  if (!needed) return TN_OK;
  if (e->device->fallback == NULL)
    return tn_failf(e->env, TN_EINTERNAL, "a program has a fallback segment, but the device has no fallback");
  tn_status status = tn_device_start(e->device->fallback);
  if (status != TN_OK) tn_error_move(e->env, &e->device->fallback->env);
  return tn_wrap(e->env, status, "the fallback '%s'", e->device->fallback->backend->item.name);
}

static tn_status bind_all_programs(tn_executor *e, tn_program *const *programs, int32_t n) {
  e->programs = tn_alloc(e->env, tn_size_mul((size_t)n, sizeof(tn_bound_program)));
  if (e->programs == NULL) return TN_ENOMEM;
  e->n_programs = n;
  for (int32_t i = 0; i < n; i++)
    TN_TRY(tn_wrap(e->env, tn_bound_program_init(e, programs[i], &e->programs[i]), "program '%s'",
                   programs[i]->name));
  return TN_OK;
}

static tn_status allocate_offload(tn_executor *e, tn_program *const *programs, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (programs[i]->offload_bytes > e->offload_bytes) e->offload_bytes = programs[i]->offload_bytes;
  tn_status status = tn_device_offload_memory(e->device, e->offload_bytes, &e->offload);
  if (status == TN_OK) return TN_OK;
  tn_wrap(&e->device->env, status,
          "%lld bytes of host memory for offloaded values ([run] offload, [optimizer] place)",
          (long long)e->offload_bytes);
  return tn_executor_fail(e, status);
}

static tn_status fill_executor(tn_executor *e, tn_program *const *programs, int32_t n_programs,
                               int32_t slots) {
  executor_sizes(programs, n_programs, &e->arena_bytes, &e->slot_bytes, &e->output_bytes, &e->host_bytes);
  TN_TRY(start_fallback(e, programs, n_programs));
  if (e->caller_memory) e->slot_bytes = e->output_bytes = 0;
  TN_TRY(tn_executor_create_regions(e, programs, n_programs));
  TN_TRY(tn_executor_create_arena(e, programs, n_programs));
  TN_TRY(tn_executor_allocate(e, TN_MEMORY_STAGING, e->host_bytes, &e->host));
  TN_TRY(allocate_offload(e, programs, n_programs));
  TN_TRY(create_slots(e, slots));
  TN_TRY(bind_all_programs(e, programs, n_programs));
  tn_device *device = e->device;
  tn_status status = device->backend->stream_wait(&device->env, device->streams[TN_STREAM_COMPUTE]);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static tn_status create_executor(tn_env *env, tn_device *device, const tn_state_map *map,
                                 tn_program *const *programs, int32_t n_programs, int32_t slots,
                                 bool caller_memory, tn_executor **out) {
  *out = NULL;
  if (tn_device_check_process(device) != TN_OK) return tn_error_move(env, &device->env);
  if (slots < 1) return tn_failf(env, TN_EINVAL, "%d input slots, expected at least 1", (int)slots);
  tn_executor *e = tn_alloc(env, sizeof(*e));
  if (e == NULL) return TN_ENOMEM;
  e->env = env;
  e->device = device;
  e->map = map;
  e->caller_memory = caller_memory;
  /* The memory of a rehearsal is simulated, also where the described device computes in that of its host. */
  e->host_addressable = device->target.properties.host_addressable != 0 && device->rehearsed == NULL;
  /* A capture keeps its addresses; on caller memory every run may have others. */
  e->capture = !caller_memory && tn_device_captures(device);
  tn_status status = fill_executor(e, programs, n_programs, slots);
  if (status == TN_OK)
    *out = e;
  else
    tn_executor_destroy(e);
  return status;
}

tn_status tn_executor_create(tn_env *env, tn_device *device, const tn_state_map *map,
                             tn_program *const *programs, int32_t n_programs, int32_t slots,
                             tn_executor **executor) {
  return create_executor(env, device, map, programs, n_programs, slots, false, executor);
}

tn_status tn_executor_create_on_caller_memory(tn_env *env, tn_device *device, const tn_state_map *map,
                                              tn_program *program, int32_t slots, tn_executor **executor) {
  return create_executor(env, device, map, &program, 1, slots, true, executor);
}

static void destroy_slot(tn_executor *e, tn_slot_memory *m) {
  void *events[] = {m->staged, m->computed, m->arrived};
  for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
    if (events[i] != NULL) e->device->backend->event_delete(&e->device->env, events[i]);
}

static void destroy_slot_memory(tn_executor *e) {
  int64_t inputs = e->n_slots * e->slot_bytes, outputs = e->n_slots * e->output_bytes;
  tn_executor_free(e, TN_MEMORY_DEVICE, e->slot_inputs, inputs);
  tn_executor_free(e, TN_MEMORY_DEVICE, e->slot_outputs, outputs);
  if (e->host_addressable) return;
  tn_executor_free(e, TN_MEMORY_STAGING, e->host_inputs, inputs);
  tn_executor_free(e, TN_MEMORY_STAGING, e->host_outputs, outputs);
}

void tn_executor_drain(tn_executor *e) {
  tn_device *device = e->device;
  /* the device of another process has nothing to wait for */
  if (tn_device_check_process(device) == TN_OK) (void)tn_comm_await(device, tn_comm_begun(device));
  for (int32_t role = 0; role < TN_STREAMS; role++)
    device->backend->stream_wait(&device->env, device->streams[role]);
}

void tn_executor_destroy(tn_executor *e) {
  if (e == NULL) return;
  tn_executor_drain(e); /* enqueued work may still use the memory; its failures are ignored */
  tn_executor_profile(e, NULL);
  for (int32_t i = 0; i < e->n_programs; i++) tn_bound_program_free(e, &e->programs[i]);
  for (int32_t s = 0; s < e->n_slots; s++) destroy_slot(e, &e->slots[s]);
  destroy_slot_memory(e);
  tn_executor_free(e, TN_MEMORY_STAGING, e->host, e->host_bytes);
  tn_device_offload_memory_free(e->device, e->offload, e->offload_bytes);
  tn_executor_free_regions(e);
  tn_release(e->env, e->programs);
  tn_release(e->env, e->slots);
  tn_release(e->env, e->regions);
  tn_release(e->env, e);
}

static const tn_binding *find_named_binding(const tn_binding *bindings, int32_t n, const char *name) {
  for (int32_t i = 0; i < n; i++)
    if (tn_text_equal(bindings[i].name, name)) return &bindings[i];
  return NULL;
}

void *tn_executor_input(tn_executor *e, int32_t program, int32_t slot, const char *name) {
  const tn_program *p = e->programs[program].program;
  const tn_binding *binding = find_named_binding(p->inputs, p->n_inputs, name);
  return binding == NULL ? NULL : (char *)e->slots[slot].host_input + binding->offset;
}

const void *tn_executor_output(tn_executor *e, int32_t program, int32_t slot, const char *name) {
  const tn_program *p = e->programs[program].program;
  const tn_binding *binding = find_named_binding(p->outputs, p->n_outputs, name);
  return binding == NULL ? NULL : (const char *)e->slots[slot].host_output + binding->offset;
}
