/* history.jsonl and resolved.ini of a run folder, and how runs end. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs.h"
#include "program.h"

/* Line `i` of a history, from 0; the caller releases it. */
static json_t *line_of(const char *path, int i) {
  const char *text = file_read(path, NULL);
  for (; i > 0; i--) {
    text = strchr(text, '\n');
    if (text == NULL) fail_msg("%s has too few lines", path);
    text++;
  }
  json_error_t error;
  json_t *line = json_loadb(text, strcspn(text, "\n"), 0, &error);
  if (line == NULL) fail_msg("%s: %s", path, error.text);
  return line;
}

static void line_is(const char *path, int i, const char *event, const char *status) {
  json_t *line = line_of(path, i);
  assert_string_equal(program_text(line, "event"), event);
  if (status != NULL) assert_string_equal(program_text(line, "status"), status);
  json_decref(line);
}

static const json_t *listed(const char *name) {
  const json_t *list = program_member(program_json(0, "runs"), "runs");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(program_text(json_array_get(list, i), "name"), name) == 0) return json_array_get(list, i);
  fail_msg("there is no run '%s'", name);
  return NULL;
}

/* The last run called `name` has this status, and the text for its reason contains `why`. */
static void ended(const char *name, const char *status, const char *why) {
  const json_t *run = listed(name);
  assert_string_equal(program_text(run, "status"), status);
  if (strstr(program_text(run, "ended"), why) == NULL)
    fail_msg("%s, not %s", program_text(run, "ended"), why);
}

static const char *word(const json_t *line, const char *list, size_t i) {
  return json_string_value(json_array_get(json_object_get(line, list), i));
}

static void the_history_says_what_ran(void **state) {
  (void)state;
  char folder[4096];
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train --set run.seed=5 noise.ini --set backend.use=cpu --quiet"), 0);
  assert_int_equal(file_lines("runs/noise/history.jsonl"), 2);
  json_t *start = line_of("runs/noise/history.jsonl", 0), *end = line_of("runs/noise/history.jsonl", 1);
  assert_string_equal(program_text(start, "event"), "start");
  assert_string_equal(word(start, "command", 1), "train");
  assert_string_equal(word(start, "command", 2), "--set"); /* as it was written */
  assert_string_equal(word(start, "command", 4), "noise.ini");
  assert_int_equal(json_array_size(program_member(start, "command")), 8);
  assert_string_equal(word(start, "set", 0), "run.seed=5");
  assert_string_equal(program_text(start, "file"), "noise.ini");
  assert_string_equal(program_text(start, "folder"), getcwd(folder, sizeof folder));
  assert_int_equal(program_number(start, "seed"), 5);
  assert_string_equal(program_text(start, "backend"), "cpu");
  assert_true(json_is_null(program_member(start, "resumed")));
  assert_int_equal(strlen(program_text(start, "time")), strlen("2026-05-01T09:12:44Z"));
  assert_true(*program_text(start, "tenon") && *program_text(start, "compiler") &&
              *program_text(start, "host"));
  assert_true(*program_text(start, "system") && *program_text(start, "device"));
  assert_true(program_number(start, "processors") >= 1 && program_number(start, "memory_mib") > 0);
  assert_true(json_array_size(program_member(start, "plugins")) > 3);
  assert_string_equal(program_text(end, "status"), "finished");
  assert_string_equal(program_text(end, "reason"), "all 2 epochs");
  assert_int_equal(program_number(end, "steps"), 20);
  assert_true(program_number(end, "seconds") > 0);
  json_decref(start);
  json_decref(end);
  assert_string_equal(program_text(listed("noise"), "file"), "noise.ini");
  assert_int_equal(program_run("runs"), 0);
  assert_non_null(strstr(program_out, "  noise.ini\n"));
}

static void every_resumption_is_recorded(void **state) {
  (void)state;
  const char *history = "runs/noise/history.jsonl";
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet"), 0);
  assert_int_equal(
      program_run("train noise.ini --quiet --resume auto --set run.epochs=3 --set data.workers=0"), 0);
  assert_int_equal(file_lines(history), 4);
  json_t *start = line_of(history, 2);
  assert_int_equal(program_number(start, "resumed.step"), 20);
  assert_int_equal(program_number(start, "resumed.epoch"), 2);
  assert_non_null(strstr(word(start, "remarks", 0), "epochs = 2 -> 3"));
  json_decref(start);
  line_is(history, 3, "end", "finished");
  assert_int_equal(program_number(listed("noise"), "trainings"), 2);
  /* both configurations, with all their keys */
  assert_non_null(strstr(file_read("runs/noise/resolved-1.ini", NULL), "workers = 2"));
  assert_non_null(strstr(file_read("runs/noise/resolved.ini", NULL), "workers = 0"));
  assert_null(strstr(file_read("runs/noise/config-1.ini", NULL), "workers"));
  /* a run that cannot be resumed leaves no line */
  assert_int_equal(program_run("train noise.ini --quiet --resume auto --set optimizer.type=adamw"), 65);
  assert_int_equal(file_lines(history), 4);
}

/* A process that is killed leaves a start, and perhaps half a line. */
static void a_killed_run_is_interrupted(void **state) {
  (void)state;
  const char *history = "runs/noise/history.jsonl";
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " ENDLESS);
  program_await_lines("runs/noise/metrics.jsonl", 25);
  assert_int_equal(file_lines(history), 1);
  program_kill();
  assert_string_equal(program_text(listed("noise"), "status"), "interrupted");
  FILE *file = fopen(history, "a");
  fputs("{\"event\": \"end\", \"sta", file);
  fclose(file);
  assert_string_equal(program_text(listed("noise"), "status"), "interrupted");
  assert_int_equal(program_run("train noise.ini --quiet --resume auto --set run.epochs=1"), 0);
  assert_int_equal(file_lines(history), 3);
  line_is(history, 0, "start", NULL);
  line_is(history, 1, "start", NULL);
  line_is(history, 2, "end", "finished");
  assert_string_equal(program_text(listed("noise"), "status"), "finished");
}

static void each_end_has_its_status_and_reason(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --set run.name=a --set run.max_steps=5");
  assert_string_equal(program_text(r, "reason"), "[run] max_steps = 5");
  ended("a", "finished", "[run] max_steps = 5");
  assert_int_equal(
      program_run("train noise.ini --set run.name=b --set run.epochs=100000000000 --set run.max_time=300ms"),
      0);
  assert_non_null(strstr(program_out, "([run] max_time = 300ms)"));
  ended("b", "max_time", "[run] max_time = 300ms");
  assert_int_equal(
      program_run("train noise.ini --quiet --set run.name=c --set run.epochs=50 --set run.patience=2 --set "
                  "optimizer.lr=0 --set run.best=loss"),
      0);
  ended("c", "patience", "[run] patience = 2");
  assert_int_equal(program_run("train noise.ini --quiet --set run.name=d --set optimizer.lr=1e30"), 76);
  ended("d", "non-finite", "the loss is ");
  program_start("train noise.ini " ENDLESS " --set run.name=e");
  program_await_lines("runs/e/metrics.jsonl", 12);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  ended("e", "stopped", "a signal");
}

/* A failure of training: its text is the reason. */
static void a_failed_run_says_why(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " ENDLESS " --set run.save_every=1");
  program_await_lines("runs/noise/metrics.jsonl", 3);
  program_await(file_exists("runs/noise/checkpoints"));
  program_pause(); /* the next checkpoint would make the folder anew */
  assert_int_equal(rename("runs/noise/checkpoints", "runs/noise/away"), 0);
  file_write("runs/noise/checkpoints", "in the way");
  program_signal(SIGCONT);
  assert_int_not_equal(program_finish(), 0);
  assert_int_equal(remove("runs/noise/checkpoints"), 0);
  assert_int_equal(rename("runs/noise/away", "runs/noise/checkpoints"), 0);
  ended("noise", "failed", "runs/noise/checkpoints");
}

/* Weights matter more than a record of them. */
static void a_history_that_cannot_be_written_is_a_warning(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  mkdir("runs", 0777);
  mkdir("runs/noise", 0777);
  mkdir("runs/noise/history.jsonl", 0777);
  file_write("runs/noise/config.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  assert_non_null(strstr(program_err, "the record of the run is incomplete: runs/noise/history.jsonl: "));
}

/* resolved.ini has every key, and trains the same. */
static void the_resolved_configuration_trains_the_same(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const char *rest = "--quiet --set backend.use=cpu --set run.epochs=1 --set data.epoch=320";
  assert_int_equal(program_run("train digits.ini %s --output a", rest), 0);
  assert_int_equal(program_run("train a/digits/resolved.ini %s --output b", rest), 0);
  files_equal("a/digits/checkpoints/last/model.safetensors", "b/digits/checkpoints/last/model.safetensors");
  const char *text = file_read("a/digits/resolved.ini", NULL);
  static const char *const lines[] = {
      "\nmax_steps = 0\n", "\nprefetch = 2\n", "\nbeta2 = ",     "\n[precision]\npolicy = fp32\n",
      "\n[distributed]\n", "\n[weights]\n",    "\nfreeze = no\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (strstr(text, lines[i]) == NULL) fail_msg("%s lacks %s", text, lines[i]);
  assert_int_equal(program_run("config show digits.ini --all"), 0);
  assert_non_null(strstr(program_out, "\nbeta2 = "));
  assert_int_equal(program_run("config show digits.ini"), 0);
  assert_null(strstr(program_out, "beta2"));
  /* two sources: the options of each stand in its own section */
  file_write("two.ini", "[run]\nname = two\n[data]\nbatch = 8\n"
                        "[data.train]\nsource = random\nshape = 1, 28, 28\nclasses = 10\nsamples = 80\n"
                        "[data.valid]\nsource = digits\nepoch = 16\ntransforms = to_float\n"
                        "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n    flatten\n    fc: linear(10)\n"
                        "loss = cross_entropy\n");
  assert_int_equal(program_run("train two.ini --quiet --output c"), 0);
  assert_int_equal(program_run("config check c/two/resolved.ini"), 0);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(the_history_says_what_ran),
      CASE(every_resumption_is_recorded),
      CASE(a_killed_run_is_interrupted),
      CASE(each_end_has_its_status_and_reason),
      CASE(a_failed_run_says_why),
      CASE(a_history_that_cannot_be_written_is_a_warning),
      CASE(the_resolved_configuration_trains_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
