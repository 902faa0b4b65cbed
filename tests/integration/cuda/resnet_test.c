/* ResNet-18 of docs/examples and smaller residual nets on the double of cuDNN: captured, with the fusions of
 * each precision, to the losses of the backend cpu; with an overflow; and with the same bits in any order of
 * the streams. EXAMPLES: the folder of the examples. */
#include "double.h"

#include <math.h>

#include "cudnn_models.h"
#include "tests/support/whole.h"

#define OPTIONS     "--set backend.autotune=no --set precision.policy=%s "
#define FP16_SCALED "--set precision.init_scale=4194304 --set precision.backoff_factor=0.00390625 "

enum { MOST_STEPS = 16 };

/* ---- runs ---- */

/* The steps of a run, from its metrics. */
typedef struct curve {
  int n;
  double loss[MOST_STEPS], scale[MOST_STEPS];
  int skipped[MOST_STEPS];
} curve;

static double number_or(const json_t *json, const char *key, double otherwise) {
  const json_t *value = json_object_get(json, key);
  return value != NULL ? json_number_value(value) : otherwise;
}

static curve read_curve(const char *output) {
  curve c = {0};
  char path[64];
  size_t n;
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", output);
  for (char *line = strtok(file_read(path, &n), "\n"); line != NULL; line = strtok(NULL, "\n")) {
    json_t *json = json_loads(line, 0, NULL);
    if (strcmp(program_text(json, "event"), "step") == 0 && c.n < MOST_STEPS) {
      c.loss[c.n] = program_number(json, "train.loss");
      c.scale[c.n] = number_or(json, "loss_scale", 1);
      c.skipped[c.n++] = (int)number_or(json, "skipped", 0);
    }
    json_decref(json);
  }
  assert_true(c.n > 0);
  return c;
}

static curve train_on_cpu(const char *policy, const char *more) {
  program_json(0, "train model.ini --output cpu_%s --set backend.use=cpu " OPTIONS "%s", policy, policy,
               more);
  char output[32];
  snprintf(output, sizeof output, "cpu_%s", policy);
  return read_curve(output);
}

/* The first step is launched, the others are replayed. */
static curve train_captured(const char *policy, const char *more) {
  char output[32];
  snprintf(output, sizeof output, "cuda_%s", policy);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  const json_t *result = program_json(0,
                                      "train model.ini --output %s " ON_DOUBLE OPTIONS
                                      "--set backend.fallback=error --set run.steps_per_launch=1 %s",
                                      output, policy, more);
  unsetenv("FAKECUDA_COUNTS");
  double_is_content();
  assert_string_equal(program_text(result, "backend"), "cuda");
  curve c = read_curve(output);
  assert_true(double_calls("cudnnBackendExecute") > 0);
  assert_true(double_calls("cuGraphLaunch") >= c.n - 1);
  return c;
}

static void curves_are_near(const char *policy, const curve *cuda, const curve *cpu, double tolerance) {
  assert_int_equal(cuda->n, cpu->n);
  for (int i = 0; i < cpu->n; i++) {
    assert_int_equal(cuda->skipped[i], cpu->skipped[i]);
    assert_true(cuda->scale[i] == cpu->scale[i]);
    if (!(fabs(cuda->loss[i] - cpu->loss[i]) <= tolerance * fabs(cpu->loss[i])))
      fail_msg("%s, step %d: %.7g, the cpu has %.7g", policy, i, cuda->loss[i], cpu->loss[i]);
  }
}

/* ---- plans ---- */

/* Launches of the kernels whose names begin so. */
static int launches_of(const json_t *plan, const char *kernel) {
  const json_t *op;
  size_t i;
  int n = 0;
  json_array_foreach(program_member(plan, "ops"), i, op) n +=
      strncmp(program_text(op, "kernel"), kernel, strlen(kernel)) == 0;
  return n;
}

/* One captured part, no launch outside of it, and all convolutions by cuDNN. */
static void plan_is_captured_and_cudnns(const char *policy, const char *const *kernels) {
  const json_t *plan = program_json(0, "plan model.ini " ON_DOUBLE OPTIONS, policy);
  assert_int_equal(program_number(plan, "captured_parts"), 1);
  assert_int_equal(json_array_size(program_member(plan, "uncaptured")), 0);
  assert_int_equal(json_array_size(program_member(plan, "fallbacks")), 0);
  assert_int_equal(launches_of(plan, "cuda_conv2d"), 0);
  for (; *kernels != NULL; kernels++)
    if (launches_of(plan, *kernels) == 0) fail_msg("%s: no launch of %s", policy, *kernels);
}

/* ---- ResNet-18 ---- */

static void write_resnet18(void) {
  static char text[8192];
  char *example = file_read(EXAMPLES "/cifar10_resnet18.ini", NULL);
  char *model = strstr(example, "[model]"), *end = strstr(example, "[optimizer]");
  assert_true(model != NULL && end != NULL && end > model);
  *end = '\0';
  int n = snprintf(text, sizeof text,
                   "[run]\nname = run\nseed = 1\n"
                   "[data]\nsource = random\nshape = 3, 32, 32\nclasses = 10\nsamples = 6\nbatch = 2\n"
                   "[data.valid]\nepoch = 2\n%s"
                   "[optimizer]\ntype = sgd\nlr = 0.005\nmomentum = 0.9\nweight_decay = 5e-4\n",
                   model);
  assert_in_range(n, 1, sizeof text - 1);
  file_write("model.ini", text);
}

static void resnet18_trains_like_on_the_cpu(const char *policy, double tolerance,
                                            const char *const *kernels) {
  write_resnet18();
  plan_is_captured_and_cudnns(policy, kernels);
  curve cuda = train_captured(policy, ""), cpu = train_on_cpu(policy, "");
  assert_int_equal(cpu.n, 3);
  curves_are_near(policy, &cuda, &cpu, tolerance);
}

static void resnet18_in_f32(void **state) {
  static const char *const kernels[] = {"cudnn_conv2d", "cudnn_conv2d_grad_input", "cudnn_conv2d_grad_weight",
                                        NULL};
  (void)state;
  resnet18_trains_like_on_the_cpu("fp32", 1e-4, kernels);
}

static void resnet18_in_f16_with_scaling(void **state) {
  static const char *const kernels[] = {"cudnn_conv2d_moments", "cudnn_conv2d_norm_grad",
                                        "cudnn_conv2d_grad_input", "cudnn_conv2d_grad_weight", NULL};
  (void)state;
  resnet18_trains_like_on_the_cpu("fp16", 2e-2, kernels);
}

static void resnet18_in_bf16(void **state) {
  static const char *const kernels[] = {"cudnn_conv2d_moments", "cudnn_conv2d_grad_input",
                                        "cudnn_conv2d_grad_weight", NULL};
  (void)state;
  resnet18_trains_like_on_the_cpu("bf16", 3e-2, kernels);
}

/* ---- smaller nets ---- */

/* The gradients of the first step overflow with a scale of 2^22. The next one is 2^14. */
static void an_overflow_leaves_out_the_same_updates(void **state) {
  (void)state;
  file_write("model.ini", cudnn_blocks_ini);
  curve cuda = train_captured("fp16", FP16_SCALED), cpu = train_on_cpu("fp16", FP16_SCALED);
  assert_true(cpu.n >= 4);
  assert_int_equal(cpu.skipped[0], 1);
  assert_int_equal(cpu.skipped[cpu.n - 1], 0);
  curves_are_near("fp16", &cuda, &cpu, 2e-2);
}

static double loss_in_order(int seed) {
  char number[16];
  snprintf(number, sizeof number, "%d", seed);
  setenv("FAKECUDA_ORDER", seed == 0 ? "eager" : seed == 1 ? "lazy" : "random", 1);
  setenv("FAKECUDA_SEED", number, 1);
  const json_t *result = program_json(0,
                                      "train model.ini --output order%d " ON_DOUBLE OPTIONS
                                      "--set run.deterministic=yes --set run.max_steps=2 %s",
                                      seed, "fp16", seed % 2 ? "--set backend.capture=no" : "");
  double_is_content_after(number);
  return program_number(result, "train.loss");
}

/* Many orders of the streams' work, captured and not, give one result: the bits of all parameters. */
static void the_order_of_streams_changes_no_bit(void **state) {
  static const char *const kernels[] = {"cudnn_conv2d_moments", "cudnn_conv2d_norm_grad", NULL};
  char first[] = "order0", other[16];
  (void)state;
  file_write("model.ini", cudnn_blocks_ini);
  plan_is_captured_and_cudnns("fp16", kernels);
  double loss = loss_in_order(0);
  for (int seed = 1; seed < whole_or(50, 5); seed++) {
    snprintf(other, sizeof other, "order%d", seed);
    assert_true(loss_in_order(seed) == loss);
    checkpoints_equal(first, other);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(resnet18_in_f32),
      TEST(resnet18_in_f16_with_scaling),
      TEST(resnet18_in_bf16),
      TEST(an_overflow_leaves_out_the_same_updates),
      TEST(the_order_of_streams_changes_no_bit),
  };
  return cmocka_run_group_tests_name("cuda resnet", tests, NULL, NULL);
}
