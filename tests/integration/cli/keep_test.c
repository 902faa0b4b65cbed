/* Checkpoints that are kept, ends by a file or a target, validation of some epochs; means of checkpoints. */
#include <signal.h>
#include <stdbool.h>

#include "configs.h"
#include "program.h"

#define TRAIN "train noise.ini --quiet --set data.workers=0 --set backend.use=cpu "

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it printed: %s", text, program_err);
}

static bool kept(int step) {
  char path[128];
  snprintf(path, sizeof path, "runs/noise/checkpoints/step-%09d/state.json", step);
  return file_exists(path) != 0;
}

static void the_newest_and_regular_checkpoints_stay(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run(TRAIN "--set run.epochs=5 --set run.keep_last=2 --set run.keep_every=2epochs"),
                   0);
  static const bool stays[] = {false, true, false, true,
                               true}; /* 2 and 4 by keep_every, 4 and 5 by keep_last */
  for (int epoch = 1; epoch <= 5; epoch++) assert_int_equal(kept(10 * epoch), stays[epoch - 1]);
  checkpoint_folders_equal("runs/noise/checkpoints/last", "runs/noise/checkpoints/step-000000050");
  assert_int_equal(program_run("checkpoint verify runs/noise"), 0);
  /* a resumed run goes on with those that are there */
  assert_int_equal(program_run(TRAIN "--set run.epochs=6 --set run.keep_last=1 --resume runs/noise"), 0);
  for (int epoch = 1; epoch <= 6; epoch++) assert_int_equal(kept(10 * epoch), epoch == 6);
}

static void the_best_and_those_of_steps_stay(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run(TRAIN "--set run.epochs=4 --set run.keep_best=1 --set run.save_every=5 "
                                     "--set run.best=loss --set run.keep_every=20steps"),
                   0);
  const json_t *best = file_json("runs/noise/checkpoints/best/state.json");
  int steps = (int)program_number(best, "step");
  for (int step = 5; step <= 40; step += 5)
    assert_int_equal(kept(step), step == steps || step == 20 || step == 40);
}

static void a_target_ends_the_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  char text[4096];
  snprintf(text, sizeof text, "[run]\ntarget = loss 100\n%s", noise_ini + strlen("[run]\n"));
  file_write("noise.ini", text);
  const json_t *r = program_json(0, TRAIN);
  assert_string_equal(program_text(r, "status"), "target");
  assert_string_equal(program_text(r, "reason"), "[run] target = loss 100");
  assert_int_equal(program_number(r, "epochs"), 1);
  snprintf(text, sizeof text, "[run]\ntarget = accuracy 1.1\n%s", noise_ini + strlen("[run]\n"));
  file_write("noise.ini", text);
  assert_string_equal(program_text(program_json(0, TRAIN), "status"), "finished");
}

static void a_file_ends_the_run_as_a_signal_does(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " ENDLESS);
  program_await_lines("runs/noise/metrics.jsonl", 12);
  file_write("runs/noise/stop", "");
  assert_int_equal(program_finish(), 75);
  says("go on with --resume runs/noise");
  assert_false(file_exists("runs/noise/stop"));
  assert_non_null(strstr(file_read("runs/noise/history.jsonl", NULL), "the file stop in the run folder"));
  assert_true(file_exists("runs/noise/checkpoints/last/state.json"));
}

static void some_epochs_are_validated(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run(TRAIN "--set run.epochs=5 --set run.valid_every=2"), 0);
  const char *lines = file_read("runs/noise/metrics.jsonl", NULL);
  int validated = 0, epoch = 0;
  for (const char *at = strstr(lines, "\"epoch\", \"epoch\""); at;
       at = strstr(at + 1, "\"epoch\", \"epoch\"")) {
    bool valid = memmem(at, strcspn(at, "\n"), "\"valid\"", 7) != NULL;
    validated += valid;
    epoch++;
    assert_int_equal(valid, epoch % 2 == 0 || epoch == 5);
  }
  assert_int_equal(epoch, 5);
  assert_int_equal(validated, 3);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(the_newest_and_regular_checkpoints_stay), IN_FOLDER(the_best_and_those_of_steps_stay),
      IN_FOLDER(a_target_ends_the_run), IN_FOLDER(a_file_ends_the_run_as_a_signal_does),
      IN_FOLDER(some_epochs_are_validated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
