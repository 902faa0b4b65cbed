/* core/exec/caller_memory.c: writes the caller's addresses into the views of a bound program. */
#include "core/exec/caller_memory.h"

#include "core/exec/bound_program.h"

/* A view at an offset in an input or output. */
typedef struct patch {
  size_t view; /* index in the views of a slot */
  int32_t binding;
  bool output;
  int64_t offset;
} patch;

struct tn_caller_program {
  tn_executor *executor;
  tn_bound_program *bound;
  TN_VEC(patch) patches;
  size_t n_views; /* per slot */
  int32_t next;   /* slot of the next run */
};

/* The binding that contains an offset. An empty binding shares its offset with others; any of them serves for
 * an empty operand. */
static int32_t find_containing_binding(const tn_binding *bindings, int32_t n, int64_t offset) {
  for (int32_t i = 0; i < n; i++)
    if (offset >= bindings[i].offset &&
        offset < bindings[i].offset + (int64_t)tn_type_bytes(&bindings[i].type))
      return i;
  for (int32_t i = 0; i < n; i++)
    if (offset == bindings[i].offset) return i;
  return -1;
}

static tn_status add_patch(tn_caller_program *c, const tn_operand *operand, size_t view) {
  const tn_program *p = c->bound->program;
  const tn_location *location = &operand->location;
  bool output = location->base == TN_BASE_OUTPUT;
  if (!output && location->base != TN_BASE_SLOT) return TN_OK;
  const tn_binding *bindings = output ? p->outputs : p->inputs;
  int32_t at = find_containing_binding(bindings, output ? p->n_outputs : p->n_inputs, location->offset);
  if (at < 0)
    return tn_failf(c->executor->env, TN_EINTERNAL, "program %s: offset %lld of an operand is in no %s",
                    p->name, (long long)location->offset, output ? "output" : "input");
  patch made = {view, at, output, location->offset - bindings[at].offset};
  return tn_vec_push(c->executor->env, &c->patches, made);
}

/* Counts views in the order of tn_bound_program_init. */
static tn_status find_patches(tn_caller_program *c) {
  const tn_program *p = c->bound->program;
  for (int32_t s = 0; s < tn_program_all_steps(p); s++) {
    const tn_step *step = &p->steps[s];
    for (int32_t i = 0; i < step->n_in; i++) TN_TRY(add_patch(c, &step->in[i], c->n_views++));
    for (int32_t i = 0; i < step->n_out; i++) TN_TRY(add_patch(c, &step->out[i], c->n_views++));
  }
  return TN_OK;
}

tn_status tn_caller_program_create(tn_env *env, tn_device *device, const tn_state_map *map,
                                   tn_program *program, int32_t slots, tn_caller_program **out) {
  *out = NULL;
  tn_caller_program *c = tn_alloc(env, sizeof *c);
  if (c == NULL) return TN_ENOMEM;
  tn_status status = tn_executor_create_on_caller_memory(env, device, map, program, slots, &c->executor);
  if (status != TN_OK) {
    tn_release(env, c);
    return status;
  }
  c->bound = &c->executor->programs[0];
  status = find_patches(c);
  if (status == TN_OK)
    *out = c;
  else
    tn_caller_program_destroy(c);
  return status;
}

void tn_caller_program_destroy(tn_caller_program *c) {
  if (c == NULL) return;
  tn_env *env = c->executor->env;
  tn_vec_free(env, &c->patches);
  tn_executor_destroy(c->executor);
  tn_release(env, c);
}

/* Enqueued launches read the views of their slot, so the views may change only after the slot's last run. */
tn_status tn_caller_program_run(tn_caller_program *c, void *const *inputs, void *const *outputs) {
  tn_executor *e = c->executor;
  int32_t slot = c->next;
  tn_view *views = c->bound->views + (size_t)slot * c->n_views;
  tn_status status = tn_device_check_process(e->device);
  if (status == TN_OK) status = e->device->backend->event_wait(&e->device->env, e->slots[slot].computed);
  if (status != TN_OK) return tn_executor_fail(e, status);
  for (size_t i = 0; i < c->patches.n; i++) {
    const patch *p = &c->patches.v[i];
    char *base = (p->output ? outputs : inputs)[p->binding];
    views[p->view].data = base == NULL ? NULL : base + p->offset;
  }
  c->next = (slot + 1) % e->n_slots;
  status = tn_launch_program(e, c->bound, slot);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
