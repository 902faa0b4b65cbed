/* Values of expressions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stdio.h>

#include "core/config/language/syntax.h"
#include "tests/support/test_env.h"

static bool sizes(void *context, const char *ref, int64_t axis, int64_t *size) {
  const int64_t *dims = context;
  if (strcmp(ref, "in") != 0 || axis < -4 || axis > 3) return false;
  *size = dims[axis < 0 ? axis + 4 : axis];
  return true;
}

typedef struct fixture {
  test_env t;
  tn_arena arena;
  tn_scope scope;
} fixture;

static void start(fixture *f) {
  static const char *const names[] = {"planes", "stride", "rate", "bias", "mode", "list", "tied"};
  static tn_value two[] = {{.kind = TN_VALUE_NUMBER, .number = 1, .is_integer = 1},
                           {.kind = TN_VALUE_NUMBER, .number = 2.5}};
  static const tn_value values[] = {{.kind = TN_VALUE_NUMBER, .number = 64, .is_integer = 1},
                                    {.kind = TN_VALUE_NUMBER, .number = 2, .is_integer = 1},
                                    {.kind = TN_VALUE_NUMBER, .number = 0.5},
                                    {.kind = TN_VALUE_TEXT, .text = "no"},
                                    {.kind = TN_VALUE_TEXT, .text = "same"},
                                    {.kind = TN_VALUE_LIST, .items = two, .n_items = 2},
                                    {.kind = TN_VALUE_SHARED, .text = "a.weight"}};
  static int64_t dims[] = {8, 3, 224, 32};
  test_env_start(&f->t);
  f->arena = tn_arena_new(&f->t);
  f->scope = (tn_scope){.names = names, .values = values, .n = 7, .dim = sizes, .context = dims};
}

static tn_expr *parse(fixture *f, const char *text) {
  tn_expr *expr;
  if (tn_syntax_expr(&f->t, &f->arena, text, &expr) != TN_OK) fail_msg("%s", tn_error_text(&f->t));
  return expr;
}

static void gives(const char *text, const char *expected) {
  fixture f;
  tn_value value;
  start(&f);
  if (tn_expr_evaluate(&f.t, &f.arena, parse(&f, text), &f.scope, &value) != TN_OK)
    fail_msg("%s: %s", text, tn_error_text(&f.t));
  const char *shown = tn_value_text(&f.arena, &value);
  if (strcmp(shown, expected) != 0) fail_msg("%s gives %s, wanted %s", text, shown, expected);
  tn_arena_free(&f.arena);
  assert_int_equal(f.t.live, 0);
}

static void fails(const char *text, const char *message) {
  fixture f;
  tn_value value;
  start(&f);
  assert_int_equal(tn_expr_evaluate(&f.t, &f.arena, parse(&f, text), &f.scope, &value), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), message);
  tn_arena_free(&f.arena);
  assert_int_equal(f.t.live, 0);
}

static void whole_numbers_stay_whole(void **state) {
  (void)state;
  gives("1 + 2 * 3", "7");
  gives("4*planes", "256");
  gives("2 - 5", "-3");
  gives("-0", "0");
  gives("6 / 3", "2");
  gives("7 / 2", "3.5");
  gives("-6 / 3", "-2");
  gives("9007199254740992", "9007199254740992");
}

static void fractions_keep_their_point(void **state) {
  (void)state;
  gives("1.0", "1.0");
  gives("2 * rate", "1.0");
  gives("6.0 / 3", "2.0");
  gives("0.1 + 0.2", "0.30000000000000004");
  gives("1e300 * 1e10", "inf");
  gives("-inf", "-inf");
  gives("1e-7", "1e-07");
  gives("1e22", "1e+22");
}

static void division_and_remainder_round_down_as_in_python(void **state) {
  (void)state;
  gives("7 // 2", "3");
  gives("-7 // 2", "-4");
  gives("7 // -2", "-4");
  gives("-7 // -2", "3");
  gives("7 % 2", "1");
  gives("-7 % 2", "1");
  gives("7 % -2", "-1");
  gives("-7 % -2", "-1");
  gives("6 % 3", "0");
  gives("7.5 // 2", "3.0");
  gives("-7.5 % 2", "0.5");
  gives("9007199254740992 // 3", "3002399751580330");
  gives("-9007199254740992 // 3", "-3002399751580331");
}

static void powers_of_whole_numbers_are_whole(void **state) {
  (void)state;
  gives("2 ** 10", "1024");
  gives("-2 ** 2", "-4");
  gives("(-1) ** 9999999", "-1");
  gives("0 ** 0", "1");
  gives("2 ** -1", "0.5");
  gives("4 ** 0.5", "2.0");
  gives("2 ** 3 ** 2", "512");
  gives("sqrt(16) / 2", "2");
  gives("abs(-0.5) + floor(2.5)", "2.5");
  gives("sqrt(-1)", "sqrt(-1)");
  fails("2 ** 54", "a whole number becomes too large, expected at most 2^53");
  fails("10 ** 9999", "a whole number becomes too large, expected at most 2^53");
  fails("(-8) ** 0.5", "-8 ** 0.5 is no real number, expected a base that is not negative");
  fails("0.0 ** -1", "0.0 ** -1 divides by zero");
  fails("0 ** -1", "0 ** -1 divides by zero");
}

static void parts_of_lists_are_pythons(void **state) {
  (void)state;
  gives("[1, 2, 3][0]", "1");
  gives("[1, 2, 3][-1] ** 2", "9");
  gives("[1, 2, 3][1:]", "[2, 3]");
  gives("[1, 2, 3][:-1]", "[1, 2]");
  gives("[1, 2, 3][::2]", "[1, 3]");
  gives("[1, 2, 3][-9:9]", "[1, 2, 3]");
  gives("[1, 2, 3][2:1]", "[]");
  gives("[1, [2, 3]][1][0]", "2");
  gives("[planes, stride][stride // 2]", "2");
  fails("[1, 2][2]", "[2] of a list of 2, expected a number from -2 to 1");
  fails("[1, 2][0, 1]", "[0, 1] of a list, expected one number or range, as in dims(x)[1:]");
  fails("[1, 2][...]", "[...] of a list, expected one number or range, as in dims(x)[1:]");
  fails("[1, 2][0.5]", "'0.5' between '[' and ']', expected a whole number");
  fails("[1, 2][::-1]", "the step -1 between '[' and ']', expected at least 1; write flip(x, axes=[1]) for "
                        "the other direction");
  fails("[][0]", "[0] of an empty list");
  fails("planes[0]", "'64' has no parts, expected a value or a list in front of '['");
  fails("tanh[0]", "'tanh' has no parts, expected a value or a list in front of '['");
}

static void a_choice_looks_at_one_side(void **state) {
  (void)state;
  gives("1 if planes == 64 else 1 / 0", "1");
  gives("tanh if no else relu", "relu");
  gives("[1, 2 if 0 else 3]", "[1, 3]");
  fails("1 if sometimes else 2",
        "'sometimes' is neither a number, nor yes or no, nor a name that is known here");
}

static void comparisons_give_one_or_zero(void **state) {
  (void)state;
  gives("1 < 2", "1");
  gives("2 < 1", "0");
  gives("1 < 2 < 3", "1");
  gives("3 > 2 > 2", "0");
  gives("stride != 1 or dim(in, 1) != 4*planes", "1");
  gives("stride == 2.0", "1");
  gives("mode == same", "1");
  gives("mode == valid", "0");
  gives("mode == 3", "0");
  gives("bias == no", "1");
  gives("bias == 0", "1");
  gives("bias == off", "1");
  gives("(1 < 2) == yes", "1");
  gives("list == [1, 2.5]", "1");
  gives("list != [1, 2]", "1");
  gives("list == [1]", "0");
  gives("tied == @a.weight", "1");
}

static void logic_looks_no_further_than_it_must(void **state) {
  (void)state;
  gives("stride == 0 or 1", "1");
  gives("no and 1 / 0", "0");
  gives("yes or 1 / 0", "1");
  gives("not bias", "1");
  gives("not 0.5", "0");
  gives("yes and 2", "1");
}

static void words_lists_calls_and_shared_values_pass_through(void **state) {
  (void)state;
  gives("tanh", "tanh");
  gives("yes", "yes");
  gives("planes", "64");
  gives("[1, planes // 4, same, [2]]", "[1, 16, same, [2]]");
  gives("[]", "[]");
  gives("normal(0, std=rate / planes)", "normal(0, std=0.0078125)");
  gives("f()", "f()");
  gives("@transformer.wte.weight", "@transformer.wte.weight");
  gives("dim(in, 2)", "224");
  gives("dim(in, -1) // 2", "16");
}

static void what_makes_no_sense_is_refused(void **state) {
  (void)state;
  fails("1 / 0", "1 / 0 divides by zero");
  fails("planes % (2 - stride)", "64 % 0 divides by zero");
  fails("1.5 // 0.0", "1.5 // 0 divides by zero");
  fails("same + 1", "'+' needs numbers, found 'same'");
  fails("1 < list", "'<' needs numbers, found '[1, 2.5]'");
  fails("-same", "'-' needs numbers, found 'same'");
  fails("-@a", "'-' needs numbers, found '@a'");
  fails("typo and 1", "'typo' is neither a number, nor yes or no, nor a name that is known here");
  fails("not typo", "'typo' is neither a number, nor yes or no, nor a name that is known here");
  fails("9007199254740992 + 1 + 1", "a whole number becomes too large, expected at most 2^53");
  fails("9007199254740992 * 2", "a whole number becomes too large, expected at most 2^53");
  fails("9007199254740992 * 9007199254740992", "a whole number becomes too large, expected at most 2^53");
  fails("dim(out, 1)", "dim(out, 1): there is no such value, or it has no such dimension");
  fails("dim(in, 9)", "dim(in, 9): there is no such value, or it has no such dimension");
  fails("dim(in, 1.5)", "dim(in, 1.5): expected a whole number for the dimension");
  fails("[1, 2 / 0]", "2 / 0 divides by zero");
  fails("f(2 / 0)", "2 / 0 divides by zero");
}

static void a_condition_must_be_one(void **state) {
  fixture f;
  bool holds = true;
  (void)state;
  start(&f);
  assert_int_equal(tn_expr_holds(&f.t, &f.arena, parse(&f, "stride > 5"), &f.scope, &holds), TN_OK);
  assert_false(holds);
  assert_int_equal(tn_expr_holds(&f.t, &f.arena, parse(&f, "on"), NULL, &holds), TN_OK);
  assert_true(holds);
  assert_int_equal(tn_expr_holds(&f.t, &f.arena, parse(&f, "striide"), &f.scope, &holds), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t),
                      "'striide' is neither a number, nor yes or no, nor a name that is known here");
  assert_int_equal(tn_expr_holds(&f.t, &f.arena, parse(&f, "dim(in, 0)"), NULL, &holds), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "dim(in, 0): no sizes are known here");
  tn_arena_free(&f.arena);
}

static void truth_of_values(void **state) {
  (void)state;
  assert_true(tn_value_true(&(tn_value){.kind = TN_VALUE_NUMBER, .number = 0.1}));
  assert_false(tn_value_true(&(tn_value){.kind = TN_VALUE_NUMBER}));
  assert_true(tn_value_true(&(tn_value){.kind = TN_VALUE_TEXT, .text = "yes"}));
  assert_false(tn_value_true(&(tn_value){.kind = TN_VALUE_TEXT, .text = "off"}));
  assert_false(tn_value_true(&(tn_value){.kind = TN_VALUE_TEXT, .text = "typo"}));
  assert_false(tn_value_true(&(tn_value){.kind = TN_VALUE_LIST}));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_numbers_stay_whole),
      cmocka_unit_test(fractions_keep_their_point),
      cmocka_unit_test(division_and_remainder_round_down_as_in_python),
      cmocka_unit_test(powers_of_whole_numbers_are_whole),
      cmocka_unit_test(parts_of_lists_are_pythons),
      cmocka_unit_test(a_choice_looks_at_one_side),
      cmocka_unit_test(comparisons_give_one_or_zero),
      cmocka_unit_test(logic_looks_no_further_than_it_must),
      cmocka_unit_test(words_lists_calls_and_shared_values_pass_through),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(a_condition_must_be_one),
      cmocka_unit_test(truth_of_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
