/* One run under several policies: checkpoints, evaluation, prediction, plans. */
#include <math.h>
#include <stdlib.h>

#include "checkpoint.h"

static const char net_ini[] = "[run]\n"
                              "name = net\n"
                              "seed = 4\n"
                              "[data]\n"
                              "source = digits\n"
                              "batch = 16\n"
                              "workers = 0\n"
                              "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                              "[data.valid]\n"
                              "batch = 100\n"
                              "epoch = 200\n"
                              "[model]\n"
                              "inputs = image: f32[1, 28, 28]\n"
                              "layers =\n"
                              "    conv: conv2d(4, kernel=5, stride=2, padding=2)\n"
                              "    bn:   batch_norm\n"
                              "          relu\n"
                              "          flatten\n"
                              "    fc1:  linear(32)\n"
                              "    ln:   layer_norm\n"
                              "          gelu\n"
                              "          dropout(0.1)\n"
                              "    fc2:  linear(10)\n"
                              "loss = cross_entropy\n"
                              "metrics = accuracy\n"
                              "[optimizer]\n"
                              "type = adamw\n"
                              "lr = 0.003\n"
                              "clip = 1\n"
                              "[group.plain]\n"
                              "match = *.bias, bn.*\n"
                              "weight_decay = 0\n";

static const char *const policies[] = {"fp32", "tf32", "bf16", "fp16"};
enum { POLICIES = 4 };

static void train(const char *output, const char *policy, int steps, const char *more) {
  assert_int_equal(
      program_run("train net.ini --output %s --set precision.policy=%s --set run.max_steps=%d %s", output,
                  policy, steps, more),
      0);
}

/* Low-precision copies are rebuilt after loading: the bits equal those of an uninterrupted run. */
static void a_run_resumes_to_the_same_bits(void **state) {
  (void)state;
  file_write("net.ini", net_ini);
  for (int p = 0; p < POLICIES; p++) {
    char whole[32], parts[32], a[96], b[96];
    snprintf(whole, sizeof whole, "whole.%s", policies[p]);
    snprintf(parts, sizeof parts, "parts.%s", policies[p]);
    train(whole, policies[p], 12, "");
    train(parts, policies[p], 5, "");
    train(parts, policies[p], 12, "--resume auto");
    for (int i = 0; i < 2; i++) {
      static const char *const files[] = {"model", "optimizer"};
      snprintf(a, sizeof a, "%s/net/checkpoints/last/%s.safetensors", whole, files[i]);
      snprintf(b, sizeof b, "%s/net/checkpoints/last/%s.safetensors", parts, files[i]);
      files_equal(a, b);
    }
  }
}

static void a_checkpoint_goes_on_in_any_policy(void **state) {
  (void)state;
  file_write("net.ini", net_ini);
  train("up", "fp16", 5, "");
  train("up", "fp32", 9, "--resume auto");
  assert_false(checkpoint_has("up/net/checkpoints/last/optimizer.safetensors", "precision.scale"));
  train("down", "fp32", 5, "");
  train("down", "fp16", 9, "--resume auto");
  assert_true(checkpoint_f32("down/net/checkpoints/last/optimizer.safetensors", "precision.scale") == 65536);
  assert_int_equal(
      checkpoint_count("down/net/checkpoints/last/optimizer.safetensors", "precision.good_steps"), 4);
  train("down", "bf16", 12, "--resume auto");
}

/* Checkpoints hold master weights in f32, and no copies. */
static void files_hold_f32_under_every_policy(void **state) {
  (void)state;
  static const char *const files[] = {"run/net/checkpoints/last/model.safetensors",
                                      "run/net/checkpoints/last/optimizer.safetensors"};
  file_write("net.ini", net_ini);
  train("run", "bf16", 2, "");
  for (int i = 0; i < 2; i++) {
    size_t n;
    assert_null(strstr(file_read(files[i], &n) + 8, "BF16"));
    assert_false(checkpoint_has(files[i], "fc1.weight:bf16"));
  }
}

static void every_policy_evaluates_alike(void **state) {
  (void)state;
  double full = 0;
  file_write("net.ini", net_ini);
  train("run", "fp32", 60, "");
  for (int p = 0; p < POLICIES; p++) {
    const json_t *r = program_json(
        0, "eval net.ini --weights run/net/checkpoints/last/model.safetensors --set precision.policy=%s",
        policies[p]);
    double loss = program_number(r, "loss");
    if (p == 0) full = loss;
    assert_true(fabs(loss - full) <= 0.02 * full);
    assert_true((p == 0) == (loss == full)); /* the result differs from that of fp32 */
  }
}

/* An .npy file of zeros. */
static void write_images(const char *path, int rows) {
  char header[129];
  size_t bytes = (size_t)rows * 28 * 28 * sizeof(float);
  char *file = calloc(1, 128 + bytes);
  assert_non_null(file);
  snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 28, 28), }",
           rows);
  memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
  memset(file + 10, ' ', 118);
  memcpy(file + 10, header, strlen(header));
  file[127] = '\n';
  file_write_bytes(path, file, 128 + bytes);
  free(file);
}

static void every_policy_predicts(void **state) {
  (void)state;
  file_write("net.ini", net_ini);
  write_images("x.npy", 3);
  train("run", "fp16", 2, "");
  size_t n;
  float full[30], low[30];
  for (int p = 0; p < POLICIES; p++) {
    assert_int_equal(
        program_run("predict net.ini --weights run/net/checkpoints/last/model.safetensors --input "
                    "x.npy --output y.npy --set precision.policy=%s",
                    policies[p]),
        0);
    const char *y = file_read("y.npy", &n);
    assert_non_null(strstr(y + 10, "<f4"));
    memcpy(p == 0 ? full : low, y + n - sizeof full, sizeof full);
    for (int i = 0; p > 0 && i < 30; i++) assert_true(fabsf(low[i] - full[i]) <= 0.02f);
  }
}

/* Each parameter is cast with its region, and the image once; every other cast is of a value that changes
 * class. */
static void a_plan_has_one_cast_for_all_parameters(void **state) {
  (void)state;
  file_write("net.ini", net_ini);
  assert_int_equal(program_run("plan net.ini --set precision.policy=bf16 --dump-after derive"), 0);
  assert_non_null(strstr(program_out, "commit \"@param.f32:bf16\" = "));
  assert_non_null(strstr(program_out, "cast(image, to=bf16)"));
  assert_null(strstr(program_out, "cast(fc1.weight"));
  assert_null(strstr(program_out, "cast(conv.weight"));
  const json_t *plan = program_json(0, "plan net.ini --set precision.policy=bf16");
  const json_t *ops = json_object_get(plan, "ops"), *op;
  size_t i, low = 0;
  json_array_foreach(ops, i, op) low += strcmp(program_text(op, "dtype"), "bf16") == 0;
  assert_in_range(low, 8, json_array_size(ops) - 8);
}

static void a_policy_refuses_unknown_options(void **state) {
  (void)state;
  file_write("net.ini", net_ini);
  assert_int_equal(program_run("train net.ini --set precision.policy=fp8"), 65);
  assert_non_null(strstr(program_err, "fp8"));
  assert_int_equal(program_run("train net.ini --set precision.policy=bf16 --set precision.scaling=static"),
                   65);
  assert_int_equal(program_run("train net.ini --set precision.policy=fp16 --set precision.backoff_factor=1"),
                   65);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_run_resumes_to_the_same_bits),
      CASE(a_checkpoint_goes_on_in_any_policy),
      CASE(files_hold_f32_under_every_policy),
      CASE(every_policy_evaluates_alike),
      CASE(every_policy_predicts),
      CASE(a_plan_has_one_cast_for_all_parameters),
      CASE(a_policy_refuses_unknown_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
