/* Convolutions by the double of cuDNN: the fusions of training and inference against the cpu, and versions
 * that are not used. */
#include "double.h"

#include <math.h>
#include <stdbool.h>

/* Channels and images for which the fusions are estimated to pay. */
static const char net_ini[] =
    "[run]\nname = run\nseed = 1\nepochs = 1\n"
    "[data]\nsource = random\nshape = 8, 64, 64\nclasses = 4\nsamples = 16\nbatch = 16\n"
    "[model]\ninputs = image: f32[8, 64, 64]\nlayers =\n"
    "    conv1: conv2d(64, kernel=3, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n           relu\n"
    "    conv2: conv2d(64, kernel=3, padding=1, bias=no)\n"
    "    bn2:   batch_norm\n           relu\n"
    "    conv3: conv2d(64, kernel=3, stride=2, padding=1, bias=no)\n"
    "    bn3:   batch_norm\n           relu\n"
    "    conv4: conv2d(16, kernel=1)\n           relu\n"
    "           global_avg_pool\n    fc:    linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.2\n";
#define NET "model.ini --set precision.policy=fp16 --set backend.autotune=no "

/* Launches of the kernels whose names begin so. */
static int launches_of(const json_t *plan, const char *kernel) {
  const json_t *op;
  size_t i;
  int n = 0;
  json_array_foreach(program_member(plan, "ops"), i, op) n +=
      strncmp(program_text(op, "kernel"), kernel, strlen(kernel)) == 0;
  return n;
}

static const json_t *find_launch(const json_t *plan, const char *kernel) {
  json_t *op;
  size_t i;
  json_array_foreach(program_member(plan, "ops"), i,
                     op) if (strcmp(program_text(op, "kernel"), kernel) == 0) return op;
  fail_msg("no launch of %s", kernel);
  return NULL;
}

static void fusions_are_taken_and_train_like_the_cpu(void **state) {
  static const char *const kernels[] = {"cudnn_conv2d_moments", "cudnn_conv2d_norm_grad",
                                        "cudnn_norm_relu_conv2d", "cudnn_norm_relu_grad_weight",
                                        "cudnn_conv2d_relu"};
  static const char *const losses[] = {"train.loss", "valid.loss"};
  (void)state;
  file_write("model.ini", net_ini);
  const json_t *plan = program_json(0, "plan " NET ON_DOUBLE);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (launches_of(plan, kernels[i]) == 0) fail_msg("no launch of %s", kernels[i]);
  assert_int_equal(launches_of(plan, "cuda_conv2d"), 0);
  const json_t *cpu = program_json(0, "train " NET "--output cpu --set backend.use=cpu");
  const json_t *cuda = program_json(0, "train " NET ON_DOUBLE "--output cuda --set backend.fallback=error");
  double_is_content();
  for (int i = 0; i < 2; i++) {
    double x = program_number(cuda, losses[i]), y = program_number(cpu, losses[i]);
    if (!(fabs(x - y) <= 1e-3 * fabs(y))) fail_msg("%s: %.7g, the cpu has %.7g", losses[i], x, y);
  }
}

/* The images are read as they come and written as the first convolution reads them: no launch moves them. */
static void the_cast_of_images_writes_channels_last(void **state) {
  (void)state;
  file_write("model.ini", net_ini);
  const json_t *plan = program_json(0, "plan " NET ON_DOUBLE);
  assert_int_equal(launches_of(plan, "cuda_reorder"), 0);
  assert_string_equal(program_text(find_launch(plan, "cuda_pointwise"), "variant"), "to channels last");
  const json_t *compared = program_json(0, "compare " NET "--backends cpu,cuda --steps 1 --launches 1 "
                                           "--set backend.cuda.libraries=" DOUBLES);
  double_is_content();
  assert_int_equal(program_number(compared, "departing"), 0);
}

static void cudnn_is_left_out_if_asked(void **state) {
  (void)state;
  file_write("model.ini", net_ini);
  const json_t *plan = program_json(0, "plan " NET ON_DOUBLE "--set backend.cuda.cudnn=no");
  assert_int_equal(launches_of(plan, "cudnn_"), 0);
  assert_true(launches_of(plan, "cuda_conv2d") > 0);
}

/* The run goes on with other kernels; a line of the log has the reason. */
static void assert_version_refused(const char *version, const char *reason) {
  setenv("FAKECUDA_CUDNN_VERSION", version, 1);
  const json_t *plan = program_json(0, "plan -v " NET ON_DOUBLE);
  unsetenv("FAKECUDA_CUDNN_VERSION");
  assert_int_equal(launches_of(plan, "cudnn_"), 0);
  if (strstr(program_err, reason) == NULL) fail_msg("expected '%s': %s", reason, program_err);
}

static void versions_with_known_faults_are_refused_by_name(void **state) {
  (void)state;
  file_write("model.ini", net_ini);
  assert_version_refused("91000", "is cuDNN 9.10.0, which is known to compute some graphs wrongly");
  assert_version_refused("91001", "is cuDNN 9.10.1, which is known to compute some graphs wrongly");
  assert_version_refused("90701", "is cuDNN 9.7.1, expected 9.8.0 or a later 9");
}

/* While engines are listed: one graph declines, with a warning that names the function. */
static void a_failed_call_leaves_out_one_graph_with_a_warning(void **state) {
  static const char *const functions[] = {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                                          "cudnnBackendFinalize", "cudnnBackendGetAttribute"};
  (void)state;
  file_write("model.ini", net_ini);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    for (int call = 1; call <= 41; call += 20) {
      char failure[64];
      snprintf(failure, sizeof failure, "%s:%d", functions[i], call);
      setenv("FAKECUDA_FAIL", failure, 1);
      const json_t *plan = program_json(0, "plan " NET ON_DOUBLE);
      unsetenv("FAKECUDA_FAIL");
      assert_true(launches_of(plan, "cudnn_") > 0);
      const char *warning = strstr(program_err, "cuDNN failed, so other kernels run in its place");
      if (warning == NULL || strstr(warning, functions[i]) == NULL) fail_msg("%s: %s", failure, program_err);
    }
}

static void a_library_without_a_version_is_a_warning(void **state) {
  (void)state;
  file_write("model.ini", net_ini);
  setenv("FAKECUDA_FAIL", "cudnnGetVersion:1", 1);
  const json_t *plan = program_json(0, "plan " NET ON_DOUBLE);
  unsetenv("FAKECUDA_FAIL");
  assert_int_equal(launches_of(plan, "cudnn_"), 0);
  assert_non_null(strstr(program_err, "warning: cuda: convolutions and attention run without cuDNN"));
}

/* Queries, keys and values as columns of one product, and their gradients as those of another. */
static const char gpt_ini[] = "[run]\nname = run\nseed = 1\nepochs = 1\n"
                              "[data]\nsource = random\ntokens = 192\nclasses = 11\nsamples = 4\nbatch = 2\n"
                              "[model]\ninputs = tokens: i32[192]\ntargets = next: i32[192]\nlayers =\n"
                              "    wte:  embedding(11, 64)\n"
                              "    qkv:  linear(192)\n"
                              "    q, k, v: split(3, axis=-1)\n"
                              "    y:    attention(2, causal=yes) <- q, k, v\n"
                              "    head: linear(11)\n"
                              "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.2\n";

static void assert_attention(const char *deterministic, bool ordered) {
  char options[512];
  snprintf(options, sizeof options, NET ON_DOUBLE "--set run.deterministic=%s ", deterministic);
  const json_t *plan = program_json(0, "plan %s", options);
  const json_t *grad = find_launch(plan, "cudnn_attention_grad_split");
  find_launch(plan, "cudnn_attention_split");
  assert_int_equal(launches_of(plan, "cuda_attention"), 0);
  assert_int_equal(strstr(program_text(grad, "variant"), "ordered") != NULL, ordered);
  assert_int_equal(json_is_true(program_member(grad, "deterministic")), ordered);
  assert_true(json_integer_value(program_member(grad, "workspace")) > 0);
  const json_t *cpu = program_json(0, "train " NET "--output cpu_%s --set backend.use=cpu", deterministic);
  const json_t *cuda =
      program_json(0, "train %s--output cuda_%s --set backend.fallback=error", options, deterministic);
  double_is_content();
  double x = program_number(cuda, "train.loss"), y = program_number(cpu, "train.loss");
  if (!(fabs(x - y) <= 1e-3 * fabs(y))) fail_msg("%.7g, the cpu has %.7g", x, y);
}

static void attention_is_taken_and_trains_like_the_cpu(void **state) {
  (void)state;
  file_write("model.ini", gpt_ini);
  assert_attention("no", false);
}

static void deterministic_runs_take_the_ordered_gradient(void **state) {
  (void)state;
  file_write("model.ini", gpt_ini);
  assert_attention("yes", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(attention_is_taken_and_trains_like_the_cpu, double_open, program_close),
      cmocka_unit_test_setup_teardown(deterministic_runs_take_the_ordered_gradient, double_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(fusions_are_taken_and_train_like_the_cpu, double_open, program_close),
      cmocka_unit_test_setup_teardown(the_cast_of_images_writes_channels_last, double_open, program_close),
      cmocka_unit_test_setup_teardown(cudnn_is_left_out_if_asked, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_failed_call_leaves_out_one_graph_with_a_warning, double_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_library_without_a_version_is_a_warning, double_open, program_close),
      cmocka_unit_test_setup_teardown(versions_with_known_faults_are_refused_by_name, double_open,
                                      program_close),
  };
  return cmocka_run_group_tests_name("cuda cudnn", tests, NULL, NULL);
}
