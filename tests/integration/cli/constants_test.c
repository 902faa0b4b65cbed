/* Launches of a step that depend on nothing run once: the matrices of resize, which the device makes, and
 * zeros between the gradients of parameters. */
#include "transform_runs.h"

static const char resized[] = "resize([37, 19]), to_float, normalize(mean=0.13, std=0.31)";

/* The launches of a list with this layer and an op that begins so. */
static int count_launches(const json_t *list, const char *layer, const char *op) {
  const json_t *one;
  size_t i;
  int n = 0;
  json_array_foreach(list, i, one) n +=
      strcmp(program_text(one, "name"), layer) == 0 && strncmp(program_text(one, "op"), op, strlen(op)) == 0;
  return n;
}

/* Zeros between the gradients, as the parameters are aligned. */
static int count_gaps(const json_t *list) {
  const json_t *one;
  size_t i;
  int n = 0;
  json_array_foreach(list, i, one) n +=
      strcmp(program_text(one, "op"), "full") == 0 && strcmp(program_text(one, "dtype"), "f32") == 0;
  return n;
}

/* Rows and columns have matrices of different sizes. */
static void the_plan_has_them_beside_the_launches_of_a_step(void **state) {
  (void)state;
  static const char *const backends[] = {"cpu", "sim", "onednn"};
  write_model(resized, 37, 19);
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
    const json_t *plan =
        program_json(0, "plan model.ini --set backend.use=%s --set data.device_transforms=3", backends[i]);
    const json_t *ops = program_member(plan, "ops"), *constants = program_member(plan, "constants");
    assert_int_equal(json_array_size(ops), program_number(plan, "launches"));
    assert_int_equal(count_launches(ops, "resize", "reduce_sum"), 0);
    assert_int_equal(count_launches(constants, "resize", "reduce_sum"), 2);
    assert_int_equal(count_gaps(ops), 0);
    assert_true(count_gaps(constants) >= 3);
    double matrices = 2 * 4 * (37 * 28 + 19 * 28), kept = program_number(plan, "constant_bytes");
    double beside = program_number(plan, "peak_bytes") - program_number(plan, "arena_bytes") -
                    program_number(plan, "state_bytes");
    assert_true(kept >= matrices);
    assert_true(beside >= kept + matrices); /* validation has matrices of its own */
  }
}

static void training_has_the_same_bits(void **state) {
  (void)state;
  write_model(resized, 37, 19);
  train_both_ways("sim", 3, "");
  train_both_ways("sim", 3, "--set run.steps_per_launch=4");
  train_both_ways("sim", 3, "--set backend.capture=no");
  train_both_ways("sim", 3, "--set optimizer.accumulate=2");
  train_both_ways("cpu", 3, "--set run.memory_limit=2MiB");
  train_both_ways("onednn", 3, "--set precision.policy=bf16");
  train_both_ways("sim", 3,
                  "--set distributed.devices=2 --set backend.sim.devices=2 --set data.valid.batch=10");
}

static void a_resumed_run_makes_them_again(void **state) {
  (void)state;
  static const char train[] = "train model.ini --output %s --set backend.use=sim %s";
  write_model(resized, 37, 19);
  program_json(0, train, "whole", "");
  program_json(0, train, "half", "--set run.max_steps=7");
  program_json(0, train, "half", "--resume auto");
  checkpoints_equal("half", "whole");
}

static void compare_shows_them(void **state) {
  (void)state;
  write_model(resized, 37, 19);
  const json_t *r = program_json(0, "compare model.ini --steps 2 --backends cpu,sim "
                                    "--set data.device_transforms=3");
  assert_true(json_is_true(program_member(r, "agree")));
  assert_int_equal(count_launches(program_member(r, "launches"), "resize", "reduce_sum"), 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(the_plan_has_them_beside_the_launches_of_a_step),
      CASE(training_has_the_same_bits),
      CASE(a_resumed_run_makes_them_again),
      CASE(compare_shows_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
