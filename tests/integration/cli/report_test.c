/* `tenon report`: the page and the numbers in it. */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs.h"
#include "program.h"

/* The numbers between the tags of the page; belongs to the caller. */
static json_t *numbers_of(const char *path) {
  static const char begin[] = "<script type=\"application/json\" id=\"data\">";
  char *page = file_read(path, NULL), *from = strstr(page, begin);
  assert_non_null(from);
  char *to = strstr(from += sizeof begin - 1, "</script>");
  assert_non_null(to);
  json_error_t error;
  json_t *json = json_loadb(from, (size_t)(to - from), 0, &error);
  if (json == NULL) fail_msg("%s: %s", path, error.text);
  return json;
}

static const json_t *run_of(const json_t *numbers, size_t i) {
  return json_array_get(json_object_get(numbers, "runs"), i);
}

static const char *config_of(const json_t *run, const char *key) {
  const json_t *list = json_object_get(run, "config");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(json_string_value(json_array_get(json_array_get(list, i), 0)), key) == 0)
      return json_string_value(json_array_get(json_array_get(list, i), 1));
  return NULL;
}

static void a_page_has_the_runs_side_by_side(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini");
  double loss = program_number(r, "valid.loss");
  assert_int_equal(program_run("train noise.ini --set optimizer.lr=0.25 --set run.name=other"), 0);
  assert_int_equal(program_run("report runs/noise runs/other/ --output both.html"), 0);
  assert_string_equal(program_out, "both.html\n");
  json_t *numbers = numbers_of("both.html");
  assert_int_equal(json_array_size(json_object_get(numbers, "runs")), 2);
  assert_string_equal(program_text(run_of(numbers, 1), "name"), "other");
  assert_string_equal(program_text(run_of(numbers, 0), "facts.status"), "finished");
  assert_string_equal(config_of(run_of(numbers, 1), "optimizer.lr"), "0.25");
  const json_t *epochs = program_member(run_of(numbers, 0), "epochs");
  assert_int_equal(json_array_size(epochs), 2);
  assert_true(program_number(json_array_get(epochs, 1), "valid.loss") - loss < 1e-6);
  assert_int_equal(json_array_size(program_member(run_of(numbers, 0), "steps.train.loss")), 20);
  assert_true(program_number(run_of(numbers, 0), "memory.executor_bytes") ==
              program_number(r, "planned_peak_bytes"));
  json_decref(numbers);
}

/* Many steps are means of neighbours. */
static void long_runs_have_as_many_points_as_a_screen(void **state) {
  (void)state;
  mkdir("runs", 0777);
  mkdir("runs/long", 0777);
  file_write("runs/long/config.ini", "[run]\nname = long\n");
  FILE *file = fopen("runs/long/metrics.jsonl", "w");
  for (int i = 1; i <= 10000; i++)
    fprintf(file,
            "{\"event\": \"step\", \"epoch\": 1, \"step\": %d, \"lr\": 0.5, \"train\": {\"loss\": %s}}\n", i,
            i % 1000 == 7 ? "null"
            : i <= 5000   ? "3"
                          : "1");
  fprintf(file, "{\"event\": \"step\", \"ep");
  fclose(file);
  assert_int_equal(program_run("report runs/long"), 0);
  json_t *numbers = numbers_of("runs/long/report.html");
  const json_t *losses = program_member(run_of(numbers, 0), "steps.train.loss");
  size_t n = json_array_size(losses);
  assert_true(n > 500 && n <= 1024);
  assert_true(json_real_value(json_array_get(losses, 0)) == 3);
  assert_true(json_real_value(json_array_get(losses, n - 1)) == 1);
  assert_true(json_real_value(json_array_get(program_member(run_of(numbers, 0), "steps.step"), 0)) == 8.5);
  json_decref(numbers);
}

static int page_is_live(const char *path) {
  return strstr(file_read(path, NULL), "http-equiv=\"refresh\"") != NULL;
}

static const char *status_on(const char *path) {
  static char text[32];
  json_t *numbers = numbers_of(path);
  snprintf(text, sizeof text, "%s", program_text(run_of(numbers, 0), "facts.status"));
  json_decref(numbers);
  return text;
}

static size_t epochs_on(const char *path) {
  json_t *numbers = numbers_of(path);
  size_t n = json_array_size(program_member(run_of(numbers, 0), "epochs"));
  json_decref(numbers);
  return n;
}

/* [run] report: the page is there while the run goes on, follows it, and loads itself again until the run
 * ends. */
static void a_run_keeps_its_page_current(void **state) {
  (void)state;
  const char *page = "runs/noise/report.html";
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " ENDLESS " --set run.report=yes");
  program_await_lines("runs/noise/metrics.jsonl", 12);
  program_await(file_exists(page));
  size_t before = epochs_on(page);
  assert_true(page_is_live(page));
  assert_string_equal(status_on(page), "running");
  program_await(epochs_on(page) > before);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  assert_false(page_is_live(page));
  assert_string_equal(status_on(page), "stopped");
  json_t *numbers = numbers_of(page);
  const json_t *last = json_array_get(program_member(run_of(numbers, 0), "trainings"), 0);
  assert_string_equal(program_text(last, "end.status"), "stopped");
  assert_int_equal(program_number(last, "end.steps"), program_number(run_of(numbers, 0), "facts.steps"));
  json_decref(numbers);
}

/* The page of the command loads itself again as long as one of its runs goes on. */
static void a_page_of_a_run_under_way_is_loaded_again(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " ENDLESS);
  program_await_lines("runs/noise/metrics.jsonl", 12);
  assert_false(file_exists("runs/noise/report.html")); /* run.report is no */
  pid_t training = program_swap(0);
  assert_int_equal(program_run("report runs/noise"), 0);
  assert_true(page_is_live("runs/noise/report.html"));
  program_swap(training);
  program_kill();
  assert_int_equal(program_run("report runs/noise"), 0);
  assert_false(page_is_live("runs/noise/report.html"));
  assert_string_equal(status_on("runs/noise/report.html"), "interrupted");
}

/* A page that cannot be written does not end a training. */
static void a_page_in_the_way_is_a_warning(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  mkdir("runs", 0777);
  mkdir("runs/noise", 0777);
  file_write("runs/noise/config.ini", noise_ini);
  mkdir("runs/noise/report.html", 0777);
  assert_int_equal(program_run("train noise.ini --resume auto --set run.report=yes"), 0);
  assert_non_null(strstr(program_err, "the report is not written: runs/noise/report.html: "));
  assert_int_equal(program_run("train noise.ini --set run.report=perhaps"), 65);
  assert_non_null(strstr(program_err, "report"));
}

/* Values that a run has by default stand beside those that another run gives. */
static void the_page_has_the_defaults_and_what_ran(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet --set run.max_steps=3"), 0);
  assert_int_equal(program_run("report runs/noise"), 0);
  json_t *numbers = numbers_of("runs/noise/report.html");
  const json_t *run = run_of(numbers, 0), *defaults = program_member(run, "defaults"), *pair;
  size_t i, found = 0;
  assert_string_equal(config_of(run, "run.max_steps"), "3");
  json_array_foreach((json_t *)defaults, i, pair) {
    const char *key = json_string_value(json_array_get(pair, 0));
    assert_string_not_equal(key, "run.max_steps");
    found += strcmp(key, "optimizer.weight_decay") == 0 || strcmp(key, "schedule.type") == 0;
  }
  assert_int_equal(found, 2);
  assert_string_equal(program_text(run, "facts.ended"), "[run] max_steps = 3");
  const json_t *training = json_array_get(program_member(run, "trainings"), 0);
  assert_string_equal(json_string_value(json_array_get(json_object_get(training, "command"), 2)),
                      "noise.ini");
  json_decref(numbers);
}

/* A value that could end the script element, and a page that needs nothing else. */
static void the_page_stands_alone(void **state) {
  (void)state;
  mkdir("runs", 0777);
  mkdir("runs/a", 0777);
  file_write("runs/a/config.ini", "[run]\nname = </script><b>\n");
  assert_int_equal(program_run("report runs/a"), 0);
  const char *page = file_read("runs/a/report.html", NULL);
  assert_null(strstr(page, "</script><b>"));
  assert_null(strstr(page, "src=\"http"));
  assert_null(strstr(page, "href="));
  assert_null(strstr(page, "@DATA@"));
  assert_null(strstr(page, "@REFRESH@"));
  json_t *numbers = numbers_of("runs/a/report.html");
  assert_string_equal(config_of(run_of(numbers, 0), "run.name"), "</script><b>");
  json_decref(numbers);
}

static void a_folder_that_is_no_run_is_refused(void **state) {
  (void)state;
  mkdir("empty", 0777);
  assert_int_equal(program_run("report empty"), 74);
  assert_non_null(strstr(program_err, "empty/config.ini"));
  assert_false(file_exists("empty/report.html"));
  assert_int_equal(program_run("report"), 2);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(a_page_has_the_runs_side_by_side),
      CASE(long_runs_have_as_many_points_as_a_screen),
      CASE(a_run_keeps_its_page_current),
      CASE(a_page_of_a_run_under_way_is_loaded_again),
      CASE(a_page_in_the_way_is_a_warning),
      CASE(the_page_has_the_defaults_and_what_ran),
      CASE(the_page_stands_alone),
      CASE(a_folder_that_is_no_run_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
