/* Trainings by several processes, as users start them: tenon launch, the variables of torchrun and srun;
 * stops, killed processes, restarts. The communicator is tcp, on backend cpu. */
#include "tests/integration/cli/configs.h"
#include "launched.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the same training by any number of processes ---- */

static void compare_losses(const char *one, const char *several) { launched_compare(one, several, 60); }

static void any_number_of_processes_gives_the_same_losses(void **state) {
  (void)state;
  const json_t *one = program_json(0, "train model.ini --output p1");
  for (int n = 2; n <= 4; n++) {
    char path[64];
    const json_t *several = program_json(0, "launch -n %d model.ini --output p%d", n, n);
    assert_int_equal(program_number(several, "devices"), n);
    assert_int_equal(program_number(several, "steps"), 60);
    assert_true(fabs(program_number(several, "valid.loss") - program_number(one, "valid.loss")) < 1e-4);
    snprintf(path, sizeof path, "p%d/model/metrics.jsonl", n);
    compare_losses("p1/model/metrics.jsonl", path);
  }
  program_json(0, "launch -n 3 model.ini --output again");
  checkpoint_folders_equal("p3/model/checkpoints/last", "again/model/checkpoints/last");
}

/* A process of three has about 15 sockets, and the program a few files. */
static void few_descriptors_are_enough(void **state) {
  (void)state;
  struct rlimit before, few;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  few = (struct rlimit){48, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  int code = program_run("launch -n 3 model.ini --output few --set run.max_steps=3");
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  if (code != 0) fail_msg("%d: %s", code, program_err);
}

static rlim_t descriptors;

static void limit_descriptors(void) { setrlimit(RLIMIT_NOFILE, &(struct rlimit){descriptors, descriptors}); }

/* A launch has enough of them, or says that it has not, and waits for nothing: not for the timeout of an
 * hour. */
static void too_few_descriptors_are_named(void **state) {
  (void)state;
  int done = 0;
  program_prepare(limit_descriptors);
  for (descriptors = 4; descriptors <= 80; descriptors += descriptors < 20 ? 2 : 20) {
    int code =
        program_run("launch -n 3 model.ini --quiet --output few%d --set run.max_steps=3", (int)descriptors);
    bool named = strstr(program_err, "Too many open files") != NULL;
    if (code != 0 && !named)
      fail_msg("%d descriptors: exit code %d: %s", (int)descriptors, code, program_err);
    done += code == 0;
  }
  program_prepare(NULL);
  assert_true(done >= 3);
}

/* ---- processes that end, or are ended ---- */

/* A training of which 25 steps are done, and which does not end by itself. */
static void start_long(void) {
  program_start(
      "launch -n 3 model.ini --output o --set run.save_every=50 --set run.max_steps=100000000000 " ENDLESS);
  program_await_lines("o/model/metrics.jsonl", 26);
}

/* A training whose processes are held behind so many steps. */
static void start_held(int steps, const char *more) {
  program_start("launch -n 3 model.ini --output o --quiet --set run.save_every=50 --plugin " HOLD
                " --set schedule.type=hold --set schedule.at=%d %s",
                steps, more);
  for (int i = 0; i < 3; i++) {
    char path[16];
    snprintf(path, sizeof path, "held.%d", i);
    program_await(file_exists(path));
  }
}

/* While all processes are held. */
static void kill_held(int number) {
  pid_t pid = launched_process(number);
  assert_true(pid > 0);
  assert_int_equal(kill(pid, SIGKILL), 0);
  file_write("go", "");
}

static void a_signal_to_one_process_saves_and_stops_all(void **state) {
  (void)state;
  static const int signals[] = {SIGUSR1, SIGTERM};
  for (int i = 0; i < 2; i++) {
    start_long();
    pid_t pid = launched_process(2 - i);
    assert_true(pid > 0);
    assert_int_equal(kill(pid, signals[i]), 0);
    assert_int_equal(program_finish(), 75);
    assert_non_null(strstr(program_err, "go on with --resume o/model"));
    assert_null(strstr(program_err, "nothing was saved"));
    assert_true(file_exists("o/model/checkpoints/last/state.json"));
    assert_int_equal(system("rm -rf o"), 0);
  }
}

static void a_killed_process_is_named_and_ends_all(void **state) {
  (void)state;
  for (int number = 0; number < 3; number += 2) {
    char text[64];
    start_long();
    pid_t pid = launched_process(number);
    assert_true(pid > 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(program_finish(), 77);
    snprintf(text, sizeof text, "rank %d (process %d, id %d on host", number, number, (int)pid);
    if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
    assert_non_null(strstr(program_err, "was ended by signal 9"));
    if (number == 2) assert_non_null(strstr(program_err, "; rank 2 did not answer"));
    assert_true(file_exists("o/model/failure/rank1.jsonl")); /* also without process 0 */
    snprintf(text, sizeof text, "o/model/failure/rank%d.jsonl", number);
    assert_false(file_exists(text));
    assert_int_equal(system("rm -rf o"), 0);
  }
}

/* The others miss it after 20 s of silence, and the launcher then ends it. */
static void a_stopped_process_is_named_and_ends_all(void **state) {
  (void)state;
  char text[64];
  start_long();
  pid_t pid = launched_process(1);
  assert_true(pid > 0);
  assert_int_equal(kill(pid, SIGSTOP), 0);
  assert_int_equal(program_finish(), 77);
  snprintf(text, sizeof text, "rank 1 (process 1, id %d on host", (int)pid);
  if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
  snprintf(text, sizeof text, "process 1 (id %d) is stopped, as by SIGSTOP", (int)pid);
  if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
  assert_non_null(strstr(program_err, "; rank 1 did not answer, ranks 0 and 2 waited "));
  assert_true(file_exists("o/model/failure/rank0.jsonl") && file_exists("o/model/failure/rank2.jsonl"));
}

static void a_killed_run_goes_on_with_fewer_processes(void **state) {
  (void)state;
  start_held(60, "--set run.max_steps=200");
  program_await(file_exists("o/model/checkpoints/last/state.json"));
  kill_held(1);
  assert_int_equal(program_finish(), 77);
  const json_t *r = program_json(0, "launch -n 2 model.ini --output o --resume auto --set run.max_steps=200");
  assert_int_equal(program_number(r, "devices"), 2);
  assert_int_equal(program_number(r, "steps"), 200);
  program_json(0, "train model.ini --output p1 --set run.max_steps=200");
  launched_compare("p1/model/metrics.jsonl", "o/model/metrics.jsonl", 200);
}

static void a_restart_goes_on_with_the_same_bits(void **state) {
  (void)state;
  program_json(0, "launch -n 3 model.ini --output whole --set run.max_steps=400 --set run.save_every=50");
  start_held(120, "--set run.max_steps=400 --restarts 2");
  kill_held(1);
  assert_int_equal(program_finish(), 0);
  assert_non_null(strstr(program_err, "restart 1 of 2"));
  assert_null(strstr(program_err, "TENON_TOKEN"));         /* the launcher draws one */
  assert_true(file_exists("o/model/failure/rank0.jsonl")); /* of the first start */
  assert_false(file_exists("o/model/failure-2"));
  checkpoint_folders_equal("whole/model/checkpoints/last", "o/model/checkpoints/last");
}

/* ---- other launchers ---- */

static const char *launcher_format;
static int launcher_process, launcher_port;

static void set_variables(void) {
  char text[1024];
  snprintf(text, sizeof text, launcher_format, launcher_process, launcher_process, launcher_port);
  for (char *one = strtok(text, " "); one != NULL; one = strtok(NULL, " ")) putenv(strdup(one));
}

/* Two processes with the variables of a launcher; the result is that of one process. The token is the name of
 * the job, which process 0 says. */
static void launched_by(const char *launcher, const char *format) {
  char line[128];
  snprintf(line, sizeof line,
           "which others can guess; set the same secret for all of them in front of %s: export TENON_TOKEN=",
           launcher);
  program_json(0, "train model.ini --output p1");
  launcher_format = format;
  launcher_port = program_ports();
  program_prepare(set_variables);
  launcher_process = 1;
  program_start("train model.ini --output p2 --quiet");
  pid_t second = program_swap(0);
  launcher_process = 0;
  program_start("train model.ini --output p2");
  assert_int_equal(program_finish(), 0);
  program_swap(second);
  assert_int_equal(program_finish(), 0);
  launched_says("%s", line); /* once: both write into one file */
  assert_null(strstr(strstr(program_err, line) + 1, line));
  program_prepare(NULL);
  compare_losses("p1/model/metrics.jsonl", "p2/model/metrics.jsonl");
  assert_false(file_exists("p2/model-2"));
}

static void variables_of_torchrun_are_understood(void **state) {
  (void)state;
  launched_by("torchrun",
              "RANK=%d WORLD_SIZE=2 LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=%d "
              "TORCHELASTIC_RUN_ID=none");
}

/* As docs/guide/many.md has it. */
static void torchrun_itself_starts_processes(void **state) {
  (void)state;
  if (system("command -v torchrun >/dev/null") != 0) {
    print_message("skipped: there is no torchrun, which comes with PyTorch\n");
    skip();
  }
  program_json(0, "train model.ini --output p1");
  char command[512];
  snprintf(command, sizeof command,
           "timeout 900 torchrun --nproc-per-node 2 --master-port %d --no-python " TENON
           " train model.ini --output p2 --quiet >out.txt 2>&1",
           program_ports());
  int status = system(command);
  if (status != 0) fail_msg("status %#x: %s", (unsigned)status, file_read("out.txt", NULL));
  compare_losses("p1/model/metrics.jsonl", "p2/model/metrics.jsonl");
  assert_false(file_exists("p2/model-2"));
}

/* Slurm's job, from which token and port follow, has the number of ports that no other test has. */
static void variables_of_srun_are_understood(void **state) {
  (void)state;
  launched_by("srun",
              "SLURM_PROCID=%d SLURM_LOCALID=%d SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_STEP_ID=0 "
              "SLURM_JOB_ID=%d SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=localhost");
}

/* ---- mistakes ---- */

static void refused(int code, const char *text, const char *arguments) {
  assert_int_equal(program_run("%s", arguments), code);
  if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
}

static void mistakes_are_told(void **state) {
  (void)state;
  refused(65, "no launcher has started this one; start all by `tenon launch -n 4 model.ini`",
          "train model.ini --set distributed.processes=4");
  refused(65, "processes = 3, but tenon launch has started 2",
          "launch -n 2 model.ini --set distributed.processes=3");
  char direct_ini[2048];
  snprintf(direct_ini, sizeof direct_ini, "%s[communicator.tcp]\nbuffer = 128KiB\ndirect = 256KiB\n",
           launched_ini);
  file_write("direct.ini", direct_ini);
  refused(65, "direct.ini:31: [communicator.tcp]", "launch -n 2 direct.ini");
  refused(65, "expected auto or a number from 1", "train model.ini --set distributed.processes=0");
  refused(65, "batch = 48 cannot be divided among 5 devices", "launch -n 5 model.ini");
  refused(2, "expected a number from 1", "launch -n 0 model.ini");
  refused(2, "-n 3, but --hosts has room for 4", "launch -n 3 --hosts a:2,b:2 model.ini");
  refused(2, "expected up to 256 names", "launch --hosts a:0 model.ini");
}

static void another_configuration_is_refused(void **state) {
  (void)state;
  file_write("other.ini", launched_ini);
  launcher_format = "RANK=%d WORLD_SIZE=2 NUMBER=%d MASTER_ADDR=127.0.0.1 MASTER_PORT=%d";
  launcher_port = program_ports();
  program_prepare(set_variables);
  launcher_process = 1;
  program_start("train other.ini --output p2 --quiet --set optimizer.lr=0.1");
  pid_t second = program_swap(0);
  launcher_process = 0;
  program_start("train model.ini --output p2 --quiet");
  assert_int_equal(program_finish(), 65);
  assert_non_null(strstr(program_err, "[optimizer] lr is 0.1 here, and 0.05 for process 0"));
  program_swap(second);
  assert_int_equal(program_finish(), 65);
  program_prepare(NULL);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, launched_open, program_close)
  const struct CMUnitTest tests[] = {TEST(any_number_of_processes_gives_the_same_losses),
                                     TEST(few_descriptors_are_enough),
                                     TEST(too_few_descriptors_are_named),
                                     TEST(a_signal_to_one_process_saves_and_stops_all),
                                     TEST(a_killed_process_is_named_and_ends_all),
                                     TEST(a_stopped_process_is_named_and_ends_all),
                                     TEST(a_killed_run_goes_on_with_fewer_processes),
                                     TEST(a_restart_goes_on_with_the_same_bits),
                                     TEST(variables_of_torchrun_are_understood),
                                     TEST(torchrun_itself_starts_processes),
                                     TEST(variables_of_srun_are_understood),
                                     TEST(mistakes_are_told),
                                     TEST(another_configuration_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
