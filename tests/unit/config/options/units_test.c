/* Sizes, durations and element types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/config/options/options.h"
#include "tests/support/test_env.h"

static void sizes_have_decimal_and_binary_units(void **state) {
  static const struct {
    const char *text;
    int64_t bytes;
  } cases[] = {
      {"0", 0},
      {"512", 512},
      {"512B", 512},
      {"1kB", 1000},
      {"1KiB", 1024},
      {"64MiB", 64 << 20},
      {"64 mib", 64 << 20},
      {"2GB", 2000000000},
      {"1.5GiB", 3LL << 29},
      {"1TiB", 1LL << 40},
      {"1e3", 1000},
      {"1e3KB", 1000000},
      {"9223372036854775807", INT64_MAX},
      {" 5 ", 5},
  };
  (void)state;
  test_env t;
  test_env_start(&t);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int64_t bytes = -1;
    if (tn_parse_size(&t, cases[i].text, &bytes) != TN_OK) fail_msg("%s", tn_error_text(&t));
    assert_int_equal(bytes, cases[i].bytes);
  }
}

static void other_sizes_are_refused(void **state) {
  static const char *const cases[] = {"", "MiB", "-1", "1 2", "1PB", "64M", "1.2.3", "nan", "inf", "1e"};
  (void)state;
  test_env t;
  int64_t bytes = 0;
  test_env_start(&t);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    if (tn_parse_size(&t, cases[i], &bytes) != TN_EINVAL) fail_msg("'%s' passed", cases[i]);
  assert_int_equal(tn_parse_size(&t, "9000000TiB", &bytes), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "'9000000TiB' is too large for a size, expected below 2^63");
}

static void durations_have_units_of_time(void **state) {
  static const struct {
    const char *text;
    double seconds;
  } cases[] = {{"0.5", 0.5},  {"90s", 90},     {"5min", 300},  {"2h", 7200},
               {"1d", 86400}, {"250ms", 0.25}, {"1.5 H", 5400}};
  (void)state;
  test_env t;
  test_env_start(&t);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    double seconds = -1;
    if (tn_parse_duration(&t, cases[i].text, &seconds) != TN_OK) fail_msg("%s", tn_error_text(&t));
    assert_true(seconds == cases[i].seconds);
  }
}

static void other_durations_are_refused(void **state) {
  static const char *const cases[] = {"", "s", "5m", "-1s", "1h30min", "inf", "nan", "1 second", "1e308d"};
  (void)state;
  test_env t;
  double seconds = 0;
  test_env_start(&t);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    if (tn_parse_duration(&t, cases[i], &seconds) != TN_EINVAL) fail_msg("'%s' passed", cases[i]);
}

static void element_types_go_by_tenons_names(void **state) {
  (void)state;
  test_env t;
  int32_t dtype;
  test_env_start(&t);
  for (int32_t i = 0; i < TN_DTYPES; i++) {
    assert_int_equal(tn_parse_dtype(&t, tn_dtype_name(i), &dtype), TN_OK);
    assert_int_equal(dtype, i);
  }
  assert_int_equal(tn_parse_dtype(&t, "float32", &dtype), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "'float32' is not an element type, did you mean 'f32'?");
  assert_int_equal(tn_parse_dtype(&t, "F32", &dtype), TN_EINVAL);
  assert_int_equal(tn_parse_dtype(&t, "?", &dtype), TN_EINVAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_have_decimal_and_binary_units), cmocka_unit_test(other_sizes_are_refused),
      cmocka_unit_test(durations_have_units_of_time),        cmocka_unit_test(other_durations_are_refused),
      cmocka_unit_test(element_types_go_by_tenons_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
