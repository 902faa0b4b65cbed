/* Layers that draw numbers in training: the loss is a statistic of the layer's output on standard normal
 * input. */
#include "program.h"

#include <math.h>
#include <stdlib.h>

/* 32 examples of f32[16, 64], and `statistic` of the output y of a layer. */
static void write_model(const char *layer, const char *statistic) {
  char ini[1024];
  snprintf(ini, sizeof ini,
           "[run]\nname = run\nmax_steps = 2\n"
           "[data]\nsource = random\nfields = x: f32[16, 64]\nsamples = 64\nbatch = 32\nworkers = 0\n"
           "[model]\ninputs = x: f32[16, 64]\nlayers =\n    y: %s\n    s: linear(1)\n    v = %s\n"
           "    l = v + 0 * mean(s, axes=[1, 2])\nloss = value <- l\n"
           "[optimizer]\ntype = sgd\nlr = 0\n",
           layer, statistic);
  file_write("model.ini", ini);
}

static const json_t *measure(const char *layer, const char *statistic) {
  write_model(layer, statistic);
  return program_json(0, "train model.ini");
}

static void is_near(const char *layer, const char *statistic, const char *of, double expected, double bound) {
  double got = program_number(measure(layer, statistic), of);
  if (!(fabs(got - expected) <= bound))
    fail_msg("%s, %s, %s is %g, expected %g within %g", layer, statistic, of, got, expected, bound);
}

/* Of 65536 elements, or 1024 channels, the mean is within five standard errors. */
static void alpha_dropout_keeps_mean_and_variance(void **state) {
  (void)state;
  is_near("alpha_dropout(0.3)", "mean(y, axes=[1, 2])", "train.loss", 0, 0.02);
  is_near("alpha_dropout(0.3)", "mean(y * y, axes=[1, 2])", "train.loss", 1, 0.03);
  is_near("alpha_dropout(0.3, each=channel)", "mean(y, axes=[1, 2])", "train.loss", 0, 0.16);
  is_near("alpha_dropout(0.3)", "amax(abs(y - x), axes=[1, 2])", "valid.loss", 0, 0);
}

/* The share of channels whose elements are all equal is that of the replaced ones. */
static void channels_are_replaced_together(void **state) {
  (void)state;
  static const char equal[] = "mean(where(amax(y, axis=2) == amin(y, axis=2), 1.0, 0.0), axes=[1])";
  is_near("alpha_dropout(0.3, each=channel)", equal, "train.loss", 0.3, 0.08);
  is_near("dropout(0.3, each=channel)", equal, "train.loss", 0.3, 0.08);
  is_near("dropout(0.3)", equal, "train.loss", 0, 0);
}

/* The slope of elements below 0 is y / x; the mean of its bounds is that of all elements below 0. */
static void rrelu_draws_its_slope_in_training_alone(void **state) {
  (void)state;
  static const char slope[] =
      "sum(where(x < 0, y / x, 0.0), axes=[1, 2]) / sum(where(x < 0, 1.0, 0.0), axes=[1, 2])";
  static const char spread[] = "amax(where(x < 0, abs(y / x - 0.3), 0.0), axes=[1, 2])";
  is_near("rrelu(0.2, 0.4)", slope, "train.loss", 0.3, 0.002);
  is_near("rrelu(0.2, 0.4)", spread, "train.loss", 0.1, 0.002);
  is_near("rrelu(0.2, 0.4)", spread, "valid.loss", 0, 1e-6);
  is_near("rrelu(0.2, 0.4)", "amax(where(x < 0, 0.0, abs(y - x)), axes=[1, 2])", "train.loss", 0, 0);
  write_model("rrelu(0.4, 0.2)", "mean(y, axes=[1, 2])");
  assert_int_equal(program_run("plan model.ini"), 65);
  assert_non_null(
      strstr(program_err,
             "model.ini:13: rrelu 'y' on (f32[32, 16, 64]): upper is 0.2, expected at least lower, 0.4"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(alpha_dropout_keeps_mean_and_variance),
      TEST(channels_are_replaced_together),
      TEST(rrelu_draws_its_slope_in_training_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
