/* Measured choices are repeated: those of process 0 by all processes, and those of a run when it resumes. The
 * processes are of cpu with tcp; for each another variant of a kernel is the fast one, and each has an empty
 * cache of measurements. And measured costs decide where buckets of gradients are cut. */
#include "tests/integration/cli/program.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char model_ini[] =
    "[run]\nname = run\nmax_steps = 4\nseed = 3\nthreads = 1\n"
    "[data]\nsource = digits\nbatch = 16\nworkers = 0\ntransforms = to_float\n"
    "[data.valid]\nepoch = 32\n"
    "[model]\ninputs = image: f32[1, 28, 28]\n"
    "layers =\n    flatten\n    fc1: linear(32)\n    rival\n    fc2: linear(32)\n    "
    "rival\n    fc3: linear(10)\n"
    "loss = cross_entropy\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\n"
    "[backend]\nuse = cpu\nautotune = yes\n"
    "[distributed]\ncommunicator = tcp\ntimeout = 1h\n"
    "[plugins]\nload = " RIVALS "\n";

static int set_up(void **state) {
  int failed = program_open(state);
  file_write("model.ini", model_ini);
  return failed;
}

/* ---- a process ---- */

static const char *slow;    /* the slow variants of the process that is started next */
static int number, started; /* of the process; of processes */

static void set_number(const char *name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

static int port;
static char token[64];

/* Its cache folder and its log are its own. */
static void become_process(void) {
  char folder[4096], path[4200];
  snprintf(path, sizeof path, "%s/cache%d", getcwd(folder, sizeof folder), number);
  setenv("XDG_CACHE_HOME", path, 1);
  snprintf(path, sizeof path, "%s/log%d", folder, number);
  setenv("RIVALS_LOG", path, 1);
  setenv("RIVALS_SLOW", slow, 1);
  if (started == 1) return;
  set_number("RANK", number);
  set_number("LOCAL_RANK", number);
  set_number("WORLD_SIZE", started);
  set_number("LOCAL_WORLD_SIZE", started);
  setenv("MASTER_ADDR", "localhost", 1);
  set_number("MASTER_PORT", port);
  setenv("TENON_TOKEN", token, 1);
}

static void start_process(int n, int of, const char *slow_ones, const char *more) {
  number = n;
  started = of;
  slow = slow_ones;
  program_prepare(become_process);
  program_start("train model.ini --quiet --output o %s", more);
}

static void train_two(const char *slow_of_0, const char *slow_of_1, const char *more) {
  port = program_ports();
  snprintf(token, sizeof token, "%s", program_token());
  start_process(1, 2, slow_of_1, more);
  pid_t second = program_swap(0);
  start_process(0, 2, slow_of_0, more);
  program_expect(program_finish(), 0);
  program_swap(second);
  program_expect(program_finish(), 0);
}

/* ---- what ran ---- */

static const char *const variants[] = {"a", "b"};

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
  for (int i = 0; i < 2; i++) {
    start_process(0, 1, variants[i], "");
    program_expect(program_finish(), 0);
    assert_true(has_launched(0, 'a') && has_launched(0, 'b'));
    assert_int_equal(last_variant(0), *variants[!i]);
    clear();
  }
}

/* Process 1 measures nothing, and runs the variant of process 0, which is its own slow one. */
static void process_1_repeats_the_measured_choice_of_process_0(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    train_two(variants[i], variants[!i], "");
    assert_true(has_launched(0, *variants[i]));
    assert_int_equal(last_variant(0), *variants[!i]);
    assert_int_equal(last_variant(1), *variants[!i]);
    assert_false(has_launched(1, *variants[i]));
    assert_false(file_exists("cache1/tenon"));
    clear();
  }
}

/* The processes of the resumed run are others, for which the recorded variant is the slow one. */
static void a_resumed_run_repeats_its_measured_choice(void **state) {
  (void)state;
  start_process(0, 1, "a", "");
  program_expect(program_finish(), 0);
  assert_int_equal(last_variant(0), 'b');
  forget();
  start_process(0, 1, "b", "--resume o/run --set run.max_steps=8");
  program_expect(program_finish(), 0);
  assert_false(has_launched(0, 'a'));
  assert_false(file_exists("cache0/tenon"));
}

/* ---- buckets ---- */

/* The number of buckets of the plan, and the cost of the kernel in the step. */
static size_t count_buckets(double *cost_s) {
  const json_t *plan = file_json("o/run/plan.json"), *program, *launch;
  size_t i, k;
  *cost_s = 0;
  json_array_foreach(program_member(plan, "programs"), i, program) {
    if (strcmp(program_text(program, "name"), "step") != 0) continue;
    json_array_foreach(program_member(program, "launches"), k, launch) {
      if (strcmp(program_text(launch, "kernel"), "rival_cpu") == 0)
        *cost_s = program_number(launch, "cost_s");
    }
  }
  return json_array_size(program_member(plan, "buckets"));
}

/* A collective takes 0.5 ms, and that of fc1.weight 10 ms more. Gradients that are ready at nearly the same
 * time are summed at once, as the estimates of the kernel have it too. Where its measured time of 3 ms lies
 * between them, those of fc3 and fc2 are summed before those of fc1 are ready. */
static void measured_costs_cut_the_buckets(void **state) {
  static const char link[] = "--set distributed.link=0.01:500";
  double cost_s;
  (void)state;
  train_two("", "", link);
  assert_int_equal(count_buckets(&cost_s), 1);
  assert_true(cost_s > 0 && cost_s < 5e-4);
  clear();
  train_two("ab", "", link);
  assert_int_equal(count_buckets(&cost_s), 2);
  assert_true(cost_s >= 3e-3);
  clear();
  train_two("ab", "", "--set distributed.link=0.01:500 --set backend.autotune=no");
  assert_int_equal(count_buckets(&cost_s), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_process_alone_takes_its_fast_variant), CASE(process_1_repeats_the_measured_choice_of_process_0),
      CASE(a_resumed_run_repeats_its_measured_choice), CASE(measured_costs_cut_the_buckets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
