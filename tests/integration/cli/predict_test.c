/* `tenon predict` from .npy to .npy. */
#include <math.h>

#include "configs.h"
#include "npy_files.h"

static const char identity_ini[] = "[data]\nsource = random\nshape = 2, 2\nclasses = 2\nbatch = 4\n"
                                   "[model]\ninputs = x: f32[2, 2]\nlayers = relu\n";

/* Seven rows in batches of four: the last one is short. */
static void rows_come_back_in_order(void **state) {
  (void)state;
  float x[28];
  for (int i = 0; i < 28; i++) x[i] = (float)(i % 2 ? i : -i);
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 7, "2, 2", x, 28);
  const json_t *r = program_json(0, "predict identity.ini --input x.npy --output y.npy");
  assert_int_equal(program_number(r, "rows"), 7);
  assert_string_equal(program_text(r, "output"), "y.npy");
  const float *y = read_npy("y.npy", "7, 2, 2", 28);
  for (int i = 0; i < 28; i++) assert_true(y[i] == (x[i] > 0 ? x[i] : 0));
}

static void no_rows_give_no_rows(void **state) {
  (void)state;
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 0, "2, 2", NULL, 0);
  assert_int_equal(program_run("predict identity.ini --input x.npy --output y.npy"), 0);
  read_npy("y.npy", "0, 2, 2", 0);
}

static void the_batch_does_not_matter(void **state) {
  (void)state;
  float x[36 * 5];
  for (int i = 0; i < 36 * 5; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  write_npy("x.npy", 5, "1, 6, 6", x, 36 * 5);
  const char *weights = "runs/noise/checkpoints/best/model.safetensors";
  for (int batch = 1; batch <= 5; batch++)
    assert_int_equal(
        program_run("predict noise.ini --weights %s --input x.npy --output y%d.npy --set data.batch=%d",
                    weights, batch, batch),
        0);
  const float *one = read_npy("y1.npy", "5, 4", 20);
  for (int batch = 2; batch <= 5; batch++) {
    char path[16];
    snprintf(path, sizeof path, "y%d.npy", batch);
    const float *y = read_npy(path, "5, 4", 20);
    for (int i = 0; i < 20; i++) assert_true(fabsf(y[i] - one[i]) < 1e-5f);
  }
}

static void rows_must_have_the_type_of_the_models_input(void **state) {
  (void)state;
  const float x[6] = {0};
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 2, "3", x, 6);
  assert_int_equal(program_run("predict identity.ini --input x.npy --output y.npy"), 65);
  assert_non_null(
      strstr(program_err, "x.npy: holds f32[2, 3], expected f32[rows, 2, 2] for the model's input 'x'"));
  assert_false(file_exists("y.npy"));
  assert_int_equal(program_run("predict identity.ini --input none.npy --output y.npy"), 74);
  file_write("x.npy", "no array");
  assert_int_equal(program_run("predict identity.ini --input x.npy --output y.npy"), 65);
}

static void the_output_must_be_writable(void **state) {
  (void)state;
  const float x[4] = {0};
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 1, "2, 2", x, 4);
  assert_int_equal(program_run("predict identity.ini --input x.npy --output no/such/folder/y.npy"), 74);
  /* known before anything is read */
  assert_int_equal(program_run("predict identity.ini --input none.npy --output no/such/folder/y.npy"), 74);
  assert_non_null(strstr(program_err, "no/such/folder/y.npy"));
}

static void a_model_that_learns_needs_weights(void **state) {
  (void)state;
  const float x[36] = {0};
  file_write("noise.ini", noise_ini);
  write_npy("x.npy", 1, "1, 6, 6", x, 36);
  assert_int_equal(program_run("predict noise.ini --input x.npy --output y.npy"), 65);
  assert_non_null(strstr(program_err, "--weights"));
}

static const char sum_ini[] = "[data]\nsource = random\nshape = 2\nclasses = 2\nbatch = 4\n"
                              "[model]\ninputs =\n  a: f32[2]\n  b: f32[2]\nlayers = add <- a, b\n";

static void inputs_are_named_where_there_are_several(void **state) {
  (void)state;
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 20, 30, 40, 50, 60};
  file_write("sum.ini", sum_ini);
  write_npy("a.npy", 3, "2", a, 6);
  write_npy("b.npy", 3, "2", b, 6);
  write_npy("short.npy", 2, "2", b, 4);
  assert_int_equal(program_run("predict sum.ini --input b=b.npy --input a=a.npy --output y.npy"), 0);
  const float *y = read_npy("y.npy", "3, 2", 6);
  for (int i = 0; i < 6; i++) assert_true(y[i] == a[i] + b[i]);
  static const char *const wrong[][2] = {
      {"--input a.npy --input b.npy", "a.npy: the model has 2 inputs; give NAME=a.npy for each"},
      {"--input a=a.npy --input c=b.npy", "b.npy: the model has no input 'c', expected a, b"},
      {"--input a=a.npy", "there is no array for the model's input 'b'; give --input b=FILE.npy"},
      {"--input a=a.npy --input b=short.npy", "short.npy: has 2 rows, expected the 3 of a.npy"},
      {"--input a=a.npy --input b=sum.ini", "inputs are either .npy and .safetensors files"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("predict sum.ini --output z.npy %s", wrong[i][0]), 65);
    if (strstr(program_err, wrong[i][1]) == NULL) fail_msg("expected '%s' in: %s", wrong[i][1], program_err);
    assert_false(file_exists("z.npy"));
  }
}

static void an_output_without_classes_needs_a_file(void **state) {
  (void)state;
  const float x[4] = {0};
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 1, "2, 2", x, 4);
  assert_int_equal(program_run("predict identity.ini --input x.npy"), 65);
  assert_non_null(strstr(program_err, "name a file for it: --output FILE.npy"));
  assert_int_equal(program_run("predict identity.ini"), 2);
  assert_non_null(strstr(program_err, "expected --input PATH"));
}

static void a_source_without_files_says_so(void **state) {
  (void)state;
  file_write("identity.ini", identity_ini);
  assert_int_equal(program_run("predict identity.ini --input cat.doc --output y.npy"), 69);
  assert_non_null(strstr(program_err, "source 'random': it reads no files that a user names (cat.doc)"));
  assert_int_equal(program_run("predict identity.ini --input cat.webp --output y.npy"), 65);
  assert_non_null(strstr(program_err, "cat.webp: is a picture, but the model's inputs are not one picture"));
}

/* ---- boxes ---- */

/* Boxes, scores and classes are numbers of the picture. */
static const char boxes_ini[] =
    "[data]\nsource = random\nfields = image: f32[1, 4, 4]\ntargets = y: f32[2, 4]\nbatch = 2\n"
    "[model]\ninputs = image: f32[1, 4, 4]\ntargets = y: f32[2, 4]\nlayers =\n    x: flatten <- image\n"
    "    first = x[:, 0:8]\n    boxes: reshape([2, 4]) <- first\n    scores = x[:, 8:10]\n    last = x[:, "
    "10:14]\n"
    "    pairs: reshape([2, 2]) <- last\n    labels = argmax(pairs, axis=2)\noutputs = boxes, scores, "
    "labels\nloss = mse\n";

static void boxes_are_listed_and_drawn(void **state) {
  (void)state;
  static const float x[] = {0, 0, 2, 2, 1, 1, 4, 4, 0.25f, 0.75f, 1, 0, 0, 1, 0, 0};
  file_write("boxes.ini", boxes_ini);
  write_npy("x.npy", 1, "1, 4, 4", x, 16);
  const json_t *r = program_json(0, "predict boxes.ini --input x.npy --show shown --output boxes.json");
  const json_t *one = json_array_get(program_member(r, "predictions"), 0),
               *boxes = program_member(one, "boxes");
  assert_int_equal(json_array_size(boxes), 1);
  assert_int_equal(program_number(json_array_get(boxes, 0), "class"), 1);
  assert_true(program_number(json_array_get(boxes, 0), "score") == 0.75);
  for (size_t k = 0; k < 4; k++)
    assert_true(json_number_value(json_array_get(program_member(json_array_get(boxes, 0), "box"), k)) ==
                (k < 2 ? 1 : 4));
  assert_int_equal(program_number(one, "width"), 4);
  assert_true(
      json_equal(program_member(file_json("boxes.json"), "predictions"), program_member(r, "predictions")));
  assert_true(file_exists("shown/x.npy[0].png"));
  assert_int_equal(program_run("predict boxes.ini --input x.npy --threshold 0"), 0);
  assert_string_equal(program_out, "x.npy[0]   1 75.0 % at 1 1 4 4   0 25.0 % at 0 0 2 2\n");
  assert_int_equal(program_run("predict boxes.ini --input x.npy --threshold 0.9"), 0);
  assert_string_equal(program_out, "x.npy[0]   no boxes\n");
  assert_int_equal(program_run("predict boxes.ini --input x.npy --csv"), 0);
  assert_string_equal(program_out,
                      "input,rank,class,name,score,x0,y0,x1,y1\n\"x.npy[0]\",1,1,\"1\",0.75,1,1,4,4\n");
}

static void places_that_a_model_lacks_are_told(void **state) {
  (void)state;
  static const struct {
    const char *file, *arguments, *message;
  } wrong[] = {
      {"identity.ini", "--show shown",
       "--show shown: the model predicts neither masks nor outputs called boxes and scores"},
      {"identity.ini", "--output masks/",
       "masks/: is a folder, which masks and pictures are written to, but the model has no scores"},
      {"boxes.ini", "--output masks/", "masks/: is a folder"},
  };
  const float x[16] = {0};
  file_write("identity.ini", identity_ini);
  file_write("boxes.ini", boxes_ini);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_npy("x.npy", 1, i < 2 ? "2, 2" : "1, 4, 4", x, i < 2 ? 4 : 16);
    assert_int_equal(program_run("predict %s --input x.npy %s", wrong[i].file, wrong[i].arguments), 65);
    if (strstr(program_err, wrong[i].message) == NULL) fail_msg("%s lacks %s", program_err, wrong[i].message);
  }
  assert_false(file_exists("masks") || file_exists("shown"));
}

/* ---- outputs that are not finite ---- */

static void an_output_that_is_not_finite_is_named(void **state) {
  (void)state;
  const float x[12] = {1, 2, 3, 4, 5, NAN, 7, 8, INFINITY, 1, 1, 1};
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 3, "2, 2", x, 12);
  const json_t *r = program_json(76, "predict identity.ini --input x.npy --output y.npy");
  assert_int_equal(program_number(r, "not_finite"), 2);
  assert_non_null(strstr(program_err, "2 of 3 outputs are not finite, first that of 'x.npy"));
  assert_true(isnan(read_npy("y.npy", "3, 2, 2", 12)[5]));
}

static const char convolutions_ini[] =
    "[run]\nname = r\nepochs = 1\n[data]\nsource = random\nshape = 3, 16, 16\nclasses = 4\nsamples = 32\n"
    "batch = 8\n[model]\ninputs = image: f32[3, 16, 16]\nlayers =\n    c1: conv2d(16, kernel=3, padding=1)\n"
    "        relu\n    c2: conv2d(32, kernel=3, padding=1)\n        relu\n        global_avg_pool\n"
    "    fc: linear(4)\nloss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.01\n";

/* The ReLU of a library may be 0 for NaN. */
static void a_nan_of_the_input_is_named_behind_folded_relus(void **state) {
  (void)state;
  enum { PIXELS = 3 * 16 * 16 };
  static const char *const backends[] = {"cpu", "auto"};
  static float x[2 * PIXELS];
  for (int i = 0; i < 2 * PIXELS; i++) x[i] = (float)(i % 7) / 7;
  x[PIXELS + 85] = NAN;
  file_write("r.ini", convolutions_ini);
  write_npy("x.npy", 2, "3, 16, 16", x, 2 * PIXELS);
  assert_int_equal(program_run("train r.ini --quiet"), 0);
  for (int i = 0; i < 2; i++) {
    const json_t *r = program_json(76, "predict runs/r --input x.npy --set backend.use=%s", backends[i]);
    const json_t *rows = program_member(r, "predictions");
    assert_int_equal(program_number(r, "not_finite"), 1);
    assert_int_equal(json_array_size(program_member(json_array_get(rows, 0), "top")), 4);
    assert_int_equal(json_array_size(program_member(json_array_get(rows, 1), "top")), 0);
    assert_non_null(strstr(program_err, "first that of 'x.npy[1]'"));
  }
}

#define CLASSIFIER_INI                                                                                       \
  "[run]\nname = n\nseed = 1\n[data]\nsource = random\nshape = 4\nclasses = 3\nsamples = 64\nbatch = 16\n"   \
  "[model]\ninputs = image: f32[4]\nlayers =\n    fc1: linear(4, bias=no)\n    fc2: linear(3, bias=no)\n"    \
  "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n"

/* Finite weights, whose products overflow to inf - inf. */
static void write_large_weights(const char *path) {
  static const char header[] =
      "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[4,4],\"data_offsets\":[0,64]},"
      "\"fc2.weight\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[64,112]}}";
  float values[28];
  char bytes[8 + sizeof header - 1 + sizeof values];
  uint64_t n = sizeof header - 1;
  for (int i = 0; i < 28; i++) values[i] = i % 3 == 0 ? 3e38f : -3e38f;
  memcpy(bytes, &n, 8);
  memcpy(bytes + 8, header, sizeof header - 1);
  memcpy(bytes + 8 + sizeof header - 1, values, sizeof values);
  file_write_bytes(path, bytes, sizeof bytes);
}

static void a_classifier_that_overflows_is_no_success(void **state) {
  (void)state;
  float x[8] = {1e30f, 1, -1, 1, 0, 0, 0, 0};
  file_write("n.ini", CLASSIFIER_INI);
  write_large_weights("large.safetensors");
  write_npy("x.npy", 2, "4", x, 8);
  const json_t *r = program_json(76, "predict n.ini --weights large.safetensors --input x.npy");
  const json_t *rows = program_member(r, "predictions");
  assert_int_equal(json_array_size(program_member(json_array_get(rows, 0), "top")), 0);
  assert_int_equal(json_array_size(program_member(json_array_get(rows, 1), "top")), 3);
  assert_int_equal(program_run("predict n.ini --weights large.safetensors --input x.npy --top 1"), 76);
  assert_non_null(strstr(program_out, "x.npy[0]   not finite\nx.npy[1]   "));
  assert_int_equal(program_run("predict n.ini --weights large.safetensors --input x.npy --top 1 --csv"), 76);
  assert_non_null(strstr(program_out, "\"x.npy[0]\",1,,,nan\n\"x.npy[1]\",1,"));
  r = program_json(76, "eval n.ini --weights large.safetensors");
  assert_int_equal(program_number(r, "samples"), 64);
  assert_non_null(strstr(program_err, "the loss over the validation data is"));
  r = program_json(76, "eval n.ini --weights large.safetensors --set model.metrics=accuracy,top_k(2)");
  assert_true(json_is_null(program_member(r, "accuracy")) && json_is_null(program_member(r, "top_k")));
  r = program_json(76, "eval n.ini --weights large.safetensors --classes");
  assert_int_equal(program_number(r, "samples") + program_number(r, "not_finite"), 64);
  assert_true(program_number(r, "not_finite") > 0);
  assert_non_null(strstr(program_err, "outputs are not finite, first that of '"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(rows_come_back_in_order, program_open, program_close),
      cmocka_unit_test_setup_teardown(no_rows_give_no_rows, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_batch_does_not_matter, program_open, program_close),
      cmocka_unit_test_setup_teardown(rows_must_have_the_type_of_the_models_input, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(the_output_must_be_writable, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_model_that_learns_needs_weights, program_open, program_close),
      cmocka_unit_test_setup_teardown(inputs_are_named_where_there_are_several, program_open, program_close),
      cmocka_unit_test_setup_teardown(an_output_without_classes_needs_a_file, program_open, program_close),
      cmocka_unit_test_setup_teardown(boxes_are_listed_and_drawn, program_open, program_close),
      cmocka_unit_test_setup_teardown(places_that_a_model_lacks_are_told, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_source_without_files_says_so, program_open, program_close),
      cmocka_unit_test_setup_teardown(an_output_that_is_not_finite_is_named, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_classifier_that_overflows_is_no_success, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_nan_of_the_input_is_named_behind_folded_relus, program_open,
                                      program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
