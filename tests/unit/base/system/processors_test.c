/* Lists of processors as text, and in the order in which threads take them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/system/processors.h"
#include "tests/support/test_env.h"

static void expect_list(const char *from, const char *to) {
  tn_processors p;
  test_env t;
  test_env_start(&t);
  tn_text text = tn_text_new(&t);
  assert_true(tn_processors_parse(&p, from));
  tn_processors_print(&text, &p);
  assert_string_equal(text.v, to);
  tn_text_free(&text);
}

static void a_list_keeps_its_order(void **state) {
  (void)state;
  expect_list("0", "0");
  expect_list("0-3,8", "0-3,8");
  expect_list(" 8, 0-3 ", "8,0-3");
  expect_list("3,2,1", "3,2,1");
  expect_list("5,6,7,1-1", "5-7,1");
  expect_list("1023\n", "1023");
}

static void what_is_no_list_is_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"",    " ",   "-",   "0-",  "-1",       "3-1",         "0,",
                                      ",0",  "a",   "0x1", "0 1", "1024",     "+1",          "0-1-2",
                                      "0;1", "yes", "1.5", "1e3", "0-1023,0", "99999999999", "0-99999"};
  tn_processors p;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (tn_processors_parse(&p, wrong[i])) fail_msg("'%s' was read", wrong[i]);
}

static void there_are_some_and_they_rise(void **state) {
  (void)state;
  tn_processors p;
  assert_true(tn_processors_allowed(&p));
  assert_true(p.n >= 1);
  for (int32_t i = 1; i < p.n; i++) assert_true(p.v[i] > p.v[i - 1]);
}

static void put(const char *folder, int processor, const char *siblings) {
  char path[256];
  snprintf(path, sizeof path, "%s/cpu%d", folder, processor);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/cpu%d/topology", folder, processor);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/cpu%d/topology/thread_siblings_list", folder, processor);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(siblings, f);
  assert_int_equal(fclose(f), 0);
}

static void take(const char *folder, int processor) {
  static const char *const parts[] = {"/topology/thread_siblings_list", "/topology", ""};
  char path[256];
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/cpu%d%s", folder, processor, parts[i]);
    assert_int_equal(remove(path), 0);
  }
}

static void expect_spread(const char *folder, const char *from, const char *to) {
  tn_processors p;
  test_env t;
  test_env_start(&t);
  tn_text text = tn_text_new(&t);
  assert_true(tn_processors_parse(&p, from));
  tn_processors_spread(&p, folder);
  tn_processors_print(&text, &p);
  assert_string_equal(text.v, to);
  tn_text_free(&text);
}

static void one_of_each_core_comes_before_its_siblings(void **state) {
  (void)state;
  static const char *const siblings[] = {"0-1\n", "0-1\n", "2-3\n", "2-3\n", "4,6\n", "5\n", "4,6\n"};
  char folder[] = "/tmp/tenon-cpu-XXXXXX";
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < 7; i++) put(folder, i, siblings[i]);
  expect_spread(folder, "0-6", "0,2,4-5,1,3,6");
  expect_spread(folder, "1,3,6", "1,3,6"); /* the first of each core may not be used */
  expect_spread(folder, "0,1", "0-1");
  expect_spread(folder, "0,1,7", "0,7,1"); /* processor 7 has no topology file */
  for (int i = 0; i < 7; i++) take(folder, i);
  assert_int_equal(rmdir(folder), 0);
  expect_spread(folder, "0-6", "0-6");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_list_keeps_its_order),
      cmocka_unit_test(what_is_no_list_is_refused),
      cmocka_unit_test(there_are_some_and_they_rise),
      cmocka_unit_test(one_of_each_core_comes_before_its_siblings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
