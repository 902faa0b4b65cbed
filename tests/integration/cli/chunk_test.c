/* Trainings whose logits are made by chunks of rows have the losses, metrics and parameters of those whose
 * logits lie in memory whole. */
#include "tensors.h"

#include <stdbool.h>

static const char head[] =
    "[run]\nname = net\nseed = 3\nmax_steps = 3\n"
    "[data]\nsource = random\nsamples = 24\nbatch = 4\ntokens = 12\nclasses = 90\n"
    "[data.valid]\nsource = random\nsamples = 8\nbatch = 4\ntokens = 12\nclasses = 90\n"
    "[optimizer]\ntype = sgd\nlr = 0.5\n"
    "[model]\ninputs = tokens: i32[12]\ntargets = next: i32[12]\nlayers =\n"
    "    wte: embedding(90, 8)\n    h: linear(8)\n    gelu\n";

static void write_net(const char *rest) {
  char text[2048];
  snprintf(text, sizeof text, "%s%s\n", head, rest);
  file_write("net.ini", text);
}

/* Trains whole and by chunks; tensors differ by no more than `most`. */
static void expect_the_same(const char *settings, double most) {
  static const char *const names[] = {"wte.weight", "h.weight", "h.bias"};
  double loss[2], accuracy[2];
  for (int i = 0; i < 2; i++) {
    const json_t *r = program_json(0, "train net.ini --output out%d --set run.chunk_logits=%s %s", i,
                                   i == 0 ? "no" : "5", settings);
    loss[i] = program_number(r, "valid.loss");
    accuracy[i] = program_number(r, "valid.accuracy");
  }
  if (!(loss[0] - loss[1] < most && loss[1] - loss[0] < most))
    fail_msg("%s: loss %.9g whole, %.9g by chunks", settings, loss[0], loss[1]);
  assert_true(loss[0] > 0);
  assert_true(accuracy[0] == accuracy[1] || most > 1e-5);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    double distance = tensor_distance("out0/net/checkpoints/last/model.safetensors",
                                      "out1/net/checkpoints/last/model.safetensors", names[i]);
    if (!(distance <= most)) fail_msg("%s: %s differs by %.3g", settings, names[i], distance);
  }
}

/* The step has a loop, and no value with a number for each row and class. */
static void expect_no_logits(const char *rows, const char *settings) {
  assert_int_equal(
      program_run("plan net.ini --dump-after chunk --set run.chunk_logits=%s %s", rows, settings), 0);
  char *end = strstr(program_out, "output loss");
  assert_non_null(end);
  *end = '\0';
  assert_non_null(strstr(program_out, " = loop("));
  assert_null(strstr(program_out, "[4, 12, 90]"));
  assert_null(strstr(program_out, "[48, 90]"));
}

static void the_result_is_that_of_whole_logits(void **state) {
  (void)state;
  static const char *const nets[] = {
      "    lm_head: linear(90, bias=no, weight=@wte.weight)\nloss = cross_entropy\nmetrics = accuracy",
      "    lm_head: linear(90)\n    tanh\nloss = cross_entropy(label_smoothing=0.1, z_loss=1e-2, ignore=3)\n"
      "metrics = accuracy, top_k(5), perplexity",
      "    s: linear(90)\n    t: linear(90) <- wte\nloss =\n    distill <- s, t, next\n"
      "metrics = accuracy <- s, next"};
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    write_net(nets[i]);
    expect_no_logits("5", "");
    expect_the_same("", 2e-6);
  }
}

static void classes_with_weights_go_with_chunks(void **state) {
  (void)state;
  char text[512] = "    lm_head: linear(90)\nmetrics = accuracy\nloss = cross_entropy(weights=[0.5";
  for (int i = 1; i < 90; i++) strcat(text, i % 3 == 0 ? ", 2" : ", 1");
  strcat(text, "])");
  write_net(text);
  expect_no_logits("5", "");
  expect_the_same("", 2e-6);
}

static void settings_of_the_update_go_with_chunks(void **state) {
  (void)state;
  static const char *const settings[] = {
      "--set optimizer.accumulate=2", "--set backend.use=cpu",
      "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2",
      "--set data.last=pad --set data.batch=7"};
  write_net("    lm_head: linear(90, weight=@wte.weight)\nloss = cross_entropy(label_smoothing=0.1)\n"
            "metrics = accuracy");
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) expect_the_same(settings[i], 2e-6);
  /* the sums over chunks are f32 before they are rounded */
  expect_no_logits("yes", "--set precision.policy=bf16 --set data.batch=4 --set run.chunk_logits=6");
  expect_the_same("--set precision.policy=bf16", 2e-2);
  expect_the_same("--set precision.policy=fp16", 5e-3);
}

static void small_logits_stay_whole(void **state) {
  (void)state;
  write_net("    lm_head: linear(90)\nloss = cross_entropy");
  assert_int_equal(program_run("plan net.ini --dump-after chunk"), 0);
  assert_null(strstr(program_out, " = loop("));
}

static void expect_refusal(const char *rest, const char *value, const char *text) {
  write_net(rest);
  assert_int_equal(program_run("train net.ini --set run.chunk_logits=%s", value), 65);
  if (strstr(program_err, text) == NULL) fail_msg("%s, expected %s", program_err, text);
}

static void a_model_whose_logits_stay_whole_is_refused(void **state) {
  (void)state;
  static const char plain[] = "    lm_head: linear(90)\nloss = cross_entropy";
  expect_refusal(plain, "some",
                 "[run] chunk_logits = some, expected auto, yes, no, or a number of rows from 1 on");
  expect_refusal(plain, "0", "[run] chunk_logits = 0, expected auto");
  expect_refusal(plain, "48", "no logits can be divided into chunks: a chunk has all rows already");
  expect_refusal("    lm_head: linear(90)\n    log_softmax(axis=1)\nloss = cross_entropy", "4",
                 "no logits can be divided into chunks");
  expect_refusal("    lm_head: linear(8)\nloss = mse <- lm_head, h", "4",
                 "no cross_entropy or log_softmax is in the loss; expected auto or no");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_result_is_that_of_whole_logits, program_open, program_close),
      cmocka_unit_test_setup_teardown(classes_with_weights_go_with_chunks, program_open, program_close),
      cmocka_unit_test_setup_teardown(settings_of_the_update_go_with_chunks, program_open, program_close),
      cmocka_unit_test_setup_teardown(small_logits_stay_whole, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_model_whose_logits_stay_whole_is_refused, program_open,
                                      program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
