/* core/exec/executor.c: the memory of a run: regions, arena, slots. */
#include "core/exec/executor.h"

#include "core/exec/bound_program.h"

tn_status tn_executor_fail(tn_executor *e, tn_status status) {
  tn_error_move(e->env, &e->device->env);
  return status;
}

/* The largest need of any program. */
static void measure(tn_program *const *programs, int32_t n, int64_t *arena, int64_t *slot, int64_t *output,
                    int64_t *host) {
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
  int64_t folded = 0;
  measure(programs, n_programs, &arena, &slot, &output, &host);
  for (int32_t i = 0; i < n_programs; i++) folded += programs[i]->folded_bytes;
  return tn_state_map_bytes(map) + arena + folded + host +
         slots * (slot + output) * (host_addressable ? 1 : 2);
}

int64_t tn_executor_measured_bytes(const tn_executor *e) { return e->bytes; }

tn_status tn_executor_take(tn_executor *e, int32_t kind, int64_t bytes, void **address) {
  tn_status status = tn_device_memory(e->device, kind, bytes, address);
  if (status == TN_OK) {
    e->bytes += bytes;
    return TN_OK;
  }
  tn_wrap(&e->device->env, status, "%lld bytes of %s memory", (long long)bytes,
          kind == TN_MEMORY_STAGING ? "staging" : "device");
  return tn_executor_fail(e, status);
}

void tn_executor_give(tn_executor *e, int32_t kind, void *address, int64_t bytes) {
  if (address == NULL) return;
  tn_device_memory_free(e->device, kind, address, bytes);
  e->bytes -= bytes;
}

/* Memory that starts as zeros: padding and gaps are promised to be zero. */
static tn_status take_zeroed(tn_executor *e, int64_t bytes, void **address) {
  TN_TRY(tn_executor_take(e, TN_MEMORY_DEVICE, bytes, address));
  if (*address == NULL) return TN_OK;
  tn_device *device = e->device;
  tn_status status =
      device->backend->fill_zero(&device->env, device->streams[TN_STREAM_COMPUTE], *address, (uint64_t)bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static int64_t region_bytes(const tn_executor *e, int32_t r) {
  const tn_region *region = &e->map->regions.v[r];
  return region->count * (int64_t)tn_dtype_size(region->dtype);
}

static tn_status make_regions(tn_executor *e) {
  e->regions = tn_alloc(e->env, tn_size_mul(e->map->regions.n, sizeof(void *)));
  if (e->regions == NULL) return TN_ENOMEM;
  e->n_regions = (int32_t)e->map->regions.n;
  for (int32_t r = 0; r < e->n_regions; r++) TN_TRY(take_zeroed(e, region_bytes(e, r), &e->regions[r]));
  return TN_OK;
}

static tn_status make_slot(tn_executor *e, tn_slot_memory *m) {
  tn_device *device = e->device;
  void **events[] = {&m->staged, &m->computed, &m->arrived};
  for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
    tn_status status = device->backend->event_new(&device->env, device->device, events[i]);
    if (status != TN_OK) return tn_executor_fail(e, status);
  }
  TN_TRY(take_zeroed(e, e->slot_bytes, &m->input));
  TN_TRY(take_zeroed(e, e->output_bytes, &m->output));
  if (e->near) {
    m->host_input = m->input;
    m->host_output = m->output;
    return TN_OK;
  }
  TN_TRY(tn_executor_take(e, TN_MEMORY_STAGING, e->slot_bytes, &m->host_input));
  return tn_executor_take(e, TN_MEMORY_STAGING, e->output_bytes, &m->host_output);
}

static tn_status make_slots(tn_executor *e, int32_t n) {
  e->slots = tn_alloc(e->env, tn_size_mul((size_t)n, sizeof(tn_slot_memory)));
  if (e->slots == NULL) return TN_ENOMEM;
  e->n_slots = n;
  for (int32_t s = 0; s < n; s++) TN_TRY(make_slot(e, &e->slots[s]));
  return TN_OK;
}

/* The fallback is asked for its device only now that something needs it. */
static tn_status start_fallback(tn_executor *e, tn_program *const *programs, int32_t n) {
  bool needed = false;
  for (int32_t i = 0; i < n; i++)
    for (int32_t s = 0; s < programs[i]->n_segments; s++) needed |= programs[i]->segments[s].fallback;
  if (!needed) return TN_OK;
  if (e->device->fallback == NULL)
    return tn_failf(e->env, TN_EINTERNAL, "a program falls back, but the device has no fallback");
  tn_status status = tn_device_start(e->device->fallback);
  if (status != TN_OK) tn_error_move(e->env, &e->device->fallback->env);
  return tn_wrap(e->env, status, "the fallback '%s'", e->device->fallback->backend->item.name);
}

static tn_status bind_programs(tn_executor *e, tn_program *const *programs, int32_t n) {
  e->programs = tn_alloc(e->env, tn_size_mul((size_t)n, sizeof(tn_bound_program)));
  if (e->programs == NULL) return TN_ENOMEM;
  e->n_programs = n;
  for (int32_t i = 0; i < n; i++)
    TN_TRY(tn_wrap(e->env, tn_bind(e, programs[i], &e->programs[i]), "program '%s'", programs[i]->name));
  return TN_OK;
}

static tn_status fill(tn_executor *e, tn_program *const *programs, int32_t n_programs, int32_t slots) {
  measure(programs, n_programs, &e->arena_bytes, &e->slot_bytes, &e->output_bytes, &e->host_bytes);
  TN_TRY(start_fallback(e, programs, n_programs));
  if (e->outside) e->slot_bytes = e->output_bytes = 0;
  TN_TRY(make_regions(e));
  TN_TRY(tn_executor_take(e, TN_MEMORY_DEVICE, e->arena_bytes, &e->arena));
  TN_TRY(tn_executor_take(e, TN_MEMORY_STAGING, e->host_bytes, &e->host));
  TN_TRY(make_slots(e, slots));
  TN_TRY(bind_programs(e, programs, n_programs));
  tn_device *device = e->device;
  tn_status status = device->backend->stream_wait(&device->env, device->streams[TN_STREAM_COMPUTE]);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static tn_status create(tn_env *env, tn_device *device, const tn_state_map *map, tn_program *const *programs,
                        int32_t n_programs, int32_t slots, bool outside, tn_executor **out) {
  *out = NULL;
  if (slots < 1) return tn_failf(env, TN_EINVAL, "%d input slots, expected at least 1", (int)slots);
  tn_executor *e = tn_alloc(env, sizeof(*e));
  if (e == NULL) return TN_ENOMEM;
  e->env = env;
  e->device = device;
  e->map = map;
  e->outside = outside;
  e->near = device->target.properties.host_addressable != 0;
  /* What is captured keeps its addresses; the caller's memory lies elsewhere in the next run. */
  e->capture = !outside && !device->uncaptured;
  tn_status status = fill(e, programs, n_programs, slots);
  if (status == TN_OK)
    *out = e;
  else
    tn_executor_destroy(e);
  return status;
}

tn_status tn_executor_create(tn_env *env, tn_device *device, const tn_state_map *map,
                             tn_program *const *programs, int32_t n_programs, int32_t slots,
                             tn_executor **executor) {
  return create(env, device, map, programs, n_programs, slots, false, executor);
}

tn_status tn_executor_create_outside(tn_env *env, tn_device *device, const tn_state_map *map,
                                     tn_program *program, int32_t slots, tn_executor **executor) {
  return create(env, device, map, &program, 1, slots, true, executor);
}

static void free_slot(tn_executor *e, tn_slot_memory *m) {
  void *events[] = {m->staged, m->computed, m->arrived};
  for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
    if (events[i] != NULL) e->device->backend->event_delete(&e->device->env, events[i]);
  tn_executor_give(e, TN_MEMORY_DEVICE, m->input, e->slot_bytes);
  tn_executor_give(e, TN_MEMORY_DEVICE, m->output, e->output_bytes);
  if (e->near) return;
  tn_executor_give(e, TN_MEMORY_STAGING, m->host_input, e->slot_bytes);
  tn_executor_give(e, TN_MEMORY_STAGING, m->host_output, e->output_bytes);
}

void tn_executor_destroy(tn_executor *e) {
  if (e == NULL) return;
  tn_device *device = e->device;
  /* Work may still use the memory. What it has to say about failures comes too late for anyone. */
  for (int32_t role = 0; role < TN_STREAMS; role++)
    device->backend->stream_wait(&device->env, device->streams[role]);
  for (int32_t i = 0; i < e->n_programs; i++) tn_unbind(e, &e->programs[i]);
  for (int32_t s = 0; s < e->n_slots; s++) free_slot(e, &e->slots[s]);
  tn_executor_give(e, TN_MEMORY_STAGING, e->host, e->host_bytes);
  tn_executor_give(e, TN_MEMORY_DEVICE, e->arena, e->arena_bytes);
  for (int32_t r = 0; r < e->n_regions; r++)
    tn_executor_give(e, TN_MEMORY_DEVICE, e->regions[r], region_bytes(e, r));
  tn_release(e->env, e->programs);
  tn_release(e->env, e->slots);
  tn_release(e->env, e->regions);
  tn_release(e->env, e);
}

static const tn_binding *find_binding(const tn_binding *bindings, int32_t n, const char *name) {
  for (int32_t i = 0; i < n; i++)
    if (tn_text_equal(bindings[i].name, name)) return &bindings[i];
  return NULL;
}

void *tn_executor_input(tn_executor *e, int32_t program, int32_t slot, const char *name) {
  const tn_program *p = e->programs[program].program;
  const tn_binding *binding = find_binding(p->inputs, p->n_inputs, name);
  return binding == NULL ? NULL : (char *)e->slots[slot].host_input + binding->offset;
}

const void *tn_executor_output(tn_executor *e, int32_t program, int32_t slot, const char *name) {
  const tn_program *p = e->programs[program].program;
  const tn_binding *binding = find_binding(p->outputs, p->n_outputs, name);
  return binding == NULL ? NULL : (const char *)e->slots[slot].host_output + binding->offset;
}
