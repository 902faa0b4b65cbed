/* Everything that allocates, with each allocation refused in turn: TN_ENOMEM, no leak, no crash. */
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
#include "core/config/sections/sections.h"
#include "core/config/language/syntax.h"
#include "tests/support/test_env.h"

static const char text[] =
    "[run]\nname = ${TENON_TEST_A}\n[model]\nlayers =\n  a: conv(1, [2, 3], x=f(y=2)) * 2, @b.c <- in\n"
    "  c: relu if dim(in, 1) * 2 == 4 and not no\n[group.a]\nmatch = *.bias\n";

static tn_status read_edit_and_print(test_env *t, void *context) {
  tn_ini ini;
  tn_text printed = tn_text_new(t);
  TN_TRY(tn_ini_parse(t, context, "t.ini", "/tmp", &ini));
  tn_status status = tn_ini_set(t, &ini, "run.seed=3");
  if (status == TN_OK) status = tn_ini_set(t, &ini, "new section.list=1\n2\n3");
  if (status == TN_OK) status = tn_ini_print(t, &ini, &printed);
  tn_text_free(&printed);
  tn_ini_free(&ini);
  return status;
}

static void reading_an_ini(void **state) {
  (void)state;
  setenv("TENON_TEST_A", "north", 1);
  assert_true(test_env_starve(read_edit_and_print, (void *)(uintptr_t)text) > 10);
}

static tn_status read_files(test_env *t, void *context) {
  tn_ini ini;
  TN_TRY(tn_ini_read(t, context, &ini));
  tn_ini_free(&ini);
  return TN_OK;
}

static void reading_files(void **state) {
  char folder[] = "/tmp/tenon-starve-XXXXXX", a[64], b[64];
  test_env t;
  (void)state;
  test_env_start(&t);
  assert_non_null(mkdtemp(folder));
  snprintf(a, sizeof(a), "%s/a.ini", folder);
  snprintf(b, sizeof(b), "%s/b.ini", folder);
  assert_int_equal(tn_file_write_atomic(&t, a, "include = b.ini\n[x]\n", 20), TN_OK);
  assert_int_equal(tn_file_write_atomic(&t, b, "[x]\ny = 1\n", 10), TN_OK);
  assert_true(test_env_starve(read_files, a) > 5);
  unlink(a);
  unlink(b);
  rmdir(folder);
}

static bool one(void *context, const char *ref, int64_t axis, int64_t *size) {
  (void)context;
  (void)ref;
  (void)axis;
  *size = 2;
  return true;
}

static tn_status parse_and_evaluate(test_env *t, tn_arena *arena, tn_ini *ini) {
  static const tn_scope scope = {.dim = one};
  tn_line *lines;
  int32_t n;
  bool holds;
  TN_TRY(tn_syntax_lines(t, arena, &tn_ini_section(ini, "model")->keys[0], NULL, &lines, &n));
  for (int32_t i = 0; i < lines[0].items[0].n_args; i++) {
    tn_value value;
    TN_TRY(tn_expr_evaluate(t, arena, lines[0].items[0].args[i].value, &scope, &value));
    if (tn_value_text(arena, &value) == NULL) return TN_ENOMEM;
  }
  return tn_expr_holds(t, arena, lines[1].condition, &scope, &holds);
}

static tn_status read_model(test_env *t, void *context) {
  tn_ini ini;
  TN_TRY(tn_ini_parse(t, context, "t.ini", "/tmp", &ini));
  tn_arena arena = tn_arena_new(t);
  tn_status status = parse_and_evaluate(t, &arena, &ini);
  tn_arena_free(&arena);
  tn_ini_free(&ini);
  return status;
}

static void parsing_and_evaluating_a_model(void **state) {
  (void)state;
  assert_true(test_env_starve(read_model, (void *)(uintptr_t)text) > 5);
}

typedef struct sample {
  const char *name, *match, *path;
  tn_ints sizes;
  double rate;
} sample;

static const tn_option rows[] = {TN_OPT(sample, name, TN_OPT_TEXT, "x", NULL, ""),
                                 TN_OPT(sample, match, TN_OPT_TEXT, "y", NULL, ""),
                                 TN_OPT(sample, path, TN_OPT_PATH, "data", NULL, ""),
                                 TN_OPT(sample, sizes, TN_OPT_INTS, "[1, 2]", NULL, ""),
                                 TN_OPT(sample, rate, TN_OPT_FLOAT, "0.5", NULL, ""),
                                 TN_OPT_END};
static const tn_item item = TN_ITEM(tn_item, TN_LAYER, "sample", "", sample, rows);

static tn_status fill(test_env *t, tn_ini *ini) {
  tn_options options, *into[] = {&options};
  tn_text printed = tn_text_new(t);
  TN_TRY(tn_options_start(t, &ini->arena, &item, &options));
  TN_TRY(tn_section_fill(t, ini, tn_ini_section(ini, "run"), into, 1));
  TN_TRY(tn_section_fill(t, ini, tn_ini_section(ini, "group.a"), into, 1));
  TN_TRY(tn_options_set_int(t, &options, "sizes", 7));
  TN_TRY(tn_section_finish(t, ini, NULL, "run", &options));
  tn_options_print(&printed, &item, options.data);
  char *taken = tn_text_take(&printed);
  if (taken == NULL) return TN_ENOMEM;
  tn_release(t, taken);
  return TN_OK;
}

static tn_status read_options(test_env *t, void *context) {
  tn_ini ini;
  TN_TRY(tn_ini_parse(t, context, "t.ini", "/tmp", &ini));
  tn_status status = fill(t, &ini);
  tn_ini_free(&ini);
  return status;
}

static void filling_options(void **state) {
  (void)state;
  assert_true(test_env_starve(read_options, (void *)(uintptr_t)text) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reading_an_ini),
      cmocka_unit_test(reading_files),
      cmocka_unit_test(parsing_and_evaluating_a_model),
      cmocka_unit_test(filling_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
