/* Plans for a device that a file describes read [backend.cuda], although no backend is open. DEVICE: the
 * description. */
#include "double.h"

#define PLAN "plan convolution.ini --device " DEVICE " --set precision.policy=fp16 "

static const char convolution_ini[] = "[run]\nname = convolution\noutput =\n"
                                      "[data]\nsource = random\nshape = 8, 16, 16\nclasses = 4\nbatch = 8\n"
                                      "[model]\ninputs = image: f32[8, 16, 16]\n"
                                      "layers =\n"
                                      "  c1: conv2d(16, kernel=3, padding=1)\n"
                                      "      relu, global_avg_pool\n"
                                      "  fc: linear(4)\n"
                                      "loss = cross_entropy\n"
                                      "[optimizer]\ntype = sgd\nlr = 0.1\n";

static int described_open(void **state) {
  int code = double_open(state);
  unsetenv("FAKECUDA_CUDNN_VERSION");
  file_write("convolution.ini", convolution_ini);
  return code;
}

static int by_cudnn(const json_t *plan) {
  const json_t *ops = program_member(plan, "ops");
  int n = 0;
  for (size_t i = 0; i < json_array_size(ops); i++)
    n += strncmp(program_text(json_array_get(ops, i), "kernel"), "cudnn_", 6) == 0;
  return n;
}

/* A convolution that cuDNN could compute has another kernel, for this reason. */
static void assert_declined(const json_t *plan, const char *reason) {
  const json_t *ops = program_member(plan, "ops"), *one;
  size_t i, k;
  json_array_foreach(ops, i, one) {
    const json_t *list = program_member(one, "rejected"), *rejected;
    json_array_foreach(list, k,
                       rejected) if (strstr(program_text(rejected, "reason"), reason) != NULL) return;
  }
  fail_msg("no kernel was declined because of: %s", reason);
}

static void cudnn_can_be_left_out(void **state) {
  (void)state;
  const json_t *plan = program_json(0, PLAN "--set backend.cuda.cudnn=no");
  assert_int_equal(by_cudnn(plan), 0);
  assert_declined(plan, "[backend.cuda] cudnn = no");
}

/* The double of cuDNN answers, also where a real one is installed: it has the version that it is told. */
static void the_folder_of_libraries_comes_first(void **state) {
  (void)state;
  const json_t *plan = program_json(0, PLAN "--set backend.cuda.libraries=" DOUBLES);
  assert_in_range(by_cudnn(plan), 1, 8);
  setenv("FAKECUDA_CUDNN_VERSION", "91001", 1);
  plan = program_json(0, PLAN "--set backend.cuda.libraries=" DOUBLES);
  assert_int_equal(by_cudnn(plan), 0);
  assert_declined(plan, DOUBLES);
}

static void the_sections_options_are_checked(void **state) {
  (void)state;
  assert_int_equal(program_run(PLAN "--set backend.cuda.cudnn=perhaps"), 65);
  assert_non_null(strstr(program_err, "perhaps"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, described_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(cudnn_can_be_left_out), TEST(the_folder_of_libraries_comes_first),
                                     TEST(the_sections_options_are_checked)};
  return cmocka_run_group_tests_name("cuda described", tests, NULL, NULL);
}
