/* [run] overfit: the same batches in every epoch, for training and for validation. */
#include <math.h>
#include <stdlib.h>

#include "configs.h"
#include "program.h"

/* Pictures with random transforms, and a net without dropout and statistics. */
static const char pictures_ini[] = "[run]\nname = run\nepochs = 3\nobservers = jsonl\n"
                                   "[data]\nsource = digits\nbatch = 16\nepoch = 320\n"
                                   "transforms = random_rotation(30), random_erasing(1), to_float\n"
                                   "[data.valid]\nbatch = 10\nepoch = 50\n"
                                   "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                                   "         flatten\n    fc1: linear(32)\n         relu\n"
                                   "    fc2: linear(10)\n"
                                   "loss = cross_entropy\nmetrics = accuracy\n"
                                   "[optimizer]\ntype = sgd\nlr = 0.1\nmomentum = 0.9\n";

/* The losses of the epochs in metrics.jsonl, of "train" or "valid"; returns how many. */
static int epoch_losses(const char *path, const char *part, double *losses) {
  char key[32];
  size_t length;
  int n = 0;
  snprintf(key, sizeof key, "\"%s\": {\"loss\": ", part);
  for (const char *line = strstr(file_read(path, &length), "\"event\": \"epoch\""); line;
       line = strstr(line + 1, "\"event\": \"epoch\"")) {
    const char *at = strstr(line, key);
    assert_non_null(at);
    losses[n++] = strtod(at + strlen(key), NULL);
  }
  return n;
}

/* Without learning, the loss of an epoch tells whether its samples are the same. */
static void every_epoch_and_validation_have_the_same_samples(void **state) {
  (void)state;
  double train[3], valid[3];
  file_write("net.ini", pictures_ini);
  program_json(0, "train net.ini --set optimizer.lr=0 --set run.overfit=3");
  assert_int_equal(epoch_losses("runs/run/metrics.jsonl", "train", train), 3);
  assert_int_equal(epoch_losses("runs/run/metrics.jsonl", "valid", valid), 3);
  for (int i = 0; i < 3; i++) {
    assert_true(fabs(train[i] - train[0]) < 1e-6);
    assert_true(fabs(valid[i] - train[0]) < 1e-6);
  }
  program_json(0, "train net.ini --set optimizer.lr=0 --set run.limit_train=3 --set run.name=other");
  epoch_losses("runs/other/metrics.jsonl", "train", train);
  assert_true(fabs(train[1] - train[0]) > 1e-4); /* without it they differ */
}

/* Random labels of random pictures: that is learned by heart, or not at all. */
static void a_model_learns_them_by_heart(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --set run.overfit=2 --set run.epochs=150");
  assert_int_equal(program_number(r, "steps"), 300);
  assert_true(program_number(r, "train.accuracy") == 1 && program_number(r, "valid.accuracy") == 1);
  assert_true(program_number(r, "valid.loss") < 0.1);
  r = program_json(0, "train noise.ini --set run.limit_train=2 --set run.epochs=150");
  assert_true(program_number(r, "valid.loss") > 1);
}

static void the_first_lines_say_what_is_done(void **state) {
  (void)state;
  file_write("net.ini", pictures_ini);
  const json_t *r = program_json(0, "train net.ini --set run.overfit=2");
  assert_string_equal(json_string_value(json_array_get(program_member(r, "remarks"), 0)),
                      "overfit = 2: training and validation on the same 32 samples in every epoch, in the "
                      "same order, with the transforms of validation");
  assert_non_null(strstr(program_err, "digits: 32 samples, 32 for validation"));
  assert_non_null(strstr(program_err, "note       overfit = 2: training and validation on the same 32"));
  /* eval reads the data of validation */
  r = program_json(0, "eval runs/run");
  assert_int_equal(program_number(r, "samples"), 50);
}

/* It takes the place of the limits, shuffle and balance, which stay in the file. */
static void other_keys_of_an_epoch_may_stay(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r =
      program_json(0, "train noise.ini --set run.overfit=2 --set run.limit_train=7 --set run.limit_valid=0.5 "
                      "--set data.balance=yes --set data.epoch=32");
  assert_int_equal(program_number(r, "steps"), 4);
  assert_int_equal(json_array_size(program_member(r, "remarks")), 1);
}

static void it_is_resumed_on_the_same_samples(void **state) {
  (void)state;
  file_write("net.ini", pictures_ini);
  program_json(0, "train net.ini --output whole --set run.overfit=3");
  program_json(0, "train net.ini --output parts --set run.overfit=3 --set run.max_steps=5");
  program_json(0, "train net.ini --output parts --set run.overfit=3 --resume auto");
  checkpoints_equal("whole", "parts");
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(every_epoch_and_validation_have_the_same_samples),
      CASE(a_model_learns_them_by_heart),
      CASE(the_first_lines_say_what_is_done),
      CASE(other_keys_of_an_epoch_may_stay),
      CASE(it_is_resumed_on_the_same_samples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
