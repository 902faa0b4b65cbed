/* core/exec/caller_memory.c: views of a bound program that are pointed at the caller's memory before each
 * run. */
#include "core/exec/caller_memory.h"

#include "core/exec/bound_program.h"

/* A view whose address is that of an input or output plus an offset. */
typedef struct patch {
  size_t view; /* of one slot's */
  int32_t binding;
  bool output;
  int64_t offset;
} patch;

struct tn_outside {
  tn_executor *executor;
  tn_bound_program *bound;
  TN_VEC(patch) patches;
  size_t n_views; /* of a slot */
  int32_t next;   /* the slot of the next run */
};

/* The binding in which an offset lies. Empty ones share their offset with others; whose address an empty
 * operand gets does not matter. */
static int32_t find_binding(const tn_binding *bindings, int32_t n, int64_t offset) {
  for (int32_t i = 0; i < n; i++)
    if (offset >= bindings[i].offset &&
        offset < bindings[i].offset + (int64_t)tn_type_bytes(&bindings[i].type))
      return i;
  for (int32_t i = 0; i < n; i++)
    if (offset == bindings[i].offset) return i;
  return -1;
}

static tn_status add_patch(tn_outside *o, const tn_operand *operand, size_t view) {
  const tn_program *p = o->bound->program;
  const tn_place *place = &operand->place;
  bool output = place->base == TN_BASE_OUTPUT;
  if (!output && place->base != TN_BASE_SLOT) return TN_OK;
  const tn_binding *bindings = output ? p->outputs : p->inputs;
  int32_t at = find_binding(bindings, output ? p->n_outputs : p->n_inputs, place->offset);
  if (at < 0)
    return tn_failf(o->executor->env, TN_EINTERNAL, "program %s: an operand lies at %lld of no %s", p->name,
                    (long long)place->offset, output ? "output" : "input");
  patch made = {view, at, output, place->offset - bindings[at].offset};
  return tn_vec_push(o->executor->env, &o->patches, made);
}

/* In the order in which tn_bind lays out the views of a slot. */
static tn_status find_patches(tn_outside *o) {
  const tn_program *p = o->bound->program;
  for (int32_t s = 0; s < p->n_steps; s++) {
    const tn_step *step = &p->steps[s];
    for (int32_t i = 0; i < step->n_in; i++) TN_TRY(add_patch(o, &step->in[i], o->n_views++));
    for (int32_t i = 0; i < step->n_out; i++) TN_TRY(add_patch(o, &step->out[i], o->n_views++));
  }
  return TN_OK;
}

tn_status tn_outside_create(tn_env *env, tn_device *device, const tn_state_map *map, tn_program *program,
                            int32_t slots, tn_outside **out) {
  *out = NULL;
  tn_outside *o = tn_alloc(env, sizeof *o);
  if (o == NULL) return TN_ENOMEM;
  tn_status status = tn_executor_create_outside(env, device, map, program, slots, &o->executor);
  if (status != TN_OK) {
    tn_release(env, o);
    return status;
  }
  o->bound = &o->executor->programs[0];
  status = find_patches(o);
  if (status == TN_OK)
    *out = o;
  else
    tn_outside_destroy(o);
  return status;
}

void tn_outside_destroy(tn_outside *o) {
  if (o == NULL) return;
  tn_env *env = o->executor->env;
  tn_vec_free(env, &o->patches);
  tn_executor_destroy(o->executor);
  tn_release(env, o);
}

/* A launch may be read until its stream has been waited for, so a slot's views rest until its run is over. */
tn_status tn_outside_run(tn_outside *o, void *const *inputs, void *const *outputs) {
  tn_executor *e = o->executor;
  int32_t slot = o->next;
  tn_view *views = o->bound->views + (size_t)slot * o->n_views;
  tn_status status = e->device->backend->event_wait(&e->device->env, e->slots[slot].computed);
  if (status != TN_OK) return tn_executor_fail(e, status);
  for (size_t i = 0; i < o->patches.n; i++) {
    const patch *p = &o->patches.v[i];
    char *base = (p->output ? outputs : inputs)[p->binding];
    views[p->view].data = base == NULL ? NULL : base + p->offset;
  }
  o->next = (slot + 1) % e->n_slots;
  status = tn_launch_program(e, o->bound, slot);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
