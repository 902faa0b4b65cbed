/* `tenon find-lr`: steps in which the learning rate rises, and what their losses suggest. */
#include <math.h>

#include "configs.h"
#include "program.h"

static double point(const json_t *r, size_t i, const char *key) {
  return program_number(json_array_get(program_member(r, "points"), i), key);
}

static void the_rates_rise_to_a_suggestion(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *r = program_json(0, "find-lr digits.ini");
  size_t n = json_array_size(program_member(r, "points"));
  assert_int_equal(program_number(r, "steps"), n);
  assert_true(n > 50 && n <= 100);
  for (size_t i = 0; i < n; i++)
    assert_true(fabs(point(r, i, "lr") / (1e-7 * pow(1e8, (double)i / 99)) - 1) < 1e-6);
  double steepest = program_number(r, "steepest"), least = program_number(r, "least");
  assert_true(steepest > 1e-4 && steepest < least && least < 1);
  assert_false(file_exists("runs")); /* nothing is kept */
  /* a rate of that size trains: in two epochs the loss falls below the first one */
  const json_t *trained = program_json(0, "train digits.ini --set optimizer.lr=%g", least / 10);
  assert_true(program_number(trained, "valid.loss") < 0.5 * point(r, 0, "loss"));
}

static void options_choose_the_range(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *r = program_json(0, "find-lr digits.ini --from 1e-5 --to 1e-2 --steps 40");
  assert_int_equal(json_array_size(program_member(r, "points")), 40);
  assert_true(fabs(point(r, 0, "lr") - 1e-5) < 1e-11 && fabs(point(r, 39, "lr") - 1e-2) < 1e-8);
  /* the schedule, the limit of steps and observers of the file have no part in it */
  const json_t *again = program_json(0, "find-lr digits.ini --from 1e-5 --to 1e-2 --steps 40 "
                                        "--set schedule.type=constant --set schedule.warmup=0 "
                                        "--set run.max_steps=3 --set run.observers=jsonl");
  for (size_t i = 0; i < 40; i++) assert_true(point(r, i, "loss") == point(again, i, "loss"));
  assert_false(file_exists("runs"));
}

/* More steps than an epoch has, and micro-batches. */
static void epochs_follow_one_another(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "find-lr noise.ini --to 1e-3 --set optimizer.accumulate=2");
  assert_int_equal(program_number(r, "steps"), 100); /* an epoch has 5 */
  assert_true(json_is_null(program_member(r, "steepest")) && json_is_null(program_member(r, "least")));
  assert_int_equal(program_run("find-lr noise.ini --to 1e-3"), 0);
  assert_non_null(strstr(program_out,
                         "the loss does not fall at any of them by more than its noise: `--steps 300` looks "
                         "longer, `--set run.overfit=1` shows"));
}

static void a_loss_that_rises_far_ends_it(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "find-lr noise.ini --to 1e8");
  assert_true(json_is_true(program_member(r, "diverged")));
  assert_true(program_number(r, "steps") < 100);
  assert_true(json_is_null(program_member(r, "not_finite")));
}

/* A loss that is not finite is no point, and the learning rate is named. */
static void a_loss_that_is_not_finite_ends_it(void **state) {
  (void)state;
  static const char to_infinity[] = "find-lr noise.ini --from 1 --to 1e30 --steps 20";
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, to_infinity);
  size_t n = json_array_size(program_member(r, "points"));
  double lr = program_number(r, "not_finite");
  assert_true(json_is_true(program_member(r, "diverged")));
  assert_true(n > 0 && n < 20 && lr > point(r, n - 1, "lr"));
  for (size_t i = 0; i < n; i++) assert_true(isfinite(point(r, i, "loss")));
  assert_true(json_is_null(program_member(r, "steepest")) && json_is_null(program_member(r, "least")));
  assert_int_equal(program_run(to_infinity), 0);
  assert_non_null(strstr(program_out, " steps, until the loss was not finite with lr = "));
  assert_non_null(strstr(program_out, "looks closer below the learning rate with which it is not finite"));
}

/* No learning rate is the reason: weights of 3e38 make inf - inf. */
static void a_first_loss_that_is_not_finite_is_an_error(void **state) {
  (void)state;
  file_write("nan.ini", "[run]\nname = nan\n[data]\nsource = random\nshape = 4\nclasses = 3\nsamples = 64\n"
                        "batch = 16\n[model]\ninputs = image: f32[4]\nlayers =\n"
                        "    fc1: linear(4, init=constant(3e38))\n    fc2: linear(3, init=constant(3e38))\n"
                        "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n");
  program_json(76, "find-lr nan.ini");
  assert_non_null(
      strstr(program_err, "the loss is not finite in the first step, which no learning rate has changed"));
  assert_int_equal(program_run("find-lr nan.ini"), 76);
  assert_string_equal(program_out, "");
}

static void it_begins_from_the_weights(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  double before = point(program_json(0, "find-lr digits.ini"), 0, "loss");
  program_json(0, "train digits.ini");
  size_t n;
  char *old = file_read("runs/digits/checkpoints/last/model.safetensors", &n);
  const json_t *r = program_json(0, "find-lr digits.ini --weights runs/digits");
  assert_true(point(r, 0, "loss") < 0.5 * before);
  size_t after_n;
  const char *now = file_read("runs/digits/checkpoints/last/model.safetensors", &after_n);
  assert_true(after_n == n && memcmp(old, now, n) == 0);
  assert_false(file_exists("runs/digits-2"));
}

static void the_result_is_a_plot_and_a_line(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("find-lr digits.ini"), 0);
  static const char *const parts[] = {
      "loss, smoothed\n",       " lr +--",  "1.0e-07",          "S  lr = ",
      "the loss falls fastest", "L  lr = ", "the usual choice", "\nwrite `lr = "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(program_out, parts[i])) fail_msg("'%s' lacks '%s'", program_out, parts[i]);
  assert_string_equal(program_err, ""); /* no terminal */
}

static void says(int code, const char *arguments, const char *text) {
  assert_int_equal(program_run("find-lr %s", arguments), code);
  if (!strstr(program_err, text)) fail_msg("'%s' lacks '%s'", program_err, text);
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  says(2, "digits.ini --from none", "expected a number from 1e-30 to 1e+30, not 'none'");
  says(2, "digits.ini --to -1", "expected a number from 1e-30 to 1e+30, not '-1'");
  says(2, "digits.ini --to inf", "expected a number from 1e-30 to 1e+30, not 'inf'");
  says(65, "digits.ini --from 1 --to 0.1", "learning rates from 1 to 0.1, expected the first above 0");
  says(65, "digits.ini --steps 3", "3 steps, expected 20 to 100000");
  says(65, "digits.ini --set optimizer.lr=0", "[optimizer] lr = 0, expected more than 0");
  says(65, "digits.ini --set data.source=none", "none");
  says(65, "digits.ini --set run.find_lr=yes",
       "[run] find_lr: unknown key; `tenon find-lr FILE.ini` looks for");
  says(2, "", "FILE.ini");
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(the_rates_rise_to_a_suggestion),    CASE(options_choose_the_range),
      CASE(epochs_follow_one_another),         CASE(a_loss_that_rises_far_ends_it),
      CASE(a_loss_that_is_not_finite_ends_it), CASE(a_first_loss_that_is_not_finite_is_an_error),
      CASE(it_begins_from_the_weights),        CASE(the_result_is_a_plot_and_a_line),
      CASE(wrong_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
