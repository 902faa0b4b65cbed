/* core/conformance/trial/guard.c: canaries between the buffers of a program. */
#include "core/conformance/trial/guard.h"

#include <string.h>

#include "core/exec/bound_program.h"

enum { CANARY = TN_GUARD_NUMBER };

/* ---- areas of device memory ---- */

/* An area of device memory with a copy on the host. */
typedef struct guarded_area {
  tn_executor *executor;
  int32_t base; /* TN_BASE_ARENA, TN_BASE_OUTPUT */
  void *address;
  int64_t bytes;
  uint8_t *copy;
} guarded_area;

static guarded_area guarded_area_of(tn_executor *e, int32_t base) {
  if (base == TN_BASE_ARENA) return (guarded_area){e, base, e->arena, e->arena_bytes, NULL};
  return (guarded_area){e, base, e->slots[0].output, e->output_bytes, NULL};
}

static tn_status copy_area(const guarded_area *g, int32_t direction) {
  tn_device *device = g->executor->device;
  void *stream = device->streams[TN_STREAM_COMPUTE];
  bool to_device = direction == TN_COPY_TO_DEVICE;
  TN_TRY(device->backend->copy(&device->env, stream, direction, to_device ? g->address : g->copy,
                               to_device ? g->copy : g->address, (uint64_t)g->bytes));
  return device->backend->stream_wait(&device->env, stream);
}

/* Calls `visit` with memory for the host copy, unless the area is empty. */
static tn_status with_copy(guarded_area *g, tn_status (*visit)(guarded_area *g, void *context),
                           void *context) {
  void *copy = NULL;
  if (g->bytes == 0) return TN_OK;
  tn_status status = tn_device_memory(g->executor->device, TN_MEMORY_STAGING, g->bytes, &copy);
  g->copy = copy;
  if (status == TN_OK) status = visit(g, context);
  tn_device_memory_free(g->executor->device, TN_MEMORY_STAGING, copy, g->bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(g->executor, status);
}

static tn_status fill_area(guarded_area *g, void *context) {
  memset(g->copy, *(const int32_t *)context, (size_t)g->bytes);
  return copy_area(g, TN_COPY_TO_DEVICE);
}

tn_status tn_guard_fill(tn_executor *e, int32_t pattern) {
  guarded_area arena = guarded_area_of(e, TN_BASE_ARENA), output = guarded_area_of(e, TN_BASE_OUTPUT);
  TN_TRY(with_copy(&arena, fill_area, &pattern));
  return with_copy(&output, fill_area, &pattern);
}

/* ---- the bytes of buffers ---- */

/* Resets the bytes of buffers to the canary; a remaining byte that differs was written out of bounds. */
static void reset_operands(guarded_area *g, const tn_operand *operands, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (operands[i].location.base == g->base)
      memset(g->copy + operands[i].location.offset, CANARY,
             (size_t)tn_layout_bytes(&operands[i].type, &operands[i].layout));
}

static void reset_step(guarded_area *g, const tn_step *step) {
  int64_t workspace = step->group->fallback == NULL ? step->group->choice.workspace_bytes : 0;
  reset_operands(g, step->in, step->n_in);
  reset_operands(g, step->out, step->n_out);
  if (g->base == TN_BASE_ARENA) memset(g->copy + step->workspace_offset, CANARY, (size_t)workspace);
}

/* The launch of the nearest result that begins at or before the byte. */
static const char *find_nearest_launch(const tn_program *program, int32_t base, int64_t byte) {
  const char *launch = "no launch";
  int64_t nearest = -1;
  for (int32_t s = 0; s < program->n_steps; s++)
    for (int32_t i = 0; i < program->steps[s].n_out; i++) {
      const tn_operand *o = &program->steps[s].out[i];
      if (o->location.base != base || o->location.offset > byte || o->location.offset < nearest) continue;
      nearest = o->location.offset;
      launch = program->steps[s].name;
    }
  return launch;
}

typedef struct canary_search {
  const tn_program *program;
  int64_t broken;
  const char *launch;
} canary_search;

static tn_status find_broken_canary(guarded_area *g, void *context) {
  canary_search *s = context;
  TN_TRY(copy_area(g, TN_COPY_TO_HOST));
  for (int32_t i = 0; i < s->program->n_steps; i++) reset_step(g, &s->program->steps[i]);
  for (int64_t i = 0; i < g->bytes && s->broken < 0; i++)
    if (g->copy[i] != CANARY) s->broken = i;
  if (s->broken >= 0) s->launch = find_nearest_launch(s->program, g->base, s->broken);
  return TN_OK;
}

tn_status tn_guard_check(tn_executor *e, const tn_program *program, int64_t *broken, const char **launch) {
  guarded_area arena = guarded_area_of(e, TN_BASE_ARENA), output = guarded_area_of(e, TN_BASE_OUTPUT);
  canary_search s = {program, -1, ""};
  TN_TRY(with_copy(&arena, find_broken_canary, &s));
  if (s.broken < 0) TN_TRY(with_copy(&output, find_broken_canary, &s));
  *broken = s.broken;
  *launch = s.launch;
  return TN_OK;
}
