/* core/model/lines/habits.c: calls that are written as in PyTorch, where the size of the input comes first.
 * Some of them would be built, with another meaning. */
#include "core/model/assemble.h"

/* The positional arguments at the start of a call, as far as they are whole numbers. */
typedef struct habit_numbers {
  int64_t v[4];
  int32_t n;
} habit_numbers;

static habit_numbers habit_read_numbers(const tn_model_scope *scope, const tn_item_call *call) {
  habit_numbers numbers = {{0}, 0};
  for (int32_t i = 0; i < call->n_args && i < 4 && call->args[i].name == NULL; i++) {
    tn_value value;
    if (tn_scope_evaluate(scope, call->args[i].value, &value) != TN_OK) break;
    if (value.kind != TN_VALUE_NUMBER || !value.is_integer) break;
    numbers.v[numbers.n++] = (int64_t)value.number;
  }
  return numbers;
}

static bool habit_has_option(const tn_layer_kind *kind, int64_t position, const char *name) {
  const tn_option *option = tn_options_at(&kind->item, position);
  return option != NULL && tn_text_equal(option->name, name);
}

/* conv2d(3, 64, 7): three channels, a kernel of 64 and a stride of 7, where the input has 3 channels. */
static bool habit_is_in_out_kernel(const tn_use *use, const habit_numbers *given, const tn_type *type) {
  if (type->rank != 4 || given->n < 2 || given->v[0] != type->dims[1]) return false;
  for (int32_t i = 0; i < use->call->n_args; i++)
    if (tn_text_equal(use->call->args[i].name, "kernel_size")) return true;
  if (given->v[1] > type->dims[2] || given->v[1] > type->dims[3]) return true;
  if (given->n < 3 || given->v[1] <= given->v[2]) return false;
  return given->v[0] <= 4 || given->v[1] >= 16;
}

static tn_status habit_check_channels(const tn_model_scope *scope, const tn_use *use,
                                      const habit_numbers *given) {
  long long in = given->v[0], out = given->v[1], kernel = given->n > 2 ? given->v[2] : 3;
  return tn_failf(
      scope->assembly->env, TN_EINVAL,
      "the first argument is the number of channels of the result and the second the kernel, so that "
      "this would make %lld channels with a kernel of %lld; the %lld channels of the input are known: "
      "write `%s(%lld, kernel=%lld)`, or, if it is meant, channels=%lld, kernel=%lld",
      in, out, in, use->call->layer, out, kernel, in, out);
}

/* batch_norm(64) would set its momentum, layer_norm(768) its epsilon. */
static bool habit_is_size_of_input(const tn_use *use, const habit_numbers *given, const tn_layer_kind *kind,
                                   const tn_type *type) {
  if (given->n < 1 || type->rank < 2) return false;
  if (!habit_has_option(kind, 0, "momentum") && !habit_has_option(kind, 0, "epsilon")) return false;
  return use->call->n_args > 0 && (given->v[0] == type->dims[1] || given->v[0] == type->dims[type->rank - 1]);
}

tn_status tn_habits_check(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind) {
  const habit_numbers given = habit_read_numbers(scope, use->call);
  const tn_option *second = tn_options_at(&kind->item, 1);
  tn_error_clear(scope->assembly->env); /* an argument that cannot be evaluated is told when it is set */
  bool known = use->n_in == 1 && use->in[0] != 0;
  if (known && habit_is_size_of_input(use, &given, kind, tn_val_type(scope->assembly->b, use->in[0])))
    return tn_failf(scope->assembly->env, TN_EINVAL,
                    "the first argument is %s, and %lld is the size of the input, which is known: write `%s`",
                    tn_options_at(&kind->item, 0)->name, (long long)given.v[0], use->call->layer);
  if (given.n < 2 || second == NULL) return TN_OK;
  if (second->type == TN_OPT_FLAG && given.n == 2)
    return tn_failf(
        scope->assembly->env, TN_EINVAL,
        "the second argument is %s, yes or no, and %lld is neither; the size of the input is known: "
        "write `%s(%lld)`",
        second->name, (long long)given.v[1], use->call->layer, (long long)given.v[1]);
  if (known && habit_has_option(kind, 0, "channels") && habit_has_option(kind, 1, "kernel") &&
      habit_is_in_out_kernel(use, &given, tn_val_type(scope->assembly->b, use->in[0])))
    return habit_check_channels(scope, use, &given);
  return TN_OK;
}

void tn_habits_watch(const tn_model_scope *scope, const tn_use *use, const tn_results *results) {
  tn_assembly *a = scope->assembly;
  if (a->spread.where != NULL || use->n_in != 1 || results->n != 1 || results->v[0] == 0) return;
  const tn_type *in = tn_val_type(a->b, use->in[0]), *out = tn_val_type(a->b, results->v[0]);
  bool same = in->rank == 4 && out->rank == 4 && in->dims[3] != out->dims[3];
  for (int32_t d = 0; same && d < 3; d++) same = in->dims[d] == out->dims[d];
  if (same)
    a->spread = (tn_spread_layer){use->where, use->call->layer, use->named ? use->path : "", *in, *out};
}

tn_status tn_habits_explain_loss(const tn_model_scope *scope, const tn_type *output, tn_status status) {
  const tn_spread_layer *layer = &scope->assembly->spread;
  if (status != TN_EINVAL || layer->where == NULL || output->rank != 4) return status;
  const tn_type *in = &layer->in;
  return tn_failf(
      scope->assembly->env, TN_EINVAL,
      "%s: %s%s%s%s on (%s[%lld, %lld, %lld, %lld]): it maps the last dimension alone, and so the model "
      "gives %s[%lld, %lld, %lld, %lld] to the loss; write `flatten` in the line before it",
      layer->where, layer->layer, *layer->name != '\0' ? " '" : "", layer->name,
      *layer->name != '\0' ? "'" : "", tn_dtype_name(in->dtype), (long long)in->dims[0],
      (long long)in->dims[1], (long long)in->dims[2], (long long)in->dims[3], tn_dtype_name(output->dtype),
      (long long)output->dims[0], (long long)output->dims[1], (long long)output->dims[2],
      (long long)output->dims[3]);
}
