/* The run folder: its files, and their use by other commands. */
#include "configs.h"
#include "program.h"

static void the_folder_has_config_plan_metrics_and_checkpoints(void **state) {
  (void)state;
  static const char *const files[] = {"config.ini",
                                      "plan.json",
                                      "metrics.jsonl",
                                      "metrics.csv",
                                      "checkpoints/last/model.safetensors",
                                      "checkpoints/last/optimizer.safetensors",
                                      "checkpoints/last/state.json",
                                      "checkpoints/best/model.safetensors",
                                      "checkpoints/best/optimizer.safetensors",
                                      "checkpoints/best/state.json"};
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char path[128];
    snprintf(path, sizeof path, "runs/noise/%s", files[i]);
    if (!file_exists(path)) fail_msg("%s is not there", path);
  }
  const json_t *last = file_json("runs/noise/checkpoints/last/state.json");
  assert_int_equal(program_number(last, "step"), 20);
  assert_int_equal(program_number(last, "epoch"), 2);
  assert_int_equal(program_number(last, "batch"), 0);
  assert_string_equal(program_text(last, "plan"), program_text(file_json("runs/noise/plan.json"), "hash"));
}

/* Twenty steps and two epochs. */
static void metrics_are_a_line_a_step_and_an_epoch(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini");
  char *text = file_read("runs/noise/metrics.jsonl", NULL), *rest = text;
  int steps = 0, epochs = 0;
  for (char *line; (line = strsep(&rest, "\n"));) {
    if (!*line) continue;
    json_t *one = json_loads(line, 0, NULL);
    assert_non_null(one);
    int is_step = strcmp(program_text(one, "event"), "step") == 0;
    steps += is_step;
    epochs += !is_step;
    if (is_step) assert_int_equal(program_number(one, "step"), steps);
    assert_true(program_number(one, "train.loss") > 0);
    if (epochs == 2) assert_true(program_number(one, "valid.loss") == program_number(r, "valid.loss"));
    json_decref(one);
  }
  assert_int_equal(steps, 20);
  assert_int_equal(epochs, 2);
  /* three numbers a step, six an epoch, and the heading */
  assert_int_equal(file_lines("runs/noise/metrics.csv"), 20 * 3 + 2 * 6 + 1);
}

static void the_kept_configuration_repeats_the_run(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("train digits.ini --set run.max_steps=20 --set optimizer.lr=0.01"), 0);
  assert_int_equal(program_run("train runs/digits/config.ini"), 0);
  checkpoint_folders_equal("runs/digits/checkpoints/last", "runs/digits-2/checkpoints/last");
  files_equal("runs/digits/config.ini", "runs/digits-2/config.ini");
}

/* Paths in a configuration are relative to it. The copy in the run folder refers to the same files. */
static void the_kept_configuration_finds_its_files(void **state) {
  (void)state;
  char text[3001];
  for (int i = 0; i < 3000; i++) text[i] = "abcdefgh\n"[i * 7 % 9];
  text[3000] = '\0';
  file_write("letters.txt", text);
  file_write("base.ini", "[data]\nsource = text\nfile = letters.txt\ntokens = 8\nbatch = 4\n");
  file_write("text.ini", "include = base.ini\n[run]\nname = ${TEXT_NAME}\nmax_steps = 5\n[model]\n"
                         "inputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n    e: embedding(9, 4)\n"
                         "    f: linear(9)\nloss = cross_entropy\n");
  setenv("TEXT_NAME", "letters", 1);
  assert_int_equal(program_run("train text.ini"), 0);
  unsetenv("TEXT_NAME");
  assert_int_equal(
      program_run("train runs/letters/config.ini --weights runs/letters/checkpoints/last/model.safetensors"),
      0);
  assert_int_equal(program_run("train runs/letters-2/config.ini"), 0); /* the path of the weights, too */
  files_equal("runs/letters-2/checkpoints/last/model.safetensors",
              "runs/letters-3/checkpoints/last/model.safetensors");
}

static void a_second_run_gets_a_folder_of_its_own(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_string_equal(program_text(program_json(0, "train noise.ini"), "run"), "runs/noise");
  assert_string_equal(program_text(program_json(0, "train noise.ini"), "run"), "runs/noise-2");
  assert_string_equal(program_text(program_json(0, "train noise.ini --output elsewhere"), "run"),
                      "elsewhere/noise");
  assert_string_equal(program_text(program_json(0, "train noise.ini"), "run"), "runs/noise-3");
}

static void a_fast_run_writes_nothing(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --set run.fast_dev_run=yes");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(program_number(r, "valid.loss") > 0);
  assert_string_equal(program_text(r, "run"), "");
  assert_false(file_exists("runs"));
  r = program_json(0, "train noise.ini --set run.output=");
  assert_int_equal(program_number(r, "steps"), 20);
  assert_false(file_exists("runs"));
}

static void a_run_ends_at_max_steps_or_max_time(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --set run.max_steps=13");
  assert_string_equal(program_text(r, "status"), "finished");
  assert_int_equal(program_number(r, "steps"), 13);
  const json_t *last = file_json("runs/noise/checkpoints/last/state.json");
  assert_int_equal(program_number(last, "epoch"), 1);
  assert_int_equal(program_number(last, "batch"), 3);
  r = program_json(0, "train noise.ini --set run.epochs=100000000000 --set run.max_time=0.3");
  assert_string_equal(program_text(r, "status"), "max_time");
  assert_true(program_number(r, "seconds") >= 0.3);
  assert_int_equal(program_number(program_json(0, "train noise.ini --set run.epochs=0"), "steps"), 0);
}

static void observers_can_be_disabled(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.observers=-progress,-csv"), 0);
  assert_string_equal(program_err, "");
  assert_false(file_exists("runs/noise/metrics.csv"));
  assert_true(file_exists("runs/noise/metrics.jsonl"));
  assert_int_equal(program_run("train noise.ini --set observer.jsonl.every=5"), 0);
  assert_int_equal(file_lines("runs/noise-2/metrics.jsonl"), 20 / 5 + 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_folder_has_config_plan_metrics_and_checkpoints, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(metrics_are_a_line_a_step_and_an_epoch, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_kept_configuration_repeats_the_run, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_kept_configuration_finds_its_files, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_second_run_gets_a_folder_of_its_own, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_fast_run_writes_nothing, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_run_ends_at_max_steps_or_max_time, program_open, program_close),
      cmocka_unit_test_setup_teardown(observers_can_be_disabled, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
