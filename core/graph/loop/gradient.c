/* core/graph/loop/gradient.c: the gradient of the op `loop`. */
#include <stdio.h>

#include "core/graph/loop/sums.h"
#include "tenon/ops.h"

/* Where the gradient of an operand is. */
typedef struct loop_result {
  enum { RESULT_NONE, RESULT_OUTPUT, RESULT_STATE, RESULT_SUM } kind;
  int32_t number; /* of the output or state of the gradient's loop */
  tn_loop_sum sum;
} loop_result;

/* The body of a loop, to which its gradient is added. */
typedef struct loop_gradient {
  tn_build *b; /* of the graph that has the loop */
  const tn_loop_attributes *a;
  tn_graph *body;
  tn_build *inner; /* of the body */
  int32_t n_in;    /* operands of the loop */
  TN_VEC(tn_val) ends, seeds, wrt;
  TN_VEC(int32_t) operands; /* of the loop, for each of wrt */
  tn_val *gradient;         /* of each of wrt */
  struct loop_result *made; /* of each of wrt, in the graph that has the loop */
  tn_loop_parts parts;      /* of the gradient's loop */
} loop_gradient;

static tn_val gradient_input(loop_gradient *g, const char *what, int64_t i, const tn_type *type) {
  char name[32];
  snprintf(name, sizeof name, "%s %d", what, (int)i);
  return tn_graph_input(g->body, name, type);
}

static bool gradient_is_float(const loop_gradient *g, tn_val v) {
  return tn_dtype_is_float(tn_graph_type(g->body, v)->dtype);
}

static tn_val gradient_of_result(const loop_gradient *g, int64_t i) {
  return tn_build_out_grad(g->b, (int32_t)i);
}

static tn_status gradient_add_end(loop_gradient *g, tn_val end, tn_val seed) {
  if (seed == 0) return TN_ENOMEM;
  TN_TRY(tn_vec_push(g->b, &g->ends, end));
  return tn_vec_push(g->b, &g->seeds, seed);
}

/* The part of a step of the gradient of a stacked result is one more sequence. */
static tn_status gradient_add_sequence_seed(loop_gradient *g, int64_t result) {
  tn_val end = g->body->outputs.v[result].value, all = gradient_of_result(g, result);
  if (all == 0 || !gradient_is_float(g, end)) return TN_OK;
  tn_loop_value seed = {gradient_input(g, "gradient", result, tn_graph_type(g->body, end)), all, 0};
  TN_TRY(gradient_add_end(g, end, seed.inner));
  return tn_vec_push(g->b, &g->parts.sequences, seed);
}

static tn_status gradient_add_wrt(loop_gradient *g, tn_val v, int32_t operand) {
  TN_TRY(tn_vec_push(g->b, &g->wrt, v));
  return tn_vec_push(g->b, &g->operands, operand);
}

static tn_val gradient_zeros(tn_build *b, const tn_type *type) {
  const tn_type copy = *type;
  return tn_full(b, &copy, 0);
}

/* The gradient of the value behind a step goes from step to step. Behind the last step it is that of the last
 * value, where that is the result; otherwise the gradient of the values of all steps has it. */
static tn_status gradient_add_state(loop_gradient *g, int64_t i) {
  int64_t result = g->a->outputs + i;
  tn_val read = g->body->inputs.v[g->a->sequences + g->a->before + i];
  tn_val made = g->body->outputs.v[result].value, last = 0;
  if (!gradient_is_float(g, read)) return TN_OK;
  if (i >= g->a->stacked) last = gradient_of_result(g, result);
  tn_loop_value carried = {.inner = gradient_input(g, "gradient of state", i, tn_graph_type(g->body, read))};
  carried.outer = last != 0 ? last : gradient_zeros(g->b, tn_graph_type(g->body, read));
  TN_TRY(gradient_add_end(g, made, carried.inner));
  TN_TRY(tn_vec_push(g->b, &g->parts.states, carried));
  return gradient_add_wrt(g, read, tn_loop_first_state(g->a) + (int32_t)i);
}

/* ---- the operands ---- */

static tn_status gradient_add_sequences(loop_gradient *g) {
  for (int32_t i = 0; i < g->a->sequences; i++) {
    tn_loop_value x = {.inner = g->body->inputs.v[i], .outer = tn_build_in(g->b, i)};
    TN_TRY(tn_vec_push(g->b, &g->parts.sequences, x));
    if (tn_build_wants_grad(g->b, i)) TN_TRY(gradient_add_wrt(g, x.inner, i));
  }
  return TN_OK;
}

/* The body is computed once more from the states that the loop has stacked. */
static tn_status gradient_add_states(loop_gradient *g) {
  for (int64_t i = 0; i < g->a->states; i++) {
    tn_loop_value h = {.inner = g->body->inputs.v[g->a->sequences + g->a->before + i],
                       .outer = tn_build_in(g->b, tn_loop_first_state(g->a) + (int32_t)i),
                       .stack = tn_build_out(g->b, (int32_t)(g->a->outputs + i))};
    TN_TRY(tn_vec_push(g->b, &g->parts.before, h));
  }
  for (int64_t i = 0; i < g->a->states; i++) TN_TRY(gradient_add_state(g, i));
  return TN_OK;
}

static tn_status gradient_add_constants(loop_gradient *g) {
  int32_t first = tn_loop_first_constant(g->a);
  for (int32_t i = first; i < g->n_in; i++) {
    tn_loop_value c = {.inner = g->body->states.v[i - first].value, .outer = tn_build_in(g->b, i)};
    TN_TRY(tn_vec_push(g->b, &g->parts.constants, c));
    if (tn_build_wants_grad(g->b, i)) TN_TRY(gradient_add_wrt(g, c.inner, i));
  }
  return TN_OK;
}

/* ---- the results ---- */

/* A sum that goes from step to step. */
static tn_status gradient_add_sum(loop_gradient *g, int32_t operand, tn_val part) {
  const tn_type *type = tn_graph_type(g->body, part);
  tn_loop_value sum = {.inner = gradient_input(g, "sum", operand, type)};
  sum.outer = gradient_zeros(g->b, type);
  if (sum.inner == 0) return TN_ENOMEM;
  TN_TRY(tn_vec_push(g->b, &g->parts.states, sum));
  return tn_vec_push(g->b, &g->parts.next, tn_add(g->inner, sum.inner, part));
}

/* The gradient of a constant is the sum of those of all steps. */
static tn_status gradient_add_constant(loop_gradient *g, size_t i) {
  bool outside = false;
  loop_result *made = &g->made[i];
  TN_TRY(tn_loop_sum_find(g->b, &g->parts, g->gradient[i], &outside, &made->sum));
  made->kind = outside ? RESULT_SUM : RESULT_STATE;
  made->number = (int32_t)g->parts.next.n;
  return outside ? TN_OK : gradient_add_sum(g, g->operands.v[i], g->gradient[i]);
}

static tn_status gradient_add_result(loop_gradient *g, size_t i) {
  int32_t operand = g->operands.v[i], first = tn_loop_first_state(g->a);
  bool state = operand >= first && operand < tn_loop_first_constant(g->a);
  if (state && g->gradient[i] == 0)
    g->gradient[i] = gradient_zeros(g->inner, tn_graph_type(g->body, g->wrt.v[i]));
  if (g->gradient[i] == 0) return TN_OK;
  if (operand >= first && !state) return gradient_add_constant(g, i);
  size_t number = state ? g->parts.next.n : g->parts.outputs.n;
  g->made[i] = (loop_result){.kind = state ? RESULT_STATE : RESULT_OUTPUT, .number = (int32_t)number};
  return state ? tn_vec_push(g->b, &g->parts.next, g->gradient[i])
               : tn_vec_push(g->b, &g->parts.outputs, g->gradient[i]);
}

/* States come first in parts.states, in the order of wrt, then the sums of constants. */
static tn_status gradient_add_results(loop_gradient *g) {
  g->made = tn_alloc(g->b, tn_size_mul(g->wrt.n + 1, sizeof *g->made));
  if (g->made == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < g->wrt.n; i++) TN_TRY(gradient_add_result(g, i));
  return tn_build_status(g->inner);
}

static void gradient_yield(loop_gradient *g, tn_val first) {
  int32_t n_outputs = (int32_t)g->parts.outputs.n;
  for (size_t i = 0; i < g->wrt.n; i++) {
    const loop_result *made = &g->made[i];
    if (made->kind == RESULT_NONE || !tn_build_wants_grad(g->b, g->operands.v[i])) continue;
    int32_t number = made->kind == RESULT_STATE ? n_outputs + made->number : made->number;
    tn_build_yield(g->b, g->operands.v[i],
                   made->kind == RESULT_SUM ? tn_loop_sum_emit(g->b, &made->sum, first)
                                            : tn_op_result(g->b, first, number));
  }
}

/* ---- the rule ---- */

static tn_status gradient_check(const loop_gradient *g) {
  if (g->a->before > 0)
    return tn_failf(g->b, TN_EUNSUPPORTED, "the gradient of a loop has no gradient itself");
  if (g->a->stacked == g->a->states) return TN_OK;
  return tn_failf(g->b, TN_EUNSUPPORTED,
                  "%d of the loop's %d states have only their last value as a result, expected the values of "
                  "all steps, which a graph for training has",
                  (int)(g->a->states - g->a->stacked), (int)g->a->states);
}

static tn_status gradient_build(loop_gradient *g) {
  g->parts.from = g->body;
  g->parts.steps = g->a->steps;
  g->parts.reverse = !g->a->reverse;
  TN_TRY(gradient_add_sequences(g));
  for (int64_t i = 0; i < g->a->outputs + g->a->stacked; i++) TN_TRY(gradient_add_sequence_seed(g, i));
  TN_TRY(gradient_add_states(g));
  TN_TRY(gradient_add_constants(g));
  g->gradient = tn_alloc(g->b, tn_size_mul(g->wrt.n + 1, sizeof *g->gradient));
  if (g->gradient == NULL) return TN_ENOMEM;
  TN_TRY(tn_vector_jacobian(g->inner, g->ends.v, g->seeds.v, (int32_t)g->ends.n, g->wrt.v, (int32_t)g->wrt.n,
                            g->gradient));
  TN_TRY(gradient_add_results(g));
  tn_val first = tn_loop_emit(g->b, &g->parts);
  gradient_yield(g, first);
  return tn_build_status(g->b);
}

static void gradient_free(loop_gradient *g) {
  tn_vec_free(g->b, &g->ends);
  tn_vec_free(g->b, &g->seeds);
  tn_vec_free(g->b, &g->wrt);
  tn_vec_free(g->b, &g->operands);
  tn_release(g->b, g->gradient);
  tn_release(g->b, g->made);
}

tn_status tn_loop_gradient(tn_build *b, const void *attributes) {
  tn_graph *outer = tn_builder_graph(b);
  tn_builder *builder = NULL;
  loop_gradient g = {.b = b, .a = attributes, .n_in = tn_build_n_in(b)};
  TN_TRY(gradient_check(&g));
  TN_TRY(tn_loop_parse(outer->env, outer->ops, g.a, &g.body));
  tn_status status = tn_builder_create(g.body, &builder);
  if (status == TN_OK) {
    g.inner = tn_builder_handle(builder);
    const tn_build_frame *top = tn_builder_frame(b);
    tn_build_frame frame = {.prefix = top->prefix, .where = top->where, .training = top->training};
    tn_builder_push(g.inner, &frame);
    status = gradient_build(&g);
    tn_builder_pop(g.inner);
  }
  tn_builder_destroy(builder);
  gradient_free(&g);
  tn_loop_parts_free(outer->env, &g.parts);
  tn_graph_destroy(g.body);
  return status;
}
