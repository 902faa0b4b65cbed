/* core/tensor/call_run.c: a call whose tensors are known, from its signature to its run. */
#include "core/tensor/call_run.h"

#include <string.h>

/* ---- ports ---- */

static const char *call_run_op(const tn_call_run *run) { return run->def->op->item.name; }

tn_status tn_call_run_check_device(const tn_device *device, const tn_op_def *def, const tn_tensor *t,
                                   const char *kind, int32_t number) {
  const tn_device_use *use = device->use, *other = tn_tensor_on(t)->use;
  if (use == other) return TN_OK;
  return tn_failf(device, TN_EINVAL,
                  "%s: %s %d is on device %d of %s, expected device %d of %s like the call",
                  def->op->item.name, kind, (int)number, (int)other->index, other->backend, (int)use->index,
                  use->backend);
}

tn_status tn_call_run_start(tn_device *device, tn_arena *arena, const tn_op_def *def, size_t n,
                            tn_call_run *run) {
  *run = (tn_call_run){.device = device, .arena = arena, .def = def};
  run->ports = tn_arena_alloc(arena, tn_size_mul(n + 1, sizeof *run->ports));
  run->given = tn_arena_alloc(arena, tn_size_mul(n + 1, sizeof(tn_tensor *)));
  run->used = tn_arena_alloc(arena, tn_size_mul(n + 1, sizeof(tn_tensor *)));
  return run->ports != NULL && run->given != NULL && run->used != NULL ? TN_OK : TN_ENOMEM;
}

static bool is_output(int32_t role) { return role == TN_PORT_RESULT || role == TN_PORT_GRADIENT; }

static void port_set_row_major(tn_port *p) {
  p->permuted = 0;
  for (int32_t k = 0; k < TN_MAX_RANK; k++) p->order[k] = k;
}

/* The types of operands are part of the signature; the types of results follow from them. */
tn_status tn_call_run_add(tn_call_run *run, int32_t role, int32_t number, tn_tensor *t) {
  static const char *const kinds[] = {"", "operand", "gradient of result", "result", "gradient of operand"};
  tn_port *p = &run->ports[run->n];
  p->role = role;
  p->number = number;
  if (is_output(role)) port_set_row_major(p);
  if (t != NULL) {
    TN_TRY(tn_call_run_check_device(run->device, run->def, t, kinds[role], number));
    if (!is_output(role)) p->type = t->type;
    p->permuted = t->permuted;
    memcpy(p->order, t->order, sizeof p->order);
    p->present = !is_output(role);
  }
  run->given[run->n++] = t;
  return TN_OK;
}

/* ---- results ---- */

static bool overlap(const tn_tensor *a, const tn_tensor *b) {
  return a->data != NULL && b->data != NULL && a->data < b->data + tn_type_bytes(&b->type) &&
         b->data < a->data + tn_type_bytes(&a->type);
}

/* Whether another port shares memory with port i. Programs require disjoint results. */
static bool shares_memory(const tn_call_run *run, int32_t i) {
  for (int32_t k = 0; k < run->n; k++)
    if (k != i && run->given[k] != NULL && overlap(run->given[i], run->given[k])) return true;
  return false;
}

/* The tensor that is allocated in place of a shared one is row-major, and so is its port. */
static void plan_shared_results(tn_call_run *run) {
  for (int32_t i = 0; i < run->n; i++) {
    tn_port *p = &run->ports[i];
    if (is_output(p->role) && run->given[i] != NULL && p->permuted && shares_memory(run, i))
      port_set_row_major(p);
  }
}

static tn_status check_result_type(const tn_call_run *run, int32_t i, const tn_type *stored) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_tensor *t = run->given[i];
  const tn_port *p = &run->ports[i];
  tn_type expected = *stored;
  for (int32_t k = 0; k < expected.rank; k++) expected.dims[p->order[k]] = stored->dims[k];
  if (tn_type_equal(&expected, &t->type)) return TN_OK;
  return tn_failf(run->device, TN_EINVAL, "%s: %s %d is %s, but the tensor given for it is %s",
                  call_run_op(run), p->role == TN_PORT_RESULT ? "result" : "the gradient of operand",
                  (int)p->number, tn_type_format(&expected, one), tn_type_format(&t->type, other));
}

static tn_status choose_result(tn_call_run *run, int32_t i, const tn_type *stored) {
  if (run->given[i] == NULL) return tn_tensor_allocate(run->device, stored, &run->used[i]);
  TN_TRY(check_result_type(run, i, stored));
  if (shares_memory(run, i)) return tn_tensor_allocate(run->device, &run->given[i]->type, &run->used[i]);
  run->used[i] = run->given[i];
  return TN_OK;
}

void tn_call_run_discard(tn_call_run *run) {
  for (int32_t i = 0; i < run->n; i++)
    if (run->used[i] != NULL && run->used[i] != run->given[i]) tn_tensor_delete(run->used[i]);
}

/* ---- the run ---- */

static tn_status list_addresses(const tn_call_run *run, const int32_t *ports, int32_t n, void ***out) {
  *out = tn_arena_alloc(run->arena, tn_size_mul((size_t)n + 1, sizeof **out));
  if (*out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    tn_tensor *t = run->used[ports[i]];
    TN_TRY(tn_storage_wait(t->storage));
    (*out)[i] = t->data;
  }
  return TN_OK;
}

static tn_status enqueue_compiled(tn_call_run *run, tn_compiled_call *c) {
  const tn_program *p = c->program;
  void **inputs, **outputs;
  for (int32_t i = 0; i < run->n; i++)
    if (!is_output(run->ports[i].role)) run->used[i] = run->given[i];
  for (int32_t i = 0; i < p->n_outputs; i++)
    TN_TRY(choose_result(run, c->output_port[i], &p->outputs[i].type));
  TN_TRY(list_addresses(run, c->input_port, p->n_inputs, &inputs));
  TN_TRY(list_addresses(run, c->output_port, p->n_outputs, &outputs));
  run->device->use->busy = true;
  return tn_caller_program_run(c->runnable, inputs, outputs);
}

tn_status tn_call_run_enqueue(tn_call_run *run, const void *attributes, bool gradient) {
  tn_compiled_call *compiled;
  plan_shared_results(run);
  tn_call_key key = {run->def, attributes, run->ports, run->n, gradient};
  TN_TRY(tn_call_cache_get(run->device, &key, &compiled));
  return enqueue_compiled(run, compiled);
}
