/* `tenon export`: an exported model that is imported again gives the same numbers, in every way of writing
 * it; names, metadata and refusals. from_c/export_test.c gives the examples back;
 * tests/golden/compare_exported.py compares with onnxruntime. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npy_files.h"

static void has(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("expected '%s' in:\n%s", part, text);
}

static void says(const char *part) { has(program_err, part); }

static void predict(const char *run, const char *inputs, const char *out) {
  program_expect(program_run("predict %s %s --output %s --set backend.use=cpu --quiet", run, inputs, out), 0);
}

/* Exports a configuration or run, imports the file, and compares the predictions of both. */
static void export_and_return(const char *run, const char *inputs, const char *options, double tolerance) {
  program_json(0, "export %s -o given.onnx %s", run, options);
  program_json(0, "import given.onnx --output taken.ini");
  predict(run, inputs, "run.npy");
  predict("taken.ini", inputs, "taken.npy");
  check_equal(run, "taken.npy", "run.npy", tolerance);
  const char *const files[] = {"given.onnx", "given.onnx.data", "taken.ini", "taken.safetensors"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
}

static void imported_models_are_given_back(void **state) {
  (void)state;
  static const char *const names[][2] = {
      {"convnet", "image"}, {"movement", "x"}, {"reductions", "x"}, {"products", "x"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char ini[64], inputs[512];
    snprintf(ini, sizeof ini, "%s.ini", names[i][0]);
    snprintf(inputs, sizeof inputs, "--input %s=" ONNX "/%s.x.npy", names[i][1], names[i][0]);
    program_json(0, "import " ONNX "/%s.onnx", names[i][0]);
    export_and_return(ini, inputs, "", 2e-6);
  }
}

static void every_way_of_writing_gives_the_same(void **state) {
  (void)state;
  program_json(0, "import " ONNX "/convnet.onnx");
  export_and_return("convnet.ini", "--input image=" ONNX "/convnet.x.npy", "--opset 13 --external yes", 2e-6);
  export_and_return("convnet.ini", "--input image=" ONNX "/convnet.x.npy", "--opset 23 --fold yes", 2e-6);
  export_and_return("convnet.ini", "--input image=" ONNX "/convnet.x.npy", "--precision f16", 4e-3);
}

static const char classifier[] =
    "[run]\nname = small\nmax_steps = 2\noutput = runs\n"
    "[data]\nsource = digits\nbatch = 8\ntransforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[model]\ninputs = image: f32[1, 28, 28]\ntargets = label: i32[]\nlayers =\n"
    "    conv: conv2d(4, kernel=5, stride=4, bias=no)\n    bn: batch_norm\n        relu\n        flatten\n"
    "    fc: linear(10)\nloss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

static void names_classes_and_transforms_are_in_the_file(void **state) {
  (void)state;
  size_t n;
  file_write("small.ini", classifier);
  program_json(0, "train small.ini");
  const json_t *result = program_json(0, "export runs/small");
  assert_string_equal(program_text(result, "file"), "small.onnx");
  assert_int_equal((int)program_number(result, "weights"), 7);
  program_json(0, "import small.onnx --output again.ini");
  const char *text = file_read("again.ini", &n);
  has(text, "inputs = image: f32[1, 28, 28]\nlayers =\n    conv: conv2d(4, kernel=5, stride=4, bias=no)\n"
            "    bn: batch_norm\n        relu\n        flatten\n    fc: linear(10)\n");
  const char *bytes = file_read("small.onnx", &n);
  assert_non_null(memmem(bytes, n, "tenon.classes", 13));
  assert_non_null(memmem(bytes, n, "to_float, normalize(mean=0.13, std=0.31)", 40));
}

/* A command takes the file in place of the run, and answers as that does. */
static void an_exported_file_is_used_as_it_is(void **state) {
  (void)state;
  size_t n;
  unsigned char pixels[28 * 28];
  for (int i = 0; i < 28 * 28; i++) pixels[i] = (unsigned char)(i % 251);
  write_array("pixels.npy", "|u1", 1, "1, 28, 28", pixels, sizeof pixels);
  file_write("small.ini", classifier);
  program_json(0, "train small.ini");
  program_json(0, "export runs/small -o small.onnx --precision f16 --external yes");
  program_json(0, "export runs/small -o same.onnx");
  predict("runs/small", "--input pixels.npy", "run.npy");
  predict("same.onnx", "--input pixels.npy", "file.npy");
  files_equal("run.npy", "file.npy");
  predict("small.onnx", "--input pixels.npy", "narrow.npy");
  check_equal("small.onnx", "narrow.npy", "run.npy", 4e-3);
  program_expect(program_run("predict runs/small --input pixels.npy --quiet"), 0);
  char *expected = strdup(program_out);
  program_expect(program_run("predict same.onnx --input pixels.npy --quiet"), 0);
  assert_string_equal(program_out, expected);
  free(expected);
  program_json(0, "plan same.onnx");
  program_json(0, "bench same.onnx --mode infer --steps 1 --rounds 1");
  program_json(65, "train same.onnx");
  says("same.onnx: no [data] source");
  program_json(0, "export same.onnx -o again.onnx");
  file_read("again.onnx", &n);
  assert_true(n > 0);
}

static void a_file_that_is_no_model_is_refused(void **state) {
  (void)state;
  file_write("junk.onnx", "junk");
  program_json(65, "predict junk.onnx --input x.npy");
  says("junk.onnx: ");
  program_json(74, "predict absent.onnx --input x.npy");
  says("absent.onnx: cannot be opened");
  program_json(69, "plan " ONNX "/lacks.onnx");
  says("1 x NonZero: Tenon has no counterpart");
  program_json(65, "predict " ONNX "/convnet.onnx --input " ONNX "/transformer.x.npy");
  says("expected f32[rows, 3, 16, 16] for the model's input 'image'");
  program_json(0, "import " ONNX "/outside.onnx");
  program_json(0, "export outside.ini -o parts.onnx --external yes");
  unlink("parts.onnx.data");
  program_json(74, "predict parts.onnx --input x=" ONNX "/outside.x.npy --output y.npy");
  says("parts.onnx.data");
}

/* ---- programs in C ---- */

static const char lenet[] =
    "[run]\nname = lenet-5\nmax_steps = 2\noutput = runs\n"
    "[data]\nsource = digits\nbatch = 8\ntransforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[model]\ninputs = image: f32[1, 28, 28]\ntargets = label: i32[]\nlayers =\n"
    "    conv1: conv2d(6, kernel=5, padding=2)\n    bn1: batch_norm\n    relu\n    max_pool(2)\n"
    "    depth: conv2d(6, kernel=3, padding=1, stride=1, groups=6)\n    conv2: conv2d(16, kernel=5, "
    "groups=2)\n"
    "    relu\n    avg_pool(2)\n    point: conv2d(18, kernel=1)\n    flatten\n    fc1: linear(120)\n    "
    "gelu\n"
    "    ln: layer_norm\n    rows = reshape(ln, [12, 10])\n    gram = matmul(rows, rows, "
    "transpose_b=yes)\n"
    "    flatten\n    fc2: linear(10)\n"
    "    softmax\nloss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

static const char main_program[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include \"lenet_5.h\"\n"
    "static char weights[lenet_5_weight_bytes], arena[lenet_5_arena_bytes];\n"
    "static float image[2 * 28 * 28], output[20];\n"
    "int main(void) {\n"
    "  FILE *file = fopen(\"program/lenet_5.weights\", \"rb\");\n"
    "  if (file == NULL || fread(weights, 1, sizeof weights, file) != sizeof weights) return 1;\n"
    "  for (int i = 0; i < 2 * 28 * 28; i++) image[i] = (float)(i % 13) / 13;\n"
    "  lenet_5_run(weights, arena, image, output);\n"
    "  for (int i = 0; i < 20; i++) printf(\"%.9g\\n\", (double)output[i]);\n"
    "  return fclose(file);\n}\n";

static void check_numbers(const char *text, const float *expected, int n) {
  for (int i = 0; i < n; i++) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || !(fabs(number - (double)expected[i]) <= 1e-5))
      fail_msg("number %d is %g, expected %g", i, number, (double)expected[i]);
    text = end;
  }
}

static void a_program_in_c_gives_the_same(void **state) {
  (void)state;
  size_t n;
  static float image[2 * 28 * 28];
  for (int i = 0; i < 2 * 28 * 28; i++) image[i] = (float)(i % 13) / 13;
  write_npy("image.npy", 2, "1, 28, 28", image, 2 * 28 * 28);
  file_write("lenet.ini", lenet);
  file_write("main.c", main_program);
  program_json(0, "train lenet.ini");
  const json_t *result = program_json(0, "export runs/lenet-5 --c --batch 2 --output program");
  assert_string_equal(program_text(result, "name"), "lenet_5");
  predict("runs/lenet-5", "--input image.npy", "run.npy");
  assert_int_equal(
      system("cc -std=c11 -Wall -Wextra -Werror -O2 -Iprogram main.c program/lenet_5.c -lm -o net"), 0);
  assert_int_equal(system("./net > numbers"), 0);
  check_numbers(file_read("numbers", &n), read_npy("run.npy", "2, 10", 20), 20);
}

static void a_program_in_c_is_refused(void **state) {
  (void)state;
  file_write("lacks.ini", "[run]\nname = lacks\n[model]\ninputs = x: f32[4]\nlayers =\n"
                          "    a = cumsum(lgamma(abs(x) + 1)) + lgamma(abs(x) + 2)\n");
  program_json(69, "export lacks.ini --c --output program");
  says("3 ops cannot be written as C, and nothing is written:");
  says("2 x lgamma");
  says("1 x cumulative");
  assert_false(file_exists("program"));
  program_json(2, "export lacks.ini --c");
  says("expected a folder for them: --output FOLDER");
  program_json(2, "export lacks.ini -o x.onnx --batch 2");
  says("the batch of a file of ONNX has any size");
  file_write("plain.ini", "[run]\nname = plain\n[model]\ninputs = x: f32[4]\nlayers =\n    a = abs(x)\n");
  program_json(0, "export plain.ini --c --output program");
  program_json(65, "export plain.ini --c --output program");
  says("plain.h: exists, and is not overwritten");
}

static void preprocessing_becomes_nodes(void **state) {
  (void)state;
  unsigned char pixels[28 * 28];
  for (int i = 0; i < 28 * 28; i++) pixels[i] = (unsigned char)(i % 251);
  write_array("pixels.npy", "|u1", 1, "1, 28, 28", pixels, sizeof pixels);
  file_write("small.ini", classifier);
  program_json(0, "train small.ini");
  export_and_return("runs/small", "--input image=pixels.npy", "--preprocess nodes", 1e-5);
}

static void what_has_no_operator_is_told_whole(void **state) {
  (void)state;
  file_write(
      "lacks.ini",
      "[run]\nname = lacks\nmax_steps = 1\noutput = runs\n[data]\nsource = random\nbatch = 2\nfields = x: "
      "f32[4]\n"
      "targets = y: f32[4]\n[model]\ninputs = x: f32[4]\ntargets = y: f32[4]\nlayers =\n    a: linear(4)\n"
      "    b = lgamma(abs(a) + 1) + lgamma(abs(a) + 2)\n    c = cumprod(b)\nloss = mse\n[optimizer]\ntype = "
      "sgd\nlr = 0.1\n");
  program_json(0, "train lacks.ini");
  program_json(69, "export runs/lacks -o lacks.onnx");
  says("3 ops cannot be written as ONNX, and nothing is written:");
  says("2 x lgamma: ONNX has no operator for it");
  says("1 x cumulative: ONNX has no operator for it");
  assert_false(file_exists("lacks.onnx"));
}

static void an_opset_that_lacks_an_op_is_told(void **state) {
  (void)state;
  file_write("late.ini", "[run]\nname = late\nmax_steps = 1\noutput = runs\n[data]\nsource = random\nbatch = "
                         "2\nfields = x: i32[4]\n"
                         "targets = y: f32[4]\n[model]\ninputs = x: i32[4]\ntargets = y: f32[4]\nlayers =\n"
                         "    b = cast(bitwise_and(x, 3), to=f32)\n    a: linear(4) <- b\nloss = "
                         "mse\n[optimizer]\ntype = sgd\nlr = 0.1\n");
  program_json(0, "train late.ini");
  program_json(69, "export runs/late -o late.onnx --opset 17");
  says("1 x bitwise_and: opset 17 lacks it, expected 18 or later");
  program_json(0, "export runs/late -o late.onnx --opset 18");
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  size_t n;
  program_json(0, "import " ONNX "/convnet.onnx");
  program_json(65, "export convnet.ini -o x.onnx --opset 12");
  says("opset 12, expected 13 to 23");
  program_json(2, "export convnet.ini -o x.onnx --fold maybe");
  says("--fold maybe, expected yes or no");
  program_json(2, "export convnet.ini -o x.onnx --precision f64");
  says("--precision f64, expected f32, f16 or bf16");
  program_json(2, "export convnet.ini -o x.onnx --preprocess later");
  says("--preprocess later, expected metadata or nodes");
  program_json(2, "export convnet.ini -o x.onnx --external 1");
  says("--external 1, expected yes or no");
  program_json(65, "export convnet.ini -o x.onnx --preprocess nodes");
  says("no [data] source");
  file_write("mine.onnx", "mine");
  program_json(65, "export convnet.ini -o mine.onnx");
  says("mine.onnx: exists, and is not overwritten");
  assert_string_equal(file_read("mine.onnx", &n), "mine");
  program_json(74, "export convnet.ini -o missing/x.onnx");
  file_write("y.onnx.data", "mine");
  program_json(65, "export convnet.ini -o y.onnx --external yes");
  says("y.onnx.data: exists, and is not overwritten");
  assert_false(file_exists("y.onnx") || file_exists("x.onnx"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(imported_models_are_given_back, program_open, program_close),
      cmocka_unit_test_setup_teardown(every_way_of_writing_gives_the_same, program_open, program_close),
      cmocka_unit_test_setup_teardown(names_classes_and_transforms_are_in_the_file, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(an_exported_file_is_used_as_it_is, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_file_that_is_no_model_is_refused, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_program_in_c_gives_the_same, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_program_in_c_is_refused, program_open, program_close),
      cmocka_unit_test_setup_teardown(preprocessing_becomes_nodes, program_open, program_close),
      cmocka_unit_test_setup_teardown(what_has_no_operator_is_told_whole, program_open, program_close),
      cmocka_unit_test_setup_teardown(an_opset_that_lacks_an_op_is_told, program_open, program_close),
      cmocka_unit_test_setup_teardown(wrong_options_are_refused, program_open, program_close)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
