/* core/tensor/call.c: an op on tensors: written down, looked up or compiled, and run on their memory. */
#include <string.h>

#include "core/tensor/tensor.h"

struct tn_call {
  tn_env env; /* shares the device's error record */
  tn_device *device;
  tn_status status; /* the first failure */
  tn_arena arena;
  const tn_op_def *def;
  tn_options options;
  TN_VEC(tn_tensor *) operands;
};

/* ---- writing it down ---- */

static void stick(tn_call *call, tn_status status) {
  if (call->status == TN_OK) call->status = status;
}

tn_call *tn_call_begin(tn_device *device, const char *op) {
  tn_call *call = tn_alloc(device, sizeof *call);
  if (call == NULL) return NULL;
  call->env = (tn_env){device->env.api, device->env.record};
  call->device = device;
  call->arena = tn_arena_new(device);
  stick(call, tn_op_table_find(device->use->ops, device, op, &call->def));
  if (call->status == TN_OK)
    stick(call, tn_options_start(device, &call->arena, &call->def->op->item, &call->options));
  return call;
}

void tn_call_cancel(tn_call *call) {
  if (call == NULL) return;
  tn_env env = call->env;
  tn_vec_free(&env, &call->operands);
  tn_arena_free(&call->arena);
  tn_release(&env, call);
}

static bool is_open(const tn_call *call) { return call != NULL && call->status == TN_OK; }

static const char *op_of(const tn_call *call) { return call->def->op->item.name; }

static tn_status check_device(const tn_call *call, const tn_tensor *t, const char *what, int32_t i) {
  const tn_device_use *use = call->device->use, *other = tn_tensor_on(t)->use;
  if (use == other) return TN_OK;
  return tn_failf(call, TN_EINVAL,
                  "%s: %s %d lies on device %d of %s, expected device %d of %s like the call", op_of(call),
                  what, (int)i, (int)other->index, other->backend, (int)use->index, use->backend);
}

void tn_call_operand(tn_call *call, tn_tensor *operand) {
  if (!is_open(call)) return;
  if (operand != NULL) stick(call, check_device(call, operand, "operand", (int32_t)call->operands.n));
  if (call->status == TN_OK) stick(call, tn_vec_push(call, &call->operands, operand));
}

static void set(tn_call *call, tn_status status) { stick(call, tn_wrap(call, status, "%s", op_of(call))); }

void tn_call_set_int(tn_call *call, const char *name, int64_t value) {
  if (is_open(call)) set(call, tn_options_set_int(call, &call->options, name, value));
}

void tn_call_set_float(tn_call *call, const char *name, double value) {
  if (is_open(call)) set(call, tn_options_set_float(call, &call->options, name, value));
}

void tn_call_set_ints(tn_call *call, const char *name, int64_t n, const int64_t *values) {
  if (is_open(call)) set(call, tn_options_set_ints(call, &call->options, name, n, values));
}

void tn_call_set_floats(tn_call *call, const char *name, int64_t n, const double *values) {
  if (is_open(call)) set(call, tn_options_set_floats(call, &call->options, name, n, values));
}

void tn_call_set_text(tn_call *call, const char *name, const char *value) {
  if (is_open(call)) set(call, tn_options_set_text(call, &call->options, name, value));
}

/* ---- its signature ---- */

/* The tensors of a call, one a port. */
typedef struct wiring {
  tn_call *call;
  tn_port *ports;
  tn_tensor **given; /* NULL: absent, or a result to be made */
  tn_tensor **used;  /* what the program reads and writes: the given one, or one that was made */
  int32_t n;
} wiring;

static tn_status start_wiring(tn_call *call, int32_t more, wiring *w) {
  size_t room = call->operands.n + (size_t)more + 1;
  *w = (wiring){.call = call};
  w->ports = tn_arena_alloc(&call->arena, tn_size_mul(room, sizeof *w->ports));
  w->given = tn_arena_alloc(&call->arena, tn_size_mul(room, sizeof(tn_tensor *)));
  w->used = tn_arena_alloc(&call->arena, tn_size_mul(room, sizeof(tn_tensor *)));
  return w->ports != NULL && w->given != NULL && w->used != NULL ? TN_OK : TN_ENOMEM;
}

static bool is_output(int32_t role) { return role == TN_PORT_RESULT || role == TN_PORT_GRADIENT; }

/* The type of what comes in is part of the signature; that of what comes out follows from it. */
static tn_status add_port(wiring *w, int32_t role, int32_t number, tn_tensor *t) {
  static const char *const names[] = {"", "operand", "gradient of result", "result", "gradient of operand"};
  tn_port *p = &w->ports[w->n];
  p->role = role;
  p->number = number;
  for (int32_t k = 0; is_output(role) && k < TN_MAX_RANK; k++) p->order[k] = k;
  if (t != NULL) {
    TN_TRY(check_device(w->call, t, names[role], number));
    if (!is_output(role)) p->type = t->type;
    p->permuted = t->permuted;
    memcpy(p->order, t->order, sizeof p->order);
    p->present = !is_output(role);
  }
  w->given[w->n++] = t;
  return TN_OK;
}

static tn_status add_operands(wiring *w) {
  for (size_t i = 0; i < w->call->operands.n; i++)
    TN_TRY(add_port(w, TN_PORT_OPERAND, (int32_t)i, w->call->operands.v[i]));
  return TN_OK;
}

/* ---- its results ---- */

static bool overlap(const tn_tensor *a, const tn_tensor *b) {
  return a->data != NULL && b->data != NULL && a->data < b->data + tn_type_bytes(&b->type) &&
         b->data < a->data + tn_type_bytes(&a->type);
}

/* Whether the memory of port i is that of another, too. A program counts on it not to be. */
static bool is_shared(const wiring *w, int32_t i) {
  for (int32_t k = 0; k < w->n; k++)
    if (k != i && w->given[k] != NULL && overlap(w->given[i], w->given[k])) return true;
  return false;
}

static tn_status check_result(const wiring *w, int32_t i, const tn_type *stored) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_tensor *t = w->given[i];
  const tn_port *p = &w->ports[i];
  tn_type wants = *stored;
  for (int32_t k = 0; k < wants.rank; k++) wants.dims[p->order[k]] = stored->dims[k];
  if (tn_type_equal(&wants, &t->type)) return TN_OK;
  return tn_failf(w->call, TN_EINVAL, "%s: %s %d is %s, but the tensor given for it is %s", op_of(w->call),
                  p->role == TN_PORT_RESULT ? "result" : "the gradient of operand", (int)p->number,
                  tn_type_format(&wants, one), tn_type_format(&t->type, other));
}

static tn_status take_result(wiring *w, int32_t i, const tn_type *stored) {
  if (w->given[i] == NULL) return tn_tensor_make(w->call->device, stored, &w->used[i]);
  TN_TRY(check_result(w, i, stored));
  if (is_shared(w, i)) return tn_tensor_make(w->call->device, &w->given[i]->type, &w->used[i]);
  w->used[i] = w->given[i];
  return TN_OK;
}

/* A result that shares memory was written elsewhere and comes home now. */
static tn_status bring_home(wiring *w) {
  for (int32_t i = 0; i < w->n; i++) {
    if (w->used[i] == NULL || w->given[i] == NULL || w->used[i] == w->given[i]) continue;
    TN_TRY(tn_tensor_copy(w->given[i], w->used[i]));
    tn_tensor_delete(w->used[i]);
    w->used[i] = w->given[i];
  }
  return TN_OK;
}

static void drop_made(wiring *w) {
  for (int32_t i = 0; i < w->n; i++)
    if (w->used[i] != NULL && w->used[i] != w->given[i]) tn_tensor_delete(w->used[i]);
}

/* ---- its run ---- */

static tn_status addresses(const wiring *w, const int32_t *ports, int32_t n, void ***out) {
  *out = tn_arena_alloc(&w->call->arena, tn_size_mul((size_t)n + 1, sizeof **out));
  if (*out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    tn_tensor *t = w->used[ports[i]];
    TN_TRY(tn_storage_settle(t->storage));
    (*out)[i] = t->data;
  }
  return TN_OK;
}

static tn_status run(wiring *w, tn_compiled *c) {
  const tn_program *p = c->program;
  void **inputs, **outputs;
  for (int32_t i = 0; i < w->n; i++)
    if (!is_output(w->ports[i].role)) w->used[i] = w->given[i];
  for (int32_t i = 0; i < p->n_outputs; i++) TN_TRY(take_result(w, c->output_port[i], &p->outputs[i].type));
  TN_TRY(addresses(w, c->input_port, p->n_inputs, &inputs));
  TN_TRY(addresses(w, c->output_port, p->n_outputs, &outputs));
  w->call->device->use->busy = true;
  TN_TRY(tn_outside_run(c->outside, inputs, outputs));
  return bring_home(w);
}

/* A result that lies in another order than the program was told is no result of its signature: the one
 * that is written instead of a shared one is row-major, and so must the program be. */
static void plan_results(wiring *w) {
  for (int32_t i = 0; i < w->n; i++) {
    tn_port *p = &w->ports[i];
    if (!is_output(p->role) || w->given[i] == NULL || !p->permuted || !is_shared(w, i)) continue;
    p->permuted = 0;
    for (int32_t k = 0; k < TN_MAX_RANK; k++) p->order[k] = k;
  }
}

static tn_status finish(wiring *w, bool gradient) {
  tn_call *call = w->call;
  tn_compiled *compiled;
  TN_TRY(tn_wrap(call, tn_options_finish(call, &call->options), "%s", op_of(call)));
  plan_results(w);
  tn_call_key key = {call->def, call->options.data, w->ports, w->n, gradient};
  TN_TRY(tn_cache_get(call->device, &key, &compiled));
  tn_status status = run(w, compiled);
  if (status != TN_OK) drop_made(w);
  return status;
}

/* Hands out what was made for the ports of a role, in their order. */
static void hand_out(const wiring *w, int32_t role, tn_tensor **to) {
  for (int32_t i = 0; i < w->n; i++)
    if (w->ports[i].role == role) to[w->ports[i].number] = w->used[i];
}

/* ---- its end ---- */

static tn_status end_forward(tn_call *call, tn_tensor **results, int32_t n) {
  wiring w;
  if (n < 1 || n > call->def->n_results)
    return tn_failf(call, TN_EINVAL, "%s: %d results are asked for, expected 1 to %d", op_of(call), (int)n,
                    (int)call->def->n_results);
  TN_TRY(start_wiring(call, n, &w));
  TN_TRY(add_operands(&w));
  for (int32_t i = 0; i < n; i++) TN_TRY(add_port(&w, TN_PORT_RESULT, i, results[i]));
  TN_TRY(finish(&w, false));
  hand_out(&w, TN_PORT_RESULT, results);
  return TN_OK;
}

tn_status tn_call_end(tn_call *call, tn_tensor **results, int32_t n_results) {
  if (call == NULL) return TN_ENOMEM;
  tn_status status = call->status == TN_OK ? end_forward(call, results, n_results) : call->status;
  tn_call_cancel(call);
  return status;
}

/* Whether the gradient of operand i is to be computed. */
static bool is_wanted(const tn_call *call, const int32_t *want, int32_t i) {
  const tn_tensor *t = call->operands.v[i];
  if (t == NULL) return false;
  return want != NULL ? want[i] != 0 : tn_dtype_is_float(t->type.dtype) != 0;
}

static tn_status check_counts(const tn_call *call, int32_t n_dresults, int32_t n_gradients) {
  if (n_dresults < 0 || n_dresults > call->def->n_results)
    return tn_failf(call, TN_EINVAL, "%s: gradients of %d results are given, expected at most %d",
                    op_of(call), (int)n_dresults, (int)call->def->n_results);
  if (n_gradients == (int32_t)call->operands.n) return TN_OK;
  return tn_failf(call, TN_EINVAL,
                  "%s: room for %d gradients, expected %zu, one for each operand of the call", op_of(call),
                  (int)n_gradients, call->operands.n);
}

static tn_status end_gradient(tn_call *call, tn_tensor *const *dresults, int32_t n_dresults,
                              const int32_t *want, tn_tensor **gradients, int32_t n_gradients) {
  wiring w;
  int32_t wanted = 0;
  TN_TRY(check_counts(call, n_dresults, n_gradients));
  TN_TRY(start_wiring(call, n_dresults + n_gradients, &w));
  TN_TRY(add_operands(&w));
  for (int32_t i = 0; i < n_dresults; i++) TN_TRY(add_port(&w, TN_PORT_DRESULT, i, dresults[i]));
  for (int32_t i = 0; i < n_gradients; i++)
    if (is_wanted(call, want, i)) {
      TN_TRY(add_port(&w, TN_PORT_GRADIENT, i, gradients[i]));
      wanted++;
    }
  if (wanted == 0)
    return tn_failf(call, TN_EINVAL, "%s: no gradient is asked for, expected an operand of a float type",
                    op_of(call));
  TN_TRY(finish(&w, true));
  hand_out(&w, TN_PORT_GRADIENT, gradients);
  return TN_OK;
}

tn_status tn_call_end_gradient(tn_call *call, tn_tensor *const *dresults, int32_t n_dresults,
                               const int32_t *want, tn_tensor **gradients, int32_t n_gradients) {
  if (call == NULL) return TN_ENOMEM;
  tn_status status = call->status == TN_OK
                         ? end_gradient(call, dresults, n_dresults, want, gradients, n_gradients)
                         : call->status;
  tn_call_cancel(call);
  return status;
}
