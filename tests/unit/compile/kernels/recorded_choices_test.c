/* Recorded choices are found by program and nodes: programs with the same nodes may have other choices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/compile/kernels/recorded_choices.h"

static void a_choice_is_that_of_its_program(void **state) {
  (void)state;
  tn_recorded_choice list[] = {{7, "kept", 1, "step"}, {3, "other", 0, "eval"},  {7, "plain", 0, "eval"},
                               {9, "single", 2, NULL}, {7, "micro", 2, "micro"}, {3, "third", 1, "step"},
                               {11, "last", 0, "step"}};
  tn_recorded_choices replay = {.choices = list, .n_choices = sizeof list / sizeof *list};
  tn_recorded_sort(&replay);
  assert_string_equal(tn_recorded_find(&replay, "step", 7)->kernel, "kept");
  assert_string_equal(tn_recorded_find(&replay, "eval", 7)->kernel, "plain");
  assert_string_equal(tn_recorded_find(&replay, "micro", 7)->kernel, "micro");
  assert_string_equal(tn_recorded_find(&replay, "eval", 3)->kernel, "other");
  assert_null(tn_recorded_find(&replay, "eval", 11));
  assert_null(tn_recorded_find(&replay, "weigh", 7));
  assert_null(tn_recorded_find(&replay, "step", 8));
  /* a launch that is replayed alone is of no program */
  assert_string_equal(tn_recorded_find(&replay, "step", 9)->kernel, "single");
  assert_string_equal(tn_recorded_find(&replay, NULL, 9)->kernel, "single");
  assert_null(tn_recorded_find(&(tn_recorded_choices){.n_choices = 0}, "step", 7));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_choice_is_that_of_its_program)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
