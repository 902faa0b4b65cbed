/* core/tensor/call.c: an op on tensors: operands and attributes are collected one by one, then it runs. */
#include "core/tensor/call_run.h"

struct tn_call {
  tn_env env; /* with the device's error record */
  tn_device *device;
  tn_status status; /* the first failure */
  tn_arena arena;
  const tn_op_def *def;
  tn_options options;
  TN_VEC(tn_tensor *) operands;
};

/* ---- operands and attributes ---- */

/* Keeps the first failure. */
static void call_note(tn_call *call, tn_status status) {
  if (call->status == TN_OK) call->status = status;
}

tn_call *tn_call_begin(tn_device *device, const char *op) {
  TN_THREAD_STATE;
  tn_call *call = device != NULL ? tn_alloc(device, sizeof *call) : NULL;
  if (call == NULL) return NULL;
  call->env = (tn_env){device->env.api, device->env.record};
  call->device = device;
  call->arena = tn_arena_new(device);
  if (op == NULL)
    call_note(call, tn_failf(device, TN_EINVAL, "tn_call_begin: op is NULL"));
  else
    call_note(call, tn_op_table_find(device->use->ops, device, op, &call->def));
  if (call->status == TN_OK)
    call_note(call, tn_options_start(device, &call->arena, &call->def->op->item, &call->options));
  return call;
}

void tn_call_cancel(tn_call *call) {
  if (call == NULL) return;
  tn_env env = call->env;
  tn_vec_free(&env, &call->operands);
  tn_arena_free(&call->arena);
  tn_release(&env, call);
}

static bool call_is_open(const tn_call *call) { return call != NULL && call->status == TN_OK; }

static const char *call_op(const tn_call *call) { return call->def->op->item.name; }

void tn_call_operand(tn_call *call, tn_tensor *operand) {
  if (!call_is_open(call)) return;
  if (operand != NULL)
    call_note(call, tn_call_run_check_device(call->device, call->def, operand, "operand",
                                             (int32_t)call->operands.n));
  if (call->status == TN_OK) call_note(call, tn_vec_push(call, &call->operands, operand));
}

/* Whether an attribute can be set from these pointers; `value` NULL is an error where n is above 0. */
static bool call_takes(tn_call *call, const char *name, const void *value, int64_t n) {
  if (!call_is_open(call)) return false;
  if (name == NULL)
    call_note(call, tn_failf(call, TN_EINVAL, "%s: the name of an attribute is NULL", call_op(call)));
  else if (value == NULL && n > 0)
    call_note(call, tn_failf(call, TN_EINVAL, "%s: the value of '%s' is NULL", call_op(call), name));
  return call->status == TN_OK;
}

static void call_note_option(tn_call *call, tn_status status) {
  call_note(call, tn_wrap(call, status, "%s", call_op(call)));
}

void tn_call_set_int(tn_call *call, const char *name, int64_t value) {
  TN_THREAD_STATE;
  if (call_takes(call, name, &value, 1))
    call_note_option(call, tn_options_set_int(call, &call->options, name, value));
}

void tn_call_set_float(tn_call *call, const char *name, double value) {
  TN_THREAD_STATE;
  if (call_takes(call, name, &value, 1))
    call_note_option(call, tn_options_set_float(call, &call->options, name, value));
}

void tn_call_set_ints(tn_call *call, const char *name, int64_t n, const int64_t *values) {
  TN_THREAD_STATE;
  if (call_takes(call, name, values, n))
    call_note_option(call, tn_options_set_ints(call, &call->options, name, n, values));
}

void tn_call_set_floats(tn_call *call, const char *name, int64_t n, const double *values) {
  TN_THREAD_STATE;
  if (call_takes(call, name, values, n))
    call_note_option(call, tn_options_set_floats(call, &call->options, name, n, values));
}

void tn_call_set_text(tn_call *call, const char *name, const char *value) {
  TN_THREAD_STATE;
  if (call_takes(call, name, value, 1))
    call_note_option(call, tn_options_set_text(call, &call->options, name, value));
}

/* ---- the run ---- */

/* Starts a run with the operands of the call and room for n more ports. */
static tn_status call_start_run(tn_call *call, int32_t n, tn_call_run *run) {
  TN_TRY(tn_call_run_start(call->device, &call->arena, call->def, call->operands.n + (size_t)n, run));
  for (size_t i = 0; i < call->operands.n; i++)
    TN_TRY(tn_call_run_add(run, TN_PORT_OPERAND, (int32_t)i, call->operands.v[i]));
  return TN_OK;
}

/* Copies results that were computed into allocated tensors to the given ones. */
static tn_status copy_shared_results(tn_call_run *run) {
  for (int32_t i = 0; i < run->n; i++) {
    if (run->used[i] == NULL || run->given[i] == NULL || run->used[i] == run->given[i]) continue;
    TN_TRY(tn_tensor_copy(run->given[i], run->used[i]));
    tn_tensor_delete(run->used[i]);
    run->used[i] = run->given[i];
  }
  return TN_OK;
}

static tn_status call_run(tn_call *call, tn_call_run *run, bool gradient) {
  TN_TRY(tn_wrap(call, tn_options_finish(call, &call->options), "%s", call_op(call)));
  tn_status status = tn_call_run_enqueue(run, call->options.data, gradient);
  if (status == TN_OK) status = copy_shared_results(run);
  if (status != TN_OK) tn_call_run_discard(run);
  return status;
}

/* Writes the tensors of the ports of a role, in their order. */
static void return_tensors(const tn_call_run *run, int32_t role, tn_tensor **to) {
  for (int32_t i = 0; i < run->n; i++)
    if (run->ports[i].role == role) to[run->ports[i].number] = run->used[i];
}

/* ---- the end of a call ---- */

static tn_status end_forward(tn_call *call, tn_tensor **results, int32_t n) {
  tn_call_run run;
  if (n < 1 || n > call->def->n_results)
    return tn_failf(call, TN_EINVAL, "%s: %d results are requested, expected 1 to %d", call_op(call), (int)n,
                    (int)call->def->n_results);
  if (results == NULL) return tn_failf(call, TN_EINVAL, "%s: results is NULL", call_op(call));
  TN_TRY(call_start_run(call, n, &run));
  for (int32_t i = 0; i < n; i++) TN_TRY(tn_call_run_add(&run, TN_PORT_RESULT, i, results[i]));
  TN_TRY(call_run(call, &run, false));
  return_tensors(&run, TN_PORT_RESULT, results);
  return TN_OK;
}

tn_status tn_call_end(tn_call *call, tn_tensor **results, int32_t n_results) {
  if (call == NULL) return TN_ENOMEM;
  TN_THREAD_STATE;
  tn_status status = call->status == TN_OK ? end_forward(call, results, n_results) : call->status;
  tn_call_cancel(call);
  return status;
}

/* Whether the gradient of operand i is to be computed. */
static bool is_gradient_wanted(const tn_call *call, const int32_t *want, int32_t i) {
  const tn_tensor *t = call->operands.v[i];
  if (t == NULL) return false;
  return want != NULL ? want[i] != 0 : tn_dtype_is_float(t->type.dtype) != 0;
}

static tn_status check_counts(const tn_call *call, int32_t n_dresults, int32_t n_gradients) {
  if (n_dresults < 0 || n_dresults > call->def->n_results)
    return tn_failf(call, TN_EINVAL, "%s: gradients of %d results are given, expected at most %d",
                    call_op(call), (int)n_dresults, (int)call->def->n_results);
  if (n_gradients == (int32_t)call->operands.n) return TN_OK;
  return tn_failf(call, TN_EINVAL,
                  "%s: room for %d gradients, expected %zu, one for each operand of the call", call_op(call),
                  (int)n_gradients, call->operands.n);
}

static tn_status end_gradient(tn_call *call, tn_tensor *const *dresults, int32_t n_dresults,
                              const int32_t *want, tn_tensor **gradients, int32_t n_gradients) {
  tn_call_run run;
  int32_t n_wanted = 0;
  TN_TRY(check_counts(call, n_dresults, n_gradients));
  if ((n_dresults > 0 && dresults == NULL) || (n_gradients > 0 && gradients == NULL))
    return tn_failf(call, TN_EINVAL, "%s: %s is NULL", call_op(call), gradients ? "dresults" : "gradients");
  TN_TRY(call_start_run(call, n_dresults + n_gradients, &run));
  for (int32_t i = 0; i < n_dresults; i++) TN_TRY(tn_call_run_add(&run, TN_PORT_DRESULT, i, dresults[i]));
  for (int32_t i = 0; i < n_gradients; i++)
    if (is_gradient_wanted(call, want, i)) {
      TN_TRY(tn_call_run_add(&run, TN_PORT_GRADIENT, i, gradients[i]));
      n_wanted++;
    }
  if (n_wanted == 0)
    return tn_failf(call, TN_EINVAL,
                    "%s: no gradient is requested, expected one of an operand of a float type",
                    call_op(call));
  TN_TRY(call_run(call, &run, true));
  return_tensors(&run, TN_PORT_GRADIENT, gradients);
  return TN_OK;
}

tn_status tn_call_end_gradient(tn_call *call, tn_tensor *const *dresults, int32_t n_dresults,
                               const int32_t *want, tn_tensor **gradients, int32_t n_gradients) {
  if (call == NULL) return TN_ENOMEM;
  TN_THREAD_STATE;
  tn_status status = call->status == TN_OK
                         ? end_gradient(call, dresults, n_dresults, want, gradients, n_gradients)
                         : call->status;
  tn_call_cancel(call);
  return status;
}
