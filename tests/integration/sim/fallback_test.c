/* Runs on a device that lacks ops, which fall back to the cpu, forward and backward. The results have the
 * bits of a run on the cpu alone. */
#include "configs.h"
#include "runs.h"

static const char lenet[] =
    "[run]\nname = run\n[data]\nsource = digits\nepoch = 64\nbatch = 8\nworkers = 1\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nbatch = 20\nepoch = 40\n" LENET_CONVOLUTIONS "    fc1:   linear(84)\n"
    "           gelu\n"
    "    fc3:   linear(10)\n" LENET_LEARNING;

/* Ops of forward, of backward, of both, of the update, and inside regions of pointwise ops. */
static void training_gives_the_bits_of_the_cpu(void **state) {
  static const char *const lacks[] = {"max_pool2d,max_pool2d_grad", "conv2d_grad_weight", "conv2d,matmul",
                                      "mul,argmax", "relu,select"};
  (void)state;
  file_write("model.ini", lenet);
  const json_t *cpu = train("cpu", "--set backend.use=cpu");
  for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++) {
    char output[32], more[256];
    snprintf(output, sizeof output, "sim%zu", i);
    snprintf(more, sizeof more,
             "--set backend.use=sim --set backend.fallback=allow --set backend.sim.lacks=%s "
             "--set backend.sim.seed=%zu --set backend.capture=%s",
             lacks[i], i, i % 2 ? "no" : "yes");
    const json_t *sim = train(output, more);
    assert_true(program_number(sim, "train.loss") == program_number(cpu, "train.loss"));
    assert_true(program_number(sim, "valid.loss") == program_number(cpu, "valid.loss"));
    assert_true(program_number(sim, "planned_peak_bytes") == program_number(sim, "measured_peak_bytes"));
    checkpoints_equal(output, "cpu");
  }
}

static const char lacking[] = "--set backend.use=sim --set backend.sim.lacks=max_pool2d,max_pool2d_grad";

/* Two pools forward and two backward; each copies its operand to the host and its result back. */
static void the_plan_shows_each_fallback_with_its_cost(void **state) {
  (void)state;
  file_write("model.ini", lenet);
  const json_t *plan = program_json(0, "plan model.ini %s", lacking);
  const json_t *list = program_member(plan, "fallbacks"), *one;
  size_t i;
  assert_int_equal(json_array_size(list), 4);
  assert_int_equal((int)program_number(plan, "cuts"), 4);
  json_array_foreach(list, i, one) {
    assert_non_null(strstr(program_text(one, "op"), "max_pool2d"));
    assert_string_equal(program_text(one, "backend"), "cpu");
    assert_non_null(strstr(program_text(one, "reason"), "[backend.sim] lacks names max_pool2d"));
  }
  one = json_array_get(list, 0);
  assert_string_equal(program_text(one, "op"), "max_pool2d");
  assert_int_equal((int)program_number(one, "bytes"), 8 * 6 * (28 * 28 + 14 * 14) * 4);
  assert_int_equal(program_run("plan model.ini %s", lacking), 0);
  assert_non_null(strstr(program_out, "fallbacks: 4"));
  assert_non_null(strstr(program_out, "fallback: max_pool2d of "));
  assert_non_null(strstr(program_out, "over the bus and 4 waits a step"));
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, word)) != NULL; at++) n++;
  return n;
}

static void a_warning_names_each_op_once(void **state) {
  (void)state;
  file_write("model.ini", lenet);
  assert_int_equal(program_run("train model.ini %s --set run.max_steps=1", lacking), 0);
  assert_int_equal(count(program_err, "falls back to cpu"), 4);
  assert_non_null(strstr(program_err, "model.ini:"));
  assert_int_equal(
      program_run("train model.ini %s --set run.max_steps=1 --set backend.fallback=allow", lacking), 0);
  assert_int_equal(count(program_err, "falls back"), 0);
}

static void refusing_says_where_why_and_what_to_do(void **state) {
  (void)state;
  file_write("model.ini", lenet);
  assert_int_not_equal(program_run("train model.ini %s --set backend.fallback=error", lacking), 0);
  assert_non_null(strstr(program_err, "no kernel takes max_pool2d"));
  assert_non_null(strstr(program_err, "model.ini:"));
  assert_non_null(strstr(program_err, "[backend.sim] lacks names max_pool2d"));
  assert_non_null(strstr(program_err, "cpu can do it: [backend] fallback = warn lets it run there"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(training_gives_the_bits_of_the_cpu),
      TEST(the_plan_shows_each_fallback_with_its_cost),
      TEST(a_warning_names_each_op_once),
      TEST(refusing_says_where_why_and_what_to_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
