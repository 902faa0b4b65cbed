/* [model] sizes: training takes one size after the other, and validation the largest. */
#include "nets.h"

#include <math.h>
#include <stdbool.h>

/* The metric `side` is the size of the program, over the samples. */
static const char sizes_ini[] =
    "[run]\nname = run\nepochs = 3\nseed = 4\n"
    "[data]\nsource = digits\nepoch = 50\nbatch = 12\nworkers = 1\nlast = pad\ntransforms =\n"
    "    random_resized_crop(size)\n    to_float\n"
    "[data.valid]\nepoch = 12\ntransforms =\n    center_crop(size)\n    to_float\n"
    "[model]\ninputs = image: f32[1, size, size]\nsizes = 12, 16, 20\nlayers =\n"
    "    conv1: conv2d(4, kernel=3, padding=1)\n           relu\n           max_pool(2)\n"
    "    conv2: conv2d(8, kernel=3, padding=1)\n           relu\n           global_avg_pool\n"
    "    fc:    linear(10)\nloss = cross_entropy\nmetrics =\n    accuracy\n"
    "    side: value <- size * cast(label >= 0, to=f32)\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

/* An epoch of each size, in processes of one size each. */
static void train_by_hand(const char *folder, const char *more) {
  static const int sizes[] = {12, 16, 20};
  for (int i = 0; i < 3; i++) {
    char all[512];
    snprintf(all, sizeof all, "--set model.sizes=%d --set run.epochs=%d %s %s", sizes[i], i + 1,
             i > 0 ? "--resume auto" : "", more);
    nets_train(folder, 1, all);
  }
}

static void epochs_are_those_of_runs_of_one_size(void **state) {
  (void)state;
  file_write("model.ini", sizes_ini);
  train_by_hand("hand", "");
  for (int devices = 1; devices <= 4; devices += devices) {
    char folder[16];
    snprintf(folder, sizeof folder, "sized%d", devices);
    const json_t *r = nets_train(folder, devices, devices > 2 ? "--set backend.sim.order=random" : "");
    nets_compare(folder, folder, "hand", 1e-6);
    assert_true(program_number(r, "train.side") == 20 && program_number(r, "valid.side") == 20);
  }
}

static void micro_batches_have_the_size_of_their_epoch(void **state) {
  (void)state;
  static const char more[] = "--set optimizer.accumulate=2 --set data.batch=6";
  file_write("model.ini", sizes_ini);
  train_by_hand("hand", "");
  nets_train("sized", 1, more);
  nets_compare("sized", "sized", "hand", 1e-6);
}

/* In the middle of epochs, and between them. */
static void resumed_runs_have_the_same_bits(void **state) {
  (void)state;
  file_write("model.ini", sizes_ini);
  nets_train("whole", 1, "");
  for (int stop = 3; stop <= 10; stop += 3) {
    char more[96], folder[16];
    snprintf(folder, sizeof folder, "cut%d", stop);
    snprintf(more, sizeof more, "--set run.max_steps=%d", stop);
    const json_t *r = nets_train(folder, 1, more);
    assert_true(program_number(r, "train.side") == (stop <= 5 ? 12 : stop <= 10 ? 16 : 20));
    assert_true(program_number(r, "valid.side") == 20);
    nets_train(folder, 1, "--resume auto");
    checkpoints_equal(folder, "whole");
  }
}

static bool has_remark(const json_t *result, const char *text) {
  const json_t *line;
  size_t i;
  json_array_foreach((json_t *)(uintptr_t)program_member(result, "remarks"), i, line) {
    if (strcmp(json_string_value(line), text) == 0) return true;
  }
  return false;
}

static void a_schedule_chooses_the_nearest_size(void **state) {
  (void)state;
  char text[2048];
  snprintf(text, sizeof text, "%s[schedule.size]\ntype = multistep\nmilestones = [2]\ngamma = 0.7\n",
           sizes_ini);
  file_write("model.ini", text);
  const json_t *r = nets_train("down", 1, "");
  assert_true(has_remark(r, "size: 20 from epoch 1 on, 16 from epoch 3 on")); /* 20 * 0.7 = 14 */
  assert_true(program_number(r, "train.side") == 16 && program_number(r, "valid.side") == 20);
  file_write("model.ini", sizes_ini);
  r = nets_train("parts", 1, "--set run.epochs=4");
  assert_true(has_remark(r, "size: 12 from epoch 1 on, 16 from epoch 3 on, 20 from epoch 4 on"));
}

/* The arena is that of the largest size, of 200 kB; what the other programs add is small: constants, outputs.
 */
static void memory_is_that_of_the_largest_size(void **state) {
  (void)state;
  file_write("model.ini", sizes_ini);
  const json_t *all = nets_train("all", 1, "--set run.max_steps=1");
  double bytes = program_number(all, "planned_peak_bytes");
  const json_t *one = nets_train("one", 1, "--set run.max_steps=1 --set model.sizes=20");
  assert_true(fabs(bytes - program_number(one, "planned_peak_bytes")) < 16384);
}

static void predictions_and_evaluations_have_the_largest_size(void **state) {
  (void)state;
  file_write("model.ini", sizes_ini);
  const json_t *r = nets_train("run", 1, "");
  double loss = program_number(r, "valid.loss");
  const json_t *again = program_json(0, "eval model.ini --weights run/run/checkpoints/last");
  assert_true(fabs(program_number(again, "loss") - loss) < 1e-5 && program_number(again, "side") == 20);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(epochs_are_those_of_runs_of_one_size), CASE(micro_batches_have_the_size_of_their_epoch),
      CASE(resumed_runs_have_the_same_bits),      CASE(a_schedule_chooses_the_nearest_size),
      CASE(memory_is_that_of_the_largest_size),   CASE(predictions_and_evaluations_have_the_largest_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
