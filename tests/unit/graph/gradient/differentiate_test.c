/* Tests of reverse mode: gradients against central differences, and the emitted nodes. */
#include "tests/unit/graph/interpreter.h"

#include <math.h>

enum { MOST = 4, ELEMENTS = 64 };

static rig R;
static double data[MOST][ELEMENTS];
static binding bindings[MOST] = {{"w", data[0]}, {"x", data[1]}, {"y", data[2]}, {"z", data[3]}};

static int set_up(void **state) {
  (void)state;
  rig_init(&R);
  /* numbers without pattern, away from 0 */
  for (int i = 0; i < MOST; i++)
    for (int k = 0; k < ELEMENTS; k++) data[i][k] = 0.3 + fmod((i + 1) * 0.37 + (k + 1) * 0.71, 1.1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rig_finish(&R);
  return 0;
}

static tn_val sum(tn_val v) { return tn_reduce_sum(R.b, v, 0, NULL, 0); }

static double loss_at(tn_val loss) {
  evaluation e = evaluate(R.graph, bindings, MOST);
  double value = e.v[loss][0];
  evaluation_free(&e);
  return value;
}

static double slope(tn_val loss, double *element) {
  const double h = 1e-6, kept = *element;
  *element = kept + h;
  double above = loss_at(loss);
  *element = kept - h;
  double below = loss_at(loss);
  *element = kept;
  return (above - below) / (2 * h);
}

static double *data_of(tn_val state) {
  for (int i = 0; i < MOST; i++)
    if (strcmp(bindings[i].name, R.graph->values.v[state].name) == 0) return data[i];
  fail_msg("value %u is no parameter", state);
  return NULL;
}

static void assert_gradient(tn_val loss, tn_val wrt, tn_val gradient, double factor) {
  assert_int_not_equal(gradient, 0);
  assert_true(tn_type_equal(tn_graph_type(R.graph, wrt), tn_graph_type(R.graph, gradient)));
  evaluation e = evaluate(R.graph, bindings, MOST);
  for (int64_t i = 0; i < tn_type_count(tn_graph_type(R.graph, wrt)); i++) {
    double expected = factor * slope(loss, &data_of(wrt)[i]), got = e.v[gradient][i];
    if (!(fabs(got - expected) <= 1e-7 * (1 + fabs(expected))))
      fail_msg("element %d of %s: %.10g, expected %.10g", (int)i, R.graph->values.v[wrt].name, got, expected);
  }
  evaluation_free(&e);
}

/* Differentiates with respect to n parameters and checks the gradients. `loss` keeps its forward
 * expression. */
static void check(tn_val loss, int32_t n, const tn_val *wrt) {
  tn_val gradient[MOST];
  assert_ok(&R, tn_build_status(R.b));
  assert_ok(&R, tn_differentiate(R.b, loss, 0, wrt, n, gradient, NULL));
  assert_verified(&R, R.graph);
  for (int32_t i = 0; i < n; i++) assert_gradient(loss, wrt[i], gradient[i], 1);
}

static size_t count_op(const tn_graph *g, const char *op) {
  size_t n = 0;
  for (size_t i = 0; i < g->nodes.n; i++) n += tn_text_equal(g->nodes.v[i].op->item.name, op);
  return n;
}

/* ---- values ---- */

static void products_and_sums_are_differentiated(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 2, 3)), y = param(&R, "y", TYPE(TN_F64, 2, 3));
  check(sum(tn_mul(R.b, tn_exp(R.b, x), tn_sub(R.b, y, x))), 2, (tn_val[]){x, y});
}

static void a_value_used_twice_gets_both_parts(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3));
  check(sum(tn_mul(R.b, tn_mul(R.b, x, x), x)), 1, (tn_val[]){x});
}

static void shared_subexpressions_are_walked_once(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), e = tn_exp(R.b, x);
  tn_val loss = sum(tn_add(R.b, tn_mul(R.b, e, e), tn_mul(R.b, e, x)));
  check(loss, 1, (tn_val[]){x});
  /* one product for each of four uses, and one for the rule of exp */
  assert_int_equal(count_op(R.graph, "mul"), 2 + 4 + 1);
}

static void broadcast_operands_get_sums(void **state) {
  (void)state;
  tn_val w = param(&R, "w", scalar_of(TN_F64)), x = param(&R, "x", TYPE(TN_F64, 4, 1, 3)),
         y = param(&R, "y", TYPE(TN_F64, 5, 1)), z = param(&R, "z", TYPE(TN_F64, 1, 5, 3));
  tn_val all = tn_mul(R.b, tn_mul(R.b, tn_add(R.b, x, y), z), w);
  check(sum(tn_mul(R.b, all, all)), 4, (tn_val[]){w, x, y, z});
}

static void both_results_of_an_op_carry_gradients(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), s = tn_op1(R.b, "sincos", x), c = tn_op_result(R.b, s, 1);
  check(sum(tn_mul(R.b, s, tn_exp(R.b, c))), 1, (tn_val[]){x});
}

static void an_unused_result_has_the_gradient_zero(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), c = tn_op_result(R.b, tn_op1(R.b, "sincos", x), 1);
  check(sum(tn_mul(R.b, c, c)), 1, (tn_val[]){x});
}

static void branches_get_their_own_part(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 8)), y = param(&R, "y", TYPE(TN_F64, 8));
  tn_val larger = tn_gt(R.b, x, y);
  check(sum(tn_where(R.b, larger, tn_exp(R.b, x), tn_mul(R.b, y, y))), 2, (tn_val[]){x, y});
}

static void reductions_over_some_axes_are_differentiated(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 2, 3, 2));
  tn_val part = tn_reduce_sum(R.b, tn_mul(R.b, x, x), 1, (int64_t[]){1}, 1);
  tn_val rows = tn_reduce_sum(R.b, tn_mul(R.b, tn_exp(R.b, part), x), 2, (int64_t[]){0, 2}, 0);
  check(sum(tn_mul(R.b, rows, rows)), 1, (tn_val[]){x});
}

static void a_parameter_may_be_the_loss(void **state) {
  (void)state;
  tn_val x = param(&R, "x", scalar_of(TN_F64));
  check(x, 1, (tn_val[]){x});
}

static void an_intermediate_value_may_be_asked_for_too(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), e = tn_exp(R.b, x), gradient[2];
  tn_val loss = sum(tn_mul(R.b, e, e));
  assert_ok(&R, tn_differentiate(R.b, loss, 0, (tn_val[]){x, e}, 2, gradient, NULL));
  assert_gradient(loss, x, gradient[0], 1);
  evaluation v = evaluate(R.graph, bindings, MOST);
  for (int i = 0; i < 3; i++) assert_true(fabs(v.v[gradient[1]][i] - 2 * v.v[e][i]) < 1e-12);
  evaluation_free(&v);
}

/* ---- composites ---- */

static void a_composite_without_a_rule_is_differentiated_through_its_parts(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = tn_op1(R.b, "fourth", tn_exp(R.b, x));
  check(sum(tn_mul(R.b, y, x)), 1, (tn_val[]){x});
}

static void a_formula_is_differentiated(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3));
  tn_op_begin(R.b, "parabola");
  tn_op_arg(R.b, x);
  tn_op_set_float(R.b, "a", 0.75);
  check(sum(tn_exp(R.b, tn_op_end(R.b))), 1, (tn_val[]){x});
}

/* Operands are broadcast; x and y want no gradient at the end, and so the sum is not emitted. */
static void a_gradient_as_text_is_summed_and_skipped(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = param(&R, "y", TYPE(TN_F64, 2, 1)),
         z = param(&R, "z", scalar_of(TN_F64));
  tn_val q = tn_op3(R.b, "products", tn_exp(R.b, x), tn_exp(R.b, y), z), r = tn_op_result(R.b, q, 1);
  tn_val loss = sum(tn_add(R.b, tn_mul(R.b, q, q), r)), gradient;
  check(loss, 3, (tn_val[]){x, y, z});
  check(sum(r), 3, (tn_val[]){x, y, z}); /* q has no gradient */
  size_t before = R.graph->nodes.n;
  assert_ok(&R, tn_differentiate(R.b, sum(r), 0, &z, 1, &gradient, NULL));
  for (size_t i = before; i < R.graph->nodes.n; i++)
    assert_string_not_equal(R.graph->nodes.v[i].op->item.name, "add");
}

static void a_composite_is_computed_once_for_forward_and_backward(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = tn_op1(R.b, "square", x), loss = sum(tn_exp(R.b, y)),
         gradient;
  assert_ok(&R, tn_graph_output(R.graph, "y", y));
  assert_ok(&R, tn_graph_output(R.graph, "loss", loss));
  assert_ok(&R, tn_differentiate(R.b, loss, 0, &x, 1, &gradient, NULL));
  assert_ok(&R, tn_graph_output(R.graph, "gradient", gradient));
  assert_int_equal(tn_graph_find_output(R.graph, "loss"), loss);
  assert_true(tn_graph_is(R.graph, tn_graph_find_output(R.graph, "y"), "mul"));
  tn_graph *merged;
  assert_ok(&R, tn_graph_merge(R.graph, &merged));
  assert_int_equal(count_op(merged, "square"), 0);
  assert_int_equal(count_op(merged, "exp"), 1);
  tn_graph_destroy(merged);
}

static void a_composite_that_is_the_loss_or_asked_for_is_replaced(void **state) {
  (void)state;
  tn_val x = param(&R, "x", scalar_of(TN_F64)), y = tn_op1(R.b, "square", x), loss = tn_op1(R.b, "square", y),
         gradient[2];
  assert_ok(&R, tn_differentiate(R.b, loss, 0, (tn_val[]){x, y}, 2, gradient, NULL));
  assert_verified(&R, R.graph);
  assert_gradient(loss, x, gradient[0], 1);
  assert_int_not_equal(gradient[1], 0);
}

static void a_composite_beside_the_path_stays_whole(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = param(&R, "y", TYPE(TN_F64, 3)), gradient;
  tn_val loss = sum(tn_mul(R.b, x, tn_op1(R.b, "square", y)));
  size_t before = count_op(R.graph, "mul");
  assert_ok(&R, tn_differentiate(R.b, loss, 0, &x, 1, &gradient, NULL));
  assert_int_equal(count_op(R.graph, "mul"), before + 1); /* the rule of mul alone */
  assert_gradient(loss, x, gradient, 1);
}

static void a_decomposition_may_ask_for_inputs_that_come_later(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = tn_op1(R.b, "square", x);
  check(sum(tn_mul(R.b, y, param(&R, "y", TYPE(TN_F64, 3)))), 1, (tn_val[]){x});
}

/* ---- nodes that are not emitted ---- */

static void the_loss_need_not_depend_on_a_parameter(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = param(&R, "y", TYPE(TN_F64, 3)), gradient[2];
  tn_exp(R.b, y); /* used, but not by the loss */
  tn_val loss = sum(tn_mul(R.b, x, x));
  assert_ok(&R, tn_differentiate(R.b, loss, 0, (tn_val[]){x, y}, 2, gradient, NULL));
  assert_gradient(loss, x, gradient[0], 1);
  assert_int_equal(gradient[1], 0);
}

static void nothing_is_emitted_where_nothing_depends(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), loss = sum(param(&R, "y", TYPE(TN_F64, 3))), gradient;
  size_t nodes = R.graph->nodes.n;
  assert_ok(&R, tn_differentiate(R.b, loss, 0, &x, 1, &gradient, NULL));
  assert_int_equal(gradient, 0);
  assert_int_equal(R.graph->nodes.n, nodes);
}

static void unwanted_gradients_are_not_emitted(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = param(&R, "y", TYPE(TN_F64, 3)), gradient;
  tn_val loss = sum(tn_mul(R.b, x, tn_exp(R.b, y)));
  size_t muls = count_op(R.graph, "mul");
  assert_ok(&R, tn_differentiate(R.b, loss, 0, &x, 1, &gradient, NULL));
  assert_int_equal(count_op(R.graph, "mul"), muls + 1);
}

static void integer_and_undifferentiable_paths_stop_gradients(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), gradient;
  tn_op_begin(R.b, "cast");
  tn_op_arg(R.b, x);
  tn_op_set_text(R.b, "to", "i32");
  tn_val whole = tn_to_dtype(R.b, tn_op_end(R.b), TN_F64),
         mask = tn_to_dtype(R.b, tn_gt(R.b, x, whole), TN_F64);
  tn_val loss = sum(tn_mul(R.b, whole, mask));
  assert_ok(&R, tn_differentiate(R.b, loss, 0, &x, 1, &gradient, NULL));
  assert_int_equal(gradient, 0);
}

/* ---- seed, order ---- */

static void a_seed_scales_every_gradient(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), loss = sum(tn_mul(R.b, x, x)), gradient;
  tn_val seed = tn_scalar(R.b, TN_F64, 1024);
  assert_ok(&R, tn_differentiate(R.b, loss, seed, &x, 1, &gradient, NULL));
  assert_gradient(loss, x, gradient, 1024);
}

static void a_seed_has_the_type_of_the_loss(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), loss = sum(x), gradient;
  tn_status status = tn_differentiate(R.b, loss, tn_scalar(R.b, TN_F32, 1), &x, 1, &gradient, NULL);
  assert_error(&R, status, TN_EINVAL, "differentiate: the loss is f64[], but its gradient is given as f32[]");
}

static void gradients_are_ordered_by_when_they_are_ready(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), w = param(&R, "w", TYPE(TN_F64, 3)),
         y = param(&R, "y", TYPE(TN_F64, 3)), z = param(&R, "z", TYPE(TN_F64, 3)), gradient[4];
  int32_t order[4];
  /* w is used first and last, so its gradient is complete last */
  tn_val h = tn_exp(R.b, tn_mul(R.b, x, w));
  h = tn_exp(R.b, tn_mul(R.b, h, y));
  tn_val loss = sum(tn_mul(R.b, h, w));
  assert_ok(&R, tn_differentiate(R.b, loss, 0, (tn_val[]){z, w, x, y}, 4, gradient, order));
  const int32_t expected[] = {3, 2, 1, 0};
  assert_memory_equal(order, expected, sizeof expected);
}

static void the_same_graph_gives_the_same_gradient_graph(void **state) {
  (void)state;
  uint64_t hash[2];
  for (int i = 0; i < 2; i++) {
    rig r;
    rig_init(&r);
    tn_val x = param(&r, "x", TYPE(TN_F64, 3)), e = tn_exp(r.b, x), gradient;
    tn_val loss = tn_reduce_sum(r.b, tn_mul(r.b, e, tn_add(r.b, e, x)), 0, NULL, 0);
    assert_ok(&r, tn_differentiate(r.b, loss, 0, &x, 1, &gradient, NULL));
    assert_ok(&r, tn_graph_hash(r.graph, &hash[i]));
    rig_finish(&r);
  }
  assert_true(hash[0] == hash[1] && hash[0] != 0);
}

static void emitted_nodes_belong_to_the_layer_they_differentiate(void **state) {
  (void)state;
  tn_build_frame frame = {.prefix = "fc1", .where = "net.ini:3"};
  tn_builder_push(R.b, &frame);
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), y = tn_op1(R.b, "square", x), gradient;
  tn_builder_pop(R.b);
  assert_ok(&R, tn_differentiate(R.b, sum(y), 0, &x, 1, &gradient, NULL));
  assert_string_equal(tn_graph_maker(R.graph, gradient)->layer, "fc1");
  assert_string_equal(tn_graph_maker(R.graph, gradient)->where, "net.ini:3");
}

/* ---- refusals ---- */

static void the_loss_is_a_float_scalar(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), gradient;
  tn_status status = tn_differentiate(R.b, x, 0, &x, 1, &gradient, NULL);
  assert_error(&R, status, TN_EINVAL,
               "differentiate: the loss is f64[3], expected a float scalar such as f32[]");
}

static void only_floats_have_gradients(void **state) {
  (void)state;
  tn_val n = param(&R, "n", TYPE(TN_I64, 3)), loss = sum(param(&R, "x", TYPE(TN_F64, 3))), gradient;
  tn_status status = tn_differentiate(R.b, loss, 0, &n, 1, &gradient, NULL);
  assert_error(&R, status, TN_EINVAL,
               "differentiate: a gradient with respect to i64[3] is asked for, expected floats");
}

static void an_op_without_rule_and_decomposition_is_refused_by_its_place(void **state) {
  (void)state;
  tn_build_frame frame = {.prefix = "act", .where = "net.ini:9"};
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), gradient;
  tn_builder_push(R.b, &frame);
  tn_val y = tn_op1(R.b, "opaque", x);
  tn_builder_pop(R.b);
  tn_status status = tn_differentiate(R.b, sum(y), 0, &x, 1, &gradient, NULL);
  assert_error(
      &R, status, TN_EINVAL,
      "net.ini:9: opaque lies between the loss and a parameter, but has neither gradient nor decomposition: "
      "give it one, or mark it TN_OP_NONDIFF");
  assert_stuck(&R, tn_error_text(&R.env));
}

static void a_decomposition_that_contains_itself_is_refused(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), gradient;
  tn_status status = tn_differentiate(R.b, sum(tn_op1(R.b, "endless", x)), 0, &x, 1, &gradient, NULL);
  assert_error(&R, status, TN_EINVAL,
               "differentiate: decompositions nest over 64 deep, one must contain itself");
}

static tn_status differentiate_crooked(const char *fault) {
  tn_build_frame frame = {.prefix = "fc1", .where = "net.ini:3"};
  tn_val x = param(&R, "x", TYPE(TN_F64, 3)), gradient;
  tn_builder_push(R.b, &frame);
  tn_op_begin(R.b, "crooked");
  tn_op_arg(R.b, x);
  tn_op_set_text(R.b, "fault", fault);
  tn_val y = tn_op_end(R.b);
  tn_builder_pop(R.b);
  return tn_differentiate(R.b, sum(y), 0, &x, 1, &gradient, NULL);
}

static void a_gradient_has_the_type_of_its_operand(void **state) {
  (void)state;
  assert_error(
      &R, differentiate_crooked("type"), TN_EINTERNAL,
      "net.ini:3: gradient of crooked: operand x got f64[], expected f64[3], the type of the operand");
}

static void a_failing_rule_is_named(void **state) {
  (void)state;
  assert_error(&R, differentiate_crooked("code"), TN_EUNSUPPORTED,
               "net.ini:3: gradient of crooked: no gradient today");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(products_and_sums_are_differentiated),
      CASE(a_value_used_twice_gets_both_parts),
      CASE(shared_subexpressions_are_walked_once),
      CASE(broadcast_operands_get_sums),
      CASE(both_results_of_an_op_carry_gradients),
      CASE(an_unused_result_has_the_gradient_zero),
      CASE(branches_get_their_own_part),
      CASE(reductions_over_some_axes_are_differentiated),
      CASE(a_parameter_may_be_the_loss),
      CASE(an_intermediate_value_may_be_asked_for_too),
      CASE(a_composite_without_a_rule_is_differentiated_through_its_parts),
      CASE(a_formula_is_differentiated),
      CASE(a_gradient_as_text_is_summed_and_skipped),
      CASE(a_composite_is_computed_once_for_forward_and_backward),
      CASE(a_composite_that_is_the_loss_or_asked_for_is_replaced),
      CASE(a_composite_beside_the_path_stays_whole),
      CASE(a_decomposition_may_ask_for_inputs_that_come_later),
      CASE(the_loss_need_not_depend_on_a_parameter),
      CASE(nothing_is_emitted_where_nothing_depends),
      CASE(unwanted_gradients_are_not_emitted),
      CASE(integer_and_undifferentiable_paths_stop_gradients),
      CASE(a_seed_scales_every_gradient),
      CASE(a_seed_has_the_type_of_the_loss),
      CASE(gradients_are_ordered_by_when_they_are_ready),
      CASE(the_same_graph_gives_the_same_gradient_graph),
      CASE(emitted_nodes_belong_to_the_layer_they_differentiate),
      CASE(the_loss_is_a_float_scalar),
      CASE(only_floats_have_gradients),
      CASE(an_op_without_rule_and_decomposition_is_refused_by_its_place),
      CASE(a_decomposition_that_contains_itself_is_refused),
      CASE(a_gradient_has_the_type_of_its_operand),
      CASE(a_failing_rule_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
