/* Reading INI texts and files that are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/config/ini/ini.h"
#include "tests/support/check_status.h"
#include "tests/support/test_env.h"

static tn_ini parse(test_env *t, const char *text) {
  tn_ini ini;
  if (tn_ini_parse(t, text, "t.ini", NULL, &ini) != TN_OK) fail_msg("%s", tn_error_text(t));
  return ini;
}

static const char *value_of(const tn_ini *ini, const char *section, const char *key) {
  const tn_section *found = tn_ini_section(ini, section);
  assert_non_null(found);
  const tn_key *k = tn_section_key(found, key);
  return k != NULL ? k->value : NULL;
}

static void sections_and_keys_know_their_lines(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "# about\n\n[run]\nname = first\nseed=3\n[ data.train ]\nsource=digits");
  assert_int_equal(ini.n_sections, 2);
  assert_string_equal(ini.path, "");
  assert_string_equal(ini.folder, ".");
  assert_string_equal(value_of(&ini, "run", "name"), "first");
  tn_section *section = tn_ini_section(&ini, "data.train");
  assert_int_equal(section->line, 6);
  tn_key *key = tn_section_key(section, "source");
  assert_int_equal(key->line, 7);
  assert_int_equal(key->n_value_lines, 1);
  assert_int_equal(key->value_lines[0], 7);
  assert_string_equal(tn_key_where(&ini, section, key), "t.ini:7");
  assert_string_equal(tn_key_where(&ini, section, NULL), "t.ini:6");
  assert_null(tn_section_key(section, "none"));
  assert_null(tn_ini_section(&ini, "none"));
  tn_ini_free(&ini);
  assert_int_equal(t.live, 0);
}

static void an_empty_text_and_an_empty_section_are_fine(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "");
  assert_int_equal(ini.n_sections, 0);
  tn_ini_free(&ini);
  ini = parse(&t, "[a]\n[b]\n; nothing\n");
  assert_int_equal(ini.n_sections, 2);
  assert_int_equal(ini.sections[1].n_keys, 0);
  tn_ini_free(&ini);
}

static void comments_begin_at_the_line_or_after_a_blank(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[a] # header\nx = 1 ; one\ny = a#b;c\t# two\nz = ;nothing\nw = # nothing\n");
  assert_string_equal(value_of(&ini, "a", "x"), "1");
  assert_string_equal(value_of(&ini, "a", "y"), "a#b;c");
  assert_string_equal(value_of(&ini, "a", "z"), "");
  assert_string_equal(value_of(&ini, "a", "w"), "");
  tn_ini_free(&ini);
}

static void indented_lines_continue_a_value_without_their_comments(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[model]\nlayers =\n    conv1: conv2d(8) ; first\n           relu\n\n# between\n"
                         "  ; indented\n\tfc: linear(10) # last\nloss = mse\n");
  const tn_key *key = tn_section_key(tn_ini_section(&ini, "model"), "layers");
  assert_string_equal(key->value, "    conv1: conv2d(8)\n           relu\n\tfc: linear(10)");
  assert_int_equal(key->n_value_lines, 3);
  assert_int_equal(key->value_lines[0], 3);
  assert_int_equal(key->value_lines[1], 4);
  assert_int_equal(key->value_lines[2], 8);
  assert_string_equal(value_of(&ini, "model", "loss"), "mse");
  tn_ini_free(&ini);
}

static void indentation_that_all_lines_share_goes_away(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[a]\nx = first\n      second\n        third\ny =\n   only\n");
  assert_string_equal(value_of(&ini, "a", "x"), "first\nsecond\n  third");
  assert_string_equal(value_of(&ini, "a", "y"), "only");
  tn_ini_free(&ini);
}

static void values_keep_equals_signs_colons_and_brackets(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[a]\nx = a=b:c\ny = [30, 60]\nz =\n    [1,\n     2]\n");
  assert_string_equal(value_of(&ini, "a", "x"), "a=b:c");
  assert_string_equal(value_of(&ini, "a", "y"), "[30, 60]");
  assert_string_equal(value_of(&ini, "a", "z"), "[1,\n 2]");
  tn_ini_free(&ini);
}

static void long_values_and_names_at_the_limit_arrive_whole(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  char text[8192], value[6001], name[50];
  memset(value, 'v', 6000);
  value[6000] = '\0';
  memset(name, 'n', 49);
  name[49] = '\0';
  snprintf(text, sizeof(text), "[%s]\n%s = %s\nmore =\n  %.1000s\n  x\n", name, name, value, value);
  tn_ini ini = parse(&t, text);
  assert_string_equal(value_of(&ini, name, name), value);
  assert_int_equal(strlen(value_of(&ini, name, "more")), 1002);
  tn_ini_free(&ini);
}

static void windows_line_ends_a_byte_order_mark_and_utf8_are_read(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "\xEF\xBB\xBF[a]\r\nx = gr\xC3\xBC\xC3\x9F\x65\r\ny = 1\r\n  2\r\n");
  assert_string_equal(value_of(&ini, "a", "x"), "gr\xC3\xBC\xC3\x9F\x65");
  assert_string_equal(value_of(&ini, "a", "y"), "1\n2");
  tn_ini_free(&ini);
}

static void white_space_in_a_section_name_is_folded(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[  block \t  bottleneck ]\n");
  assert_string_equal(ini.sections[0].name, "block bottleneck");
  tn_ini_free(&ini);
}

static void variables_come_from_the_environment(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  setenv("TENON_TEST_A", "north", 1);
  setenv("TENON_TEST_EMPTY", "", 1);
  tn_ini ini = parse(&t, "[a]\nx = ${TENON_TEST_A}/${TENON_TEST_A}\ny = 5$$ $${X}\nz =${TENON_TEST_EMPTY}\n"
                         "w = # ${NOT_LOOKED_AT}\n");
  assert_string_equal(value_of(&ini, "a", "x"), "north/north");
  assert_string_equal(value_of(&ini, "a", "y"), "5$ ${X}");
  assert_string_equal(value_of(&ini, "a", "z"), "");
  tn_ini_free(&ini);
}

/* ---- files ---- */

typedef struct place {
  test_env t;
  char folder[64];
} place;

static int set_up(void **state) {
  place *p = calloc(1, sizeof(*p));
  test_env_start(&p->t);
  strcpy(p->folder, "/tmp/tenon-ini-XXXXXX");
  *state = p;
  return mkdtemp(p->folder) == NULL;
}

static int tear_down(void **state) {
  static const char *const names[] = {"main.ini", "a.ini", "b.ini", "sub/c.ini"};
  place *p = *state;
  char path[128];
  for (size_t i = 0; i < 4; i++) {
    snprintf(path, sizeof(path), "%s/%s", p->folder, names[i]);
    unlink(path);
  }
  snprintf(path, sizeof(path), "%s/sub", p->folder);
  rmdir(path);
  rmdir(p->folder);
  int64_t live = p->t.live;
  free(p);
  return live != 0;
}

static void put(place *p, const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof(path), "%s/sub", p->folder);
  assert_int_equal(tn_folder_make(p, path), TN_OK);
  snprintf(path, sizeof(path), "%s/%s", p->folder, name);
  assert_int_equal(tn_file_write_atomic(p, path, text, strlen(text)), TN_OK);
}

static tn_status read_main(place *p, tn_ini *ini) {
  char path[128];
  snprintf(path, sizeof(path), "%s/main.ini", p->folder);
  return tn_ini_read(p, path, ini);
}

/* The error without the folder, which differs from run to run. */
static void fails_with(place *p, const char *expected) {
  tn_ini ini;
  char text[1024] = "", *out = text;
  assert_int_not_equal(read_main(p, &ini), TN_OK);
  size_t n = strlen(p->folder);
  for (const char *c = tn_error_text(p); *c != '\0';) {
    if (strncmp(c, p->folder, n) == 0)
      c += n + 1;
    else
      *out++ = *c++;
  }
  assert_string_equal(text, expected);
}

static void the_including_file_overrides_key_by_key(void **state) {
  place *p = *state;
  tn_ini ini;
  put(p, "main.ini", "include = a.ini, sub/c.ini\n[run]\nseed = 2\n");
  put(p, "a.ini", "[run]\nname = a\nseed = 1\nepochs = 5\n[data]\nbatch = 1\n");
  put(p, "sub/c.ini", "include = ../b.ini\n[run]\nepochs = 6\n");
  put(p, "b.ini", "[run]\nepochs = 7\n[data]\nworkers = 2\n");
  assert_int_equal(read_main(p, &ini), TN_OK);
  assert_int_equal(ini.n_sections, 2);
  assert_string_equal(value_of(&ini, "run", "name"), "a");
  assert_string_equal(value_of(&ini, "run", "seed"), "2");
  assert_string_equal(value_of(&ini, "run", "epochs"), "6");
  assert_string_equal(value_of(&ini, "data", "batch"), "1");
  assert_string_equal(value_of(&ini, "data", "workers"), "2");
  const tn_key *key = tn_section_key(tn_ini_section(&ini, "run"), "epochs");
  assert_non_null(strstr(key->file, "/sub/c.ini"));
  assert_int_equal(key->line, 3);
  assert_string_equal(ini.folder, p->folder);
  tn_ini_free(&ini);
}

static void a_file_may_be_included_by_two_others(void **state) {
  place *p = *state;
  tn_ini ini;
  put(p, "main.ini", "include =\n  a.ini\n  sub/c.ini\n");
  put(p, "a.ini", "include = b.ini\n");
  put(p, "sub/c.ini", "include = ../b.ini\n");
  put(p, "b.ini", "[run]\nseed = 7\n");
  assert_int_equal(read_main(p, &ini), TN_OK);
  assert_string_equal(value_of(&ini, "run", "seed"), "7");
  tn_ini_free(&ini);
}

static void includes_in_a_circle_are_refused(void **state) {
  place *p = *state;
  put(p, "main.ini", "include = a.ini\n");
  put(p, "a.ini", "# a\ninclude = main.ini\n");
  fails_with(p, "a.ini:2: include: main.ini is being read already, so the includes form a cycle");
  put(p, "main.ini", "include = sub/../main.ini\n");
  fails_with(p, "main.ini:1: include: sub/../main.ini is being read already, so the includes form a cycle");
}

/* 24 files of one line, each of which includes the next one twice: 2^24 files to read. */
static void includes_without_end_are_refused(void **state) {
  place *p = *state;
  char name[16], text[64];
  put(p, "main.ini", "include = f0.ini\n");
  for (int i = 0; i < 24; i++) {
    snprintf(name, sizeof(name), "f%d.ini", i);
    snprintf(text, sizeof(text), "include = f%d.ini, f%d.ini\n", i + 1, i + 1);
    put(p, name, i < 23 ? text : "[a]\nx = 1\n");
  }
  tn_ini ini;
  char path[128];
  snprintf(path, sizeof(path), "%s/main.ini", p->folder);
  assert_error(
      &p->t, tn_ini_read(p, path, &ini), TN_EINVAL,
      "the configuration has more than 1000 files, counted over all files that it includes, expected "
      "at most 1000; include each file once");
}

static void repeated(char *text, size_t capacity, const char *head, const char *line, int n) {
  size_t at = (size_t)snprintf(text, capacity, "%s", head), length = strlen(line);
  for (int i = 0; i < n; i++, at += length) memcpy(text + at, line, length + 1);
}

static void a_configuration_without_end_is_refused(void **state) {
  place *p = *state;
  static char text[4 << 20];
  tn_ini ini;
  repeated(text, sizeof(text), "[a]\nx =\n", "  y\n", 199998);
  assert_ok(&p->t, tn_ini_parse(p, text, "t.ini", NULL, &ini));
  assert_int_equal(ini.size.lines, 200000);
  tn_ini_free(&ini);
  repeated(text, sizeof(text), "[a]\nx =\n", "  y\n", 199999);
  assert_error(&p->t, tn_ini_parse(p, text, "t.ini", NULL, &ini), TN_EINVAL,
               "t.ini:200001: the configuration has more than 200000 lines");
  size_t n = (size_t)snprintf(text, sizeof(text), "[a]\n");
  for (int i = 0; i < 10000; i++) n += (size_t)snprintf(text + n, sizeof(text) - n, "k%d = 1\n", i);
  assert_error(&p->t, tn_ini_parse(p, text, "t.ini", NULL, &ini), TN_EINVAL,
               "t.ini:10001: the configuration has more than 10000 sections and keys");
}

static void what_is_wrong_with_an_include_has_its_place(void **state) {
  place *p = *state;
  put(p, "main.ini", "\ninclude = a.ini\n");
  fails_with(p, "main.ini:2: include: a.ini: cannot be opened: No such file or directory");
  put(p, "a.ini", "[run\n");
  fails_with(p, "a.ini:1: '[run' has no ']', expected a header such as [run]");
  put(p, "main.ini", "include = a.ini,\n");
  put(p, "a.ini", "");
  fails_with(p, "main.ini:1: include: an empty file name, expected one such as base.ini");
  put(p, "main.ini", "include =\n");
  fails_with(p, "main.ini:1: include: an empty file name, expected one such as base.ini");
  put(p, "main.ini", "include = sub\n");
  fails_with(p, "main.ini:1: include: sub: is not a regular file but a folder");
}

static void a_zero_byte_is_refused_with_its_line(void **state) {
  place *p = *state;
  char path[128];
  put(p, "main.ini", "");
  snprintf(path, sizeof(path), "%s/main.ini", p->folder);
  assert_int_equal(tn_file_write_atomic(p, path, "[a]\nx = 1\0 2\n", 13), TN_OK);
  fails_with(p, "main.ini:2: a zero byte in column 6, expected UTF-8 text");
}

static void a_missing_file_is_an_error(void **state) {
  place *p = *state;
  fails_with(p, "main.ini: cannot be opened: No such file or directory");
}

#define with_place(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sections_and_keys_know_their_lines),
      cmocka_unit_test(an_empty_text_and_an_empty_section_are_fine),
      cmocka_unit_test(comments_begin_at_the_line_or_after_a_blank),
      cmocka_unit_test(indented_lines_continue_a_value_without_their_comments),
      cmocka_unit_test(indentation_that_all_lines_share_goes_away),
      cmocka_unit_test(values_keep_equals_signs_colons_and_brackets),
      cmocka_unit_test(long_values_and_names_at_the_limit_arrive_whole),
      cmocka_unit_test(windows_line_ends_a_byte_order_mark_and_utf8_are_read),
      cmocka_unit_test(white_space_in_a_section_name_is_folded),
      cmocka_unit_test(variables_come_from_the_environment),
      with_place(the_including_file_overrides_key_by_key),
      with_place(a_file_may_be_included_by_two_others),
      with_place(includes_in_a_circle_are_refused),
      with_place(includes_without_end_are_refused),
      with_place(a_configuration_without_end_is_refused),
      with_place(what_is_wrong_with_an_include_has_its_place),
      with_place(a_zero_byte_is_refused_with_its_line),
      with_place(a_missing_file_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
