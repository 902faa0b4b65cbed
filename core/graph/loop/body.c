/* core/graph/loop/body.c: the body of a loop as a graph, and the types of the results. */
#include "core/graph/loop/loop.h"

int32_t tn_loop_results(const void *attributes) {
  const tn_loop_attributes *a = attributes;
  return (int32_t)(a->outputs + a->states);
}

tn_status tn_loop_parse(tn_env *env, struct tn_op_table *ops, const tn_loop_attributes *attributes,
                        tn_graph **body) {
  return tn_graph_parse(env, ops, attributes->body, "body", body);
}

/* ---- types ---- */

tn_type tn_loop_stacked_type(const tn_type *type, int64_t steps) {
  tn_type stacked = {type->dtype, type->rank + 1, {steps}};
  for (int32_t i = 0; i < type->rank && i + 1 < TN_MAX_RANK; i++) stacked.dims[i + 1] = type->dims[i];
  return stacked;
}

tn_type tn_loop_step_type(const tn_type *type) {
  tn_type step = {type->dtype, type->rank - 1, {0}};
  for (int32_t i = 1; i < type->rank; i++) step.dims[i - 1] = type->dims[i];
  return step;
}

typedef struct loop_inference {
  const tn_env *env;
  const tn_loop_attributes *a;
  const tn_graph *body;
  const tn_type *const *in;
  int32_t n_in;
} loop_inference;

static tn_status loop_fail_counts(const loop_inference *n) {
  return tn_failf(n->env, TN_EINVAL,
                  "loop: the body has %zu inputs, %zu states and %zu outputs, expected %d, %d and %d, as the "
                  "operands and attributes say",
                  n->body->inputs.n, n->body->states.n, n->body->outputs.n, tn_loop_inputs(n->a),
                  n->n_in - tn_loop_first_constant(n->a), tn_loop_results(n->a));
}

static tn_status loop_check_counts(const loop_inference *n) {
  const tn_loop_attributes *a = n->a;
  bool fit = a->stacked <= a->states && n->n_in >= tn_loop_first_constant(a) &&
             n->body->inputs.n == (size_t)tn_loop_inputs(a) && n->body->commits.n == 0 &&
             n->body->states.n == (size_t)(n->n_in - tn_loop_first_constant(a)) &&
             n->body->outputs.n == (size_t)tn_loop_results(a);
  for (size_t i = 0; fit && i < n->body->states.n; i++) fit = n->body->states.v[i].value != 0;
  return fit ? TN_OK : loop_fail_counts(n);
}

static tn_status loop_check_operand(const loop_inference *n, int32_t i, const tn_type *expected) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  if (expected->rank > TN_MAX_RANK)
    return tn_failf(
        n->env, TN_EINVAL,
        "loop: operand %d has %d dimensions in the body, expected at most %d beside that of the steps", i,
        TN_MAX_RANK, TN_MAX_RANK - 1);
  if (n->in[i] != NULL && tn_type_equal(n->in[i], expected)) return TN_OK;
  return tn_failf(n->env, TN_EINVAL, "loop: operand %d is %s, expected %s for the body", i,
                  n->in[i] != NULL ? tn_type_format(n->in[i], one) : "absent",
                  tn_type_format(expected, other));
}

/* The types of the operands are those of the body's inputs and states, with a dimension of steps where they
 * have all steps. */
static tn_status loop_check_operands(const loop_inference *n) {
  const tn_graph *g = n->body;
  int32_t input = 0, operand = 0;
  for (int64_t i = 0; i < n->a->sequences; i++) {
    const tn_type all = tn_loop_stacked_type(tn_graph_type(g, g->inputs.v[input++]), n->a->steps);
    TN_TRY(loop_check_operand(n, operand++, &all));
  }
  for (int64_t i = 0; i < n->a->before; i++) {
    const tn_type *one = tn_graph_type(g, g->inputs.v[input++]);
    const tn_type all = tn_loop_stacked_type(one, n->a->steps);
    TN_TRY(loop_check_operand(n, operand++, one));
    TN_TRY(loop_check_operand(n, operand++, &all));
  }
  for (int64_t i = 0; i < n->a->states; i++)
    TN_TRY(loop_check_operand(n, operand++, tn_graph_type(g, g->inputs.v[input++])));
  for (size_t i = 0; i < g->states.n; i++) TN_TRY(loop_check_operand(n, operand++, &g->states.v[i].type));
  return TN_OK;
}

static tn_status loop_write_results(const loop_inference *n, tn_type *out) {
  char before[TN_TYPE_TEXT], behind[TN_TYPE_TEXT];
  const tn_graph *g = n->body;
  int32_t n_outputs = (int32_t)n->a->outputs, first_state = (int32_t)(n->a->sequences + n->a->before);
  for (int32_t i = 0; i < tn_loop_results(n->a); i++) {
    const tn_type *made = tn_graph_type(g, g->outputs.v[i].value);
    if (i >= n_outputs) {
      const tn_type *read = tn_graph_type(g, g->inputs.v[first_state + i - n_outputs]);
      if (!tn_type_equal(made, read))
        return tn_failf(n->env, TN_EINVAL, "loop: state %d is %s before a step and %s behind it",
                        i - n_outputs, tn_type_format(read, before), tn_type_format(made, behind));
    }
    bool stacked = i < n_outputs + n->a->stacked;
    out[i] = stacked ? tn_loop_stacked_type(made, n->a->steps) : *made;
  }
  return TN_OK;
}

tn_status tn_loop_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                        const tn_type *const *in, int32_t n_in, tn_type *out) {
  tn_env own = *env;
  tn_graph *body = NULL;
  TN_TRY(tn_wrap(env, tn_loop_parse(&own, def->ops, attributes, &body), "loop"));
  const loop_inference n = {env, attributes, body, in, n_in};
  tn_status status = loop_check_counts(&n);
  if (status == TN_OK) status = loop_check_operands(&n);
  if (status == TN_OK) status = loop_write_results(&n, out);
  tn_graph_destroy(body);
  return status;
}
