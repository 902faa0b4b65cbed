/* [run] pin: reading it, checking it against the machine, and binding the launching thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/exec/device/pin_threads.h"
#include "core/plugin/handles.h"

static tn_error_record record;
static tn_env env;
static tn_arena arena;

static int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  return 0;
}

static int stop(void **state) {
  (void)state;
  tn_arena_free(&arena);
  return 0;
}

static tn_pin read_pin(const char *text) {
  tn_pin pin;
  assert_int_equal(tn_pin_read(&env, &arena, text, &pin), TN_OK);
  return pin;
}

static void three_forms_are_read(void **state) {
  (void)state;
  assert_int_equal(read_pin("no").how, TN_PIN_NO);
  assert_int_equal(read_pin("yes").how, TN_PIN_YES);
  tn_pin pin = read_pin("8,0-1");
  assert_int_equal(pin.how, TN_PIN_LIST);
  assert_int_equal(pin.list.n, 3);
  assert_int_equal(pin.list.v[0], 8);
  assert_int_equal(pin.list.v[2], 1);
}

static void other_texts_are_refused(void **state) {
  (void)state;
  tn_pin pin;
  assert_int_equal(tn_pin_read(&env, &arena, "0-", &pin), TN_EINVAL);
  assert_string_equal(tn_error_text(&env), "'0-': expected no, yes, or a list of processors below "
                                           "1024 such as 0-3,8");
  assert_string_equal(record.option, "pin");
}

static void no_binds_nothing(void **state) {
  (void)state;
  tn_pin pin = read_pin("no");
  tn_ints list;
  int64_t threads = 0;
  assert_int_equal(tn_pin_resolve(&env, &arena, &pin, &threads, &list), TN_OK);
  assert_int_equal(list.n, 0);
  assert_int_equal(threads, 0);
}

static void yes_takes_every_processor_once(void **state) {
  (void)state;
  tn_pin pin = read_pin("yes");
  tn_ints list;
  tn_processors allowed;
  int64_t threads = 0;
  assert_true(tn_processors_allowed(&allowed));
  assert_int_equal(tn_pin_resolve(&env, &arena, &pin, &threads, &list), TN_OK);
  assert_int_equal(list.n, allowed.n);
  assert_true(threads >= 1 && threads <= list.n);
  assert_int_equal(tn_pin_check(&env, &list, threads), TN_OK);
}

static void a_list_gives_the_number_of_threads(void **state) {
  (void)state;
  char text[32];
  tn_processors allowed;
  tn_ints list;
  int64_t threads = 0;
  assert_true(tn_processors_allowed(&allowed));
  snprintf(text, sizeof text, "%lld", (long long)allowed.v[allowed.n - 1]);
  tn_pin pin = read_pin(text);
  assert_int_equal(tn_pin_resolve(&env, &arena, &pin, &threads, &list), TN_OK);
  assert_int_equal(threads, 1);
  assert_int_equal(list.v[0], allowed.v[allowed.n - 1]);
}

static void expect_refused(const int64_t *v, int64_t n, int64_t threads, const char *says) {
  const tn_ints list = {n, v};
  assert_int_equal(tn_pin_check(&env, &list, threads), TN_EINVAL);
  if (strstr(tn_error_text(&env), says) == NULL) fail_msg("it says: %s", tn_error_text(&env));
  assert_string_equal(record.option, "pin");
}

static void a_list_that_does_not_fit_the_machine_is_refused(void **state) {
  (void)state;
  tn_processors allowed;
  assert_true(tn_processors_allowed(&allowed));
  int64_t one = allowed.v[0], absent = allowed.v[allowed.n - 1] + 1;
  expect_refused((const int64_t[]){one, absent}, 2, 2, "this process may not run on processor");
  expect_refused((const int64_t[]){one, one}, 2, 2, "is listed twice");
  expect_refused((const int64_t[]){one}, 1, 3,
                 "3 threads, but 1 processor for them; name more, or set [run] threads = 1");
}

static void the_launching_thread_is_bound_and_let_go(void **state) {
  (void)state;
  tn_processors before, during, after;
  tn_pinned pinned;
  assert_true(tn_processors_allowed(&before));
  tn_device device = {.pin = {1, &before.v[before.n - 1]}};
  tn_pin_enter(&pinned, &device);
  assert_true(tn_processors_allowed(&during));
  assert_int_equal(during.n, 1);
  assert_int_equal(during.v[0], before.v[before.n - 1]);
  assert_int_equal(sched_getcpu(), during.v[0]);
  tn_pin_leave(&pinned);
  assert_true(tn_processors_allowed(&after));
  assert_int_equal(after.n, before.n);
  device.pin.n = 0;
  tn_pin_enter(&pinned, &device);
  assert_false(pinned.bound);
  tn_pin_leave(&pinned);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(three_forms_are_read, start, stop),
      cmocka_unit_test_setup_teardown(other_texts_are_refused, start, stop),
      cmocka_unit_test_setup_teardown(no_binds_nothing, start, stop),
      cmocka_unit_test_setup_teardown(yes_takes_every_processor_once, start, stop),
      cmocka_unit_test_setup_teardown(a_list_gives_the_number_of_threads, start, stop),
      cmocka_unit_test_setup_teardown(a_list_that_does_not_fit_the_machine_is_refused, start, stop),
      cmocka_unit_test_setup_teardown(the_launching_thread_is_bound_and_let_go, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
