/* Weights stay in the layout of their kernels between steps; checkpoints and results do not depend on it. */
#include "configs.h"
#include "program.h"

#include <math.h>
#include <stdbool.h>

/* Convolutions, one of which has fewer channels than a block; only gradients change the weights. */
static const char model[] =
    "[run]\nname = net\nmax_steps = 2\nseed = 4\nthreads = 2\n"
    "[backend]\nuse = onednn\nautotune = no\n"
    "[data]\nsource = random\nshape = 3, 16, 16\nclasses = 4\nsamples = 16\nbatch = 4\n"
    "[model]\ninputs = image: f32[3, 16, 16]\nlayers =\n"
    "    stem: conv2d(32, kernel=5, stride=2, padding=2, bias=no)\n"
    "          relu\n"
    "    a:    conv2d(64, kernel=3, stride=2, padding=1)\n"
    "          relu\n"
    "    b:    conv2d(64, kernel=3, padding=1, bias=no)\n"
    "          relu\n"
    "    one:  conv2d(32, kernel=1)\n"
    "    odd:  conv2d(20, kernel=3, padding=1)\n"
    "          relu\n"
    "    pool: global_avg_pool\n"
    "    fc:   linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\nmomentum = 0.9\n";

static const char *layout_of(const char *more, const char *path) {
  const json_t *states = program_member(program_json(0, "plan model.ini %s", more), "states"), *state;
  size_t i;
  json_array_foreach(states, i, state) {
    const json_t *layout = json_object_get(state, "layout");
    if (strcmp(program_text(state, "path"), path) == 0)
      return layout ? json_string_value(layout) : "row-major";
  }
  fail_msg("there is no state %s", path);
  return "";
}

/* On other machines convolutions have row-major weights. */
static bool lays_weights(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

static void start(void) {
  if (!lays_weights()) skip();
  file_write("model.ini", model);
}

static double train(const char *format, const char *argument) {
  char more[512];
  snprintf(more, sizeof more, format, argument);
  const json_t *result = program_json(0, "train model.ini %s", more);
  assert_true(program_number(result, "planned_peak_mib") == program_number(result, "measured_peak_mib"));
  return program_number(result, "train.loss");
}

static void assert_near(double a, double b, double tolerance) {
  if (!(fabs(a - b) <= tolerance * fabs(b))) fail_msg("%.9g is not near %.9g", a, b);
}

#define LAST "checkpoints/last/"

static void the_plan_says_how_weights_lie(void **state) {
  (void)state;
  start();
  assert_non_null(strstr(layout_of("", "b.weight"), "0 1 2 3, 1:"));
  assert_string_equal(layout_of("", "b.weight.momentum"), layout_of("", "b.weight"));
  assert_string_equal(layout_of("", "odd.weight"), "row-major");
  assert_string_equal(layout_of("", "fc.weight"), "row-major");
  assert_string_equal(layout_of("--set backend.use=cpu", "b.weight"), "row-major");
  assert_string_equal(layout_of("--set precision.policy=bf16", "b.weight:bf16"),
                      layout_of("--set precision.policy=bf16", "b.weight"));
}

/* Without [backend] use. */
static void auto_takes_the_extension_before_its_family(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_string_equal(program_text(program_json(0, "train noise.ini"), "backend"), "onednn");
  assert_non_null(strstr(program_err, "backend    onednn, extends cpu"));
}

/* With a learning rate of 0 weights are saved as they were loaded, by every backend. */
static void weights_come_back_as_they_were(void **state) {
  (void)state;
  start();
  train("--set backend.use=%s --output one", "cpu");
  train("--set optimizer.lr=0 --set weights.file=%s --output two", "one/net/" LAST "model.safetensors");
  files_equal("two/net/" LAST "model.safetensors", "one/net/" LAST "model.safetensors");
  train("--set optimizer.lr=0 --set backend.use=cpu --set weights.file=%s --output three",
        "two/net/" LAST "model.safetensors");
  files_equal("three/net/" LAST "model.safetensors", "one/net/" LAST "model.safetensors");
}

static void either_backend_goes_on_where_the_other_stopped(void **state) {
  (void)state;
  start();
  train("--set backend.use=%s --output one", "cpu");
  train("--output %s", "two");
  double whole = train("--set backend.use=cpu --set run.max_steps=4 --output %s", "whole");
  train("--set run.max_steps=4 --resume %s", "one/net");
  double second = train("--set run.max_steps=4 --set backend.use=cpu --resume %s", "two/net");
  assert_near(second, whole, 1e-4);
  /* the recorded plan has layouts that no kernel of the reference backend requires */
  const json_t *states = program_member(file_json("two/net/plan.json"), "states"), *one;
  size_t i;
  json_array_foreach(states, i, one) assert_null(json_object_get(one, "layout"));
}

/* The same bits, with a replayed plan including its layouts. */
static void resumes_as_if_nothing_had_happened(const char *more) {
  char text[512];
  start();
  snprintf(text, sizeof text, "%s --set run.max_steps=3 --output whole", more);
  train("%s", text);
  snprintf(text, sizeof text, "%s --output part", more);
  train("%s", text);
  snprintf(text, sizeof text, "%s --set run.max_steps=3 --resume part/net", more);
  train("%s", text);
  assert_null(strstr(program_err, "another plan"));
  checkpoint_folders_equal("part/net/checkpoints/last", "whole/net/checkpoints/last");
}

static void resumes_in_f32(void **state) {
  (void)state;
  resumes_as_if_nothing_had_happened("");
}

static void resumes_in_bf16_with_micro_batches(void **state) {
  (void)state;
  resumes_as_if_nothing_had_happened("--set precision.policy=bf16 --set optimizer.accumulate=2");
}

static void learns_like_the_reference(const char *more) {
  char text[512];
  start();
  snprintf(text, sizeof text, "%s --output one", more);
  double fast = train("%s", text);
  snprintf(text, sizeof text, "%s --set backend.use=cpu --output two", more);
  assert_near(fast, train("%s", text), 1e-4);
}

static void micro_batches_add_up(void **state) {
  (void)state;
  learns_like_the_reference("--set optimizer.accumulate=2 --set data.samples=24 --set run.max_steps=3");
}

static void norms_and_groups_see_the_same_gradients(void **state) {
  (void)state;
  learns_like_the_reference(
      "--set optimizer.clip=0.1 --set run.max_steps=3 --set group.no_decay.match=*.bias "
      "--set group.no_decay.weight_decay=0 --set optimizer.weight_decay=0.1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(auto_takes_the_extension_before_its_family),
      TEST(the_plan_says_how_weights_lie),
      TEST(weights_come_back_as_they_were),
      TEST(either_backend_goes_on_where_the_other_stopped),
      TEST(resumes_in_f32),
      TEST(resumes_in_bf16_with_micro_batches),
      TEST(micro_batches_add_up),
      TEST(norms_and_groups_see_the_same_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
