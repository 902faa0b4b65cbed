/* Errors, log lines and memory of a handle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/support/test_env.h"

static void a_failure_keeps_its_code_and_text(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  assert_string_equal(tn_error_text(&t), "");
  assert_int_equal(tn_failf(&t, TN_EINVAL, "stride: %d", 0), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "stride: 0");
  assert_int_equal(t.record.code, TN_EINVAL);
  tn_error_clear(&t);
  assert_string_equal(tn_error_text(&t), "");
}

static void a_handle_without_slot_is_no_crash(void **state) {
  (void)state;
  tn_env env = {0};
  assert_string_equal(tn_error_text(NULL), "");
  assert_int_equal(tn_failf(&env, TN_EIO, "x"), TN_EIO);
  assert_int_equal(tn_failf(NULL, TN_EIO, "x"), TN_EIO);
  tn_logf(NULL, TN_LOG_ERROR, "x");
}

static void a_text_may_quote_the_text_before_it(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_failf(&t, TN_EINVAL, "inner");
  tn_failf(&t, TN_EINVAL, "outer (%s)", tn_error_text(&t));
  assert_string_equal(tn_error_text(&t), "outer (inner)");
}

static void a_text_is_one_line_without_control_characters(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_failf(&t, TN_EINVAL, "a\nb\x1b[31mc");
  assert_string_equal(tn_error_text(&t), "a b [31mc");
}

static void a_text_too_long_ends_in_an_ellipsis_between_characters(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  char text[2 * TN_ERROR_TEXT] = {0};
  for (size_t i = 0; i < TN_ERROR_TEXT / 2 + 64; i++) memcpy(text + 2 * i, "\xC3\xA9", 2);
  tn_failf(&t, TN_EINVAL, "x%s", text);
  size_t n = strlen(tn_error_text(&t));
  assert_true(n < sizeof(t.record.text) && n > sizeof(t.record.text) - 8);
  assert_string_equal(tn_error_text(&t) + n - 3, "...");
  assert_int_equal((unsigned char)tn_error_text(&t)[n - 4], 0xA9);
  tn_wrap(&t, TN_EINVAL, "context");
  assert_memory_equal(tn_error_text(&t), "context: x", 10);
}

/* A plugin's option may have the empty text for a name. */
static void an_empty_context_is_added_once(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_failf(&t, TN_EINVAL, "no number");
  assert_int_equal(tn_wrap(&t, TN_EINVAL, "%s", ""), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), ": no number");
}

static void wrapping_puts_context_in_front_and_keeps_the_option(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  assert_int_equal(tn_wrap(&t, TN_OK, "nothing"), TN_OK);
  assert_string_equal(tn_error_text(&t), "");
  tn_failf(&t, TN_EINVAL, "bad");
  strcpy(t.record.option, "stride");
  assert_int_equal(tn_wrap(&t, TN_EINVAL, "net.ini:%d", 3), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "net.ini:3: bad");
  assert_string_equal(t.record.option, "stride");
}

static void fail_for_option(test_env *t, const char *option, const char *format, ...) {
  va_list args;
  va_start(args, format);
  assert_int_equal(tn_failv(t, TN_EINVAL, option, format, args), TN_EINVAL);
  va_end(args);
  tn_error_name_option(t);
}

/* A text that does not name the option gets it in front. */
static void the_option_is_shown(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  fail_for_option(&t, "reduction", "expected mean or sum");
  assert_string_equal(t.record.text, "reduction: expected mean or sum");
  fail_for_option(&t, "reduction", "'reduction' is unknown");
  assert_string_equal(t.record.text, "'reduction' is unknown");
  fail_for_option(&t, "at", "data are missing");
  assert_string_equal(t.record.text, "at: data are missing");
  fail_for_option(&t, "p", "p=2, expected [0, 1)");
  assert_string_equal(t.record.text, "p=2, expected [0, 1)");
  char text[8192];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  fail_for_option(&t, "reduction", "%s", text);
  assert_int_equal(strlen(t.record.text), sizeof t.record.text - 1);
  assert_memory_equal(t.record.text, "reduction: xxx", 14);
}

static void a_context_is_not_repeated(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  for (int i = 0; i < 5; i++) {
    tn_wrap(&t, TN_EINVAL, "sample 3");
    tn_wrap(&t, TN_EINVAL, "net.ini:%d", 4);
    assert_string_equal(tn_error_text(&t), "net.ini:4: sample 3: failed without a message: invalid");
  }
}

static void wrapping_a_code_without_text_does_not_show_an_older_one(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_failf(&t, TN_EINVAL, "long ago");
  tn_wrap(&t, TN_EDEVICE, "launch");
  assert_string_equal(tn_error_text(&t), "launch: failed without a message: device failed");
}

static void moving_an_error_empties_the_source(void **state) {
  (void)state;
  test_env a, b;
  test_env_start(&a);
  test_env_start(&b);
  tn_failf(&a, TN_EIO, "disk");
  assert_int_equal(tn_error_move(&b, &a), TN_EIO);
  assert_string_equal(tn_error_text(&b), "disk");
  assert_string_equal(tn_error_text(&a), "");
  assert_int_equal(tn_error_move(&b, &b), TN_EIO);
  assert_string_equal(tn_error_text(&b), "disk");
}

static void log_lines_above_the_level_are_dropped(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  t.record.sink.level = TN_LOG_INFO;
  tn_logf(&t, TN_LOG_DEBUG, "quiet");
  assert_string_equal(t.log, "");
  tn_logf(&t, TN_LOG_WARN, "loud %d", 1);
  assert_string_equal(t.log, "loud 1\n");
  assert_int_equal(t.log_level, 1);
}

static void an_env_shares_allocator_and_sink_with_another(void **state) {
  (void)state;
  test_env t;
  tn_env env;
  tn_error_record record;
  static const tn_api table = {.struct_size = sizeof(tn_api)};
  test_env_start(&t);
  t.env.api = &table;
  tn_error_record_init(&env, &record, &t.env);
  void *block = tn_alloc(&env, 8);
  assert_int_equal(t.live, 1);
  tn_failf(&env, TN_EIO, "mine");
  assert_string_equal(tn_error_text(&t), "");
  tn_release(&t, block);
  assert_int_equal(t.live, 0);
  assert_ptr_equal(env.api, &table);
}

static void memory_comes_zeroed_and_refusal_is_an_error(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  char *block = tn_alloc(&t, 100), *empty = tn_alloc(&t, 0);
  for (int i = 0; i < 100; i++) assert_int_equal(block[i], 0);
  assert_non_null(empty);
  t.fail_at = 1;
  assert_null(tn_resize(&t, block, 200));
  assert_string_equal(tn_error_text(&t), "out of memory: 200 bytes were refused");
  assert_null(tn_alloc(&t, tn_size_mul(SIZE_MAX, 2)));
  assert_string_equal(tn_error_text(&t), "out of memory: the size asked for exceeds the address space");
  t.fail_at = 0;
  assert_null(tn_alloc(&t, SIZE_MAX - 1));
  tn_release(&t, block);
  tn_release(&t, empty);
  tn_release(&t, NULL);
  assert_int_equal(t.live, 0);
}

static void sizes_saturate_instead_of_wrapping(void **state) {
  (void)state;
  assert_int_equal(tn_size_mul(3, 4), 12);
  assert_int_equal(tn_size_mul(SIZE_MAX / 2, 3), SIZE_MAX);
  assert_int_equal(tn_size_add(SIZE_MAX, 1), SIZE_MAX);
  assert_int_equal(tn_size_add(1, 2), 3);
}

static void every_status_has_a_name(void **state) {
  (void)state;
  for (tn_status s = TN_OK; s <= TN_EINTERNAL; s++) assert_true(strlen(tn_status_name(s)) > 1);
  assert_string_equal(tn_status_name(TN_ENOMEM), "out of memory");
  assert_string_equal(tn_status_name(-1), "unknown status");
  assert_string_equal(tn_status_name(99), "unknown status");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_empty_context_is_added_once),
      cmocka_unit_test(a_failure_keeps_its_code_and_text),
      cmocka_unit_test(a_handle_without_slot_is_no_crash),
      cmocka_unit_test(a_text_may_quote_the_text_before_it),
      cmocka_unit_test(a_text_is_one_line_without_control_characters),
      cmocka_unit_test(a_text_too_long_ends_in_an_ellipsis_between_characters),
      cmocka_unit_test(wrapping_puts_context_in_front_and_keeps_the_option),
      cmocka_unit_test(the_option_is_shown),
      cmocka_unit_test(a_context_is_not_repeated),
      cmocka_unit_test(wrapping_a_code_without_text_does_not_show_an_older_one),
      cmocka_unit_test(moving_an_error_empties_the_source),
      cmocka_unit_test(log_lines_above_the_level_are_dropped),
      cmocka_unit_test(an_env_shares_allocator_and_sink_with_another),
      cmocka_unit_test(memory_comes_zeroed_and_refusal_is_an_error),
      cmocka_unit_test(sizes_saturate_instead_of_wrapping),
      cmocka_unit_test(every_status_has_a_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
