/* Pattern text: parsed patterns, match orders, and errors. */
#include "tests/unit/compile/fixture.h"

#include "core/compile/kernels/pattern.h"
#include "core/plugin/handles.h"
#include "tenon/plugin/op.h"

static tn_env env;
static tn_error_record record;
static tn_arena arena;

static int set_up(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tn_arena_free(&arena);
  return 0;
}

static const tn_pattern *parse(const char *text) {
  const tn_pattern *p = NULL;
  if (tn_pattern_parse(&env, &arena, text, &p) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return p;
}

static void refuse(const char *text, const char *message) {
  const tn_pattern *p = NULL;
  assert_int_equal(tn_pattern_parse(&env, &arena, text, &p), TN_EINVAL);
  assert_null(p);
  assert_string_equal(tn_error_text(&env), message);
}

static void free_names_are_operands_in_order_of_appearance(void **state) {
  (void)state;
  const tn_pattern *p = parse("c = conv2d(x, w, b?); m, v = moments(c) -> c, m, v");
  assert_int_equal(p->op_class, -1);
  assert_int_equal(p->n_nodes, 2);
  assert_int_equal(p->n_operands, 3);
  assert_string_equal(p->values[p->operands[0]].name, "x");
  assert_string_equal(p->values[p->operands[1]].name, "w");
  assert_string_equal(p->values[p->operands[2]].name, "b");
  assert_true(p->values[p->operands[2]].optional);
  assert_false(p->values[p->operands[0]].optional);
  assert_int_equal(p->n_outs, 3);
  assert_string_equal(p->values[p->outs[0]].name, "c");
  assert_string_equal(p->values[p->outs[2]].name, "v");
  assert_int_equal(p->values[p->outs[2]].result, 1);
}

static void results_of_the_last_statement_leave_by_default(void **state) {
  (void)state;
  const tn_pattern *p = parse(" y = matmul( a,b ) ;z=relu(y); ");
  assert_int_equal(p->n_nodes, 2);
  assert_int_equal(p->n_outs, 1);
  assert_string_equal(p->values[p->outs[0]].name, "z");
}

static void a_star_takes_the_remaining_operands(void **state) {
  (void)state;
  const tn_pattern *p = parse("y = concat(xs*)");
  assert_int_equal(p->n_operands, 1);
  assert_true(p->values[p->operands[0]].rest);
}

static void an_underscore_is_an_absent_operand_or_an_unnamed_result(void **state) {
  (void)state;
  const tn_pattern *p = parse("y, _, r = layer_norm(x, _, b)");
  assert_int_equal(p->nodes[0].in[1], -1);
  assert_int_equal(p->nodes[0].out[1], -1);
  assert_int_equal(p->n_outs, 2);
  assert_int_equal(p->values[p->outs[1]].result, 2);
}

static void a_class_and_a_plus_make_a_region(void **state) {
  (void)state;
  assert_int_equal(parse("pointwise+")->op_class, TN_CLASS_POINTWISE);
  assert_int_equal(parse(" reduce+ ")->op_class, TN_CLASS_REDUCE);
  assert_int_equal(parse("random+")->op_class, TN_CLASS_RANDOM);
}

static void a_region_behind_a_statement_is_its_epilogue(void **state) {
  (void)state;
  const tn_pattern *p = parse("s, q = moments(x); pointwise+");
  assert_int_equal(p->op_class, -1);
  assert_int_equal(p->epilogue, TN_CLASS_POINTWISE);
  assert_int_equal(p->n_nodes, 1);
  assert_int_equal(p->n_operands, 1);
  assert_int_equal(p->n_outs, 2);
  assert_int_equal(parse("s, q = moments(x)")->epilogue, -1);
  assert_int_equal(parse("pointwise+")->epilogue, -1);
  assert_int_equal(parse("y = exp(x); s = sin(y); pointwise+")->n_nodes, 2);
}

static void a_region_in_front_of_a_statement_is_its_prologue(void **state) {
  (void)state;
  const tn_pattern *p = parse("pointwise+; s, q = moments(x)");
  assert_int_equal(p->op_class, -1);
  assert_int_equal(p->prologue, TN_CLASS_POINTWISE);
  assert_int_equal(p->epilogue, -1);
  assert_int_equal(p->n_nodes, 1);
  assert_int_equal(p->n_operands, 1);
  assert_int_equal(p->n_outs, 2);
  p = parse("pointwise+; s, q = moments(x); pointwise+");
  assert_int_equal(p->prologue, TN_CLASS_POINTWISE);
  assert_int_equal(p->epilogue, TN_CLASS_POINTWISE);
  assert_int_equal(parse("s, q = moments(x); pointwise+")->prologue, -1);
  assert_int_equal(parse("pointwise+")->prologue, -1);
}

static void a_pattern_is_extended_by_its_statements_with_an_epilogue(void **state) {
  (void)state;
  const tn_pattern *p = parse("y = exp(x); s = sin(y); pointwise+");
  assert_true(tn_pattern_extends(p, parse("y = exp(x); s = sin(y)")));
  assert_true(tn_pattern_extends(p, parse("y = exp(x); s = sin(y) -> y, s")));
  assert_false(tn_pattern_extends(p, parse("y = exp(x); s = cos(y) -> y, s")));
  assert_false(tn_pattern_extends(p, parse("y = exp(x)")));
  assert_false(tn_pattern_extends(p, p));
  assert_false(tn_pattern_extends(parse("pointwise+; y = exp(x); s = sin(y); pointwise+"),
                                  parse("y = exp(x); s = sin(y)")));
  assert_false(tn_pattern_extends(parse("y = exp(x); s = sin(y)"), parse("y = exp(x); s = sin(y)")));
}

static void the_plan_finds_makers_first_and_users_through_bound_values(void **state) {
  (void)state;
  const tn_pattern *p = parse("y = exp(x); s = sin(x); z = mul(y, w) -> s, z");
  assert_int_equal(p->steps[0].node, 2);
  assert_int_equal(p->steps[1].node, 0);
  assert_false(p->steps[1].forward);
  assert_int_equal(p->steps[2].node, 1);
  assert_true(p->steps[2].forward);
  assert_string_equal(p->values[p->steps[2].value].name, "x");
}

static void wrong_patterns_are_refused_with_their_position(void **state) {
  (void)state;
  refuse("", "pattern \"\": expected the name of a result at character 1");
  refuse("y matmul(a)", "pattern \"y matmul(a)\": expected '=' at character 3");
  refuse("y = matmul(a, b", "pattern \"y = matmul(a, b\": expected ',' or ')' at character 16");
  refuse("y = matmul", "pattern \"y = matmul\": expected '(' at character 11");
  refuse("y = f(x) z", "pattern \"y = f(x) z\": expected ';', '->' or the end at character 10");
  refuse("y = f(x) -> x", "pattern \"y = f(x) -> x\": only results can leave; at character 14");
  refuse("y = f(x) -> y, y", "pattern \"y = f(x) -> y, y\": a result leaves twice at character 17");
  refuse("_ = f(x)", "pattern \"_ = f(x)\": nothing leaves the kernel at character 9");
  refuse("pointy+", "pattern \"pointy+\": unknown class of ops; expected pointwise, reduce, move or another "
                    "class, at character 1");
  refuse("pointwise+ y = f(x)",
         "pattern \"pointwise+ y = f(x)\": expected the end after a region at character 12");
  refuse("pointwise+; ", "pattern \"pointwise+; \": expected the name of a result at character 13");
  refuse("pointwise+; pointwise+", "pattern \"pointwise+; pointwise+\": expected '=' at character 22");
  refuse("y = f(x); pointwise+; z = g(y)",
         "pattern \"y = f(x); pointwise+; z = g(y)\": expected the end after a region at character 21");
  refuse("y = f(x); pointy+", "pattern \"y = f(x); pointy+\": unknown class of ops; expected pointwise, "
                              "reduce, move or another class, at character 11");
}

static void a_statement_marked_and_is_only_recomputed(void **state) {
  (void)state;
  const tn_pattern *p = parse("&r = relu(x); & y = exp(r); c = conv2d(y, w, b?)");
  assert_true(p->nodes[0].shared && p->nodes[1].shared);
  assert_false(p->nodes[2].shared);
  assert_int_equal(p->n_operands, 3);
  assert_int_equal(p->n_outs, 1);
  refuse("&y = f(x)",
         "pattern \"&y = f(x)\": the last statement cannot be marked & and ends at character 10");
  refuse("&y = f(x); z = g(y) -> y, z",
         "pattern \"&y = f(x); z = g(y) -> y, z\": the result of a statement marked & cannot leave; "
         "at character 25");
  refuse("a = f(x); &b = g(a); c = h(b)",
         "pattern \"a = f(x); &b = g(a); c = h(b)\": a statement marked & reads operands and results of such "
         "statements only; at character 20");
  refuse("&y = concat(xs*); z = g(y)", "pattern \"&y = concat(xs*); z = g(y)\": a statement marked & has no "
                                       "operand marked *; at character 17");
}

static void names_mean_one_thing(void **state) {
  (void)state;
  refuse("y = f(y)",
         "pattern \"y = f(y)\": a name is given twice, or used before it is given, at character 9");
  refuse("y = f(x); x = g(y)",
         "pattern \"y = f(x); x = g(y)\": a name is given twice, or used before it is given, "
         "at character 19");
  refuse("y = f(x); z = g(y?)",
         "pattern \"y = f(x); z = g(y?)\": only operands of the kernel can be marked, not "
         "results, at character 19");
  refuse("y = f(xs*, z)",
         "pattern \"y = f(xs*, z)\": an operand marked * must be the last one; at character 11");
  refuse("y = f(x, xs*); z = g(y, xs*)",
         "pattern \"y = f(x, xs*); z = g(y, xs*)\": an operand marked * can be used "
         "once only; at character 28");
}

static void statements_must_be_connected(void **state) {
  (void)state;
  refuse("y = f(a); z = g(b) -> y, z",
         "pattern \"y = f(a); z = g(b) -> y, z\": no value joins all of its statements");
}

static void limits_are_refused(void **state) {
  (void)state;
  tn_text text = tn_text_new(&env);
  for (int i = 0; i < 40; i++) tn_text_addf(&text, "%sv%d = f(v%d)", i > 0 ? "; " : "", i + 1, i);
  const tn_pattern *p = NULL;
  assert_int_equal(tn_pattern_parse(&env, &arena, text.v, &p), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "too many nodes"));
  tn_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(free_names_are_operands_in_order_of_appearance),
      cmocka_unit_test(results_of_the_last_statement_leave_by_default),
      cmocka_unit_test(a_star_takes_the_remaining_operands),
      cmocka_unit_test(an_underscore_is_an_absent_operand_or_an_unnamed_result),
      cmocka_unit_test(a_class_and_a_plus_make_a_region),
      cmocka_unit_test(a_region_behind_a_statement_is_its_epilogue),
      cmocka_unit_test(a_region_in_front_of_a_statement_is_its_prologue),
      cmocka_unit_test(a_pattern_is_extended_by_its_statements_with_an_epilogue),
      cmocka_unit_test(the_plan_finds_makers_first_and_users_through_bound_values),
      cmocka_unit_test(wrong_patterns_are_refused_with_their_position),
      cmocka_unit_test(a_statement_marked_and_is_only_recomputed),
      cmocka_unit_test(names_mean_one_thing),
      cmocka_unit_test(statements_must_be_connected),
      cmocka_unit_test(limits_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
