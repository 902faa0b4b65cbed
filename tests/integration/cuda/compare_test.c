/* `tenon compare` of the cpu and the double of CUDA, on a residual network and a transformer. */
#include "double.h"

#include "nets.h"
#include "tests/support/whole.h"

#define COMPARE                                                                                              \
  "compare model.ini --backends cpu,cuda --set backend.cuda.libraries=" DOUBLES                              \
  " --set backend.autotune=no --steps 3 --launches 3 "

/* Launches whose kernels begin so. */
static int launches_of(const json_t *r, const char *kernel) {
  const json_t *launch;
  size_t i;
  int n = 0;
  json_array_foreach(program_member(r, "launches"), i, launch) n +=
      strncmp(program_text(launch, "kernel"), kernel, strlen(kernel)) == 0;
  return n;
}

static const json_t *agree(const char *policy, int launches) {
  const json_t *r = program_json(0, COMPARE "--set precision.policy=%s", policy);
  double_is_content();
  assert_int_equal(program_number(r, "departing"), 0);
  assert_int_equal(program_number(r, "skipped"), 0);
  assert_true(program_number(r, "compared") > launches);
  return r;
}

/* cuDNN computes the convolutions. */
static void a_resnet_agrees(void **state) {
  (void)state;
  file_write("model.ini", resnet_ini);
  if (whole()) assert_true(launches_of(agree("fp32", 20), "cudnn_conv2d_") >= (HAS_CUDNN ? 8 : 0));
  assert_true(launches_of(agree("fp16", 20), "cudnn_conv2d_") >= (HAS_CUDNN ? 8 : 0));
  if (whole()) assert_true(launches_of(agree("bf16", 20), "cudnn_conv2d_") >= (HAS_CUDNN ? 8 : 0));
}

static void a_transformer_agrees(void **state) {
  (void)state;
  file_write("model.ini", transformer_ini);
  if (whole()) agree("fp32", 20);
  if (whole()) assert_true(launches_of(agree("fp16", 20), "cuda_matmul_cast_add_add") >= 2);
  assert_true(launches_of(agree("bf16", 20), "cuda_matmul_cast_add_add") >= 2);
}

/* Heads for which cuDNN computes attention and its gradient. */
static const char wide_ini[] = "[run]\nname = run\nseed = 1\n"
                               "[data]\nsource = random\ntokens = 64\nclasses = 11\nsamples = 8\nbatch = 2\n"
                               "[model]\ninputs = tokens: i32[64]\ntargets = next: i32[64]\nlayers =\n"
                               "    wte:  embedding(11, 64)\n    qkv:  linear(192)\n"
                               "    q, k, v: split(3, axis=-1)\n"
                               "    y:    attention(2, causal=yes) <- q, k, v\n    head: linear(11)\n"
                               "loss = cross_entropy\n[optimizer]\ntype = adamw\nlr = 0.001\n";

static void attention_of_cudnn_agrees(void **state) {
  (void)state;
  file_write("model.ini", wide_ini);
  assert_int_equal(launches_of(agree("fp16", 20), "cudnn_attention"), HAS_CUDNN ? 2 : 0);
  if (whole()) assert_int_equal(launches_of(agree("bf16", 20), "cudnn_attention"), HAS_CUDNN ? 2 : 0);
}

/* Rows of 514 bytes: the scores, and their gradient, have padded rows in products and in their other readers.
 */
static const char odd_ini[] = "[run]\nname = run\nseed = 1\n"
                              "[data]\nsource = random\ntokens = 64\nclasses = 257\nsamples = 8\nbatch = 8\n"
                              "[model]\ninputs = tokens: i32[64]\ntargets = next: i32[64]\nlayers =\n"
                              "    wte:  embedding(257, 320)\n    ln:   layer_norm\n"
                              "    head: linear(257, bias=no, weight=@wte.weight)\n"
                              "loss = cross_entropy\nmetrics = accuracy\n"
                              "[optimizer]\ntype = adamw\nlr = 0.001\n";

static int variants_of(const json_t *r, const char *part) {
  const json_t *launch;
  size_t i;
  int n = 0;
  json_array_foreach(program_member(r, "launches"), i, launch) n +=
      strstr(program_text(launch, "variant"), part) != NULL;
  return n;
}

static void a_language_model_of_an_odd_number_of_classes_agrees(void **state) {
  static const char *const policies[] = {"fp16", "bf16"};
  (void)state;
  file_write("model.ini", odd_ini);
  for (int i = 0; i < 2; i++) {
    const json_t *r = agree(policies[i], 15);
    assert_int_equal(variants_of(r, "padded result"), 1);
    assert_int_equal(variants_of(r, "padded operand"), 2);
    /* cross entropy, argmax and the largest score of the accuracy, the gradient */
    assert_int_equal(variants_of(r, "padded rows"), 4);
    assert_int_equal(launches_of(r, "cuda_reorder"), 0);
  }
  agree("fp32", 15);
}

/* A gradient above 65504: the cpu stores it in f16, the kernel of cuda writes the sum in f32. */
static void an_overflow_that_one_backend_does_not_store_is_rounding(void **state) {
  (void)state;
  file_write("model.ini", "[run]\nname = run\nseed = 1\n"
                          "[data]\nsource = digits\nepoch = 8\nbatch = 8\nworkers = 1\n"
                          "transforms = to_float, normalize(mean=0, std=0.02)\n"
                          "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                          "    flatten\n    fc1: linear(16)\n         relu\n    fc2: linear(10)\n"
                          "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n");
  const json_t *launch;
  size_t i;
  int found = 0;
  json_array_foreach(program_member(agree("fp16", 10), "launches"), i, launch) found +=
      strcmp(program_text(launch, "verdict"), "rounding") == 0 &&
      json_is_null(json_object_get(launch, "largest"));
  assert_true(found > 0);
}

/* The broken kernel is the first that departs, and its launch alone departs in the same way. */
static void is_found(const char *ini, const char *policy, const char *plugin, int repetition) {
  char kernel[64], more[512];
  file_write("model.ini", ini);
  snprintf(kernel, sizeof kernel, "%s_matmul", plugin);
  snprintf(more, sizeof more, "--set precision.policy=%s --plugin " BROKEN "/broken_cuda_%s.so", policy,
           plugin);
  const json_t *r = program_json(3, COMPARE "--steps 1 --launches 12 %s", more);
  assert_string_equal(program_text(r, "first.kernel"), kernel);
  assert_string_equal(program_text(r, "first.verdict"), "departs");
  assert_int_equal(program_number(r, "first.repetition"), repetition);
  const json_t *again = program_json(3, COMPARE "--repeat departs.safetensors %s", more);
  assert_string_equal(program_text(again, "kernel"), kernel);
  assert_true(program_number(again, "largest") == program_number(r, "first.largest"));
  assert_int_equal(program_number(again, "repetition"), repetition);
  double_is_content();
}

/* In fp16 the launches before the broken one are those of cuDNN. */
static void a_wrong_corner_is_found(void **state) {
  (void)state;
  is_found(transformer_ini, "fp32", "corner", 1);
  is_found(resnet_ini, "fp16", "corner", 1);
}

static void a_wrong_eleventh_launch_is_found(void **state) {
  (void)state;
  is_found(transformer_ini, "fp32", "eleventh", 11);
  is_found(resnet_ini, "fp16", "eleventh", 11);
}

static void a_wrong_layout_is_found(void **state) {
  (void)state;
  is_found(transformer_ini, "fp32", "layout", 1);
  is_found(resnet_ini, "fp16", "layout", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_resnet_agrees, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_transformer_agrees, double_open, program_close),
      cmocka_unit_test_setup_teardown(attention_of_cudnn_agrees, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_language_model_of_an_odd_number_of_classes_agrees, double_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(an_overflow_that_one_backend_does_not_store_is_rounding, double_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_wrong_corner_is_found, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_eleventh_launch_is_found, double_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_layout_is_found, double_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
