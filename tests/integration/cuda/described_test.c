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

/* Batch norms and ReLUs between convolutions, which cuDNN fuses in f16 alone. */
#define FUSED(n) "  c" #n ": conv2d(64, kernel=3, padding=1, bias=no)\n  b" #n ": batch_norm\n      relu\n"
static const char fusions_ini[] = "[run]\nname = fusions\noutput =\n"
                                  "[data]\nsource = random\nshape = 16, 32, 32\nclasses = 4\nbatch = 32\n"
                                  "[model]\ninputs = image: f32[16, 32, 32]\n"
                                  "layers =\n" FUSED(1) FUSED(2) FUSED(3) FUSED(4) FUSED(5)
                                      FUSED(6) "      global_avg_pool\n  fc: linear(4)\n"
                                               "loss = cross_entropy\n"
                                               "[optimizer]\ntype = sgd\nlr = 0.1\n";
static const char linear_ini[] = "[run]\nname = linear\noutput =\n"
                                 "[data]\nsource = random\nshape = 16\nclasses = 4\nbatch = 32\n"
                                 "[model]\ninputs = x: f32[16]\nlayers =\n  fc: linear(4)\n"
                                 "loss = cross_entropy\n"
                                 "[optimizer]\ntype = sgd\nlr = 0.1\n";
static const char attention_ini[] =
    "[run]\nname = attention\noutput =\n"
    "[data]\nsource = random\nshape = 64, 32\nclasses = 4\nbatch = 8\n"
    "[model]\ninputs = x: f32[64, 32]\nlayers =\n"
    "  qkv: linear(96)\n  q, k, v: split(3, axis=-1)\n  y: attention(4) <- q, k, v\n"
    "  f: flatten\n  fc: linear(4)\n"
    "loss = cross_entropy\n"
    "[optimizer]\ntype = sgd\nlr = 0.1\n";
#define FUSIONS                                                                                              \
  "plan fusions.ini --device " DEVICE " --set backend.cuda.libraries=" DOUBLES " --set precision.policy="

/* The doubles are found by the option alone. */
static int described_open(void **state) {
  int code = double_open(state);
  unsetenv("FAKECUDA_CUDNN_VERSION");
  unsetenv("LD_LIBRARY_PATH");
  file_write("convolution.ini", convolution_ini);
  file_write("fusions.ini", fusions_ini);
  file_write("linear.ini", linear_ini);
  file_write("attention.ini", attention_ini);
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

/* cuDNN has engines that are compiled at run time only where a libcuda.so.1 can be opened. Without a driver,
 * the stub in the toolkit's folder is one. */
static void the_toolkits_stub_shows_engines_that_are_compiled(void **state) {
  (void)state;
  assert_int_equal(system("mkdir -p own cuda/lib64/stubs && ln -s " DOUBLES "/libcudnn.so.9 own && "
                          "ln -s " DOUBLES "/libcuda.so.1 cuda/lib64/stubs/libcuda.so"),
                   0);
  setenv("CUDA_PATH", "cuda", 1);
  const json_t *plan = program_json(0, "plan attention.ini --device " DEVICE " --set precision.policy=bf16 "
                                       "--set backend.cuda.libraries=own");
  unsetenv("CUDA_PATH");
  assert_int_equal(by_cudnn(plan), 2);
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

/* The numbers are those of the plan under the other policy. */
static void bf16_is_set_beside_fp16(void **state) {
  static const char *const numbers[] = {"launches", "cost_ms", "peak_bytes"};
  double own[3], other[3];
  (void)state;
  const json_t *plan = program_json(0, FUSIONS "bf16");
  const json_t *beside = program_member(plan, "other_policy");
  assert_string_equal(program_text(plan, "precision"), "bf16");
  assert_string_equal(program_text(beside, "policy"), "fp16");
  assert_true(json_is_true(program_member(beside, "scales_loss")));
  assert_true(program_number(beside, "seconds") > 0);
  for (int i = 0; i < 3; i++) {
    own[i] = program_number(plan, numbers[i]);
    other[i] = program_number(beside, numbers[i]);
  }
  plan = program_json(0, FUSIONS "fp16");
  assert_null(json_object_get(plan, "other_policy"));
  for (int i = 0; i < 3; i++) {
    assert_true(program_number(plan, numbers[i]) == other[i]);
    assert_true(other[i] < own[i]);
  }
}

static void both_policies_have_the_options_of_the_section(void **state) {
  (void)state;
  const json_t *plan = program_json(0, FUSIONS "bf16 --set precision.pointwise=f32");
  double launches = program_number(plan, "other_policy.launches"),
         ms = program_number(plan, "other_policy.cost_ms");
  plan = program_json(0, FUSIONS "fp16 --set precision.pointwise=f32");
  assert_true(program_number(plan, "launches") == launches);
  assert_true(program_number(plan, "cost_ms") == ms);
}

static void what_the_other_policy_saves_is_printed(void **state) {
  char line[160];
  (void)state;
  const json_t *plan = program_json(0, FUSIONS "bf16"), *other = program_member(plan, "other_policy");
  snprintf(line, sizeof line, "\nbf16: %d launches, %.4g ms, ", (int)program_number(plan, "launches"),
           program_number(plan, "cost_ms"));
  char *beside = line + strlen(line) + 1;
  snprintf(beside, 80, "; fp16 with loss scaling: %d launches, ", (int)program_number(other, "launches"));
  assert_int_equal(program_run(FUSIONS "bf16"), 0);
  assert_non_null(strstr(program_out, line));
  assert_non_null(strstr(program_out, beside));
  assert_int_equal(program_run(FUSIONS "fp16"), 0);
  assert_null(strstr(program_out, "with loss scaling"));
}

static void a_training_begins_with_a_note_about_the_other_policy(void **state) {
  static const char train[] = "train convolution.ini " ON_DOUBLE
                              "--set data.samples=8 --set run.max_steps=1 --set backend.autotune=no "
                              "--set precision.policy=";
  (void)state;
  assert_int_equal(program_run("%sbf16", train), 0);
  assert_non_null(strstr(program_err, "note       in fp16 this device has more kernels"));
  assert_int_equal(program_run("%sfp16", train), 0);
  assert_null(strstr(program_err, "more kernels"));
}

/* other.json: DEVICE with compute capability 10.0, for which cuDNN has no fusions in f16. */
static void device_of_another_architecture(void) {
  json_t *device = json_load_file(DEVICE, 0, NULL);
  assert_int_equal(json_object_set_new(device, "arch", json_integer(100)), 0);
  assert_int_equal(json_dump_file(device, "other.json", 0), 0);
  json_decref(device);
}

/* Nothing is planned twice where no fusion can be lost. */
static void other_plans_stand_alone(void **state) {
  (void)state;
  assert_null(json_object_get(program_json(0, FUSIONS "bf16 --set backend.cuda.cudnn=no"), "other_policy"));
  assert_null(json_object_get(program_json(0, FUSIONS "tf32"), "other_policy"));
  device_of_another_architecture();
  const json_t *plan = program_json(0, "plan fusions.ini --device other.json --set precision.policy=bf16 "
                                       "--set backend.cuda.libraries=" DOUBLES);
  assert_null(json_object_get(plan, "other_policy"));
  const json_t *linear = program_json(0, "plan linear.ini --device " DEVICE " --set precision.policy=bf16");
  assert_null(json_object_get(linear, "other_policy"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, described_open, program_close)

/* Workspace of the gradient of a layer norm: less, the more rows have their sums in a block's memory. */
static int64_t norm_workspace(const char *device) {
  const json_t *plan = program_json(0, "plan norm.ini --device %s", device), *op;
  size_t i;
  json_array_foreach(program_member(plan, "ops"), i,
                     op) if (strncmp(program_text(op, "kernel"), "cuda_layer_norm_grad", 20) ==
                             0) return (int64_t)program_number(op, "workspace");
  fail_msg("no gradient of a layer norm");
  return 0;
}

static void the_memory_of_a_block_is_the_described_one(void **state) {
  (void)state;
  file_write("norm.ini", "[run]\nname = norm\noutput =\n"
                         "[data]\nsource = random\nshape = 768\nclasses = 4\nbatch = 1024\n"
                         "[model]\ninputs = x: f32[768]\nlayers =\n"
                         "  fc1: linear(768)\n  ln: layer_norm\n  fc2: linear(4)\n"
                         "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n");
  json_t *device = json_deep_copy(file_json(DEVICE)), *details = json_object_get(device, "details");
  int64_t whole = norm_workspace(DEVICE);
  json_object_set_new(details, "maxSharedMemoryPerBlockOptin", json_integer(99 << 10));
  assert_int_equal(json_dump_file(device, "less.json", 0), 0);
  json_object_del(details, "maxSharedMemoryPerBlockOptin");
  assert_int_equal(json_dump_file(device, "least.json", 0), 0);
  assert_true(whole > 0);
  assert_true(norm_workspace("less.json") > whole);
  assert_true(norm_workspace("least.json") > whole);
  json_decref(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(cudnn_can_be_left_out),
                                     TEST(the_toolkits_stub_shows_engines_that_are_compiled),
                                     TEST(the_folder_of_libraries_comes_first),
                                     TEST(the_sections_options_are_checked),
                                     TEST(bf16_is_set_beside_fp16),
                                     TEST(both_policies_have_the_options_of_the_section),
                                     TEST(what_the_other_policy_saves_is_printed),
                                     TEST(a_training_begins_with_a_note_about_the_other_policy),
                                     TEST(the_memory_of_a_block_is_the_described_one),
                                     TEST(other_plans_stand_alone)};
  return cmocka_run_group_tests_name("cuda described", tests, NULL, NULL);
}
