/* Stopping and resuming: an interrupted run ends with the bits of an uninterrupted one. */
#include "configs.h"
#include "program.h"

#include <signal.h>
#include <stdlib.h>

/* The schedule of digits.ini, which can hold a training in front of a step. */
#define HELD "--plugin " HOLD " --set schedule.type=hold --set schedule.cosine=yes "

/* The uninterrupted run, in whole/digits. */
static const json_t *train_whole(void) {
  file_write("digits.ini", digits_ini);
  return program_json(0, "train digits.ini " HELD "--output whole --set data.workers=0 --set run.threads=1");
}

/* A training of digits.ini that is held behind so many steps. */
static void start_digits(const char *output, const char *more, int steps) {
  program_start("train digits.ini " HELD "--set schedule.at=%d --output %s %s --json", steps, output, more);
  program_await(file_exists("held.0"));
}

/* The next training is held anew. */
static void forget_held(void) {
  assert_int_equal(remove("held.0"), 0);
  remove("go");
}

/* state.json of the last checkpoint. */
static const json_t *saved_state(const char *output) {
  char path[128];
  snprintf(path, sizeof path, "%s/digits/checkpoints/last/state.json", output);
  return file_json(path);
}

/* Trains so many steps, and stops by a signal. */
static void stop_digits(const char *output, const char *more, int number, int steps) {
  start_digits(output, more, steps);
  program_signal(number);
  file_write("go", "");
  program_expect(program_finish(), 75);
  forget_held();
}

/* Interrupted in the first epoch and resumed; returns the result of the second half. */
static const json_t *train_in_two(const char *output, int number, const char *more) {
  stop_digits(output, more, number, 20);
  assert_non_null(strstr(program_out, "\"status\": \"stopped\""));
  assert_non_null(strstr(program_err, "--resume"));
  const json_t *where = saved_state(output);
  double batch = program_number(where, "batch");
  assert_true(batch >= 20 && batch < 150); /* in the middle of the epoch */
  assert_int_equal(program_number(where, "step"), batch);
  return program_json(0, "train digits.ini " HELD "--output %s %s --resume auto", output, more);
}

static void any_workers_and_threads_give_the_same_bits(void **state) {
  (void)state;
  static const int workers[] = {0, 1, 4}, threads[] = {1, 2};
  const json_t *whole = train_whole();
  for (int w = 0; w < 3; w++)
    for (int t = 0; t < 2; t++) {
      char more[128], output[32], folder[64];
      snprintf(more, sizeof more, "--set data.workers=%d --set run.threads=%d", workers[w], threads[t]);
      snprintf(output, sizeof output, "w%dt%d", workers[w], threads[t]);
      const json_t *r = train_in_two(output, (w + t) % 2 ? SIGTERM : SIGINT, more);
      assert_int_equal(program_number(r, "steps"), program_number(whole, "steps"));
      assert_true(program_number(r, "valid.loss") == program_number(whole, "valid.loss"));
      snprintf(folder, sizeof folder, "%s/digits/checkpoints/last", output);
      checkpoint_folders_equal(folder, "whole/digits/checkpoints/last");
      snprintf(folder, sizeof folder, "%s/digits/checkpoints/best", output);
      checkpoint_folders_equal(folder, "whole/digits/checkpoints/best");
    }
}

/* Resumed several times, by the name of the folder. The schedule is constant, since others depend on the
 * number of steps. */
static void a_run_may_be_resumed_many_times(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const char *more = "--set schedule.type=constant";
  assert_int_equal(program_run("train digits.ini --output whole %s", more), 0);
  assert_int_equal(program_run("train digits.ini --output parts %s --set run.max_steps=20", more), 0);
  for (int steps = 21; steps < 300; steps += 93)
    assert_int_equal(
        program_run("train digits.ini --output parts %s --set run.max_steps=%d --resume parts/digits", more,
                    steps),
        0);
  assert_int_equal(program_run("train digits.ini --output parts %s --resume parts/digits", more), 0);
  assert_int_equal(program_number(file_json("parts/digits/checkpoints/last/state.json"), "step"), 300);
  checkpoint_folders_equal("parts/digits/checkpoints/last", "whole/digits/checkpoints/last");
  assert_false(file_exists("parts/digits-2"));
}

/* The validation takes hours until the run is resumed. */
static void validation_can_be_interrupted(void **state) {
  (void)state;
  static const char last[] = "cut/noise/checkpoints/last/state.json";
  file_write("noise.ini", noise_ini);
  const char *more = "--quiet --set data.train.samples=32 --set run.epochs=1",
             *shorter = "--set data.valid.samples=800", *endless = "--set data.valid.samples=1000000000";
  assert_int_equal(program_run("train noise.ini --output whole %s %s", more, shorter), 0);
  program_start("train noise.ini --output cut %s %s --set data.cache=0", more, endless);
  program_await_lines("cut/noise/metrics.jsonl", 4);
  program_signal(SIGTERM);
  program_expect(program_finish(), 75);
  assert_false(file_exists("cut/noise/checkpoints/best"));
  assert_int_equal(program_number(file_json(last), "batch"), 4);
  const json_t *r = program_json(0, "train noise.ini --output cut %s %s --resume auto", more, shorter);
  assert_int_equal(program_number(r, "steps"), 4);
  checkpoint_folders_equal("cut/noise/checkpoints/best", "whole/noise/checkpoints/best");
  assert_true(program_number(file_json(last), "best") ==
              program_number(file_json("whole/noise/checkpoints/last/state.json"), "best"));
}

/* Killed without a signal handler: the checkpoint of save_every is complete. */
static void a_killed_run_resumes_from_its_last_checkpoint(void **state) {
  (void)state;
  train_whole();
  start_digits("killed", "--set run.save_every=7", 40);
  program_await(file_exists("killed/digits/checkpoints/last/state.json"));
  program_kill();
  forget_held();
  double step = program_number(saved_state("killed"), "step");
  assert_true(step >= 7 && (int)step % 7 == 0);
  assert_int_equal(program_run("train digits.ini " HELD "--output killed --resume auto"), 0);
  checkpoint_folders_equal("killed/digits/checkpoints/last", "whole/digits/checkpoints/last");
}

/* The order of histories, not their times, says which is later, so the runs may follow each other at once. */
static void auto_resumes_the_run_that_was_saved_last(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  for (int i = 0; i < 3; i++)
    assert_int_equal(program_run("train noise.ini --set run.max_steps=%d", 3 + i), 0);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=7 --resume runs/noise-2"), 0);
  const json_t *r = program_json(0, "train noise.ini --resume auto");
  assert_string_equal(program_text(r, "run"), "runs/noise-2");
  assert_int_equal(program_number(r, "steps"), 20);
}

static const char *auto_takes(void) {
  return program_text(program_json(0, "train noise.ini --resume auto --set run.max_steps=4"), "run");
}

/* A copy without times, and a backup that is put back: the files of the older run are the newer ones. */
static void auto_does_not_believe_times_of_files(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  for (int i = 0; i < 2; i++) assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  assert_int_equal(system("find runs/noise-2 -exec touch -d 2001-01-01 {} +"), 0);
  assert_string_equal(auto_takes(), "runs/noise-2");
  assert_int_equal(system("find runs/noise -exec touch -d 2201-01-01 {} +"), 0);
  assert_string_equal(auto_takes(), "runs/noise-2");
}

/* The clock goes back to where it was long before the first run began: its records are of a later time. */
static void auto_does_not_believe_a_clock_that_went_back(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  char *history = file_read("runs/noise/history.jsonl", NULL), *order = strstr(history, "\"order\": 1");
  assert_non_null(order);
  order[strlen("\"order\": ")] = '9'; /* the year 2255 or later */
  file_write("runs/noise/history.jsonl", history);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  assert_string_equal(auto_takes(), "runs/noise-2");
  assert_int_equal(program_run("train noise.ini --resume runs/noise --set run.max_steps=4"), 0);
  assert_string_equal(auto_takes(), "runs/noise");
}

/* Histories of earlier versions have times alone. */
static void auto_reads_histories_without_an_order(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  for (int i = 0; i < 2; i++) assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  file_write("runs/noise/history.jsonl", "{\"event\": \"start\", \"time\": \"2026-05-02T09:12:44Z\"}\n");
  file_write("runs/noise-2/history.jsonl", "{\"event\": \"start\", \"time\": \"2026-05-01T09:12:44Z\"}\n");
  assert_string_equal(auto_takes(), "runs/noise");
}

static void auto_without_a_run_starts_one(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --resume auto");
  assert_string_equal(program_text(r, "run"), "runs/noise");
  assert_int_equal(program_number(r, "steps"), 20);
}

static void a_finished_run_has_nothing_left_to_do(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  int lines = file_lines("runs/noise/metrics.jsonl");
  const json_t *r = program_json(0, "train noise.ini --resume auto");
  assert_string_equal(program_text(r, "status"), "finished");
  assert_int_equal(program_number(r, "steps"), 20);
  assert_int_equal(file_lines("runs/noise/metrics.jsonl"), lines);
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  assert_non_null(strstr(program_err, "nothing is left to train: [run] epochs = 2; more goes on"));
  assert_int_equal(
      program_number(program_json(0, "train noise.ini --resume auto --set run.epochs=3"), "steps"), 30);
}

static void another_optimizer_does_not_resume(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("train digits.ini --set run.max_steps=5"), 0);
  assert_int_equal(program_run("train digits.ini --resume auto --set optimizer.type=sgd"), 65);
  assert_non_null(strstr(program_err, "[optimizer] type = sgd, but runs/digits was trained with adamw"));
}

static void another_batch_is_named(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  assert_int_equal(program_run("train noise.ini --resume auto --set data.batch=4 --set run.epochs=3"), 0);
  assert_non_null(strstr(program_err, "[data] batch = 8 -> 4"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(any_workers_and_threads_give_the_same_bits, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_run_may_be_resumed_many_times, program_open, program_close),
      cmocka_unit_test_setup_teardown(validation_can_be_interrupted, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_killed_run_resumes_from_its_last_checkpoint, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(auto_resumes_the_run_that_was_saved_last, program_open, program_close),
      cmocka_unit_test_setup_teardown(auto_does_not_believe_times_of_files, program_open, program_close),
      cmocka_unit_test_setup_teardown(auto_does_not_believe_a_clock_that_went_back, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(auto_reads_histories_without_an_order, program_open, program_close),
      cmocka_unit_test_setup_teardown(auto_without_a_run_starts_one, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_finished_run_has_nothing_left_to_do, program_open, program_close),
      cmocka_unit_test_setup_teardown(another_optimizer_does_not_resume, program_open, program_close),
      cmocka_unit_test_setup_teardown(another_batch_is_named, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
