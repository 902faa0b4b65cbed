/* `tenon sweep`: grids, drawn and halved configurations, seeds and folds, failures, interrupts. */
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs.h"
#include "program.h"

/* Runs take part of a second, so that a test has room for a dozen. */
#define SWEEP  "sweep noise.ini --quiet --set run.epochs=1 --set data.workers=0 --set backend.use=cpu "
#define TWELVE "--set optimizer.lr=0.01,0.02,0.05,0.1 --set optimizer.momentum=0,0.5,0.9"

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it printed: %s", text, program_err);
}

static const json_t *row(const json_t *r, size_t i) {
  return json_array_get(program_member(r, "ranking"), i);
}

static const char *value(const json_t *r, size_t i, size_t option) {
  return json_string_value(json_array_get(program_member(row(r, i), "values"), option));
}

static void a_grid_of_twelve_runs_has_a_table_and_a_page(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, SWEEP TWELVE);
  assert_int_equal(json_array_size(program_member(r, "runs")), 12);
  assert_int_equal(json_array_size(program_member(r, "ranking")), 12);
  assert_string_equal(program_text(r, "metric"), "accuracy");
  for (size_t i = 0; i + 1 < 12; i++)
    assert_true(program_number(row(r, i), "mean") >= program_number(row(r, i + 1), "mean"));
  assert_int_equal(file_lines("runs/noise-sweep/results.csv"), 13);
  assert_non_null(
      strstr(file_read("runs/noise-sweep/results.csv", NULL),
             "configuration,optimizer.lr,optimizer.momentum,accuracy,accuracy.std,runs,epochs,seconds\n"));
  const char *page = file_read("runs/noise-sweep/report.html", NULL);
  assert_non_null(strstr(page, "\"sweep\":{"));
  assert_non_null(strstr(page, "\"name\":\"12\""));
  assert_int_equal(program_run("runs runs/noise-sweep"), 0);
  assert_non_null(strstr(program_out, "optimizer.lr  optimizer.momentum      accuracy"));
  assert_int_equal(program_run("runs"), 0);
  assert_non_null(strstr(program_out, "runs/noise-sweep is a sweep"));
}

/* The section of the configuration gives the same runs; they are the same with any number of jobs. */
static void the_section_sweep_gives_the_same_runs(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, SWEEP "--set optimizer.lr=0.01,0.1 --set sweep.jobs=1");
  char text[4096];
  snprintf(text, sizeof text, "%s[sweep]\noptimizer.lr = 0.01, 0.1\n", noise_ini);
  file_write("noise.ini", text);
  const json_t *s = program_json(0, SWEEP "--set sweep.jobs=2");
  assert_string_equal(program_text(s, "folder"), "runs/noise-sweep-2");
  for (size_t i = 0; i < 2; i++) {
    assert_string_equal(value(r, i, 0), value(s, i, 0));
    assert_true(program_number(row(r, i), "mean") == program_number(row(s, i), "mean"));
  }
  assert_int_equal(program_run("train noise.ini --quiet"), 0); /* other commands leave the section alone */
}

static void seeds_and_folds_give_a_mean_and_a_deviation(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, SWEEP "--set run.seed=1,2 --set sweep.folds=2 --set data.batch=4");
  assert_int_equal(json_array_size(program_member(r, "runs")), 4);
  assert_int_equal(json_array_size(program_member(r, "ranking")), 1);
  double sum = 0, squares = 0;
  const json_t *runs = program_member(r, "runs");
  for (size_t i = 0; i < 4; i++) {
    const json_t *run = json_array_get(runs, i);
    double best = program_number(run, "best");
    sum += best / 4;
    squares += best * best / 4;
  }
  assert_true(fabs(program_number(row(r, 0), "mean") - sum) < 1e-9);
  assert_true(fabs(program_number(row(r, 0), "std") - sqrt(fmax(0, squares - sum * sum) * 4 / 3)) < 1e-6);
  assert_non_null(strstr(file_read("runs/noise-sweep/1-4/config.ini", NULL), "fold = 2/2"));
  /* 80 samples: 40 for validation, and 40 for training, in batches of 4 */
  assert_int_equal(file_lines("runs/noise-sweep/1-4/metrics.jsonl"), 10 + 1);
}

static void halving_trains_the_best_ones_for_longer(void **state) {
  (void)state;
  char text[4096];
  snprintf(text, sizeof text,
           "%s[sweep]\nmethod = halving\nfactor = 2\nruns = 4\noptimizer.lr = log 1e-3..1e-1\n", noise_ini);
  file_write("noise.ini", text);
  const json_t *r = program_json(0, "sweep noise.ini --quiet --set data.workers=0 --set backend.use=cpu");
  int after[3] = {0};
  for (size_t i = 0; i < 4; i++) after[(int)program_number(row(r, i), "epochs")]++;
  assert_int_equal(after[1], 2);
  assert_int_equal(after[2], 2);
  assert_int_equal(json_array_size(program_member(r, "rungs")), 2);
}

/* The loss of one is not finite: the others go on. */
static void a_failing_run_does_not_end_the_sweep(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, SWEEP "--set optimizer.lr=1e30,0.05 --set sweep.jobs=1");
  says("1 of 2 runs failed");
  assert_string_equal(value(r, 0, 0), "0.05");
  assert_true(json_is_null(program_member(row(r, 1), "mean")));
  program_expect(program_run(SWEEP "--set optimizer.lr=1e30,1e31"), 76);
}

static void an_interrupted_sweep_goes_on(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
#define ENDLESS_SECOND                                                                                       \
  "sweep noise.ini --quiet --set data.workers=0 --set backend.use=cpu --set sweep.jobs=1 "                   \
  "--set run.epochs=1,100000000 "
  program_start(ENDLESS_SECOND);
  program_await_lines("runs/noise-sweep/2/metrics.jsonl", 3);
  program_signal(SIGINT);
  assert_int_equal(program_finish(), 75);
  says("stopped; go on with --resume runs/noise-sweep");
  const json_t *r = program_json(0, "runs runs/noise-sweep");
  const json_t *runs = program_member(r, "sweep.runs");
  assert_string_equal(program_text(json_array_get(runs, 0), "status"), "finished");
  assert_string_equal(program_text(json_array_get(runs, 1), "status"), "stopped");
  assert_int_equal(file_lines("runs/noise-sweep/1/history.jsonl"), 2);
  program_start(ENDLESS_SECOND "--resume auto");
  program_await_lines("runs/noise-sweep/2/history.jsonl", 3);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  assert_int_equal(file_lines("runs/noise-sweep/1/history.jsonl"), 2); /* it is not repeated */
  assert_int_equal(file_lines("runs/noise-sweep/2/history.jsonl"), 4);
  program_expect(program_run(ENDLESS_SECOND "--set optimizer.lr=1,2 --resume auto"), 65);
  says("runs/noise-sweep/sweep.json: has other runs than this command describes");
  program_expect(program_run(ENDLESS_SECOND "--resume nowhere"), 65);
  says("nowhere: no sweep to resume");
}

static void wrong_sweeps_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *options, *text;
  } wrong[] = {
      {"--set optimizer.lr=0.1", "noise.ini: no key has several values"},
      {"--set optimizer.lr=0.1..0.01",
       "--set optimizer.lr: optimizer.lr = 0.1..0.01: expected a range LOW..HIGH"},
      {"--set optimizer.lr=0.1,0.2..0.3", "a range stands alone"},
      {"--set optimizer.lr=1e-3..1e-2 --set sweep.method=grid", "method = grid takes lists"},
      {"--set optimizer.lr=fast,0.1", "--set optimizer.lr: [optimizer] lr: 'fast'"},
      {"--set optimizer.lrr=1,2", "did you mean 'lr'"},
      {"--set optimzer.lr=1,2", "there is no section [optimzer], did you mean [optimizer]?"},
      {"--set run.name=a,b", "a sweep sets run.name itself"},
      {"--set data.fold=1/2,2/2", "[sweep] folds = N runs all folds"},
      {"--set run.seed=0..5", "every configuration runs with each seed, expected a list"},
      {"--set optimizer.lr=1,2 --set sweep.folds=1", "[sweep] folds = 1, expected 0, or 2 or more"},
      {"--set optimizer.lr=1,2 --set sweep.method=halving", "nothing is left to halve"},
      {"--set optimizer.lr=1,2 --set run.output=", "[run] output is empty"},
      {"--set optimizer.lr=1,2 --set sweep.method=best",
       "'best' is not one of auto|grid|random|halving|asha"},
  };
  file_write("noise.ini", noise_ini);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char line[512];
    snprintf(line, sizeof line, SWEEP "%s", wrong[i].options);
    program_expect(program_run("%s", line), 65);
    says(wrong[i].text);
  }
  assert_false(file_exists("runs/noise-sweep/1"));
  program_expect(program_run("sweep"), 2);
  mkdir("runs", 0755);
  mkdir("runs/damaged", 0755);
  static const char *const damaged[] = {
      "{", "{}",
      "{\"method\": \"grid\", \"metric\": \"loss\", \"smaller_is_better\": true, \"rungs\": [1], "
      "\"options\": [], "
      "\"configurations\": [], \"runs\": [{\"name\": \"../noise\", \"configuration\": 0, \"set\": []}]}"};
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    file_write("runs/damaged/sweep.json", damaged[i]);
    program_expect(program_run("runs runs/damaged"), 65);
    says("runs/damaged/sweep.json: is damaged");
  }
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {IN_FOLDER(a_grid_of_twelve_runs_has_a_table_and_a_page),
                                     IN_FOLDER(the_section_sweep_gives_the_same_runs),
                                     IN_FOLDER(seeds_and_folds_give_a_mean_and_a_deviation),
                                     IN_FOLDER(halving_trains_the_best_ones_for_longer),
                                     IN_FOLDER(a_failing_run_does_not_end_the_sweep),
                                     IN_FOLDER(an_interrupted_sweep_goes_on),
                                     IN_FOLDER(wrong_sweeps_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
