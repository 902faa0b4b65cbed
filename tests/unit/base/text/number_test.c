/* Numbers as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <float.h>
#include <math.h>

#include "core/base/text/text.h"
#include "tests/support/test_env.h"

static void whole_numbers_fill_64_bits_exactly(void **state) {
  (void)state;
  int64_t n = 7;
  assert_true(tn_text_to_int("9223372036854775807", &n) && n == INT64_MAX);
  assert_true(tn_text_to_int("-9223372036854775808", &n) && n == INT64_MIN);
  assert_true(tn_text_to_int("+5", &n) && n == 5);
  assert_true(tn_text_to_int("-0", &n) && n == 0);
  assert_true(tn_text_to_int("007", &n) && n == 7);
  const char *const wrong[] = {"",
                               "-",
                               "+",
                               "1.0",
                               "1e3",
                               " 1",
                               "1 ",
                               "0x10",
                               "--1",
                               "9223372036854775808",
                               "-9223372036854775809",
                               "99999999999999999999"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) assert_false(tn_text_to_int(wrong[i], &n));
}

static void floats_are_decimal_only(void **state) {
  (void)state;
  double x;
  assert_true(tn_text_to_float("0.1", &x) && x == 0.1);
  assert_true(tn_text_to_float(".5", &x) && x == 0.5);
  assert_true(tn_text_to_float("5.", &x) && x == 5);
  assert_true(tn_text_to_float("-1e-3", &x) && x == -1e-3);
  assert_true(tn_text_to_float("+2E+2", &x) && x == 200);
  assert_true(tn_text_to_float("inf", &x) && isinf(x) && x > 0);
  assert_true(tn_text_to_float("-inf", &x) && isinf(x) && x < 0);
  assert_true(tn_text_to_float("nan", &x) && isnan(x));
  assert_true(tn_text_to_float("1e-400", &x) && x == 0);
  const char *const wrong[] = {"",    ".",     "-",  "e5", "1e",       "1e+",  "0x1p3",
                               "1,5", "1.5.2", " 1", "1f", "infinity", "1e400"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) assert_false(tn_text_to_float(wrong[i], &x));
}

static void prints_as(test_env *t, double x, const char *expected) {
  tn_text text = tn_text_new(t);
  double back;
  tn_text_add_float(&text, x);
  assert_string_equal(text.v, expected);
  assert_true(tn_text_to_float(text.v, &back));
  if (isnan(x))
    assert_true(isnan(back));
  else
    assert_memory_equal(&back, &x, sizeof(x));
  tn_text_free(&text);
}

static void floats_print_short_and_read_back_to_the_same_bits(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  prints_as(&t, 0.1, "0.1");
  prints_as(&t, 100, "100");
  prints_as(&t, 1e-5, "1e-05");
  prints_as(&t, 0.0001, "0.0001");
  prints_as(&t, 1234567, "1234567");
  prints_as(&t, 1e15, "1000000000000000");
  prints_as(&t, 1e22, "1e+22");
  prints_as(&t, 1.0 / 3, "0.3333333333333333");
  prints_as(&t, -0.0, "-0");
  prints_as(&t, 0.0, "0");
  prints_as(&t, DBL_MAX, "1.7976931348623157e+308");
  prints_as(&t, DBL_TRUE_MIN, "5e-324");
  prints_as(&t, INFINITY, "inf");
  prints_as(&t, -INFINITY, "-inf");
  prints_as(&t, NAN, "nan");
  prints_as(&t, 9007199254740993.0, "9007199254740992");
  assert_int_equal(t.live, 0);
}

static void every_kind_of_double_survives(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  uint64_t bits = 88172645463325252u;
  for (int i = 0; i < 5000; i++) {
    double x, back;
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    memcpy(&x, &bits, sizeof(x));
    if (isnan(x)) continue;
    tn_text text = tn_text_new(&t);
    tn_text_add_float(&text, x);
    assert_true(tn_text_to_float(text.v, &back));
    assert_memory_equal(&back, &x, sizeof(x));
    tn_text_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_numbers_fill_64_bits_exactly),
      cmocka_unit_test(floats_are_decimal_only),
      cmocka_unit_test(floats_print_short_and_read_back_to_the_same_bits),
      cmocka_unit_test(every_kind_of_double_survives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
