/* Measured choices are repeated: those of process 0 by all processes, and those of a run when it resumes. The
 * processes are of cpu with tcp; for each another variant of a kernel is the fast one, and each has an empty
 * cache of measurements. */
#include "tests/integration/cli/program.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char model_ini[] = "[run]\nname = run\nmax_steps = 4\nseed = 3\nthreads = 1\n"
                                "[data]\nsource = digits\nbatch = 16\nworkers = 0\ntransforms = to_float\n"
                                "[data.valid]\nepoch = 32\n"
                                "[model]\ninputs = image: f32[1, 28, 28]\n"
                                "layers =\n    flatten\n    fc1: linear(32)\n    rival\n    fc2: linear(10)\n"
                                "loss = cross_entropy\n"
                                "[optimizer]\ntype = sgd\nlr = 0.05\n"
                                "[backend]\nuse = cpu\nautotune = yes\n"
                                "[distributed]\ncommunicator = tcp\ntimeout = 60s\n"
                                "[plugins]\nload = " RIVALS "\n";

static int set_up(void **state) {
  static const char *const names[] = {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                      "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  int failed = program_open(state);
  file_write("model.ini", model_ini);
  return failed;
}

/* ---- a process ---- */

static char slow;           /* the slow variant of the process that is started next */
static int number, started; /* of the process; of processes */

static void set_number(const char *name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

/* Its cache folder and its log are its own. */
static void become_process(void) {
  char folder[4096], path[4200];
  snprintf(path, sizeof path, "%s/cache%d", getcwd(folder, sizeof folder), number);
  setenv("XDG_CACHE_HOME", path, 1);
  snprintf(path, sizeof path, "%s/log%d", folder, number);
  setenv("RIVALS_LOG", path, 1);
  setenv("RIVALS_SLOW", (const char[]){slow, '\0'}, 1);
  if (started == 1) return;
  set_number("RANK", number);
  set_number("LOCAL_RANK", number);
  set_number("WORLD_SIZE", started);
  set_number("LOCAL_WORLD_SIZE", started);
  setenv("MASTER_ADDR", "localhost", 1);
  setenv("MASTER_PORT", "29583", 1);
}

static void start_process(int n, int of, char slow_one, const char *more) {
  number = n;
  started = of;
  slow = slow_one;
  program_prepare(become_process);
  program_start("train model.ini --quiet --output o %s", more);
}

static void finish_well(void) {
  int code = program_finish();
  if (code != 0) fail_msg("exit code %d: %s", code, program_err);
}

/* ---- what ran ---- */

/* The variant of the launches behind all measurements. */
static char last_variant(int process) {
  char path[16];
  size_t n;
  snprintf(path, sizeof path, "log%d", process);
  const char *log = file_read(path, &n);
  assert_true(n > 0);
  return log[n - 1];
}

/* A process that measures launches both. */
static int has_launched(int process, char variant) {
  char path[16];
  snprintf(path, sizeof path, "log%d", process);
  return strchr(file_read(path, NULL), variant) != NULL;
}

/* Empty caches and logs. */
static void forget(void) { assert_int_equal(system("rm -rf cache0 cache1 log0 log1"), 0); }

static void clear(void) {
  forget();
  assert_int_equal(system("rm -rf o"), 0);
}

/* Alone, a process of either kind takes the variant that is fast for it. */
static void a_process_alone_takes_its_fast_variant(void **state) {
  (void)state;
  for (char slow_one = 'a'; slow_one <= 'b'; slow_one++) {
    start_process(0, 1, slow_one, "");
    finish_well();
    assert_true(has_launched(0, 'a') && has_launched(0, 'b'));
    assert_int_equal(last_variant(0), slow_one == 'a' ? 'b' : 'a');
    clear();
  }
}

/* Process 1 measures nothing, and runs the variant of process 0, which is its own slow one. */
static void process_1_repeats_the_measured_choice_of_process_0(void **state) {
  (void)state;
  for (char slow_one = 'a'; slow_one <= 'b'; slow_one++) {
    char other = slow_one == 'a' ? 'b' : 'a';
    start_process(1, 2, other, "");
    pid_t second = program_swap(0);
    start_process(0, 2, slow_one, "");
    finish_well();
    program_swap(second);
    finish_well();
    assert_true(has_launched(0, slow_one));
    assert_int_equal(last_variant(0), other);
    assert_int_equal(last_variant(1), other);
    assert_false(has_launched(1, slow_one));
    assert_false(file_exists("cache1/tenon"));
    clear();
  }
}

/* The processes of the resumed run are others, for which the recorded variant is the slow one. */
static void a_resumed_run_repeats_its_measured_choice(void **state) {
  (void)state;
  start_process(0, 1, 'a', "");
  finish_well();
  assert_int_equal(last_variant(0), 'b');
  forget();
  start_process(0, 1, 'b', "--resume o/run --set run.max_steps=8");
  finish_well();
  assert_false(has_launched(0, 'a'));
  assert_false(file_exists("cache0/tenon"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {CASE(a_process_alone_takes_its_fast_variant),
                                     CASE(process_1_repeats_the_measured_choice_of_process_0),
                                     CASE(a_resumed_run_repeats_its_measured_choice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
