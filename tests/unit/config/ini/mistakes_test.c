/* Mistakes of a configuration are collected and told together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/config/ini/ini.h"
#include "tests/support/test_env.h"

static void mistakes_are_told_in_the_order_of_their_lines(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  tn_mistakes all = {0};
  assert_int_equal(tn_mistakes_tell(&t, &all), TN_OK);
  static const char *const texts[] = {"a.ini:30: third", "a.ini:4: first", "a.ini:12: second",
                                      "a.ini:4: first"};
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(tn_mistakes_note(&t, &arena, &all, tn_failf(&t, TN_EINVAL, "%s", texts[i])), TN_OK);
  assert_int_equal(tn_mistakes_note(&t, &arena, &all, TN_OK), TN_OK);
  assert_int_equal(tn_mistakes_note(&t, &arena, &all, tn_failf(&t, TN_EIO, "a disk")), TN_EIO);
  assert_int_equal(all.n, 3);
  assert_int_equal(tn_mistakes_tell(&t, &all), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "a.ini:4: first\na.ini:12: second\na.ini:30: third");
  assert_int_equal(tn_mistakes_add(&arena, &all, " (at 8)"), TN_OK);
  assert_int_equal(tn_mistakes_tell(&t, &all), TN_EINVAL);
  assert_string_equal(tn_error_text(&t),
                      "a.ini:4: first (at 8)\na.ini:12: second (at 8)\na.ini:30: third (at 8)");
  assert_int_equal(tn_mistakes_note(&t, &arena, &all, TN_EINVAL), TN_OK); /* a told text is not noted again */
  assert_int_equal(all.n, 3);
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
}

static void twenty_mistakes_are_told_and_the_others_counted(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  tn_mistakes all = {0};
  tn_status status = TN_OK;
  int noted = 0;
  while (status == TN_OK) {
    status = tn_mistakes_note(&t, &arena, &all, tn_failf(&t, TN_EINVAL, "a.ini:%d: wrong", noted + 1));
    noted += status == TN_OK;
  }
  assert_int_equal(status, TN_EINVAL);
  assert_int_equal(noted, TN_MISTAKES_KEPT);
  const char *text = tn_error_text(&t);
  assert_non_null(strstr(text, "a.ini:20: wrong\nand 180 more mistakes"));
  assert_null(strstr(text, "a.ini:21:"));
  tn_arena_free(&arena);
}

/* Texts of 500 bytes: as many as have room, each of them whole. */
static void long_mistakes_are_told_whole(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  tn_mistakes all = {0};
  char word[501] = {0};
  memset(word, 'x', 500);
  for (int i = 0; i < 20; i++)
    assert_int_equal(
        tn_mistakes_note(&t, &arena, &all, tn_failf(&t, TN_EINVAL, "a.ini:%d: %s.", i + 1, word)), TN_OK);
  assert_int_equal(tn_mistakes_tell(&t, &all), TN_EINVAL);
  int lines = 1;
  for (const char *at = tn_error_text(&t); (at = strchr(at, '\n')) != NULL; at++, lines++)
    assert_true(at[-1] == '.');
  assert_int_equal(lines, 12);
  assert_non_null(strstr(tn_error_text(&t), "and 9 more mistakes"));
  tn_arena_free(&arena);
}

static void all_wrong_lines_of_a_file_are_named(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini;
  assert_int_equal(tn_ini_parse(&t,
                                "[run\nseed = 1\n[data]\nbatch 3\n   and more\nsource = a\nsource = b\n"
                                "[data]\nbatch = 1\nbatch = 2\n[model]\nlayers : x\n",
                                "t.ini", NULL, &ini),
                   TN_EINVAL);
  assert_string_equal(tn_error_text(&t),
                      "t.ini:1: '[run' has no ']', expected a header such as [run]\n"
                      "t.ini:4: 'batch 3' is neither '[section]' nor 'key = value'\n"
                      "t.ini:7: the key 'source' is given twice, first in line 6\n"
                      "t.ini:8: the section [data] is given twice, first in line 3; merge the two\n"
                      "t.ini:12: 'layers : x' has ':' where '=' was expected; lines of a model are indented "
                      "below their key");
  assert_int_equal(t.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes_are_told_in_the_order_of_their_lines),
                                     cmocka_unit_test(twenty_mistakes_are_told_and_the_others_counted),
                                     cmocka_unit_test(long_mistakes_are_told_whole),
                                     cmocka_unit_test(all_wrong_lines_of_a_file_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
