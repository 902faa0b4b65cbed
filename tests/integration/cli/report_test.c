/* `tenon report`: the page and the numbers in it. */
#include <stdlib.h>
#include <sys/stat.h>

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
      CASE(the_page_stands_alone),
      CASE(a_folder_that_is_no_run_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
