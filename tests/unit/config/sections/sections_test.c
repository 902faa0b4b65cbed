/* Options filled from sections, and errors for unknown sections and keys. */
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
#include "tests/support/test_env.h"

typedef struct run_section {
  int64_t seed;
  const char *name, *weights;
} run_section;
typedef struct sgd {
  double lr, momentum;
} sgd;

static const tn_option run_rows[] = {TN_OPT(run_section, seed, TN_OPT_INT, "0", ">= 0", ""),
                                     TN_OPT(run_section, name, TN_OPT_TEXT, NULL, NULL, "of the run"),
                                     TN_OPT(run_section, weights, TN_OPT_PATH, "", NULL, ""), TN_OPT_END};
static const tn_option sgd_rows[] = {TN_OPT(sgd, lr, TN_OPT_FLOAT, "0.1", ">= 0", ""),
                                     TN_OPT(sgd, momentum, TN_OPT_FLOAT, "0", "[0, 1)", ""), TN_OPT_END};
static const tn_item run_table = TN_ITEM(tn_item, 0, "run", "", run_section, run_rows);
static const tn_item sgd_item = TN_ITEM(tn_item, TN_OPTIMIZER, "sgd", "", sgd, sgd_rows);
static const tn_item *const run_tables[] = {&run_table, NULL};
static const tn_item *const run_and_sgd[] = {&run_table, &sgd_item, NULL};
static const tn_section_pattern known[] = {
    {"run", run_tables}, {"optimizer", run_and_sgd}, {"data.*", run_tables}, {"block *", NULL}};

typedef struct fixture {
  test_env t;
  tn_ini ini;
  tn_options run, sgd;
} fixture;

static void start(fixture *f, const char *text) {
  test_env_start(&f->t);
  if (tn_ini_parse(&f->t, text, "t.ini", "/conf", &f->ini) != TN_OK) fail_msg("%s", tn_error_text(&f->t));
  assert_int_equal(tn_options_start(&f->t, &f->ini.arena, &run_table, &f->run), TN_OK);
  assert_int_equal(tn_options_start(&f->t, &f->ini.arena, &sgd_item, &f->sgd), TN_OK);
}

static void end(fixture *f) {
  tn_ini_free(&f->ini);
  assert_int_equal(f->t.live, 0);
}

static tn_status fill(fixture *f, const char *section) {
  tn_options *into[] = {&f->run, &f->sgd};
  tn_status status = tn_section_fill(&f->t, &f->ini, tn_ini_section(&f->ini, section), into, 2);
  return status == TN_OK ? tn_ini_tell(&f->t, &f->ini) : status;
}

static void keys_go_to_the_table_that_knows_them(void **state) {
  fixture f;
  (void)state;
  start(&f, "[optimizer]\nlr = 0.5\nseed = 3\nname = x\n");
  assert_int_equal(fill(&f, "optimizer"), TN_OK);
  assert_int_equal(fill(&f, "absent"), TN_OK);
  assert_true(((sgd *)f.sgd.data)->lr == 0.5);
  assert_int_equal(((run_section *)f.run.data)->seed, 3);
  assert_int_equal(tn_section_finish(&f.t, &f.ini, tn_ini_section(&f.ini, "optimizer"), "optimizer", &f.run),
                   TN_OK);
  assert_int_equal(tn_sections_check(&f.t, &f.ini, known, 4), TN_OK);
  end(&f);
}

static void the_special_section_comes_before_the_general_one(void **state) {
  fixture f;
  (void)state;
  start(&f, "[data]\nseed = 1\nname = general\n[data.train]\nname = special\n");
  assert_int_equal(fill(&f, "data.train"), TN_OK);
  assert_int_equal(fill(&f, "data"), TN_OK);
  assert_string_equal(((run_section *)f.run.data)->name, "special");
  assert_int_equal(((run_section *)f.run.data)->seed, 1);
  end(&f);
}

static void errors_name_file_line_section_and_key(void **state) {
  static const char *const cases[][2] = {
      {"[run]\n\nseed = -3\n", "t.ini:3: [run] seed: -3 is out of range, expected >= 0"},
      {"[run]\nseed = x # no\n", "t.ini:2: [run] seed: 'x' is not a whole number"},
      {"[run]\nsead = 1\n", "t.ini:2: [run] sead: unknown key, did you mean 'seed'?"},
      {"[run]\ncolour = 1\n",
       "t.ini:2: [run] colour: unknown key, expected one of 'seed', 'name', 'weights', 'lr', 'momentum'"},
      {"[run]\nname = x\n  seed = 3\n", "t.ini:2: [run] name: 'seed = 3' in line 3 is indented and so "
                                        "continues this key; keys begin in column 1"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    fixture f;
    start(&f, cases[i][0]);
    assert_int_equal(fill(&f, "run"), TN_EINVAL);
    assert_string_equal(tn_error_text(&f.t), cases[i][1]);
    end(&f);
  }
}

static void an_override_is_named_as_such(void **state) {
  fixture f;
  (void)state;
  start(&f, "[run]\nseed = 1\n");
  assert_int_equal(tn_ini_set(&f.t, &f.ini, "run.seed=x"), TN_OK);
  assert_int_equal(fill(&f, "run"), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "--set run.seed: [run] seed: 'x' is not a whole number");
  end(&f);
}

static void a_missing_key_is_named_with_its_section(void **state) {
  fixture f;
  (void)state;
  start(&f, "\n[run]\n");
  assert_int_equal(tn_section_finish(&f.t, &f.ini, tn_ini_section(&f.ini, "run"), "run", &f.run), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t),
                      "t.ini:2: [run] name: run needs this option, expected a text (of the run)");
  assert_int_equal(tn_section_finish(&f.t, &f.ini, NULL, "run", &f.run), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t), "[run] name: run needs this option, expected a text (of the run)");
  end(&f);
}

static void paths_are_relative_to_the_file_that_names_them(void **state) {
  char folder[] = "/tmp/tenon-schema-XXXXXX", main_path[64], sub[64], base_path[64], expected[64];
  fixture f;
  (void)state;
  test_env_start(&f.t);
  assert_non_null(mkdtemp(folder));
  snprintf(main_path, sizeof(main_path), "%s/main.ini", folder);
  snprintf(sub, sizeof(sub), "%s/sub", folder);
  snprintf(base_path, sizeof(base_path), "%s/sub/base.ini", folder);
  assert_int_equal(tn_folder_make(&f.t, sub), TN_OK);
  assert_int_equal(tn_file_write_atomic(&f.t, main_path, "include = sub/base.ini\n", 23), TN_OK);
  assert_int_equal(tn_file_write_atomic(&f.t, base_path, "[run]\nweights = w.bin\n", 22), TN_OK);
  assert_int_equal(tn_ini_read(&f.t, main_path, &f.ini), TN_OK);
  assert_int_equal(tn_options_start(&f.t, &f.ini.arena, &run_table, &f.run), TN_OK);
  assert_int_equal(tn_options_start(&f.t, &f.ini.arena, &sgd_item, &f.sgd), TN_OK);
  assert_int_equal(fill(&f, "run"), TN_OK);
  snprintf(expected, sizeof(expected), "%s/sub/w.bin", folder);
  assert_string_equal(((run_section *)f.run.data)->weights, expected);
  /* The resolved configuration has the same meaning in another folder. */
  assert_string_equal(tn_ini_section(&f.ini, "run")->keys[0].value, expected);
  unlink(main_path);
  unlink(base_path);
  rmdir(sub);
  rmdir(folder);
  end(&f);
}

static void paths_in_a_text_are_relative_to_its_folder(void **state) {
  fixture f;
  (void)state;
  start(&f, "[run]\nweights = w.bin\n");
  assert_int_equal(fill(&f, "run"), TN_OK);
  assert_string_equal(((run_section *)f.run.data)->weights, "/conf/w.bin");
  end(&f);
}

static void strangers_are_found_in_the_end(void **state) {
  static const char *const cases[][2] = {
      {"[optimzer]\nlr = 1\n", "t.ini:1: unknown section [optimzer], did you mean [optimizer]?"},
      {"[colours]\n", "t.ini:1: unknown section [colours], expected one of [run], [optimizer]"},
      {"[data.test]\n", "t.ini:1: nothing in this configuration uses the section [data.test]; remove it"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    fixture f;
    start(&f, cases[i][0]);
    assert_int_equal(tn_sections_check(&f.t, &f.ini, known, 4), TN_EINVAL);
    assert_string_equal(tn_error_text(&f.t), cases[i][1]);
    end(&f);
  }
}

static void keys_that_nobody_read_are_found_in_the_end(void **state) {
  fixture f;
  (void)state;
  start(&f, "[optimizer]\nlr = 1\nmomentun = 2\n[block a]\nanything = 1\n");
  f.ini.sections[0].used = f.ini.sections[1].used = true;
  f.ini.sections[0].keys[0].used = true;
  assert_int_equal(tn_sections_check(&f.t, &f.ini, known, 4), TN_EINVAL);
  assert_string_equal(tn_error_text(&f.t),
                      "t.ini:3: [optimizer] momentun: unknown key, did you mean 'momentum'?");
  f.ini.sections[0].keys[1].used = true;
  f.ini.mistakes.n = 0;
  assert_int_equal(tn_sections_check(&f.t, &f.ini, known, 4), TN_OK);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_go_to_the_table_that_knows_them),
      cmocka_unit_test(the_special_section_comes_before_the_general_one),
      cmocka_unit_test(errors_name_file_line_section_and_key),
      cmocka_unit_test(an_override_is_named_as_such),
      cmocka_unit_test(a_missing_key_is_named_with_its_section),
      cmocka_unit_test(paths_are_relative_to_the_file_that_names_them),
      cmocka_unit_test(paths_in_a_text_are_relative_to_its_folder),
      cmocka_unit_test(strangers_are_found_in_the_end),
      cmocka_unit_test(keys_that_nobody_read_are_found_in_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
