/* Inference by cuDNN on its double: batch norms are folded into the convolutions before them, with the
 * residual and the ReLU behind; the outputs are those of the backend cpu. */
#include "double.h"

#include <math.h>
#include <stdlib.h>

#include "cudnn_models.h"

#define LAYERS                                                                                               \
  "[model]\ninputs = image: f32[8, 12, 12]\nlayers =\n"                                                      \
  "    stem:  conv2d(16, kernel=3, padding=1, bias=no)\n"                                                    \
  "    bn:    batch_norm\n           relu\n"                                                                 \
  "    a:     residual(16)\n    b:     residual(32, 2)\n"                                                    \
  "           global_avg_pool\n    fc:    linear(6)\n"
#define BLOCK                                                                                                \
  "[block residual]\nargs = planes, stride=1\nlayers =\n"                                                    \
  "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"                                 \
  "    bn1:   batch_norm\n           relu\n"                                                                 \
  "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"                                                \
  "    bn2:   batch_norm\n"                                                                                  \
  "    down:  conv2d(planes, kernel=1, stride=stride, bias=no), batch_norm <- in if stride != 1\n"           \
  "           add <- bn2, down\n           relu\n"
/* The model alone is planned for inference. */
#define INFER_INI "[run]\nname = run\n" LAYERS BLOCK
#define TRAIN_INI                                                                                            \
  "[run]\nname = run\nseed = 3\n[data]\nsource = random\nshape = 8, 12, 12\nclasses = 6\nsamples = 48\n"     \
  "batch = 8\n" LAYERS "loss = cross_entropy\n" BLOCK "[optimizer]\ntype = sgd\nlr = 0.05\n"
#define WEIGHTS "--weights trained/run/checkpoints/last/model.safetensors "
#define OPTIONS "--set backend.autotune=no --set precision.policy=%s "

enum { BATCH = 5, PIXELS = 8 * 12 * 12, CLASSES = 6, HEADER = 128 };

/* ---- arrays ---- */

/* A .npy file of f32, whose header has 128 bytes. */
static void write_images(void) {
  static char bytes[HEADER + BATCH * PIXELS * sizeof(float)];
  float *values = (float *)(void *)(bytes + HEADER);
  memset(bytes, ' ', HEADER);
  memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
  const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 8, 12, 12), }";
  memcpy(bytes + 10, text, sizeof text - 1);
  bytes[HEADER - 1] = '\n';
  for (int i = 0; i < BATCH * PIXELS; i++) values[i] = sinf(0.37f * (float)i) + 0.1f * (float)(i % 7);
  file_write_bytes("x.npy", bytes, sizeof bytes);
}

static const float *scores_of(const char *path) {
  size_t n;
  const char *bytes = file_read(path, &n);
  assert_int_equal(n, HEADER + BATCH * CLASSES * sizeof(float));
  return (const float *)(const void *)(bytes + HEADER);
}

static void outputs_are_near(const char *policy, double tolerance) {
  const float *cpu = scores_of("cpu.npy"), *cuda = scores_of("cuda.npy");
  double most = 0, largest = 0;
  for (int i = 0; i < BATCH * CLASSES; i++) {
    double d = fabs((double)cuda[i] - (double)cpu[i]);
    if (d > most || isnan(d)) most = d;
    largest = fmax(largest, fabs((double)cpu[i]));
  }
  assert_true(largest > 0.1);
  if (!(most <= tolerance * largest))
    fail_msg("%s: a difference of %g, the largest output is %g", policy, most, largest);
}

/* ---- tests ---- */

static int chosen[16];

static void note_kernels(const char *policy) {
  const json_t *op;
  size_t i;
  const json_t *plan = program_json(0, "plan infer.ini " ON_DOUBLE OPTIONS, policy);
  json_array_foreach(program_member(plan, "ops"), i, op) {
    const char *kernel = program_text(op, "kernel");
    assert_null(strstr(kernel, "cuda_conv2d"));
    for (int k = 0; cudnn_folded_kernels[k] != NULL; k++)
      chosen[k] += strcmp(kernel, cudnn_folded_kernels[k]) == 0;
  }
}

static void outputs_are_those_of_the_cpu(const char *policy, double tolerance) {
  note_kernels(policy);
  program_json(0, "predict infer.ini " WEIGHTS "--input x.npy --output cpu.npy --set backend.use=cpu");
  program_json(0,
               "predict infer.ini " WEIGHTS "--input x.npy --output cuda.npy " ON_DOUBLE OPTIONS
               "--set backend.fallback=error",
               policy);
  double_is_content();
  outputs_are_near(policy, tolerance);
}

/* 2^-11 and 2^-8 are the rounding of f16 and bf16, of which seven layers have some. */
static void folded_convolutions_are_chosen_and_give_the_outputs_of_the_cpu(void **state) {
  (void)state;
  write_images();
  file_write("train.ini", TRAIN_INI);
  file_write("infer.ini", INFER_INI);
  program_json(0, "train train.ini --output trained --set backend.use=cpu");
  outputs_are_those_of_the_cpu("fp32", 1e-5);
  outputs_are_those_of_the_cpu("fp16", 5e-3);
  outputs_are_those_of_the_cpu("bf16", 3e-2);
  for (int k = 0; cudnn_folded_kernels[k] != NULL; k++)
    if (chosen[k] == 0) fail_msg("no launch of %s", cudnn_folded_kernels[k]);
}

/* ---- NaN ---- */

#define RELU_CASES "conformance --backend cuda --case mixed_conv2d_relu --set backend.cuda.libraries=" DOUBLES

static void conformance_finds_a_relu_that_drops_nan(void **state) {
  (void)state;
  assert_int_equal(program_run(RELU_CASES), 0);
  setenv("FAKECUDA_CUDNN_DROPS_NAN", "1", 1);
  int code = program_run(RELU_CASES);
  unsetenv("FAKECUDA_CUDNN_DROPS_NAN");
  assert_int_equal(code, 70);
  assert_non_null(strstr(program_err, "mixed_conv2d_relu/f16/5: y.0["));
  assert_non_null(strstr(program_err, "] is 0 where operand x0 has a NaN, expected nan"));
  double_is_content();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(folded_convolutions_are_chosen_and_give_the_outputs_of_the_cpu),
      TEST(conformance_finds_a_relu_that_drops_nan),
  };
  return cmocka_run_group_tests_name("cuda inference", tests, NULL, NULL);
}
