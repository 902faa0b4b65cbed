/* [quantize]: ten steps against those of torch.ao.quantization (tests/golden/make_quantize.py), and the
 * exported model of such a training. */
#include <unistd.h>

#include "golden_net.h"
#include "npy_files.h"

/* The images are there as an array, too. */
static int open_with_samples(void **state) {
  int failed = program_open(state);
  size_t n;
  golden_write_data(QUANTIZE "/net.ini");
  const char *images = file_read("images", &n);
  write_array("images.npy", "|u1", GOLDEN_SAMPLES, "1, 2, 3", images + 16, n - 16);
  return failed;
}

static void train(const char *run, const char *keys) {
  if (program_run("train net.ini --quiet --set run.name=%s %s", run, keys) != 0)
    fail_msg("%s: %s", keys, program_err);
}

static const char *weights_of(const char *run) {
  static char paths[2][64];
  static int next;
  char *path = paths[next++ % 2];
  snprintf(path, sizeof paths[0], "runs/%s/checkpoints/last/model.safetensors", run);
  return path;
}

static void expect_tensors(const char *run, const char *what, const json_t *tensors) {
  const char *name;
  json_t *want;
  json_object_foreach((json_t *)(uintptr_t)tensors, name, want) {
    size_t n = 0;
    const float *has = tensor_find(weights_of(run), name, &n);
    if (has == NULL) fail_msg("%s: there is no %s", what, name);
    assert_int_equal(n, json_array_size(want));
    for (size_t i = 0; has && i < n; i++) {
      double wants = json_number_value(json_array_get(want, i));
      if (!(fabs((double)has[i] - wants) <= 1e-6 * (1 + fabs(wants))))
        fail_msg("%s: %s[%zu] is %.9g, PyTorch has %.9g", what, name, i, (double)has[i], wants);
    }
  }
}

/* "observe=4 averaging=0.4" as settings. */
static void settings_of(const char *name, char *keys, size_t room) {
  char copy[256];
  size_t n = 0;
  snprintf(copy, sizeof copy, "%s", name);
  keys[0] = '\0';
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
    n += (size_t)snprintf(keys + n, room - n, "--set quantize.%s ", word);
}

static void expect_cases(const char *path, int count) {
  const json_t *cases = file_json(path);
  const char *name;
  json_t *golden;
  int number = 0;
  json_object_foreach((json_t *)(uintptr_t)cases, name, golden) {
    char keys[512], run[16];
    snprintf(run, sizeof run, "%d", number++);
    settings_of(name, keys, sizeof keys);
    train(run, keys);
    expect_tensors(run, name, golden);
  }
  assert_int_equal(number, count);
}

static void ten_steps_are_those_of_pytorch(void **state) {
  (void)state;
  expect_cases(QUANTIZE "/golden.json", 6);
}

/* net.ini and its rows; as make_quantize.py has them. */
static void write_tables(void) {
  int32_t words[GOLDEN_SAMPLES][4], label[GOLDEN_SAMPLES];
  for (int i = 0; i < GOLDEN_SAMPLES; i++) {
    label[i] = (i * i + i / 3) % 3;
    for (int k = 0; k < 4; k++) words[i][k] = (i * 7 + k * k + i * k) % 5;
  }
  file_write_bytes("words.bin", words, sizeof words);
  file_write_bytes("label.bin", label, sizeof label);
  write_array("words.npy", "<i4", GOLDEN_SAMPLES, "4", words, sizeof words);
  file_write("net.ini", file_read(QUANTIZE "/tables.ini", NULL));
}

/* A row of a table has a range of its own, and a transposed convolution has its channels in dimension 1. */
static void tables_and_transposed_convolutions_are_those_of_pytorch(void **state) {
  (void)state;
  write_tables();
  expect_cases(QUANTIZE "/tables.json", 3);
}

static void expect_same(const char *one, const char *other, double within) {
  static const char *const names[] = {"conv.weight", "fc.weight", "conv.input_max", "fc.input_max"};
  for (int i = 0; i < 4; i++) {
    double distance = tensor_distance(weights_of(one), weights_of(other), names[i]);
    if (!(distance <= within)) fail_msg("%s and %s: %s differs by %g", one, other, names[i], distance);
  }
}

static void backends_agree(void **state) {
  (void)state;
  static const char *const more[] = {"--set backend.use=cpu", "--set backend.use=sim"};
  train("one", "");
  for (int i = 0; i < 2; i++) {
    char run[16];
    snprintf(run, sizeof run, "%d", i);
    train(run, more[i]);
    expect_same("one", run, 1e-6);
  }
}

/* Ranges and the step after which they stay are in the checkpoint. */
static void a_resumed_run_has_the_same_weights(void **state) {
  (void)state;
  train("whole", "--set quantize.observe=8");
  train("halves", "--set quantize.observe=8 --set run.pause_after=1");
  if (program_run("train net.ini --quiet --resume auto --set run.name=halves --set quantize.observe=8") != 0)
    fail_msg("%s", program_err);
  expect_same("whole", "halves", 0);
}

/* ---- export ---- */

static void predict(const char *model, const char *out) {
  program_expect(program_run("predict %s --input images.npy --output %s --quiet", model, out), 0);
}

static void has_bytes(const char *path, const char *part) {
  size_t n;
  const char *bytes = file_read(path, &n);
  if (memmem(bytes, n, part, strlen(part)) == NULL) fail_msg("expected '%s' in %s", part, path);
}

/* The scores of all samples are equal, so the accuracy is. */
static void exported_models_round_alike(void **state) {
  (void)state;
  static const char *const ways[] = {"", "--fold yes", "--opset 13"};
  static const char *const keys[] = {"", "--set quantize.input_bits=5 --set quantize.weight_bits=4",
                                     "--set quantize.match=conv"};
  for (int k = 0; k < 3; k++) {
    char run[16];
    snprintf(run, sizeof run, "runs/%d", k);
    train(run + strlen("runs/"), keys[k]);
    predict(run, "run.npy");
    for (int i = 0; i < 3; i++) {
      program_json(0, "export %s -o net.onnx %s", run, ways[i]);
      has_bytes("net.onnx", "QuantizeLinear");
      has_bytes("net.onnx", "conv.weight_quantized");
      predict("net.onnx", "file.npy");
      check_equal(ways[i], "file.npy", "run.npy", 2e-6);
      unlink("net.onnx");
    }
  }
}

static void tables_and_transposed_convolutions_are_exported(void **state) {
  (void)state;
  write_tables();
  train("tables", "");
  program_json(0, "export runs/tables -o net.onnx");
  has_bytes("net.onnx", "wte.weight_quantized");
  has_bytes("net.onnx", "up.weight_quantized");
  program_expect(program_run("predict runs/tables --input words.npy --output run.npy --quiet"), 0);
  program_expect(program_run("predict net.onnx --input words.npy --output file.npy --quiet"), 0);
  check_equal("tables", "file.npy", "run.npy", 2e-6);
}

/* A linear layer over the tokens of a sample is a product with a transposed weight. */
static void layers_over_tokens_are_exported(void **state) {
  (void)state;
  float x[4 * 6 * 5];
  for (int i = 0; i < 4 * 6 * 5; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  write_npy("x.npy", 4, "6, 5", x, sizeof x / sizeof *x);
  file_write("tokens.ini",
             "[run]\nname = tokens\nmax_steps = 3\n[data]\nsource = random\nfields = x: f32[6, 5]\n"
             "targets = y: i32[]\nsamples = 32\nbatch = 8\nclasses = 3\n[model]\ninputs = x: f32[6, 5]\n"
             "targets = y: i32[]\nlayers =\n    f: linear(7)\n    relu\n    g: linear(8, bias=no)\n"
             "    flatten\n    fc: linear(3)\nloss = cross_entropy\n[optimizer]\ntype = sgd\n[quantize]\n");
  program_expect(program_run("train tokens.ini --quiet"), 0);
  program_json(0, "export runs/tokens -o tokens.onnx");
  program_expect(program_run("predict runs/tokens --input x.npy --output run.npy --quiet"), 0);
  program_expect(program_run("predict tokens.onnx --input x.npy --output file.npy --quiet"), 0);
  check_equal("tokens", "file.npy", "run.npy", 2e-6);
  size_t n;
  const char *bytes = file_read("tokens.onnx", &n);
  if (memmem(bytes, n, "Transpose", 9) != NULL) fail_msg("a weight is transposed by a node");
}

/* Weights of a training without ranges begin one with them. */
static void other_weights_have_no_ranges(void **state) {
  (void)state;
  train("plain", "--set quantize.match=fc");
  train("ranges", "--weights runs/plain/checkpoints/last/model.safetensors --set run.max_steps=1");
  size_t n = 0;
  const float *low = tensor_find(weights_of("ranges"), "conv.input_min", &n);
  assert_true(n == 1 && low != NULL && low[0] == -0.25F);
}

/* The derivative of x detach(x) is x, and not 2 x. */
static void no_gradient_goes_through_detach(void **state) {
  (void)state;
  const float x[] = {1, -2, 3};
  file_write("detach.ini",
             "[model]\ninputs = x: f32[3]\nlayers =\n    y = x * detach(x)\n    d = gradient(y, x)\n"
             "outputs = d\n");
  write_npy("x.npy", 1, "3", x, 3);
  program_expect(program_run("predict detach.ini --input x.npy --output d.npy --quiet"), 0);
  assert_memory_equal(read_npy("d.npy", "1, 3", 3), x, sizeof x);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_with_samples, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(ten_steps_are_those_of_pytorch),
      TEST(backends_agree),
      TEST(a_resumed_run_has_the_same_weights),
      TEST(exported_models_round_alike),
      TEST(tables_and_transposed_convolutions_are_those_of_pytorch),
      TEST(tables_and_transposed_convolutions_are_exported),
      TEST(layers_over_tokens_are_exported),
      TEST(other_weights_have_no_ranges),
      TEST(no_gradient_goes_through_detach),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
