/* plan.json: a resumed run repeats its recorded choices, or names those that it cannot repeat. */
#include "configs.h"
#include "program.h"

#include <stdlib.h>

static const char plan_path[] = "out/noise/plan.json";

static void train_half(const char *more) {
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output out --set run.max_steps=10 %s", more), 0);
}

static void resume(const char *more) {
  assert_int_equal(program_run("train noise.ini --output out --resume out/noise %s", more), 0);
  assert_false(file_exists("out/noise-2"));
}

static void equals_whole_run(void) {
  assert_int_equal(program_run("train noise.ini --output whole"), 0);
  checkpoint_folders_equal("out/noise/checkpoints/last", "whole/noise/checkpoints/last");
}

/* Whether a launch in plan.json uses the kernel of a plugin. */
static int uses_plugin(const char *plugin) {
  const json_t *programs = program_member(file_json(plan_path), "programs"), *program, *launch;
  size_t i, k;
  json_array_foreach(programs, i, program) {
    json_array_foreach(json_object_get(program, "launches"), k, launch) {
      if (strcmp(program_text(launch, "plugin"), plugin) == 0) return 1;
    }
  }
  return 0;
}

static void the_plan_holds_every_choice(void **state) {
  (void)state;
  train_half("");
  const json_t *plan = file_json(plan_path), *programs = program_member(plan, "programs"), *step = NULL, *one;
  size_t i;
  assert_true(json_array_size(program_member(plan, "kernels")) > 10);
  json_array_foreach(programs, i, one) {
    if (strcmp(program_text(one, "name"), "step") == 0) step = one;
  }
  assert_non_null(step);
  assert_string_equal(program_text(step, "hash"), program_text(plan, "hash"));
  assert_true(program_number(step, "arena_bytes") > 0);
  json_array_foreach(program_member(step, "launches"), i, one) {
    assert_true(strlen(program_text(one, "kernel")) > 0 && strlen(program_text(one, "plugin")) > 0);
    assert_true(strlen(program_text(one, "version")) > 0);
    assert_true(json_array_size(program_member(one, "writes")) > 0);
  }
}

static void the_same_installation_has_the_same_plan(void **state) {
  (void)state;
  size_t n, m;
  train_half("");
  const char *before = file_read(plan_path, &n);
  resume("--set run.threads=1");
  assert_null(strstr(program_err, "last bits"));
  const char *after = file_read(plan_path, &m);
  assert_true(n == m && memcmp(before, after, n) == 0);
  equals_whole_run();
}

/* A new run would choose the new kernel: larger patterns come first. */
static void a_kernel_that_was_installed_since_changes_nothing(void **state) {
  (void)state;
  if (STATIC_PLUGINS) skip();
  train_half("");
  assert_int_equal(program_run("plan noise.ini --plugin " FUSED_LINEAR), 0);
  assert_non_null(strstr(program_out, "fused_linear"));
  resume("--plugin " FUSED_LINEAR);
  assert_null(strstr(program_err, "last bits"));
  assert_false(uses_plugin("fused_linear"));
  equals_whole_run();
}

static void a_kernel_that_is_gone_is_named(void **state) {
  (void)state;
  if (STATIC_PLUGINS) skip();
  train_half("--set backend.use=cpu --plugin " FUSED_LINEAR);
  assert_true(uses_plugin("fused_linear"));
  resume("--set backend.use=cpu");
  assert_non_null(strstr(program_err, "plugin fused_linear 1.0 -> not installed"));
  assert_null(strstr(program_err, "last bits"));
  assert_false(uses_plugin("fused_linear")); /* the next run compares with the last one */
}

static void another_batch_changes_the_plan(void **state) {
  (void)state;
  train_half("");
  resume("--set data.batch=16 --verbose");
  assert_non_null(strstr(program_err, "[data] batch = 8 -> 16"));
  assert_non_null(strstr(program_err, "program step has another plan than before"));
  assert_non_null(strstr(program_err, "input image: f32[8, 1, 6, 6] is image: f32[16, 1, 6, 6] now"));
}

/* The run continues with a warning; with the same kernels its bits are the same. */
static void a_plan_that_cannot_be_read_is_a_warning(const char *text) {
  train_half("");
  if (text)
    file_write(plan_path, text);
  else
    remove(plan_path);
  resume("");
  assert_non_null(strstr(program_err, "out/noise/plan.json"));
  assert_non_null(strstr(program_err, "may differ in their last bits"));
  assert_true(json_array_size(program_member(file_json(plan_path), "programs")) > 0);
  equals_whole_run();
}

static void a_damaged_plan_is_a_warning(void **state) {
  (void)state;
  a_plan_that_cannot_be_read_is_a_warning("{\"hash\": \"12");
}

static void a_foreign_plan_is_a_warning(void **state) {
  (void)state;
  a_plan_that_cannot_be_read_is_a_warning("{\"programs\": 1, \"kernels\": [[]]}");
}

static void a_missing_plan_is_a_warning(void **state) {
  (void)state;
  a_plan_that_cannot_be_read_is_a_warning(NULL);
}

/* Well-formed, but of another model: no choice can be repeated. */
static void a_plan_of_something_else_is_a_warning(void **state) {
  (void)state;
  train_half("");
  file_write(plan_path,
             "{\"programs\": [{\"name\": \"step\", \"hash\": \"0\", \"launches\": [{\"op\": 3}, 4]}], "
             "\"kernels\": [{\"kernel\": \"none\", \"plugin\": \"none\"}]}");
  resume("--verbose");
  assert_non_null(strstr(program_err, "backend unknown -> "));
  assert_non_null(strstr(program_err, "program step has another plan than before"));
  equals_whole_run();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_plan_holds_every_choice, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_same_installation_has_the_same_plan, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_kernel_that_was_installed_since_changes_nothing, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_kernel_that_is_gone_is_named, program_open, program_close),
      cmocka_unit_test_setup_teardown(another_batch_changes_the_plan, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_damaged_plan_is_a_warning, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_foreign_plan_is_a_warning, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_missing_plan_is_a_warning, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_plan_of_something_else_is_a_warning, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
