/* core/model/lines/gradient_call.c: gradient(y, x), the gradient of the sum of y by x, as ops of the model: a
 * loss that reads it is differentiated through them (docs/decisions/0114-gradient-in-models.md). */
#include "core/model/assemble.h"
#include "tenon/ops.h"

static tn_status gradient_call_check(const tn_assembly *a, const tn_use *use) {
  static const char *const names[] = {"y", "x"};
  char text[TN_TYPE_TEXT];
  if (use->n_in != 2 || use->call->n_args > 0)
    return tn_failf(a->env, TN_EINVAL,
                    "gradient takes two values, y and x, and no options, as in `g = gradient(score, image)`");
  for (int32_t i = 0; i < 2; i++) {
    const tn_type *type = use->in[i] != 0 ? tn_val_type(a->b, use->in[i]) : NULL;
    if (type != NULL && !tn_dtype_is_float(type->dtype))
      return tn_failf(a->env, TN_EINVAL, "gradient: %s is %s, expected floats", names[i],
                      tn_type_format(type, text));
  }
  return TN_OK;
}

/* The gradient of a recurrence counts as a constant where it is differentiated: a loss that reads it would
 * have a wrong gradient. */
static tn_status gradient_call_refuse_constants(const tn_assembly *a) {
  const tn_graph *g = tn_builder_graph(a->b);
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_op *op = g->nodes.v[i].op;
    if ((op->flags & TN_OP_NONDIFF) != 0 && tn_text_ends(op->item.name, "_grad"))
      return tn_failf(
          a->env, TN_EINVAL,
          "gradient: op %s lies between x and y, and has no gradient itself; expected a y that is computed "
          "without it",
          op->item.name);
  }
  return TN_OK;
}

static tn_status gradient_call_emit(const tn_assembly *a, tn_val y, tn_val x, tn_val *gradient) {
  tn_val seed = tn_full(a->b, tn_val_type(a->b, y), 1);
  TN_TRY(tn_build_status(a->b));
  TN_TRY(tn_vector_jacobian(a->b, &y, &seed, 1, &x, 1, gradient));
  if (*gradient != 0) return gradient_call_refuse_constants(a);
  return tn_failf(
      a->env, TN_EINVAL,
      "gradient: y does not depend on x; expected an x from which y is computed, by a line of its own");
}

tn_status tn_use_gradient(const tn_model_scope *scope, const tn_use *use, tn_results *results) {
  tn_assembly *a = scope->assembly;
  TN_TRY(gradient_call_check(a, use));
  results->n = 1;
  if (use->in[0] == 0 || use->in[1] == 0)
    return TN_OK; /* behind a line that is wrong, or a target in prediction */
  tn_build_frame frame = tn_value_frame(&(tn_value_place){scope, use->path, use->where});
  tn_builder_push(a->b, &frame);
  tn_status status = gradient_call_emit(a, use->in[0], use->in[1], &results->v[0]);
  tn_builder_pop(a->b);
  return status;
}
