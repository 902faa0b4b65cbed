/* The values of a key of a sweep: lists, ranges, and draws from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/sweep/values.h"
#include "tests/support/test_env.h"

static test_env env;
static tn_arena arena;

static int open_arena(void **state) {
  (void)state;
  test_env_start(&env);
  arena = tn_arena_new(&env);
  return 0;
}

static int close_arena(void **state) {
  (void)state;
  tn_arena_free(&arena);
  return 0;
}

static tn_sweep_values read_values(const char *text) {
  tn_sweep_values values;
  assert_int_equal(tn_sweep_values_read(&arena, "net.ini:3", "optimizer.lr", text, &values), TN_OK);
  return values;
}

static void expect_list(const char *text, int32_t n, const char *const *words) {
  tn_sweep_values values = read_values(text);
  assert_int_equal(values.list.n, n);
  for (int32_t i = 0; i < n; i++) assert_string_equal(values.list.v[i], words[i]);
}

static void commas_and_lines_divide_a_list(void **state) {
  (void)state;
  expect_list("1e-4, 3e-4", 2, (const char *[]){"1e-4", "3e-4"});
  expect_list("a\nb\n", 2, (const char *[]){"a", "b"});
  expect_list("crop(32, padding=4), [1, 2], \"x, y\"", 3,
              (const char *[]){"crop(32, padding=4)", "[1, 2]", "x, y"});
  expect_list("\"\", flip", 2, (const char *[]){"", "flip"});
  expect_list("../a, ../b", 2, (const char *[]){"../a", "../b"});
}

static void draws_stay_in_their_range(void **state) {
  (void)state;
  tn_sweep_values uniform = read_values("0..0.5"), log = read_values("log 1e-5..1e-1"),
                  whole = read_values("1..4");
  assert_string_equal(tn_sweep_values_draw(&arena, &uniform, 0.5), "0.25");
  assert_string_equal(tn_sweep_values_draw(&arena, &log, 0.5), "0.001");
  assert_string_equal(tn_sweep_values_draw(&arena, &log, 0), "1e-05");
  int seen[5] = {0};
  for (int i = 0; i < 400; i++) seen[atoi(tn_sweep_values_draw(&arena, &whole, i / 400.0))]++;
  for (int k = 1; k <= 4; k++) assert_int_equal(seen[k], 100); /* each as often as the others, 4 included */
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  static const char *const wrong[][2] = {{"", "expected a list of values, or a range"},
                                         {"3..3", "with LOW below HIGH"},
                                         {"0..inf", "with LOW below HIGH"},
                                         {"log -1..1", "above 0"},
                                         {"log 3", "two numbers behind log"},
                                         {"1, 2..3", "a range stands alone"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tn_sweep_values values;
    assert_int_equal(tn_sweep_values_read(&arena, "net.ini:3", "optimizer.lr", wrong[i][0], &values),
                     TN_EINVAL);
    assert_non_null(strstr(tn_error_text(&env), wrong[i][1]));
    assert_non_null(strstr(tn_error_text(&env), "net.ini:3: optimizer.lr"));
  }
}

int main(void) {
#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)
  const struct CMUnitTest tests[] = {WITH_ARENA(commas_and_lines_divide_a_list),
                                     WITH_ARENA(draws_stay_in_their_range),
                                     WITH_ARENA(wrong_values_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
