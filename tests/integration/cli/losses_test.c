/* Trainings with each loss have the parameters of PyTorch. The last layer begins at zero: the scores of the
 * first step are 0, where absolute values have no derivative. */
#include "golden_net.h"

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
  char line[128];
  snprintf(line, sizeof line, "loss = %s\n", numbers ? text + strlen(classes) : text);
  golden_write_data(LOSSES "/net.ini");
  change_net("loss = l1\n", line);
  if (numbers) change_net("    one_hot(3) <- label\n", "");
  if (numbers) change_net("targets = label: f32[3]\n", "");
}

static void parameters_are_those_of_pytorch(void **state) {
  (void)state;
  static const char *const losses[] = {"l1",
                                       "huber",
                                       "huber(delta=0.3)",
                                       "mse",
                                       "binary_cross_entropy",
                                       "binary_cross_entropy(positive=2.5)",
                                       "cross_entropy(weights=[0.5, 2, 1])",
                                       "cross_entropy(weights=[0.5, 2, 1], label_smoothing=0.1)",
                                       "classes: cross_entropy(weights=[0.5, 2, 1])",
                                       "classes: cross_entropy(weights=[0.5, 2, 1], label_smoothing=0.1)",
                                       "classes: cross_entropy(weights=[0.5, 2, 1], ignore=2)"};
  const json_t *golden = file_json(LOSSES "/golden.json");
  assert_int_equal(json_object_size(golden), sizeof losses / sizeof *losses);
  for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
    char output[16];
    const char *loss = losses[k];
    const json_t *tensors = json_object_get(golden, loss);
    write_loss(loss);
    snprintf(output, sizeof output, "run%zu", k);
    if (program_run("train net.ini --quiet --output %s", output) != 0) fail_msg("%s: %s", loss, program_err);
    for (int i = 0; i < GOLDEN_NAMES; i++) {
      char file[256];
      snprintf(file, sizeof file, "%s/net/checkpoints/last/model.safetensors", output);
      golden_expect_tensor(file, golden_names[i], json_object_get(tensors, golden_names[i]));
    }
  }
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
  write_loss("binary_cross_entropy(positive=-1)");
  assert_int_equal(program_run("train net.ini"), 65);
  assert_non_null(strstr(program_err, "positive"));
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
      cmocka_unit_test_setup_teardown(parameters_are_those_of_pytorch, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_large_score_has_a_finite_loss, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_target_that_is_too_long_has_no_alignment, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(inputs_of_ctc_are_checked, program_open, program_close),
      cmocka_unit_test_setup_teardown(other_shapes_and_options_are_refused, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
