/* Values that wait on the host under a limit, on the double of CUDA: the bits of a run without one, in
 * captured steps and not, in any order of the streams. */
#include "double.h"
#include "npy_files.h"

static const char deep_ini[] =
    "[run]\nname = run\n[data]\nsource = random\nshape = 64\nclasses = 4\nsamples = 256\nbatch = 128\n"
    "[model]\ninputs = image: f32[64]\nlayers =\n"
    "    b:  deep(64) * 6\n    fc: linear(4, bias=no)\nloss = cross_entropy\n"
    "[block deep]\nargs = width\nlayers =\n"
    "    one: linear(width, bias=no)\n         gelu\n    two: linear(width, bias=no)\n"
    "         dropout(0.1)\n         add <- two, in\n"
    "[optimizer]\ntype = sgd\nlr = 0.01\n";

static const json_t *train_on_double(const char *output, const char *more) {
  const json_t *run = program_json(0, "train model.ini --output %s " ON_DOUBLE "%s", output, more);
  double_is_content();
  assert_true(program_number(run, "planned_peak_bytes") == program_number(run, "measured_peak_bytes"));
  return run;
}

static void offloaded_values_change_no_bit(void **state) {
  static const char link[] = "--set backend.cuda.link=1e12 --set run.deterministic=yes",
                    plan_of[] = "plan model.ini " ON_DOUBLE "%s %s";
  static const char *const ways[] = {"", "--set backend.capture=no", "--set run.steps_per_launch=1"};
  char limit[64], more[256];
  (void)state;
  file_write("model.ini", deep_ini);
  const json_t *plan = program_json(0, plan_of, link, "");
  double peak = program_number(plan, "peak_bytes"), arena = program_number(plan, "arena_bytes");
  snprintf(limit, sizeof limit, "--set run.memory_limit=%.0f", peak - 0.25 * arena);
  assert_true(program_number(program_json(0, plan_of, link, limit), "offloaded_bytes") > 0);
  double loss = program_number(train_on_double("free", link), "train.loss");
  setenv("FAKECUDA_ORDER", "random", 1);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    snprintf(more, sizeof more, "%s %s %s", link, limit, ways[i]);
    assert_true(program_number(train_on_double("tight", more), "train.loss") == loss);
    checkpoint_folders_equal("free/run/checkpoints/last", "tight/run/checkpoints/last");
  }
}

/* The double's device computes as its host does. */
static void the_optimizer_on_the_host_changes_no_bit(void **state) {
  static const char run[] = "--set backend.cuda.link=1e12 --set run.deterministic=yes --set run.max_steps=3 "
                            "--set distributed.bucket=64KiB --set optimizer.place=%s %s";
  static const char *const ways[] = {"", "--set backend.capture=no", "--set optimizer.clip=0.01"};
  char more[512];
  (void)state;
  file_write("model.ini", deep_ini);
  setenv("FAKECUDA_ORDER", "random", 1);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    snprintf(more, sizeof more, run, "auto", ways[i]);
    double loss = program_number(train_on_double("device", more), "train.loss");
    snprintf(more, sizeof more, run, "host", ways[i]);
    assert_true(program_number(train_on_double("host", more), "train.loss") == loss);
    checkpoint_folders_equal("device/run/checkpoints/last", "host/run/checkpoints/last");
  }
}

/* Predictions whose weights are streamed. */
static void streamed_weights_change_no_bit(void **state) {
  static const char infer[] =
      "predict model.ini --weights w/run/checkpoints/last/model.safetensors --input x.npy "
      "--set run.deterministic=yes " ON_DOUBLE "--output %s %s",
                    limited[] = "--set run.memory_limit=%.0f";
  static const char *const ways[] = {"", "--set backend.capture=no"};
  float x[32 * 64];
  char limit[64], more[256];
  (void)state;
  file_write("model.ini", deep_ini);
  for (int i = 0; i < 32 * 64; i++) x[i] = (float)(i * 37 % 101) / 101.0f;
  write_npy("x.npy", 32, "64", x, 32 * 64);
  train_on_double("w", "--set run.max_steps=1");
  const json_t *plan = program_json(0, "plan model.ini --mode infer --batch 32 " ON_DOUBLE);
  snprintf(limit, sizeof limit, limited,
           program_number(plan, "peak_bytes") - 0.6 * program_number(plan, "state_bytes"));
  program_expect(program_run(infer, "free.npy", ""), 0);
  setenv("FAKECUDA_ORDER", "random", 1);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    snprintf(more, sizeof more, "--verbose %s %s", limit, ways[i]);
    program_expect(program_run(infer, "tight.npy", more), 0);
    assert_non_null(strstr(program_err, "streamed to the device"));
    double_is_content();
    files_equal("free.npy", "tight.npy");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(offloaded_values_change_no_bit, double_open, program_close),
      cmocka_unit_test_setup_teardown(streamed_weights_change_no_bit, double_open, program_close),
      cmocka_unit_test_setup_teardown(the_optimizer_on_the_host_changes_no_bit, double_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
