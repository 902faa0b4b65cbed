/* core/conformance/trial/guard.c: canaries around everything that kernels write. */
#include "core/conformance/trial/guard.h"

#include <string.h>

#include "core/exec/bound_program.h"

enum { CANARY = 0xA5 };

/* ---- device memory through the host's ---- */

/* A piece of device memory, and the host's copy of it. */
typedef struct guarded {
  tn_executor *executor;
  int32_t base; /* TN_BASE_ARENA, TN_BASE_OUTPUT */
  void *address;
  int64_t bytes;
  uint8_t *copy;
} guarded;

static guarded area_of(tn_executor *e, int32_t base) {
  if (base == TN_BASE_ARENA) return (guarded){e, base, e->arena, e->arena_bytes, NULL};
  return (guarded){e, base, e->slots[0].output, e->output_bytes, NULL};
}

static tn_status move(const guarded *g, int32_t direction) {
  tn_device *device = g->executor->device;
  void *stream = device->streams[TN_STREAM_COMPUTE];
  bool to_device = direction == TN_COPY_TO_DEVICE;
  TN_TRY(device->backend->copy(&device->env, stream, direction, to_device ? g->address : g->copy,
                               to_device ? g->copy : g->address, (uint64_t)g->bytes));
  return device->backend->stream_wait(&device->env, stream);
}

/* Calls `what` with a host copy in place; NULL is for memory that the program does not have. */
static tn_status with_copy(guarded *g, tn_status (*what)(guarded *g, void *context), void *context) {
  void *copy = NULL;
  if (g->bytes == 0) return TN_OK;
  tn_status status = tn_device_memory(g->executor->device, TN_MEMORY_STAGING, g->bytes, &copy);
  g->copy = copy;
  if (status == TN_OK) status = what(g, context);
  tn_device_memory_free(g->executor->device, TN_MEMORY_STAGING, copy, g->bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(g->executor, status);
}

static tn_status fill(guarded *g, void *context) {
  (void)context;
  memset(g->copy, CANARY, (size_t)g->bytes);
  return move(g, TN_COPY_TO_DEVICE);
}

tn_status tn_guard_fill(tn_executor *e) {
  guarded arena = area_of(e, TN_BASE_ARENA), output = area_of(e, TN_BASE_OUTPUT);
  TN_TRY(with_copy(&arena, fill, NULL));
  return with_copy(&output, fill, NULL);
}

/* ---- who owns which bytes ---- */

/* An owned byte becomes a canary again: what is left that is none was written by nobody's right. */
static void disown_operands(guarded *g, const tn_operand *operands, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (operands[i].place.base == g->base)
      memset(g->copy + operands[i].place.offset, CANARY,
             (size_t)tn_layout_bytes(&operands[i].type, &operands[i].layout));
}

static void disown_step(guarded *g, const tn_step *step) {
  int64_t workspace = step->group->fallback == NULL ? step->group->choice.workspace_bytes : 0;
  disown_operands(g, step->in, step->n_in);
  disown_operands(g, step->out, step->n_out);
  if (g->base == TN_BASE_ARENA) memset(g->copy + step->workspace_offset, CANARY, (size_t)workspace);
}

/* The launch with a result that begins last before the byte. */
static const char *find_near(const tn_program *program, int32_t base, int64_t byte) {
  const char *near = "nobody";
  int64_t nearest = -1;
  for (int32_t s = 0; s < program->n_steps; s++)
    for (int32_t i = 0; i < program->steps[s].n_out; i++) {
      const tn_operand *o = &program->steps[s].out[i];
      if (o->place.base != base || o->place.offset > byte || o->place.offset < nearest) continue;
      nearest = o->place.offset;
      near = program->steps[s].name;
    }
  return near;
}

typedef struct search {
  const tn_program *program;
  int64_t broken;
  const char *near;
} search;

static tn_status look(guarded *g, void *context) {
  search *s = context;
  TN_TRY(move(g, TN_COPY_TO_HOST));
  for (int32_t i = 0; i < s->program->n_steps; i++) disown_step(g, &s->program->steps[i]);
  for (int64_t i = 0; i < g->bytes && s->broken < 0; i++)
    if (g->copy[i] != CANARY) s->broken = i;
  if (s->broken >= 0) s->near = find_near(s->program, g->base, s->broken);
  return TN_OK;
}

tn_status tn_guard_check(tn_executor *e, const tn_program *program, int64_t *broken, const char **near) {
  guarded arena = area_of(e, TN_BASE_ARENA), output = area_of(e, TN_BASE_OUTPUT);
  search s = {program, -1, ""};
  TN_TRY(with_copy(&arena, look, &s));
  if (s.broken < 0) TN_TRY(with_copy(&output, look, &s));
  *broken = s.broken;
  *near = s.near;
  return TN_OK;
}
