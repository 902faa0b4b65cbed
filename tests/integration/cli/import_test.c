/* `tenon import`: models of ONNX give the results that their exporters and the evaluator of onnx give
 * (tests/golden/make_onnx.py), read as a person would write them, and can be trained. */
#include <math.h>

#include "program.h"

/* The values of a .npy file of f32. */
static const float *read_values(const char *path, size_t *count) {
  size_t n;
  const char *bytes = file_read(path, &n);
  assert_memory_equal(bytes, "\x93NUMPY", 6);
  size_t start = 10 + (size_t)(unsigned char)bytes[8] + ((size_t)(unsigned char)bytes[9] << 8);
  assert_non_null(strstr(bytes + 10, "'<f4'"));
  *count = (n - start) / sizeof(float);
  return (const float *)(const void *)(bytes + start);
}

static void has(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("expected '%s' in:\n%s", part, text);
}

static void says(const char *part) { has(program_err, part); }

/* Relative to the largest result. */
static void check_results(const char *name) {
  char golden[512];
  size_t n, expected_n;
  float largest = 0;
  snprintf(golden, sizeof golden, ONNX "/%s.y.npy", name);
  const float *is = read_values("y.npy", &n), *expected = read_values(golden, &expected_n);
  assert_int_equal(n, expected_n);
  assert_true(n > 0);
  for (size_t i = 0; i < n; i++)
    if (isfinite(expected[i])) largest = fmaxf(largest, fabsf(expected[i]));
  for (size_t i = 0; i < n; i++) {
    int equal = is[i] == expected[i] || (isnan(is[i]) && isnan(expected[i]));
    if (!equal && !(fabsf(is[i] - expected[i]) <= 2e-6F * largest))
      fail_msg("%s: result %zu is %.9g, expected %.9g", name, i, (double)is[i], (double)expected[i]);
  }
}

static void import_and_predict(const char *name, const char *input) {
  program_json(0, "import " ONNX "/%s.onnx --output %s.ini", name, name);
  program_expect(
      program_run("predict %s.ini --input %s=" ONNX "/%s.x.npy --output y.npy --quiet", name, input, name),
      0);
  check_results(name);
}

static void networks_of_both_exporters_give_their_results(void **state) {
  (void)state;
  static const char *const names[] = {"convnet", "convnet_folded", "convnet_dynamo", "convnet_one"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) import_and_predict(names[i], "image");
  import_and_predict("transformer", "ids");
  import_and_predict("recurrent", "x");
}

/* A scale of ones that no initializer holds is no parameter. */
static void exporters_forms_of_ops_are_understood(void **state) {
  (void)state;
  size_t n;
  import_and_predict("exported", "x");
  const char *text = file_read("exported.ini", &n);
  has(text, "instance_norm\n");
  assert_null(strstr(text, "iota"));
}

static void weights_of_bytes_become_real_numbers(void **state) {
  (void)state;
  size_t n;
  import_and_predict("quantized", "x");
  has(file_read("quantized.ini", &n),
      "dequantizelinear_2 = (cast(quantizelinear_1, to=f32) - 120) * 0.03\n    fc: linear(5, bias=no)");
}

static void layers_of_sequences_keep_their_form(void **state) {
  (void)state;
  size_t n;
  program_json(0, "import " ONNX "/recurrent.onnx");
  const char *text = file_read("recurrent.ini", &n);
  has(text, "layers =\n    lstm.lstm, lstm.lstm_last: lstm(5, bidirectional=yes)\n"
            "    lstm.lstm_1, lstm.lstm_1_last: lstm(5, bidirectional=yes) <- lstm.lstm\n"
            "    gru, gru_last: gru(4) <- lstm.lstm_1\n");
}

/* A table that scores words, transposed by the exporter or in the graph, and a layer that is used twice. */
static void parameters_that_are_shared_are_one(void **state) {
  (void)state;
  size_t n;
  const json_t *result = program_json(0, "import " ONNX "/tied.onnx");
  assert_int_equal((int)program_number(result, "parameters"), 9 * 4 + 4 * 4 + 4);
  const char *text = file_read("tied.ini", &n);
  has(text, "    wte: embedding(9, 4)\n    fc: linear(4)\n        tanh\n    fc.matmul_1: @fc\n"
            "    head: linear(9, bias=no, weight=@wte.weight)\n");
  has(text, "    last: linear(9, bias=no, weight=@wte.weight) <- fc.matmul_1\n");
  program_expect(program_run("predict tied.ini --input ids=" ONNX "/tied.x.npy --output y.npy --quiet"), 0);
  check_results("tied");
}

/* A matrix that is transposed has no batch: the sample has all dimensions. A shape is given as a constant. */
static void layers_that_read_all_before_them_are_one_block(void **state) {
  (void)state;
  size_t n;
  import_and_predict("growing", "x");
  const char *text = file_read("growing.ini", &n);
  has(text, "[block layer]");
  has(text, "layer{i+2}, layer5.relu: layer * 4 <- x, layer1\n");
}

static void masks_of_constants_are_computed(void **state) {
  (void)state;
  size_t n;
  import_and_predict("windows", "x");
  has(file_read("windows.ini", &n), "layers =\n    concat_5 = roll(x, shifts=[-2, -2], axes=[1, 2])\n"
                                    "    mask: buffer([6, 6, 6])\n          add <- concat_5, mask\n");
}

static void a_graph_without_a_batch_is_imported_whole(void **state) {
  (void)state;
  size_t n;
  program_json(69, "import " ONNX "/whole.onnx");
  says("1 x Reshape: operand 1 is the input 'dims', expected known numbers; give them: --constant "
       "dims=FILE.npy");
  const json_t *result =
      program_json(0, "import " ONNX "/whole.onnx --constant dims=" ONNX "/whole.dims.npy");
  assert_true(json_is_true(json_object_get(result, "whole")));
  has(file_read("whole.ini", &n), "inputs = x: f32[3, 4], factor: f32[]\n");
  program_expect(program_run("predict whole.ini --input x=" ONNX "/whole.x.npy --input factor=" ONNX
                             "/whole.factor.npy --output y.npy --quiet"),
                 0);
  check_results("whole");
}

static void constants_are_those_of_inputs(void **state) {
  (void)state;
  program_json(65, "import " ONNX "/whole.onnx --constant other=" ONNX "/whole.dims.npy");
  says("the model has no input 'other', for which " ONNX "/whole.dims.npy is given");
  program_json(65, "import " ONNX "/whole.onnx --constant dims");
  says("'dims' for an input, expected NAME=FILE.npy");
  program_json(74, "import " ONNX "/whole.onnx --constant dims=none.npy");
  says("none.npy");
}

static void operators_give_the_results_of_the_evaluator(void **state) {
  (void)state;
  static const char *const names[] = {"pointwise", "movement", "reductions", "products", "flow", "fused"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) import_and_predict(names[i], "x");
}

static void weights_lie_beside_the_model_and_have_other_types(void **state) {
  (void)state;
  size_t n;
  import_and_predict("outside", "x");
  has(file_read("outside.ini", &n),
      "    first: linear(3)\n    last: linear(2, bias=no)\n\n[weights]\nfile = outside.safetensors\n");
}

static void lines_read_as_a_person_writes_them(void **state) {
  (void)state;
  size_t n;
  const json_t *result = program_json(0, "import " ONNX "/convnet.onnx");
  assert_string_equal(program_text(result, "configuration"), "convnet.ini");
  assert_string_equal(program_text(result, "weights"), "convnet.safetensors");
  assert_int_equal((int)program_number(result, "parameters"), 2645);
  const char *text = file_read("convnet.ini", &n);
  has(text, "inputs = image: f32[3, 16, 16]\nlayers =\n    stem: conv2d(8, kernel=5, stride=2, padding=2), "
            "batch_norm\n");
  has(text, "    blocks: blocks * 2\n");
  has(text,
      "[block blocks]\nlayers =\n    conv1: conv2d(8, kernel=3, padding=1, bias=no)\n    bn1: batch_norm\n"
      "         relu6\n    conv2: conv2d(8, kernel=3, padding=2, dilation=2, groups=2)\n"
      "           add <- conv2, in\n           leaky_relu(0.2)\n");
}

static void without_blocks_each_layer_has_a_line(void **state) {
  (void)state;
  size_t n;
  program_json(0, "import " ONNX "/convnet.onnx --no-blocks");
  const char *text = file_read("convnet.ini", &n);
  has(text, "    stem.0: conv2d(8, kernel=5, stride=2, padding=2)\n    stem.1: batch_norm\n");
  has(text, "    pool: max_pool(3, stride=2, ceil=yes)\n"
            "    blocks.0.conv1: conv2d(8, kernel=3, padding=1, bias=no)\n"
            "    blocks.0.bn1: batch_norm\n"
            "                  relu6\n"
            "    blocks.0.conv2: conv2d(8, kernel=3, padding=2, dilation=2, groups=2)\n"
            "                    add <- blocks.0.conv2, pool\n");
  has(text, "                 global_avg_pool\n    fc: linear(5)\n");
}

/* The bytes of the results, of a model with blocks and without. */
static void both_forms_give_the_same_bits(void **state) {
  (void)state;
  static const char *const names[] = {"convnet", "convnet_folded", "convnet_dynamo", "transformer"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *name = names[i], *input = i < 3 ? "image" : "ids";
    program_json(0, "import " ONNX "/%s.onnx --output blocks.ini", name);
    program_json(0, "import " ONNX "/%s.onnx --output flat.ini --no-blocks", name);
    program_expect(
        program_run("predict blocks.ini --input %s=" ONNX "/%s.x.npy --output a.npy --quiet", input, name),
        0);
    program_expect(
        program_run("predict flat.ini --input %s=" ONNX "/%s.x.npy --output b.npy --quiet", input, name), 0);
    size_t n, m;
    const float *a = read_values("a.npy", &n), *b = read_values("b.npy", &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n * sizeof *a);
    remove("blocks.ini"), remove("flat.ini"), remove("blocks.safetensors"), remove("flat.safetensors");
  }
}

static void an_imported_model_is_trained(void **state) {
  (void)state;
  program_json(0, "import " ONNX "/convnet.onnx");
  const json_t *result = program_json(
      0, "train convnet.ini --set run.epochs=1 --set run.output=runs --set data.source=random "
         "--set data.shape=3,16,16 --set data.classes=5 --set data.samples=32 --set data.batch=8 "
         "--set model.loss=cross_entropy --set optimizer.type=sgd --set optimizer.lr=0.1");
  assert_true(isfinite(program_number(result, "train.loss")));
}

static void what_is_missing_is_told_whole(void **state) {
  (void)state;
  program_json(69, "import " ONNX "/lacks.onnx");
  says("lacks.onnx: 3 operators cannot be expressed, and nothing is written:");
  says("1 x NonZero: Tenon has no counterpart");
  says("2 x acme.Frobnicate: an operator of another domain");
  says("1 x StringSplit: Tenon has no counterpart");
  assert_false(file_exists("lacks.ini") || file_exists("lacks.safetensors"));
  program_json(69, "import " ONNX "/sizes.onnx");
  says("input 'x': dimension 1 has no size; export the model with fixed sizes, but for the batch");
}

static void an_axis_beyond_the_operand_is_refused(void **state) {
  (void)state;
  program_json(69, "import " ONNX "/beyond.onnx");
  says("1 x Concat: an axis that the operand lacks");
}

static void nothing_is_overwritten(void **state) {
  (void)state;
  size_t n;
  file_write("outside.ini", "mine");
  program_json(65, "import " ONNX "/outside.onnx");
  says("outside.ini: exists, and is not overwritten");
  assert_string_equal(file_read("outside.ini", &n), "mine");
  file_write("other.safetensors", "mine");
  program_json(65, "import " ONNX "/outside.onnx --output other.ini");
  assert_string_equal(file_read("other.safetensors", &n), "mine");
  assert_false(file_exists("other.ini"));
}

static void damage_is_refused(void **state) {
  (void)state;
  size_t n;
  const char *whole = file_read(ONNX "/transformer.onnx", &n);
  for (size_t cut = 0; cut < n; cut += n / 7) {
    file_write_bytes("cut.onnx", whole, cut);
    program_json(65, "import cut.onnx");
    says("cut.onnx: ");
    assert_false(file_exists("cut.ini") || file_exists("cut.safetensors"));
  }
  whole = file_read(ONNX "/outside.onnx", &n);
  file_write_bytes("alone.onnx", whole, n);
  program_json(74, "import alone.onnx");
  says("outside.bin");
  assert_false(file_exists("alone.safetensors"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(networks_of_both_exporters_give_their_results, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(operators_give_the_results_of_the_evaluator, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(weights_lie_beside_the_model_and_have_other_types, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(exporters_forms_of_ops_are_understood, program_open, program_close),
      cmocka_unit_test_setup_teardown(weights_of_bytes_become_real_numbers, program_open, program_close),
      cmocka_unit_test_setup_teardown(layers_of_sequences_keep_their_form, program_open, program_close),
      cmocka_unit_test_setup_teardown(parameters_that_are_shared_are_one, program_open, program_close),
      cmocka_unit_test_setup_teardown(layers_that_read_all_before_them_are_one_block, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(masks_of_constants_are_computed, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_graph_without_a_batch_is_imported_whole, program_open, program_close),
      cmocka_unit_test_setup_teardown(constants_are_those_of_inputs, program_open, program_close),
      cmocka_unit_test_setup_teardown(lines_read_as_a_person_writes_them, program_open, program_close),
      cmocka_unit_test_setup_teardown(without_blocks_each_layer_has_a_line, program_open, program_close),
      cmocka_unit_test_setup_teardown(both_forms_give_the_same_bits, program_open, program_close),
      cmocka_unit_test_setup_teardown(an_imported_model_is_trained, program_open, program_close),
      cmocka_unit_test_setup_teardown(what_is_missing_is_told_whole, program_open, program_close),
      cmocka_unit_test_setup_teardown(an_axis_beyond_the_operand_is_refused, program_open, program_close),
      cmocka_unit_test_setup_teardown(nothing_is_overwritten, program_open, program_close),
      cmocka_unit_test_setup_teardown(damage_is_refused, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
