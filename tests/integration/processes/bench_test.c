/* `tenon bench` by several processes: the variables of a launcher, torchrun; other options in one of them,
 * and processes that die. The communicator is tcp, on backend cpu. */
#include "launched.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char model_ini[] = LAUNCHED_INI("name = model\n", "1h");

static int set_up(void **state) {
  int failed = program_open(state);
  file_write("model.ini", model_ini);
  return failed;
}

/* ---- two processes ---- */

static int launcher_process, launcher_port;
static const char *launcher_token;

static void set_variables(void) {
  char text[256];
  snprintf(text, sizeof text,
           "RANK=%d WORLD_SIZE=2 LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=%d "
           "TENON_TOKEN=%s",
           launcher_process, launcher_process, launcher_port, launcher_token);
  for (char *one = strtok(text, " "); one != NULL; one = strtok(NULL, " ")) putenv(strdup(one));
  if (launcher_process == 1 && freopen("other.err", "w", stderr) == NULL) _exit(127);
}

/* Starts both; process 1 is set aside, and writes to the files `other` and other.err. */
static pid_t start_two(const char *first, const char *second) {
  launcher_port = program_ports();
  launcher_token = program_token();
  program_prepare(set_variables);
  program_stdout("other");
  launcher_process = 1;
  program_start("bench model.ini %s", second);
  pid_t other = program_swap(0);
  program_stdout(NULL);
  launcher_process = 0;
  program_start("bench model.ini %s", first);
  program_prepare(NULL);
  return other;
}

/* The messages of a process, after program_finish. */
static const char *errors_of(int process) {
  return process == 0 ? program_err : file_read("other.err", NULL);
}

static void says(int process, const char *text) {
  const char *errors = errors_of(process);
  if (strstr(errors, text) == NULL) fail_msg("process %d: no '%s' in: %s", process, text, errors);
}

/* The exit code of the process that was set aside. */
static int finish_other(pid_t other) {
  program_swap(other);
  return program_finish();
}

static const json_t *parse_result(const char *text) {
  static json_t *last;
  json_decref(last);
  last = json_loads(text, JSON_REJECT_DUPLICATES, NULL); /* one object and nothing else */
  if (last == NULL) fail_msg("not a result: %s", text);
  return last;
}

static const json_t *measure_two(const char *arguments) {
  static char text[sizeof program_out];
  pid_t other = start_two(arguments, arguments);
  program_expect(program_finish(), 0);
  strcpy(text, program_out);
  assert_int_equal(finish_other(other), 0);
  return parse_result(text);
}

static double overlap_of(const json_t *result, const char *which, const char *field) {
  char path[64];
  snprintf(path, sizeof path, "overlap.%s.%s", which, field);
  return program_number(result, path);
}

static void process_0_prints_the_result_of_both(void **state) {
  (void)state;
  const json_t *r = measure_two("--json --batch 48 --steps 4 --rounds 3 --warmup 2");
  assert_int_equal(program_number(r, "devices"), 2);
  assert_int_equal(program_number(r, "ranks"), 2);
  assert_int_equal(program_number(r, "processes"), 2);
  assert_string_equal(program_text(r, "communicator"), "tcp");
  assert_int_equal(program_number(r, "batch"), 48);
  const json_t *ms = program_member(r, "ms");
  double least = json_number_value(json_array_get(ms, 0)), median = json_number_value(json_array_get(ms, 1)),
         most = json_number_value(json_array_get(ms, 2)), per_s = program_number(r, "per_s");
  assert_true(least > 0 && least <= median && median <= most);
  assert_true(fabs(per_s - 48 / median * 1e3) < 1e-6 * per_s);
  /* the step is that of the rounds, and what it waits for the other process is a part of it */
  assert_true(overlap_of(r, "measured", "step_ms") >= least && overlap_of(r, "measured", "step_ms") <= most);
  assert_true(overlap_of(r, "measured", "communication_ms") > 0);
  assert_true(overlap_of(r, "measured", "exposed_ms") > 0);
  assert_true(overlap_of(r, "measured", "exposed_ms") < overlap_of(r, "measured", "step_ms"));
  assert_true(overlap_of(r, "worst", "exposed_ms") >= overlap_of(r, "measured", "exposed_ms"));
  assert_true(overlap_of(r, "predicted", "communication_ms") > 0);
  assert_string_equal(file_read("other", NULL), "");
}

static void the_text_says_the_processes(void **state) {
  (void)state;
  pid_t other = start_two("--steps 1 --rounds 1 --set optimizer.accumulate=2",
                          "--steps 1 --rounds 1 --set optimizer.accumulate=2");
  assert_int_equal(program_finish(), 0);
  assert_non_null(strstr(program_out, "\nprocesses  2, communicator tcp\ndevices    2\npredicted  "));
  assert_int_equal(finish_other(other), 0);
  assert_string_equal(file_read("other", NULL), "");
}

static void torchrun_itself_starts_processes(void **state) {
  (void)state;
  if (system("command -v torchrun >/dev/null") != 0) {
    print_message("skipped: there is no torchrun, which comes with PyTorch\n");
    skip();
  }
  char command[512];
  snprintf(command, sizeof command,
           "timeout 900 torchrun --nproc-per-node 2 --master-port %d --no-python " TENON
           " bench model.ini --json --steps 2 --rounds 2 >out.txt 2>err.txt",
           program_ports());
  int status = system(command);
  if (status != 0) fail_msg("status %#x: %s", (unsigned)status, file_read("err.txt", NULL));
  assert_int_equal(program_number(parse_result(file_read("out.txt", NULL)), "processes"), 2);
}

/* ---- one process each ---- */

static void processes_that_do_not_share_are_measured_alone(void **state) {
  (void)state;
  static const char *const alone[] = {"--set distributed.processes=1", "--mode infer"};
  for (int i = 0; i < 2; i++) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--json --batch 48 --steps 1 --rounds 1 %s", alone[i]);
    const json_t *first = measure_two(arguments);
    assert_int_equal(program_number(first, "devices"), 1);
    assert_int_equal(program_number(first, "batch"), 48);
    assert_null(json_object_get(first, "processes"));
    assert_int_equal(program_number(parse_result(file_read("other", NULL)), "devices"), 1);
  }
  const json_t *r = program_json(0, "bench model.ini --steps 1 --rounds 1 --set distributed.processes=4");
  assert_int_equal(program_number(r, "devices"), 1);
}

/* ---- failures ---- */

/* Both end with the code, and say the text. */
static void refused(int code, const char *text, const char *first, const char *second) {
  pid_t other = start_two(first, second);
  assert_int_equal(program_finish(), code);
  says(0, text);
  assert_int_equal(finish_other(other), code);
  says(1, text);
}

static void mistakes_are_told(void **state) {
  (void)state;
  refused(65, "4 steps in each of 5 rounds after 1 here, and of batch 0, 3 steps in each of 5 rounds",
          "--steps 3", "--steps 4");
  refused(65, "[optimizer] lr is 0.1 here, and 0.05 for process 0", "", "--set optimizer.lr=0.1");
  refused(65, "a batch of 9 cannot be divided among 2 devices", "--batch 9", "--batch 9");
  refused(65, "a benchmark of 2 ranks in this process, but torchrun has started 2 processes", "--ranks 2",
          "--ranks 2");
  refused(69, "a benchmark of several devices reports neither launches nor a trace", "--ops", "--ops");
}

/* The processor time of a process, in seconds. */
static double seconds_of(pid_t pid) {
  char path[64], text[1024];
  unsigned long user = 0, kernel = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  const char *rest = strrchr(text, ')'); /* behind the program's name */
  assert_non_null(rest);
  assert_int_equal(sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel), 2);
  return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

/* The processor time of both processes of a whole benchmark of one step. One process that has used as much
 * has joined, has compiled, and measures. Other work of the machine does not count. */
static double seconds_of_one_step(void) {
  struct rusage from, to;
  getrusage(RUSAGE_CHILDREN, &from);
  measure_two("--json --steps 1 --rounds 1 --warmup 1");
  getrusage(RUSAGE_CHILDREN, &to);
  return (double)(to.ru_utime.tv_sec - from.ru_utime.tv_sec) +
         (double)(to.ru_stime.tv_sec - from.ru_stime.tv_sec) +
         1e-6 * (double)(to.ru_utime.tv_usec - from.ru_utime.tv_usec + to.ru_stime.tv_usec -
                         from.ru_stime.tv_usec);
}

static void a_killed_process_is_named_and_ends_the_other(void **state) {
  (void)state;
  static const char endless[] = "--json --steps 1000000 --rounds 1000";
  double begun_s = seconds_of_one_step();
  for (int killed = 0; killed < 2; killed++) {
    char text[64];
    pid_t pids[2] = {0, start_two(endless, endless)};
    pids[0] = program_swap(pids[1]);
    for (int i = 0; i < 2; i++) program_await(seconds_of(pids[i]) > begun_s);
    program_swap(pids[killed]);
    program_kill();
    program_swap(pids[1 - killed]);
    assert_int_equal(program_finish(), 77);
    snprintf(text, sizeof text, "rank %d (process %d, id %d on host", killed, killed, (int)pids[killed]);
    says(1 - killed, text);
  }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, program_close)
  const struct CMUnitTest tests[] = {TEST(process_0_prints_the_result_of_both),
                                     TEST(the_text_says_the_processes),
                                     TEST(torchrun_itself_starts_processes),
                                     TEST(processes_that_do_not_share_are_measured_alone),
                                     TEST(mistakes_are_told),
                                     TEST(a_killed_process_is_named_and_ends_the_other)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
