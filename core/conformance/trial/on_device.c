/* core/conformance/trial/on_device.c: compiles and runs a graph on a device. */
#include "core/conformance/trial/on_device.h"

#include <string.h>

#include "core/base/element.h"
#include "core/compile/pipeline.h"
#include "core/exec/declines.h"

struct tn_on_device {
  tn_env *env;
  tn_state_map *map;
  tn_program *program;
  tn_executor *executor;
};

/* ---- life ---- */

typedef struct compiled_use {
  tn_on_device *made;
  tn_registry *registry;
  tn_device *device;
  const tn_graph *graph;
} compiled_use;

static tn_status on_device_make(void *context) {
  const compiled_use *u = context;
  tn_on_device *r = u->made;
  TN_TRY(tn_state_map_create(r->env, &r->map));
  TN_TRY(tn_compile(r->env, "case", u->registry, &u->device->target, u->graph, r->map, NULL, &r->program));
  return tn_executor_create(r->env, u->device, r->map, &r->program, 1, 1, &r->executor);
}

static void on_device_undo(void *context) {
  tn_on_device *r = ((const compiled_use *)context)->made;
  if (r->executor != NULL) tn_executor_destroy(r->executor);
  tn_program_destroy(r->program);
  if (r->map != NULL) tn_state_map_destroy(r->map);
  r->executor = NULL;
  r->program = NULL;
  r->map = NULL;
}

tn_status tn_on_device_create(tn_env *env, tn_registry *registry, tn_device *device, tn_graph *take_graph,
                              tn_on_device **made) {
  tn_on_device *r = *made = tn_alloc(env, sizeof *r);
  if (r == NULL) {
    tn_graph_destroy(take_graph);
    return TN_ENOMEM;
  }
  r->env = env;
  compiled_use use = {r, registry, device, take_graph};
  tn_status status = tn_attempt_repeat(env, device, &(tn_attempt){&use, on_device_make, on_device_undo});
  tn_graph_destroy(take_graph);
  if (status == TN_OK) status = tn_executor_slot_wait(r->executor, 0);
  if (status == TN_OK) return TN_OK;
  tn_on_device_destroy(r);
  *made = NULL;
  return status;
}

void tn_on_device_destroy(tn_on_device *r) {
  if (r == NULL) return;
  on_device_undo(&(compiled_use){.made = r});
  tn_release(r->env, r);
}

const tn_program *tn_on_device_program(const tn_on_device *r) { return r->program; }
tn_executor *tn_on_device_executor(tn_on_device *r) { return r->executor; }

/* ---- running ---- */

static const tn_binding *find_program_binding(const tn_binding *bindings, int32_t n, const char *name) {
  for (int32_t i = 0; i < n; i++)
    if (strcmp(bindings[i].name, name) == 0) return &bindings[i];
  return NULL;
}

bool tn_on_device_is_deterministic(const tn_on_device *r) {
  for (int32_t i = 0; i < r->program->n_steps; i++)
    if (!r->program->steps[i].group->choice.deterministic) return false;
  return true;
}

void *tn_on_device_operand(tn_on_device *r, const char *name) {
  const tn_binding *b = find_program_binding(r->program->inputs, r->program->n_inputs, name);
  return b == NULL ? NULL : tn_executor_input(r->executor, 0, 0, name);
}

void tn_on_device_input(tn_on_device *r, const char *name, const double *values) {
  const tn_binding *b = find_program_binding(r->program->inputs, r->program->n_inputs, name);
  void *to = tn_on_device_operand(r, name);
  for (int64_t i = 0; to != NULL && i < tn_type_count(&b->type); i++)
    tn_element_store(b->type.dtype, to, i, values[i]);
}

tn_status tn_on_device_run(tn_on_device *r) {
  TN_TRY(tn_executor_run(r->executor, 0, 0));
  return tn_executor_slot_wait(r->executor, 0);
}

double *tn_on_device_output(tn_on_device *r, const char *name, tn_type *type) {
  const tn_binding *b = find_program_binding(r->program->outputs, r->program->n_outputs, name);
  if (b == NULL) return NULL;
  *type = b->type;
  const void *from = tn_executor_output(r->executor, 0, 0, name);
  int64_t count = tn_type_count(type);
  double *values = tn_alloc(r->env, (size_t)(count + 1) * sizeof *values);
  for (int64_t i = 0; values != NULL && i < count; i++) values[i] = tn_element_load(type->dtype, from, i);
  return values;
}
