/* Regions in front of reductions and pooling, in their launches: a small residual network on the double of
 * CUDA, with the libraries' channels innermost. */
#include "double.h"

#include <math.h>

static const char ini[] =
    "[run]\nname = run\n[data]\nsource = random\nshape = 3, 21, 24\nclasses = 5\nsamples = 24\nbatch = 4\n"
    "[model]\ninputs = image: f32[3, 21, 24]\nlayers =\n"
    "    conv1: conv2d(16, kernel=3, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "           max_pool(3, stride=2, padding=1)\n"
    "    layer1: basic(16)\n"
    "    layer2: basic(24, stride=2), basic(24)\n"
    "           global_avg_pool\n"
    "    fc:    linear(5)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[block basic]\nargs = planes, stride=1\nlayers =\n"
    "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"
    "    bn2:   batch_norm\n"
    "    downsample: conv2d(planes, kernel=1, stride=stride, bias=no),\n"
    "                batch_norm <- in if stride != 1 or dim(in, 1) != planes\n"
    "           add <- bn2, downsample\n"
    "           relu\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

static int count_kernels(const char *policy, const char *kernel) {
  const json_t *plan = program_json(0, "plan model.ini " ON_DOUBLE "--set precision.policy=%s", policy),
               *launches = json_object_get(plan, "ops");
  int n = 0;
  for (size_t i = 0; i < json_array_size(launches); i++) {
    const char *name = json_string_value(json_object_get(json_array_get(launches, i), "kernel"));
    assert_non_null(name);
    n += strcmp(name, kernel) == 0;
  }
  return n;
}

/* The activation is computed where it is pooled, the residual's gradient where that of the pooling reads it,
 * and the gradient in front of each batch_norm where its sums are taken. In the block with a second
 * convolution on the shorter path two batch_norms read one gradient: one of them makes it for both. */
static void regions_join_what_reads_them(void **state) {
  (void)state;
  file_write("model.ini", ini);
  assert_int_equal(count_kernels("fp16", "cuda_max_pool2d_prologue"), 1);
  assert_int_equal(count_kernels("fp16", "cuda_max_pool2d_grad_prologue"), 1);
  assert_int_equal(count_kernels("fp16", "cuda_norm_grad_sums_prologue_epilogue"), 4);
  assert_int_equal(count_kernels("fp16", "cuda_norm_grad_sums_epilogue"), 1);
  assert_in_range(count_kernels("fp16", "cuda_reduce_sum_prologue_epilogue"), 1, 9);
}

/* Twelve steps, captured and not: the same bits from the same kernels, so none is measured. Statistics of so
 * small a batch make training in half precision chaotic, so its loss is that of the cpu in two digits. */
static void a_residual_network_trains_like_on_the_cpu(void **state) {
  static const char *const policies[] = {"fp32", "fp16"};
  static const double tolerances[] = {2e-3, 3e-2};
  (void)state;
  file_write("model.ini", ini);
  for (int i = 0; i < 2; i++) {
    static const char run[] =
        "train model.ini --output %s --set run.epochs=1 --set run.seed=3 --set precision.policy=%s ";
    char text[512];
    double loss[3];
    for (int k = 0; k < 3; k++) {
      snprintf(text, sizeof text, "%s%s%s", run,
               k == 0 ? "--set backend.use=cpu"
                      : ON_DOUBLE "--set backend.autotune=no --set backend.fallback=error",
               k == 2 ? " --set backend.capture=no" : "");
      loss[k] = program_number(program_json(0, text, k == 0 ? "cpu" : "cuda", policies[i]), "train.loss");
      double_is_content();
    }
    if (!(fabs(loss[1] - loss[0]) <= tolerances[i] * loss[0]))
      fail_msg("%s: %.7g, the cpu has %.7g", policies[i], loss[1], loss[0]);
    assert_true(loss[1] == loss[2]);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(regions_join_what_reads_them),
      TEST(a_residual_network_trains_like_on_the_cpu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
