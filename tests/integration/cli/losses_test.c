/* Losses with learned weights and of a teacher have the parameters of PyTorch, and what losses refuse. Each
 * loss is compared with its peer in tests/integration/recipes. */
#include "golden_net.h"
#include "npy_files.h"

#include <math.h>
#include <stdbool.h>

/* Replaces a part of net.ini. */
static void change_net(const char *line, const char *by) {
  static char text[4096];
  const char *ini = file_read("net.ini", NULL), *at = strstr(ini, line);
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - ini), ini, by, at + strlen(line));
  file_write("net.ini", text);
}

/* With "classes: " in front, targets are class numbers. */
static void write_loss(const char *text) {
  static const char classes[] = "classes: ";
  bool numbers = strncmp(text, classes, strlen(classes)) == 0;
  char line[256];
  snprintf(line, sizeof line, "loss = %s\n", numbers ? text + strlen(classes) : text);
  golden_write_data(LOSSES "/net.ini");
  change_net("loss = l1\n", line);
  if (numbers) change_net("    one_hot(3) <- label\n", "");
  if (numbers) change_net("targets = label: f32[3]\n", "");
}

/* Twelve steps. The teacher's weights come from a file, and its normalization works as in evaluation. */
static void a_student_of_a_frozen_teacher_is_that_of_pytorch(void **state) {
  (void)state;
  static const char *const file = "out/student/checkpoints/last/model.safetensors";
  const json_t *golden = json_object_get(file_json(LOSSES "/golden.json"), "student"), *want;
  const char *name;
  size_t n;
  write_loss("classes: cross_entropy");
  assert_int_equal(program_run("train net.ini --quiet --output teacher"), 0);
  file_write("distill.ini", file_read(LOSSES "/distill.ini", &n));
  if (program_run("train distill.ini --quiet --output out") != 0) fail_msg("%s", program_err);
  json_object_foreach((json_t *)(uintptr_t)golden, name, want) golden_expect_tensor(file, name, want);
  assert_int_equal(json_object_size(golden), 2);
  static const char *const kept[] = {"fc1.weight", "bn.running_mean", "bn.running_var", "fc2.bias"};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    char teacher[32];
    snprintf(teacher, sizeof teacher, "teacher.%s", kept[i]);
    size_t count = 0, other = 0;
    const float *is = tensor_find(file, teacher, &count),
                *was = tensor_find("teacher/net/checkpoints/last/model.safetensors", kept[i], &other);
    assert_true(is != NULL && was != NULL && count == other);
    assert_memory_equal(is, was, count * sizeof *is);
  }
}

#define LEARNED                                                                                              \
  "\n    near: mse(weight=learned)\n    right: binary_cross_entropy(weight=learned)\n"                       \
  "[group.s]\nmatch = *.log_variance\nweight_decay = 0"

/* Their log variances are parameters of the training, and of its checkpoints; predictions do without. */
static void learned_weights_are_those_of_pytorch(void **state) {
  (void)state;
  const json_t *golden = json_object_get(file_json(LOSSES "/golden.json"), "learned"), *want;
  const char *name;
  write_loss(LEARNED);
  if (program_run("train net.ini --quiet --output out") != 0) fail_msg("%s", program_err);
  assert_int_equal(json_object_size(golden), GOLDEN_NAMES + 2);
  json_object_foreach((json_t *)(uintptr_t)golden, name, want)
      golden_expect_tensor("out/net/checkpoints/last/model.safetensors", name, want);
}

/* Without normalization, which takes the samples of one rank or micro-batch. */
static void learned_weights_are_those_of_the_whole_batch(void **state) {
  (void)state;
  static const char *const ways[] = {
      "", "--set optimizer.accumulate=2 --set data.batch=4",
      "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2"};
  static const char *const names[] = {"near.log_variance", "right.log_variance"};
  write_loss(LEARNED);
  change_net("    bn: batch_norm\n", "");
  for (int i = 0; i < 3; i++) {
    char file[80];
    if (program_run("train net.ini --quiet --output out%d %s", i, ways[i]) != 0) fail_msg("%s", program_err);
    snprintf(file, sizeof file, "out%d/net/checkpoints/last/model.safetensors", i);
    for (int k = 0; k < 2; k++)
      assert_true(tensor_distance("out0/net/checkpoints/last/model.safetensors", file, names[k]) < 1e-5);
  }
}

static void predictions_do_without_learned_weights(void **state) {
  (void)state;
  write_loss(LEARNED);
  assert_int_equal(program_run("train net.ini --quiet --output out --set precision.policy=fp16"), 0);
  const json_t *r = program_json(0, "eval out/net");
  double sum = program_number(r, "near") + program_number(r, "right");
  assert_true(fabs(program_number(r, "loss") - sum) < 1e-6);
  const float pixels[6] = {0, 0.5f, 1, 0.25f, 0, 0.75f};
  write_npy("x.npy", 1, "1, 2, 3", pixels, 6);
  assert_int_equal(program_run("predict out/net --input x.npy --output y.npy"), 0);
}

static void only_losses_learn_a_weight(void **state) {
  (void)state;
  write_loss("mse(weight=learned)\nmetrics = l1(weight=learned)");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "weight is learned, which losses alone may have"));
}

/* e to the power of a large score would not be finite. */
static void a_large_score_has_a_finite_loss(void **state) {
  (void)state;
  write_loss("binary_cross_entropy");
  change_net("init=zeros", "init=constant(1000)");
  const json_t *r = program_json(0, "train net.ini --set run.epochs=1");
  double loss = program_number(r, "train.loss");
  assert_true(loss > 0 && loss < 1e6);
}

static void other_shapes_and_options_are_refused(void **state) {
  (void)state;
  static const char *const losses[] = {"l1", "huber", "binary_cross_entropy", "mse"};
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
    char line[64];
    snprintf(line, sizeof line, "%s <- fc1, label", losses[i]);
    write_loss(line);
    assert_int_equal(program_run("train net.ini"), 65);
    assert_non_null(strstr(program_err, "expected the same shape"));
  }
  write_loss("huber(delta=0)");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "delta"));
  write_loss("cross_entropy(weights=[1, 2])");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "weights has 2 numbers, expected one for each of the 3 classes"));
  write_loss("cross_entropy(z_loss=0.1)");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "it goes with class numbers"));
  write_loss("classes: cross_entropy(z_loss=0.1, weights=[1, 2, 3])");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "beside weights of classes, expected one of both"));
  write_loss("multi_label_margin");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "(N, classes) class numbers that end with one below 0"));
  write_loss("classes: distill <- fc2, fc1, label");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "the scores of the student and of the teacher have two shapes"));
  write_loss("classes: distill(temperature=0) <- fc2, fc2, label");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "temperature"));
  write_loss("classes: distill(axis=3) <- fc2, fc2, label");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "3 is out of range for rank-2 scores"));
  write_loss("binary_cross_entropy(positive=-1)");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "positive"));
}

/* Rows with weights, or as many equal rows as these say. */
static void write_rows(const char *name, int rows, bool repeated) {
  static const int weights[] = {1, 2, 3, 1, 2, 3, 2, 2};
  char text[2048] = "a,b,y,w\n";
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < (repeated ? weights[i] : 1); k++)
      snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d,%d,%d\n", i % 3, i % 4 - 1, i * i % 5,
               repeated ? 1 : weights[i]);
  file_write(name, text);
}

static void train_rows(bool repeated, const char *options, double results[3]) {
  write_rows("train.csv", 8, repeated);
  write_rows("valid.csv", 7, repeated);
  const json_t *r = program_json(0, "train rows.ini --set data.batch=%d %s", repeated ? 16 : 8, options);
  results[0] = program_number(r, "train.loss");
  results[1] = program_number(r, "valid.loss");
  results[2] = program_number(r, "valid.mae");
}

/* As many rows as the weights say have the same loss, also in a short last batch, in micro-batches and on
 * ranks. */
static void a_column_weighs_the_loss_of_each_row(void **state) {
  (void)state;
  static const char *const ways[] = {
      "", "--set optimizer.accumulate=2 --set data.batch=4",
      "--set backend.use=sim --set distributed.devices=2 --set backend.sim.devices=2"};
  file_write("rows.ini", "[run]\nepochs = 3\noutput =\n[data]\nsource = table\nfile = train.csv\n"
                         "valid_file = valid.csv\ninputs = x: numbers(a, b)\n"
                         "targets = y: number(y), w: number(w)\n[data.valid]\nbatch = 4\n"
                         "[model]\ninputs = x: f32[2]\ntargets = y: f32[], w: f32[]\n"
                         "layers =\n    fc: linear(1)\n        reshape([])\nloss = mse(weight=w)\n"
                         "metrics = mae(weight=w)\n[optimizer]\ntype = sgd\nlr = 0.1\n");
  double whole[3], weighed[3];
  train_rows(true, "", whole);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    train_rows(false, ways[i], weighed);
    for (int k = 0; k < 3; k++) assert_true(fabs(weighed[k] - whole[k]) < 1e-5 * fabs(whole[k]));
  }
}

/* Targets of three equal classes have two blanks at least between them: 5 steps. */
static void a_target_that_is_too_long_has_no_alignment(void **state) {
  (void)state;
  file_write("net.ini",
             "[run]\nmax_steps = 1\n[data]\nsource = random\nbatch = 2\n"
             "fields = x: f32[4, 8], steps: i32[] 4..4\ntargets = text: i32[3] 1..1, length: i32[] 3..3\n"
             "[data.valid]\nepoch = 2\n[model]\ninputs = x: f32[4, 8], steps: i32[]\n"
             "targets = text: i32[3], length: i32[]\nlayers = fc: linear(5) <- x\nloss = ctc\n");
  assert_true(program_number(program_json(0, "train net.ini"), "train.loss") == 0);
  change_net("loss = ctc", "loss = ctc <- fc, text, steps, length");
  change_net("i32[] 3..3", "i32[] 1..2");
  double loss = program_number(program_json(0, "train net.ini"), "train.loss");
  assert_true(loss > 0 && loss < 100);
}

static void inputs_of_ctc_are_checked(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"ctc <- fc, text, steps", "3 inputs, expected 2, or 4: scores, target, steps of each sequence"},
      {"ctc <- fc, steps",
       "scores of rank 3 and targets of rank 1 (i32), expected scores (N, steps, classes)"},
      {"ctc <- fc, text, x, steps",
       "input 3 has rank 3 and type f32, expected a whole number for each sequence"},
      {"ctc(blank=5)", "blank is 5, expected one of the 5 classes"},
      {"cross_entropy\nmetrics = mean_iou(axis=2)", "the targets have other dimensions than the scores"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[512];
    snprintf(
        text, sizeof text,
        "[data]\nsource = random\nfields = x: f32[4, 8], steps: i32[] 4..4\ntargets = text: i32[3] 1..4\n"
        "[model]\ninputs = x: f32[4, 8], steps: i32[]\ntargets = text: i32[3]\n"
        "layers = fc: linear(5) <- x\nloss = %s\n",
        wrong[i][0]);
    file_write("net.ini", text);
    assert_int_equal(program_run("plan net.ini"), 65);
    if (strstr(program_err, wrong[i][1]) == NULL) fail_msg("%s: %s", wrong[i][0], program_err);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_student_of_a_frozen_teacher_is_that_of_pytorch, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_large_score_has_a_finite_loss, program_open, program_close),
      cmocka_unit_test_setup_teardown(learned_weights_are_those_of_pytorch, program_open, program_close),
      cmocka_unit_test_setup_teardown(only_losses_learn_a_weight, program_open, program_close),
      cmocka_unit_test_setup_teardown(learned_weights_are_those_of_the_whole_batch, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(predictions_do_without_learned_weights, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_target_that_is_too_long_has_no_alignment, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(inputs_of_ctc_are_checked, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_column_weighs_the_loss_of_each_row, program_open, program_close),
      cmocka_unit_test_setup_teardown(other_shapes_and_options_are_refused, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
