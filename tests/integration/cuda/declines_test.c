/* Kernels whose code does not compile, and plans that cuDNN does not build, on the doubles of CUDA: another
 * kernel takes their place, with one warning for the reason. */
#include "double.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Engines of the double of cuDNN (tests/fakecuda/cudnn/support.h). */
#define OWN      "0"
#define COMPILED "1"
/* Codes of cuDNN. */
enum { CUDNN_BAD_PARAM = 2000, CUDNN_INTERNAL_ERROR = 4000, CUDNN_EXECUTION_FAILED = 5000 };

static const char convolutions_ini[] =
    "[run]\nname = run\nseed = 1\nepochs = 1\n"
    "[data]\nsource = random\nshape = 8, 16, 16\nclasses = 4\nsamples = 16\nbatch = 8\n"
    "[model]\ninputs = image: f32[8, 16, 16]\nlayers =\n"
    "    conv1: conv2d(16, kernel=3, padding=1)\n           relu\n"
    "           global_avg_pool\n    fc:    linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.2\n";

static const char attention_ini[] =
    "[run]\nname = run\nseed = 1\nepochs = 1\n"
    "[data]\nsource = random\ntokens = 64\nclasses = 11\nsamples = 4\nbatch = 2\n"
    "[model]\ninputs = tokens: i32[64]\ntargets = next: i32[64]\nlayers =\n"
    "    wte:  embedding(11, 64)\n    qkv:  linear(192)\n    q, k, v: split(3, axis=-1)\n"
    "    y:    attention(2, causal=yes) <- q, k, v\n    head: linear(11)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.2\n";

/* The same in the body of a loop. */
static const char loop_ini[] = "[run]\nname = run\nseed = 1\nmax_steps = 1\n"
                               "[data]\nsource = random\nsamples = 2\nbatch = 2\nfields = x: f32[2, 64, 64]\n"
                               "targets = label: i32[] 0..3\n"
                               "[model]\ninputs = x: f32[2, 64, 64]\nlayers =\n"
                               "    start = full([dim(x, 0), 64, 64], 0)\n    y, h: scan(cell) <- x, start\n"
                               "    fc:   linear(4) <- mean(h, axis=[1])\n"
                               "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.2\n"
                               "[block cell]\ninputs = x, h\nlayers =\n"
                               "    qkv:  linear(192) <- x + h\n    q, k, v: split(3, axis=-1) <- qkv\n"
                               "    o:    attention(2, causal=yes) <- q, k, v\noutputs = o, o\n";

static const char softmax_ini[] =
    "[run]\nname = run\nseed = 1\nepochs = 1\n"
    "[data]\nsource = digits\nepoch = 16\nbatch = 8\nworkers = 0\ntransforms = to_float\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "    flatten\n    fc1: linear(16)\n         gelu\n         softmax\n    fc2: linear(10)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

static int lines_with(const char *text) {
  int n = 0;
  for (const char *at = program_err; (at = strstr(at, text)) != NULL; at++) n++;
  return n;
}

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

/* Launches of the run whose kernels begin so. */
static int launches_of(const char *folder, const char *kernel) {
  char path[64];
  const json_t *op;
  size_t i;
  int n = 0;
  snprintf(path, sizeof path, "%s/run/plan.json", folder);
  json_array_foreach(program_member(file_json(path), "ops"), i, op) n +=
      strncmp(program_text(op, "kernel"), kernel, strlen(kernel)) == 0;
  return n;
}

/* Trains like the cpu, with one warning that has the reason. */
static void trains(const char *ini, const char *options, double tolerance) {
  file_write("model.ini", ini);
  const json_t *cpu = program_json(0, "train model.ini --output cpu --set backend.use=cpu %s", options);
  const json_t *cuda = program_json(0, "train model.ini --output cuda " ON_DOUBLE "%s", options);
  double_is_content();
  double x = program_number(cuda, "train.loss"), y = program_number(cpu, "train.loss");
  if (!(fabs(x - y) <= tolerance * fabs(y))) fail_msg("%.7g, the cpu has %.7g", x, y);
}

#define FP16 "--set precision.policy=fp16 --set backend.autotune=no "

/* ---- plans of cuDNN ---- */

#if HAS_CUDNN
static void unbuilt(const char *engine) {
  setenv("FAKECUDA_CUDNN_UNBUILT", engine, 1);
  assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
}

/* In `prepare`. */
static void another_engine_replaces_one_that_is_not_built(void **state) {
  (void)state;
  unbuilt(OWN);
  trains(convolutions_ini, FP16 "--set backend.fallback=error", 1e-3);
  unsetenv("FAKECUDA_CUDNN_UNBUILT");
  assert_int_equal(lines_with("declined when it was prepared"), 1);
  says("a test asked for no plan of engine " OWN);
  assert_true(launches_of("cuda", "cudnn_conv2d") > 0);
}

/* Calls behind those of planning describe and build plans. A code of a failed execution is no fault of the
 * device: the driver says so. */
static void a_plan_that_fails_by_any_code_is_left_out(void **state) {
  static const struct {
    const char *call;
    int behind, code; /* calls after those of planning */
  } failures[] = {{"cudnnBackendFinalize", 3, CUDNN_BAD_PARAM},
                  {"cudnnBackendFinalize", 13, CUDNN_INTERNAL_ERROR},
                  {"cudnnBackendFinalize", 23, CUDNN_EXECUTION_FAILED},
                  {"cudnnBackendSetAttribute", 9, CUDNN_EXECUTION_FAILED},
                  {"cudnnBackendCreateDescriptor", 6, CUDNN_EXECUTION_FAILED}};
  (void)state;
  file_write("model.ini", convolutions_ini);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  program_json(0, "plan model.ini " FP16 ON_DOUBLE);
  unsetenv("FAKECUDA_COUNTS");
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    char failure[64];
    snprintf(failure, sizeof failure, "%s:%d=%d", failures[i].call,
             double_calls(failures[i].call) + failures[i].behind, failures[i].code);
    assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
    setenv("FAKECUDA_FAIL", failure, 1);
    trains(convolutions_ini, FP16 "--set backend.fallback=error", 1e-3);
    unsetenv("FAKECUDA_FAIL");
    assert_int_equal(lines_with("declined when it was prepared: cuDNN does not build the plan: "), 1);
    says(failures[i].call);
  }
}

/* In finish_prepare: attention of cuDNN is compiled at run time. */
static void tenons_kernel_replaces_an_engine_that_does_not_compile(void **state) {
  (void)state;
  file_write("model.ini", attention_ini);
  unbuilt("");
  trains(attention_ini, FP16 "--set backend.fallback=error", 1e-3);
  assert_int_equal(launches_of("cuda", "cudnn_attention"), 2);
  unbuilt(COMPILED);
  trains(attention_ini, FP16 "--set backend.fallback=error", 1e-3);
  unsetenv("FAKECUDA_CUDNN_UNBUILT");
  assert_int_equal(lines_with("declined when it was prepared"), 1);
  says("kernel cudnn_attention");
  says("a test asked for no plan of engine " COMPILED);
  assert_int_equal(launches_of("cuda", "cudnn_attention"), 0);
  assert_true(launches_of("cuda", "cuda_attention") >= 2);
}

static void a_kernel_in_a_loop_is_replaced(void **state) {
  (void)state;
  unbuilt(COMPILED);
  trains(loop_ini, FP16 "--set backend.fallback=error", 1e-3);
  unsetenv("FAKECUDA_CUDNN_UNBUILT");
  assert_true(lines_with("declined when it was prepared: cuDNN does not build the plan: ") > 0);
  says("kernel cudnn_attention");
}

/* The library needs a current context on the thread that compiles. */
static void plans_are_compiled_on_threads(void **state) {
  (void)state;
  assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
  trains(attention_ini, FP16, 1e-3);
  assert_int_equal(launches_of("cuda", "cudnn_attention"), 2);
  assert_int_equal(lines_with("plans are built one by one"), 0);
}

static void plans_that_threads_cannot_compile_are_built_by_the_main_thread(void **state) {
  (void)state;
  assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
  setenv("FAKECUDA_CUDNN_NEEDS_HANDLE", "1", 1);
  trains(attention_ini, FP16, 1e-3);
  unsetenv("FAKECUDA_CUDNN_NEEDS_HANDLE");
  assert_int_equal(launches_of("cuda", "cudnn_attention"), 2);
  assert_int_equal(lines_with("plans are built one by one the first time"), 1);
  says("a test asked for plans with a handle alone");
}

/* The next run loads what the main thread has built. */
static void plans_of_the_main_thread_are_kept(void **state) {
  (void)state;
  assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
  setenv("FAKECUDA_CUDNN_NEEDS_HANDLE", "1", 1);
  trains(attention_ini, FP16, 1e-3);
  assert_int_equal(lines_with("plans are built one by one"), 1);
  assert_int_equal(system("rm -rf cuda cpu"), 0);
  trains(attention_ini, FP16, 1e-3);
  unsetenv("FAKECUDA_CUDNN_NEEDS_HANDLE");
  assert_int_equal(launches_of("cuda", "cudnn_attention"), 2);
  assert_int_equal(lines_with("plans are built one by one"), 0);
  assert_int_equal(lines_with("was not kept"), 0);
}

static void conformance_goes_on_without_a_plan(void **state) {
  (void)state;
  unbuilt(OWN);
  int code = program_run("conformance --backend cuda --case conv2d --draws 6 "
                         "--set backend.cuda.libraries=" DOUBLES);
  unsetenv("FAKECUDA_CUDNN_UNBUILT");
  if (code != 0) fail_msg("%s%s", program_out, program_err);
  says("kernel cudnn_conv2d");
  says("a test asked for no plan of engine " OWN);
  double_is_content();
}
#endif

/* ---- cuBLASLt ---- */

static const char gelu_ini[] =
    "[run]\nname = run\nseed = 1\nepochs = 1\n"
    "[data]\nsource = digits\nepoch = 16\nbatch = 8\nworkers = 0\ntransforms = to_float\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "    flatten\n    fc1: linear(64)\n         gelu(tanh)\n    fc2: linear(64)\n"
    "         gelu(tanh)\n    fc3: linear(16)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

/* No algorithm takes an auxiliary matrix of less than 16 bytes, and operands of a run have more. */
static void products_keep_their_gelu(void **state) {
  static const char *const policies[] = {"fp32", "bf16"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    char options[96];
    snprintf(options, sizeof options, "--set precision.policy=%s --set backend.autotune=no", policies[i]);
    assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
    trains(gelu_ini, options, i == 0 ? 1e-5 : 1e-2);
    assert_int_equal(lines_with("declined when it was prepared"), 0);
    assert_true(launches_of("cuda", "cuda_matmul_kept_gelu") == 2);
    assert_true(launches_of("cuda", "cuda_matmul_gelu_grad") > 0);
  }
}

/* Epilogue 512: the gradient of the bias. */
static void a_product_that_the_heuristic_refuses_is_left_out(void **state) {
  (void)state;
  setenv("FAKECUDA_CUBLASLT_INVALID", "512", 1);
  trains(gelu_ini, "--set backend.autotune=no", 1e-5);
  unsetenv("FAKECUDA_CUBLASLT_INVALID");
  assert_int_equal(lines_with("declined when it was prepared"), 1);
  says("kernel cuda_matmul_bias_grad");
  says("cublasLtMatmulAlgoGetHeuristic refuses this product: an argument is invalid");
  assert_int_equal(launches_of("cuda", "cuda_matmul_bias_grad"), 0);
}

/* Also where autotune finds it out. A benchmark counts the products that go without it. */
static void a_lost_fusion_is_said_once(void **state) {
  (void)state;
  file_write("model.ini", gelu_ini);
  setenv("FAKECUDA_CUBLASLT_INVALID", "512", 1);
  const json_t *one,
      *declined =
          program_member(program_json(0, "bench model.ini --rounds 1 --steps 1 " ON_DOUBLE), "declined");
  unsetenv("FAKECUDA_CUBLASLT_INVALID");
  assert_int_equal(lines_with("warning"), 1);
  says("kernel cuda_matmul_bias_grad");
  says("; other kernels take its ops");
  assert_int_equal(json_array_size(declined), 1);
  one = json_array_get(declined, 0);
  assert_string_equal(program_text(one, "kernel"), "cuda_matmul_bias_grad");
  assert_int_equal(program_number(one, "matches"), 3);
}

static void results_that_cannot_be_used_are_skipped(void **state) {
  (void)state;
  setenv("FAKECUDA_CUBLASLT_BAD_STATE", "1", 1);
  trains(gelu_ini, "--set backend.autotune=no --set backend.fallback=error", 1e-5);
  unsetenv("FAKECUDA_CUBLASLT_BAD_STATE");
  assert_int_equal(lines_with("declined when it was prepared"), 0);
}

/* ---- NVRTC ---- */

/* The text of each compilation in turn does not compile: another kernel, or the cpu, computes it. */
static void code_that_does_not_compile_is_left_out(void **state) {
  (void)state;
  for (int n = 1; n <= 9; n++) {
    char failure[64];
    snprintf(failure, sizeof failure, "nvrtcCompileProgram:%d=6", n);
    assert_int_equal(system("rm -rf cuda cpu tenon"), 0);
    setenv("FAKECUDA_FAIL", failure, 1);
    trains(softmax_ini, "", 1e-4);
    unsetenv("FAKECUDA_FAIL");
    assert_int_equal(lines_with("declined when it was prepared"), 1);
    says("kernel cuda_");
    says("does not compile for sm_90: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION: ");
    says("(2): error: a test asked for this failure");
    assert_int_equal(lines_with("1 error detected"), 0);
  }
}

/* The message has the reasons of all kernels. */
static void an_op_without_a_kernel_is_an_error_with_the_reason(void **state) {
  (void)state;
  file_write("model.ini", softmax_ini);
  setenv("FAKECUDA_FAIL", "nvrtcCompileProgram:1+=6", 1);
  assert_int_equal(program_run("train model.ini --output cuda " ON_DOUBLE "--set backend.fallback=error"),
                   69);
  unsetenv("FAKECUDA_FAIL");
  says("when it was prepared: cuda: ");
  says("(2): error: a test asked for this failure");
  double_is_content();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
#if HAS_CUDNN
    TEST(another_engine_replaces_one_that_is_not_built),
    TEST(a_plan_that_fails_by_any_code_is_left_out),
    TEST(tenons_kernel_replaces_an_engine_that_does_not_compile),
    TEST(a_kernel_in_a_loop_is_replaced),
    TEST(plans_are_compiled_on_threads),
    TEST(plans_that_threads_cannot_compile_are_built_by_the_main_thread),
    TEST(plans_of_the_main_thread_are_kept),
    TEST(conformance_goes_on_without_a_plan),
#endif
    TEST(products_keep_their_gelu),
    TEST(a_product_that_the_heuristic_refuses_is_left_out),
    TEST(a_lost_fusion_is_said_once),
    TEST(results_that_cannot_be_used_are_skipped),
    TEST(code_that_does_not_compile_is_left_out),
    TEST(an_op_without_a_kernel_is_an_error_with_the_reason),
  };
  return cmocka_run_group_tests_name("cuda declines", tests, NULL, NULL);
}
