/* `tenon runs`: the table of run folders. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "configs.h"

#include <sys/stat.h>
#include "npy_files.h"
#include "program.h"

static const json_t *run_called(const json_t *r, const char *name) {
  const json_t *list = program_member(r, "runs");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(program_text(json_array_get(list, i), "name"), name) == 0) return json_array_get(list, i);
  fail_msg("there is no run '%s'", name);
  return NULL;
}

static void prints(const char *text) {
  if (strstr(program_out, text) == NULL) fail_msg("expected '%s', it printed: %s", text, program_out);
}

static void a_finished_run_has_its_epochs_metrics_and_backend(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet --set backend.use=cpu"), 0);
  const json_t *r = program_json(0, "runs"), *run = run_called(r, "noise");
  assert_string_equal(program_text(run, "status"), "finished");
  assert_int_equal(program_number(run, "epochs"), 2);
  assert_int_equal(program_number(run, "planned_epochs"), 2);
  assert_int_equal(program_number(run, "steps"), 20);
  assert_string_equal(program_text(run, "backend"), "cpu");
  assert_string_equal(program_text(run, "precision"), "fp32");
  assert_string_equal(program_text(run, "best_metric"), "accuracy");
  assert_string_equal(program_text(run, "config"), "runs/noise/config.ini");
  assert_int_equal(program_number(run, "parameters"), 16 * 36 + 16 + 4 * 16 + 4);
  assert_true(program_number(run, "loss") > 0 && program_number(run, "best") >= 0);
  assert_true(program_number(run, "started") > 1.5e9);
  assert_int_equal(program_run("runs"), 0);
  prints("finished          2/2        20 accuracy ");
}

static void runs_are_running_interrupted_or_finished(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet"), 0);
  program_start("train noise.ini " ENDLESS " --set run.name=long");
  program_await_lines("runs/long/metrics.jsonl", 12);
  pid_t training = program_swap(0);
  const json_t *r = program_json(0, "runs");
  assert_string_equal(program_text(run_called(r, "long"), "status"), "running");
  assert_non_null(strstr(program_text(run_called(r, "long"), "holder"), "process "));
  assert_string_equal(program_text(run_called(r, "noise"), "status"), "finished");
  program_swap(training);
  program_kill(); /* its name stays in .lock */
  r = program_json(0, "runs runs");
  assert_string_equal(program_text(run_called(r, "long"), "status"), "interrupted");
  assert_true(program_number(run_called(r, "long"), "steps") >= 11);
}

/* Times of runs have whole seconds. */
static void in_the_next_second(void) {
  time_t now = time(NULL);
  program_await(time(NULL) > now);
}

static void the_newest_run_comes_first(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet --set run.name=b"), 0);
  in_the_next_second();
  assert_int_equal(program_run("train noise.ini --quiet --set run.name=a"), 0);
  const json_t *list = program_member(program_json(0, "runs"), "runs");
  assert_string_equal(program_text(json_array_get(list, 0), "name"), "a");
  assert_string_equal(program_text(json_array_get(list, 1), "name"), "b");
}

/* A path is a sequence of bytes. */
static void paths_that_are_not_utf_8_are_shown(void **state) {
  (void)state;
  assert_int_equal(mkdir("na\xEFve", 0755), 0);
  file_write("na\xEFve/noise.ini", noise_ini);
  const json_t *r = program_json(0, "train na\xEFve/noise.ini --output na\xEFve/runs");
  assert_string_equal(program_text(r, "run"), "na\xEF\xBF\xBDve/runs/noise");
  r = program_json(0, "runs na\xEFve/runs");
  assert_int_equal(json_array_size(program_member(r, "runs")), 1);
  r = program_json(0, "checkpoint ls na\xEFve/runs/noise");
  assert_string_equal(program_text(r, "run"), "na\xEF\xBF\xBDve/runs/noise");
  program_json(0, "checkpoint verify na\xEFve/runs/noise");
  program_json(0, "checkpoint show na\xEFve/runs/noise");
  program_json(0, "eval na\xEFve/runs/noise");
  r = program_json(0, "report na\xEFve/runs/noise --output na\xEFve/r.html");
  assert_string_equal(program_text(r, "report"), "na?ve/r.html");
  r = program_json(0, "checkpoint diff na\xEFve/runs/noise na\xEFve/runs/noise/checkpoints/last");
  assert_string_equal(program_text(r, "b"), "na\xEF\xBF\xBDve/runs/noise/checkpoints/last");
  mkdir("arrays", 0755);
  const float one = 1;
  write_npy("arrays/w\xE9.npy", 1, "1", &one, 1);
  r = program_json(0, "checkpoint show arrays");
  assert_string_equal(program_text(json_array_get(program_member(r, "tensors"), 0), "path"), "w\xEF\xBF\xBD");
}

/* A damaged run hides no other. */
static void damaged_runs_are_listed_with_the_reason(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("runs ."), 0);
  prints("no runs in .");
  assert_int_equal(program_run("train noise.ini --quiet"), 0);
  assert_int_equal(program_run("train noise.ini --quiet"), 0);
  file_write("runs/noise/config.ini", "[run\n");
  file_write("runs/noise-2/plan.json", "{");
  file_write("runs/noise-2/metrics.jsonl", "not a line");
  const json_t *r = program_json(0, "runs");
  assert_string_equal(program_text(run_called(r, "noise"), "status"), "unknown");
  assert_non_null(strstr(program_text(run_called(r, "noise"), "reason"), "config.ini:1"));
  assert_string_equal(program_text(run_called(r, "noise-2"), "status"), "finished");
  assert_true(json_is_null(program_member(run_called(r, "noise-2"), "loss")));
  assert_int_equal(program_run("runs"), 0);
  assert_int_equal(program_run("runs nowhere"), 74);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_finished_run_has_its_epochs_metrics_and_backend),
      IN_FOLDER(runs_are_running_interrupted_or_finished), IN_FOLDER(the_newest_run_comes_first),
      IN_FOLDER(damaged_runs_are_listed_with_the_reason), IN_FOLDER(paths_that_are_not_utf_8_are_shown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
