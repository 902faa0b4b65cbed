/* Commands, options and failures as a user types and reads them. */
#include "configs.h"
#include "program.h"

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

static void a_mistyped_command_gets_a_suggestion(void **state) {
  (void)state;
  assert_int_equal(program_run("trian noise.ini"), 2);
  says("there is no command 'trian', did you mean `tenon train`?");
  assert_int_equal(program_run("noise.ini"), 2);
  says("write `tenon train noise.ini`");
  assert_int_equal(program_run("something"), 2);
  says("`tenon --help` lists them");
}

static void a_mistyped_option_gets_a_suggestion(void **state) {
  (void)state;
  assert_int_equal(program_run("train --weigths x.ini"), 2);
  says("did you mean --weights, not '--weigths'; see `tenon train --help`");
  assert_int_equal(program_run("train --zzz x.ini"), 2);
  says("unknown option or missing value: '--zzz'");
}

static void short_options(void **state) {
  (void)state;
  assert_int_equal(program_run("-V"), 0);
  assert_true(strncmp(program_out, "tenon ", 6) == 0);
  assert_int_equal(program_run("-h"), 0);
  assert_non_null(strstr(program_out, "usage: tenon COMMAND"));
  assert_int_equal(program_run("train -h"), 0);
  assert_non_null(strstr(program_out, "-q, --quiet"));
  assert_non_null(strstr(program_out, "usage: tenon train"));
}

static void inspect_takes_a_kind_in_front_of_the_name(void **state) {
  (void)state;
  assert_int_equal(program_run("inspect source text"), 0);
  assert_non_null(strstr(program_out, "a text file as windows"));
  const json_t *items = program_member(program_json(0, "inspect layer dropout"), "items");
  assert_int_equal(json_array_size(items), 1);
  assert_int_equal(json_array_size(program_member(program_json(0, "inspect dropout"), "items")),
                   2); /* and the op */
  assert_int_equal(program_run("inspect layer text"), 65);
  assert_non_null(strstr(program_err, "no layer is called \"text\", but a source"));
  assert_int_equal(program_run("inspect layer text text"), 2);
}

static void explain_points_to_the_options_of_items(void **state) {
  (void)state;
  assert_int_equal(program_run("config explain data"), 0);
  assert_non_null(
      strstr(program_out, "More options: `tenon inspect NAME` with the name in [data] source or transforms"));
  assert_int_equal(program_run("config explain data.batch"), 0);
  assert_null(strstr(program_out, "More options"));
}

static void explain_knows_the_sections_of_splits_and_groups(void **state) {
  (void)state;
  assert_int_equal(program_run("config explain data.valid.epoch"), 0);
  assert_non_null(strstr(program_out, "samples in an epoch"));
  assert_int_equal(program_run("config explain data.train"), 0);
  assert_int_equal(program_run("config explain group.slow.match"), 0);
  assert_int_equal(program_run("config explain epochs"), 65);
  says("did you mean run.epochs?");
}

/* A script reads the failure from stdout; the exit code is the same. */
static void failures_are_json_where_results_are(void **state) {
  (void)state;
  static const char *const commands[] = {"train",        "eval",  "plan",
                                         "config check", "bench", "predict --input x.npy --output y.npy"};
  file_write("wrong.ini", "[run]\nepochz = 3\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    char line[128];
    snprintf(line, sizeof line, "%s wrong.ini", commands[i]);
    const json_t *r = program_json(65, "%s", line), *errors = program_member(r, "errors");
    assert_string_equal(program_text(r, "status"), "failed");
    assert_string_equal(program_text(r, "reason"), "invalid");
    assert_int_equal(program_number(r, "exit"), 65);
    assert_true(json_array_size(errors) >= 1);
    assert_non_null(strstr(json_string_value(json_array_get(errors, 0)), "epochz"));
    says("epochz");
  }
  const json_t *r = program_json(74, "train nowhere.ini");
  assert_int_equal(program_number(r, "exit"), 74);
  program_json(65, "inspect nothing_of_this_name");
}

/* A wrong command line as well, wherever --json stands; a command without --json says so. */
static void wrong_command_lines_are_json(void **state) {
  (void)state;
  static const char *const lines[] = {"train --weigths x.ini",
                                      "train",
                                      "config look x.ini",
                                      "predict x.ini",
                                      "bench x --mode fast",
                                      "plan a b",
                                      "init",
                                      "runs a b",
                                      "checkpoint look x",
                                      "trian x.ini",
                                      "new-plugin op A",
                                      "eval x --batch 3"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const json_t *r = program_json(2, "%s", lines[i]);
    assert_string_equal(program_text(r, "reason"), "usage");
    assert_int_equal(program_number(r, "exit"), 2);
    const char *text = json_string_value(json_array_get(program_member(r, "errors"), 0));
    assert_non_null(strstr(program_err, text));
    assert_null(strstr(text, "  "));
  }
  assert_int_equal(program_run("index --json x"), 2);
  says("unknown option");
  assert_string_equal(program_out, "");
}

static void help_about_a_command(void **state) {
  (void)state;
  assert_int_equal(program_run("help train"), 0);
  assert_non_null(strstr(program_out, "usage: tenon train"));
  assert_int_equal(program_run("help trian"), 2);
  says("did you mean `tenon train`?");
  assert_int_equal(program_run("--help"), 0);
  assert_non_null(strstr(program_out, " 75  stopped by a signal, and saved"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {IN_FOLDER(a_mistyped_command_gets_a_suggestion),
                                     IN_FOLDER(a_mistyped_option_gets_a_suggestion),
                                     IN_FOLDER(short_options),
                                     IN_FOLDER(explain_knows_the_sections_of_splits_and_groups),
                                     IN_FOLDER(inspect_takes_a_kind_in_front_of_the_name),
                                     IN_FOLDER(explain_points_to_the_options_of_items),
                                     IN_FOLDER(failures_are_json_where_results_are),
                                     IN_FOLDER(wrong_command_lines_are_json),
                                     IN_FOLDER(help_about_a_command)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
