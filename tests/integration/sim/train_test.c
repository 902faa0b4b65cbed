/* Training on a device with random delays gives the bits of the cpu, with and without capture. */
#include "nets.h"
#include "runs.h"

/* Two epochs of twelve steps each, with validation and checkpoints. */
static void train_everywhere(const char *ini) {
  static const char *const ways[] = {
      "--set backend.sim.order=eager",
      "--set backend.sim.order=lazy --set backend.capture=no",
      "--set backend.sim.seed=1",
      "--set backend.sim.seed=2 --set backend.capture=no",
      "--set backend.sim.seed=3 --set run.threads=3 --set data.workers=0",
  };
  file_write("model.ini", ini);
  const json_t *cpu = train("cpu", "--set backend.use=cpu");
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    char output[32], more[256];
    snprintf(output, sizeof output, "sim%zu", i);
    snprintf(more, sizeof more, "--set backend.use=sim --set backend.fallback=error %s", ways[i]);
    const json_t *sim = train(output, more);
    assert_true(program_number(sim, "train.loss") == program_number(cpu, "train.loss"));
    assert_true(program_number(sim, "planned_peak_bytes") == program_number(sim, "measured_peak_bytes"));
    checkpoints_equal(output, "cpu");
  }
}

static void lenet_trains_to_the_bits_of_the_cpu(void **state) {
  (void)state;
  train_everywhere(lenet_ini);
}
static void a_small_resnet_trains_to_the_bits_of_the_cpu(void **state) {
  (void)state;
  train_everywhere(resnet_ini);
}
static void a_small_transformer_trains_to_the_bits_of_the_cpu(void **state) {
  (void)state;
  train_everywhere(transformer_ini);
}

static void a_run_goes_on_from_one_backend_to_the_other(void **state) {
  (void)state;
  file_write("model.ini", transformer_ini);
  train("complete", "--set backend.use=cpu");
  program_json(0, "train model.ini --output parts --set run.epochs=2 --set run.seed=3 --set backend.use=sim "
                  "--set run.max_steps=12");
  program_json(0, "train model.ini --output parts --set run.epochs=2 --set run.seed=3 --set backend.use=cpu "
                  "--resume auto");
  checkpoints_equal("parts", "complete");
}

/* Some checkpoints, the last step and the ends of epochs fall into the middle of a group of steps. */
static void several_steps_a_launch_give_the_bits_of_one(void **state) {
  (void)state;
  static const char *const numbers[] = {"1", "2", "3", "8", "auto"};
  static const char ask[] = "--set backend.use=%s --set run.steps_per_launch=%s --set run.save_every=7 "
                            "--set run.max_steps=23";
  file_write("model.ini", lenet_ini);
  const json_t *one =
      train("one", "--set backend.use=cpu --set run.steps_per_launch=1 --set run.save_every=7 "
                   "--set run.max_steps=23");
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    for (int sim = 0; sim < 2; sim++) {
      char output[32], more[256];
      snprintf(output, sizeof output, "%s%s", sim ? "sim" : "cpu", numbers[i]);
      snprintf(more, sizeof more, ask, sim ? "sim" : "cpu", numbers[i]);
      const json_t *many = train(output, more);
      assert_true(program_number(many, "train.loss") == program_number(one, "train.loss"));
      assert_true(program_number(many, "planned_peak_bytes") == program_number(many, "measured_peak_bytes"));
      checkpoints_equal(output, "one");
    }
}

static void a_number_of_steps_that_is_wrong_is_refused_with_its_line(void **state) {
  (void)state;
  static const char *const wrong[] = {"0", "17", "many", "3x", ""};
  char ini[2048];
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    snprintf(ini, sizeof ini, "[run]\nsteps_per_launch = %s\n%s", wrong[i], lenet_ini + strlen("[run]\n"));
    file_write("model.ini", ini);
    assert_int_not_equal(program_run("train model.ini --output o"), 0);
    assert_non_null(strstr(program_err, "model.ini:2: [run] steps_per_launch"));
    assert_non_null(strstr(program_err, "expected auto or a number from 1 to 16"));
  }
  file_write("model.ini", lenet_ini);
  assert_int_not_equal(program_run("train model.ini --output o --set run.steps_per_launch=2 --set "
                                   "optimizer.accumulate=2"),
                       0);
  assert_non_null(strstr(program_err, "accumulate = 2"));
}

/* The number of copies to the device, and how many of them overlap with computation. */
static void count_copies(int *all, int *beside) {
  const char *line = strstr(program_err, "sim: device 0: ");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "sim: device 0: %d copies to it, %d of them", all, beside), 2);
}

static void the_next_batch_arrives_under_the_current_step(void **state) {
  (void)state;
  int all, beside;
  file_write("model.ini", lenet_ini);
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.capture=no "
                               "--set backend.sim.seed=5 --set data.valid.epoch=20 --verbose"),
                   0);
  count_copies(&all, &beside);
  assert_true(all >= 12);
  if (beside < 6) fail_msg("%d of %d copies overlap with computation", beside, all);
}

static int copies_of_two_epochs(const char *steps_per_launch) {
  int all, beside;
  assert_int_equal(program_run("train model.ini --output o --set run.epochs=2 --set backend.use=sim --set "
                               "run.steps_per_launch=%s --set data.valid.epoch=20 --verbose",
                               steps_per_launch),
                   0);
  count_copies(&all, &beside);
  return all;
}

/* 24 steps and two validation batches. */
static void batches_of_one_launch_are_copied_at_once(void **state) {
  (void)state;
  file_write("model.ini", lenet_ini);
  assert_int_equal(copies_of_two_epochs("1"), 24 + 2);
  assert_int_equal(copies_of_two_epochs("4"), 6 + 2);
  assert_true(copies_of_two_epochs("auto") <= 24 + 2);
}

typedef struct counts {
  int launches, replays;
} counts;

static counts count_launches(const char *more) {
  counts c = {0, 0};
  assert_int_equal(program_run("train model.ini --output o --set run.epochs=2 --set backend.use=sim "
                               "--set data.valid.epoch=20 --verbose %s",
                               more),
                   0);
  const char *line = strstr(program_err, " beside computing; ");
  assert_non_null(line);
  assert_int_equal(sscanf(line, " beside computing; %d launches, %d replays", &c.launches, &c.replays), 2);
  return c;
}

/* Of 24 steps the first is launched; 23 are replayed one by one, or 3 and then 5 launches of 4. The second of
 * two validation batches is replayed as well. */
static void the_steps_of_one_launch_are_one_replay(void **state) {
  (void)state;
  file_write("model.ini", lenet_ini);
  counts plain = count_launches("--set backend.capture=no --set run.steps_per_launch=4"),
         one = count_launches("--set run.steps_per_launch=1"),
         four = count_launches("--set run.steps_per_launch=4");
  assert_int_equal(plain.replays, 0);
  assert_int_equal(one.replays, 23 + 1);
  assert_int_equal(four.replays, 3 + 5 + 1);
  assert_int_equal(four.launches, one.launches);
  assert_true(plain.launches > 10 * one.launches);
}

/* The limit on launches suffices where a step is launched once and then replayed, but not where every step is
 * launched. */
static void a_captured_step_is_launched_once(void **state) {
  (void)state;
  static const char ask[] = "train model.ini --output o --set run.epochs=3 --set backend.use=sim "
                            "--set backend.sim.fail=launch:900 --set backend.capture=%s";
  file_write("model.ini", lenet_ini);
  assert_int_equal(program_run(ask, "yes"), 0);
  assert_int_not_equal(program_run(ask, "no"), 0);
  assert_non_null(strstr(program_err, "launch 900"));
}

/* ---- dropped waits and copies of the training loop ---- */

/* Runs four steps and two validation batches and writes the resulting numbers; "" for a failure. */
static void run_without(const char *drop, const char *way, char *numbers, size_t size) {
  numbers[0] = '\0';
  int code = program_run(
      "train model.ini --output %s --set run.seed=3 --set run.max_steps=4 --set data.valid.epoch=40 "
      "--set backend.use=sim --set backend.sim.order=lazy --set backend.sim.drop=%s --json %s",
      drop, drop, way);
  const char *begin = strstr(program_out, "\"train\""), *end = strstr(program_out, "\"planned_peak_mib\"");
  if (code == 0 && begin != NULL && end != NULL) snprintf(numbers, size, "%.*s", (int)(end - begin), begin);
}

/* Drops each event of a kind from `first` to `last`. */
static void check_drops(const char *kind, int first, int last, const char *way) {
  char complete[512], numbers[512], drop[32], undetected[256] = "";
  run_without("wait:1000", way, complete, sizeof complete);
  assert_int_not_equal(complete[0], '\0');
  for (int n = first; n <= last; n++) {
    snprintf(drop, sizeof drop, "%s:%d", kind, n);
    run_without(drop, way, numbers, sizeof numbers);
    if (strcmp(numbers, complete) == 0) strcat(strcat(undetected, " "), drop);
  }
  if (undetected[0] != '\0') fail_msg("drops without effect:%s (%s)", undetected, way);
}

/* With workers the loader refills a slot as soon as the loop releases it, while the device may still read it.
 * The first wait is for the initial state, whose outputs are not read. */
static void a_dropped_wait_of_the_loop_is_detected(void **state) {
  (void)state;
  file_write("model.ini", lenet_ini);
  check_drops("wait", 2, 7, "--set data.workers=0");
  check_drops("wait", 2, 7, "--set data.workers=2 --set backend.capture=no");
}

/* Copies in and out, of four steps and two validation batches. */
static void a_dropped_copy_of_the_loop_is_detected(void **state) {
  (void)state;
  file_write("model.ini", lenet_ini);
  check_drops("copy", 1, 12, "--set data.workers=0");
  check_drops("copy", 9, 12, "--set data.workers=2 --set backend.capture=no");
}

/* ---- faults ---- */

static void a_device_that_fails_ends_the_run_with_the_ops_name(void **state) {
  (void)state;
  static const struct {
    const char *fault, *says;
  } faults[] = {{"allocation:3", "allocation 3, of "},
                {"launch:40", "launch 40, '"},
                {"kernel:40", "was made to fail"},
                {"copy:4", "'copy to "},
                {"device:60", "was made to fail"}};
  file_write("model.ini", lenet_ini);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    int code = program_run("train model.ini --output f%zu --set backend.use=sim --set backend.sim.fail=%s", i,
                           faults[i].fault);
    assert_int_equal(code, 69);
    if (strstr(program_err, faults[i].says) == NULL) fail_msg("%s: %s", faults[i].fault, program_err);
  }
}

static void too_little_memory_is_an_error_that_says_how_much(void **state) {
  (void)state;
  file_write("model.ini", lenet_ini);
  assert_int_not_equal(
      program_run("train model.ini --output o --set backend.use=sim --set backend.sim.memory=100KB"), 0);
  assert_non_null(strstr(program_err, " needs "));
  assert_non_null(strstr(program_err, "device 'simulated device 0' has 0.1 MiB"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(lenet_trains_to_the_bits_of_the_cpu),
      CASE(a_small_resnet_trains_to_the_bits_of_the_cpu),
      CASE(a_small_transformer_trains_to_the_bits_of_the_cpu),
      CASE(a_run_goes_on_from_one_backend_to_the_other),
      CASE(the_next_batch_arrives_under_the_current_step),
      CASE(several_steps_a_launch_give_the_bits_of_one),
      CASE(a_number_of_steps_that_is_wrong_is_refused_with_its_line),
      CASE(batches_of_one_launch_are_copied_at_once),
      CASE(the_steps_of_one_launch_are_one_replay),
      CASE(a_captured_step_is_launched_once),
      CASE(a_dropped_wait_of_the_loop_is_detected),
      CASE(a_dropped_copy_of_the_loop_is_detected),
      CASE(a_device_that_fails_ends_the_run_with_the_ops_name),
      CASE(too_little_memory_is_an_error_that_says_how_much),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
