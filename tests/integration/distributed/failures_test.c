/* Messages and files of a run on several devices that fails: the rank that the others waited for, and the
 * entries of the flight recorders. */
#include "nets.h"
#include "side_by_side.h"

#include <stdbool.h>
#include <stdlib.h>

static void expect_text(const char *says) {
  if (strstr(program_err, says) == NULL) fail_msg("expected '%s': %s", says, program_err);
}

#define ON_SIM                                                                                               \
  "train model.ini --output o --set backend.use=sim --set backend.sim.devices=%d --set "                     \
  "distributed.devices=%d "

/* A run that fails by the end of its timeout. */
static void fail_run(int devices, const char *more) {
  int code = program_run(ON_SIM "--set distributed.timeout=" NETS_SHORT " %s", devices, devices, more);
  program_expect(code, 77);
}

/* ---- files ---- */

typedef struct dump {
  int lines;
  json_t *line[8192];
} dump;

static dump read_dump(const char *folder, int rank) {
  char path[256];
  dump d = {0};
  snprintf(path, sizeof path, "%s/rank%d.jsonl", folder, rank);
  if (!file_exists(path)) fail_msg("there is no %s: %s", path, program_err);
  char *text = file_read(path, NULL);
  for (char *one = strtok(text, "\n"); one != NULL; one = strtok(NULL, "\n")) {
    assert_true(d.lines < 8192);
    d.line[d.lines] = json_loads(one, 0, NULL);
    assert_non_null(d.line[d.lines++]);
  }
  assert_true(d.lines >= 1);
  return d;
}

static void free_dump(dump *d) {
  for (int i = 0; i < d->lines; i++) json_decref(d->line[i]);
}

static int64_t number(const dump *d, int line, const char *key) {
  const json_t *value = json_object_get(d->line[line], key);
  assert_true(json_is_integer(value));
  return json_integer_value(value);
}

static const char *text(const dump *d, int line, const char *key) {
  const char *value = json_string_value(json_object_get(d->line[line], key));
  assert_non_null(value);
  return value;
}

/* Numbers follow each other, steps do not fall, collectives end in their order, and each whole step has as
 * many as any other. */
static void check_entries(const dump *d) {
  int per_step = 0, in_step = 0;
  assert_int_equal(number(d, d->lines - 1, "number"), number(d, 0, "begun"));
  for (int i = 2; i < d->lines; i++) {
    assert_int_equal(number(d, i, "number"), number(d, i - 1, "number") + 1);
    bool same = number(d, i, "step") == number(d, i - 1, "step");
    assert_true(same || number(d, i, "step") == number(d, i - 1, "step") + 1);
    in_step++;
    if (same) continue;
    if (per_step == 0) per_step = in_step;
    assert_int_equal(in_step, per_step);
    in_step = 0;
  }
  for (int i = 1; i < d->lines; i++) {
    bool ended = number(d, i, "number") <= number(d, 0, "ended");
    assert_string_equal(text(d, i, "state"), ended ? "ended" : "begun");
    assert_int_equal(json_object_get(d->line[i], "ended_s") != NULL, ended);
    assert_string_equal(text(d, i, "program"), "step");
    assert_string_equal(text(d, i, "dtype"), "f32");
    assert_non_null(strstr(text(d, i, "name"), text(d, i, "collective")));
  }
}

/* The same number is the same collective on all ranks. */
static void check_agreement(const char *folder, int devices) {
  dump first = read_dump(folder, 0);
  for (int r = 0; r < devices; r++) {
    dump d = read_dump(folder, r);
    assert_int_equal(number(&d, 0, "rank"), r);
    assert_int_equal(number(&d, 0, "ranks"), devices);
    check_entries(&d);
    for (int i = 1; i < d.lines && i < first.lines; i++) {
      assert_int_equal(number(&d, i, "number"), number(&first, i, "number"));
      assert_int_equal(number(&d, i, "step"), number(&first, i, "step"));
      assert_int_equal(number(&d, i, "count"), number(&first, i, "count"));
      assert_string_equal(text(&d, i, "name"), text(&first, i, "name"));
    }
    free_dump(&d);
  }
  free_dump(&first);
}

/* ---- causes ---- */

/* The later steps are replays of a capture, whose collectives are recorded as well. */
static void a_device_that_stops_is_named(void **state) {
  (void)state;
  static const char *const more[] = {
      "--set backend.sim.fail=stall:300@1", "--set backend.sim.fail=stall:300@1 --set backend.capture=no",
      "--set backend.sim.fail=stall:300@1 --set communicator.sim.failure=status"};
  file_write("model.ini", nets_lenet);
  for (int i = 0; i < 3; i++)
    nets_start(i,
               "train ../model.ini --output o --set backend.use=sim --set backend.sim.devices=4 "
               "--set distributed.devices=4 --set distributed.timeout=" NETS_SHORT " %s",
               more[i]);
  for (int i = 0; i < 3; i++) {
    program_expect(nets_finish(i), 77);
    expect_text("rank 1 did not come to 'all_reduce");
    expect_text("; the device of rank 1 has not come to collective ");
    expect_text("), in which ranks 0, 2 and 3 waited; it has waited for ");
    expect_text("; the last collectives of each rank are in ");
    expect_text("o/run/failure");
    check_agreement(nets_path(i, "o/run/failure"), 4);
    dump d = read_dump(nets_path(i, "o/run/failure"), 1);
    assert_non_null(strstr(text(&d, 0, "failure"), "rank 1 did not come to"));
    assert_string_equal(text(&d, 0, "waits_for"), "its device");
    assert_true(number(&d, 0, "step") > 1);
    free_dump(&d);
  }
}

/* Without shuffling, samples 20 to 23 are those of rank 1 in the third step. Exit handlers of libraries do
 * not run beside the thread that was left. */
static void a_source_that_hangs_is_named(void **state) {
  (void)state;
  setenv("STEADY_EXIT", "exited", 1);
  nets_write_steady(STEADY, "");
  assert_int_equal(program_run("train model.ini --output whole --set run.max_steps=1"), 0);
  assert_int_equal(remove("exited"), 0);
  nets_write_steady(STEADY, "stuck = 20");
  fail_run(2, "");
  assert_false(file_exists("exited"));
  unsetenv("STEADY_EXIT");
  expect_text("the device of rank 1 has not come to collective ");
  expect_text(", step 3), in which rank 0 waited; it has waited for ");
  expect_text(" s for its next batch; the last collectives of each rank are in ");
  check_agreement("o/run/failure", 2);
}

static void a_failure_of_one_rank_is_recorded_by_all(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  fail_run(4, "--set backend.sim.fail=kernel:300@2");
  check_agreement("o/run/failure", 4);
  dump d = read_dump("o/run/failure", 0);
  expect_text("rank 2: ");
  assert_non_null(strstr(program_err, text(&d, 0, "failure")));
  free_dump(&d);
}

static void later_failures_have_folders_of_their_own(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  fail_run(2, "--set backend.sim.fail=stall:400@1 --set run.save_every=2");
  char *before = file_read("o/run/failure/rank0.jsonl", NULL);
  fail_run(2, "--set backend.sim.fail=stall:300@0 --set run.save_every=2 --resume o/run");
  expect_text("o/run/failure-2");
  assert_string_equal(file_read("o/run/failure/rank0.jsonl", NULL), before);
  dump d = read_dump("o/run/failure-2", 0);
  assert_true(number(&d, 0, "step") > 2); /* the steps of the run go on, the numbers begin again */
  assert_int_equal(number(&d, 1, "number"), 1);
  free_dump(&d);
}

static void a_run_that_ends_in_order_writes_none(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("o", 2, "--set run.max_steps=3");
  assert_true(file_exists("o/run/checkpoints/last"));
  assert_false(file_exists("o/run/failure"));
  assert_int_equal(program_run("train model.ini --output n --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2 --set optimizer.lr=1e30"),
                   76);
  assert_false(file_exists("n/run/failure"));
}

/* Without a run folder there is no place for them. */
static void without_a_run_folder_nothing_is_written(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  int code = program_run("train model.ini --set backend.use=sim --set backend.sim.devices=2 "
                         "--set distributed.devices=2 --set distributed.timeout=" NETS_SHORT
                         " --set run.output= --set backend.sim.fail=stall:300@1");
  program_expect(code, 77);
  assert_null(strstr(program_err, "the last collectives"));
}

/* ---- processes ---- */

static int process, port;
static const char *token;

static void become_process(void) {
  const int numbers[] = {process, process, 2, 2, port};
  static const char *const names[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT"};
  for (int i = 0; i < 5; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", numbers[i]);
    setenv(names[i], text, 1);
  }
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("TENON_TOKEN", token, 1);
}

/* The data of process 1 hang; both processes print the same. No launcher asks process 1 to end meanwhile. */
static void a_source_that_hangs_is_named_by_all_processes(void **state) {
  (void)state;
  char finding[512];
  nets_write_steady(STEADY, "stuck = 20");
  port = program_ports();
  token = program_token();
  program_prepare(become_process);
  for (process = 0; process < 2; process++)
    nets_start(process, "train ../model.ini --output ../o --quiet --set backend.use=cpu --set run.threads=1 "
                        "--set distributed.timeout=" NETS_SHORT);
  program_prepare(NULL);
  program_expect(nets_finish(0), 77);
  expect_text(" on host ");
  const char *from = strstr(program_err, "; rank 1 (process 1, id ");
  if (from == NULL) fail_msg("%s", program_err);
  snprintf(finding, sizeof finding, "%.*s", (int)strcspn(from, "\n"), from);
  program_expect(nets_finish(1), 77);
  char *end = strstr(finding, "; the last collectives of each rank are in ");
  assert_non_null(end);
  *end = '\0'; /* the folder, which each names from its own */
  expect_text(finding);
  expect_text("; the last collectives of each rank are in ");
  assert_non_null(strstr(finding, ") has not begun collective 9 (all_gather of bn, f32, "));
  assert_non_null(strstr(finding, ", step 3), in which rank 0 waited for "));
  assert_non_null(strstr(finding, " s for its next batch"));
  check_agreement("o/run/failure", 2);
}

/* ---- ranks that hang ---- */

/* The end of the message that a rank works without an end. The seconds are those of the limit at least. */
static void expect_hang(const char *says, int limit_s) {
  const char *at = strstr(program_err, says);
  if (at == NULL || atof(at + strlen(says)) < limit_s)
    fail_msg("no '%s' of %d s: %s", says, limit_s, program_err);
  expect_text(
      ", outside of collectives and without an end: it hangs, since the longest such time before was ");
}

/* With a limit of an hour for waits, and a short one for a rank's own work. */
static void hang_run(const char *command, const char *says) {
  int code =
      program_run("%s --output o --set distributed.timeout=1h --set distributed.hang=" NETS_SHORT, command);
  program_expect(code, 77);
  expect_hang(says, NETS_SHORT_S);
}

static void a_device_that_hangs_ends_the_run(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  hang_run("train model.ini --set backend.use=sim --set backend.sim.devices=4 --set distributed.devices=4 "
           "--set backend.sim.fail=stall:2000@1 --set run.max_steps=100 --set run.epochs=100",
           "rank 1: its device works for ");
  expect_text("; the device of rank 1 has not come to collective ");
}

static void write_stuck(const char *step) {
  char text[4096];
  int n = snprintf(text, sizeof text, "%s[schedule]\ntype = stuck\n%s[plugins]\nload = " STUCK "\n",
                   nets_lenet, step);
  assert_true((size_t)n < sizeof text);
  file_write("model.ini", text);
}

static const char thread_hangs[] = ": its thread computes, or launches work, for ",
                  in_step[] = " s in step 13, outside";

static void a_thread_that_hangs_ends_the_run(void **state) {
  (void)state;
  write_stuck("at = 13\n");
  hang_run("train model.ini --set backend.use=sim --set backend.sim.devices=4 --set distributed.devices=4",
           thread_hangs);
  expect_text(in_step);
  expect_text("; its host computes, or launches work");
}

/* Each of two processes prints the message. */
static void a_thread_that_hangs_ends_all_processes(void **state) {
  (void)state;
  write_stuck("at = 13\n");
  hang_run("launch -n 2 model.ini --quiet --set backend.use=cpu --set run.threads=1", thread_hangs);
  expect_text(in_step);
  expect_text(" on host ");
  expect_text(" has not begun collective ");
  assert_non_null(strstr(strstr(program_err, thread_hangs) + 1, thread_hangs));
}

/* Without a key the limit is 20 s, or ten times the longest time before, far below the timeout. */
static void a_thread_that_hangs_ends_a_run_without_a_limit_of_its_own(void **state) {
  (void)state;
  write_stuck("at = 13\n");
  assert_int_equal(
      program_run("launch -n 2 model.ini --output o --quiet --set backend.use=cpu --set run.threads=1 "
                  "--set distributed.timeout=1h"),
      77);
  expect_hang(thread_hangs, 20);
}

static void a_wrong_limit_is_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_equal(program_run("train model.ini --set distributed.hang=0"), 65);
  expect_text("[distributed] hang = 0, expected auto, never, or a duration above 0 such as 60s");
}

/* ---- a forgotten launcher ---- */

static void a_process_that_is_alone_says_so(void **state) {
  (void)state;
  static const char alone[] =
      "this process trains alone, in a Slurm allocation of 4 tasks; start one process in "
      "each by `srun tenon train model.ini`, or set [distributed] processes = 1";
  file_write("model.ini", nets_lenet);
  setenv("SLURM_JOB_ID", "7", 1);
  setenv("SLURM_NTASKS", "4", 1);
  assert_int_equal(program_run("train model.ini --set run.max_steps=1 --set backend.use=cpu "
                               "--set distributed.communicator=tcp"),
                   0);
  expect_text(alone);
  expect_text("[distributed] communicator = tcp has no effect on one device; start");
  expect_text("`tenon launch -n N model.ini`");
  assert_int_equal(program_run("train model.ini --set run.max_steps=1 --set backend.use=cpu "
                               "--set distributed.processes=1"),
                   0);
  assert_null(strstr(program_err, "Slurm"));
  unsetenv("SLURM_JOB_ID");
  unsetenv("SLURM_NTASKS");
}

/* ---- slow ranks ---- */

static void expect_straggler(int expected) {
  const char *metrics = file_read("o/run/metrics.jsonl", NULL);
  const char *line = strstr(metrics, "{\"event\": \"straggler\"");
  if ((line != NULL) != expected) fail_msg("%s", program_err);
  assert_int_equal(strstr(program_err, " is slow: its own work in a step takes ") != NULL, expected);
  if (line == NULL) return;
  json_t *event = json_loadb(line, strcspn(line, "\n"), 0, NULL);
  assert_non_null(event);
  const char *text = json_string_value(json_object_get(event, "text"));
  assert_non_null(strstr(program_err, text));
  assert_true(strncmp(text, "rank 1", 6) == 0);
  assert_int_equal(json_integer_value(json_object_get(event, "step")) % 100, 0);
  json_decref(event);
}

static void train_with_slow_device(const char *straggler, int steps) {
  nets_write_steady(STEADY, "");
  program_expect(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                             "--set distributed.devices=2 --set run.epochs=60 --set run.max_steps=%d "
                             "--set backend.sim.slow=1:300 --set distributed.straggler=%s",
                             steps, straggler),
                 0);
}

/* Times are compared every 100 steps, or later where the device was looked at too rarely by then. */
static void a_slow_device_is_named(void **state) {
  (void)state;
  train_with_slow_device("1.5", 400);
  expect_straggler(1);
  assert_int_equal(system("rm -rf o"), 0);
  train_with_slow_device("0", 101);
  expect_straggler(0);
}

/* All processes take the same time for a step, but that of rank 1 waits for no other. */
static void a_slow_source_is_named(void **state) {
  (void)state;
  nets_write_steady(STEADY, "slow_from = 4\nslow_us = 5000");
  program_expect(program_run("launch -n 2 model.ini --output o --set backend.use=cpu --set run.threads=1 "
                             "--set run.epochs=60 --set run.max_steps=210"),
                 0);
  expect_straggler(1);
  assert_non_null(strstr(program_err, "rank 1 (process 1, id "));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

/* The cases of the first group wait: for the end of a limit, or of a short run. Those of the second, which
 * compare the medians of many steps, run meanwhile. */
int main(void) {
  const struct CMUnitTest waits[] = {
      CASE(a_device_that_stops_is_named),
      CASE(a_source_that_hangs_is_named),
      CASE(a_failure_of_one_rank_is_recorded_by_all),
      CASE(later_failures_have_folders_of_their_own),
      CASE(a_run_that_ends_in_order_writes_none),
      CASE(without_a_run_folder_nothing_is_written),
      CASE(a_source_that_hangs_is_named_by_all_processes),
      CASE(a_device_that_hangs_ends_the_run),
      CASE(a_thread_that_hangs_ends_the_run),
      CASE(a_thread_that_hangs_ends_all_processes),
      CASE(a_thread_that_hangs_ends_a_run_without_a_limit_of_its_own),
      CASE(a_wrong_limit_is_refused),
      CASE(a_process_that_is_alone_says_so),
  };
  const struct CMUnitTest measures[] = {CASE(a_slow_device_is_named), CASE(a_slow_source_is_named)};
  program_begin_side_by_side(waits, sizeof waits / sizeof *waits);
  int failed = cmocka_run_group_tests(measures, NULL, NULL);
  return failed + program_end_side_by_side();
}
