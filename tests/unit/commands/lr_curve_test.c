#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/commands/lr_curve.h"

enum { POINTS = 100 };

static tn_lr_point points[POINTS];

/* Learning rates from 1e-7 to 10; returns the number of points until the curve ended. */
static int32_t draw(tn_lr_curve *curve, double (*loss)(double lr)) {
  *curve = (tn_lr_curve){.v = points};
  for (int32_t i = 0; i < POINTS; i++) {
    double lr = 1e-7 * pow(1e8, (double)i / (POINTS - 1));
    if (!tn_lr_curve_add(curve, lr, loss(lr))) break;
  }
  return curve->n;
}

/* Flat at 2, falling by 1 around 1e-3, rising beyond 0.1. */
static double valley(double lr) { return 1 + 1 / (1 + lr / 1e-3) + pow(lr / 0.3, 3); }
static double flat(double lr) { return 2 + 1e-3 * sin(1e9 * lr); }
/* Losses of small batches, 0.2 up and down around 2. */
static double noisy(double lr) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return 2 + (lr > 0 ? 0.4 : 0) * ((double)(state >> 8) / (1 << 24) - 0.5) * 1.7;
}
static double rising(double lr) { return 2 + 10 * lr; }
static double below_zero(double lr) { return valley(lr) - 10; }

static void a_valley_has_its_slope_and_its_ground(void **state) {
  (void)state;
  tn_lr_curve curve;
  int32_t n = draw(&curve, valley);
  tn_lr_advice advice = tn_lr_curve_advise(&curve);
  assert_true(n < POINTS); /* the end was far above the ground */
  /* smoothed, both come up to a power of ten late */
  assert_true(points[advice.steepest].lr > 1e-3 && points[advice.steepest].lr < 1e-2);
  assert_true(points[advice.least].lr > 2e-2 && points[advice.least].lr < 0.5);
}

static void noise_gives_no_advice(void **state) {
  (void)state;
  tn_lr_curve curve;
  assert_int_equal(draw(&curve, flat), POINTS);
  tn_lr_advice advice = tn_lr_curve_advise(&curve);
  assert_true(advice.least == -1 && advice.steepest == -1);
  for (int i = 0; i < 50; i++) {
    assert_int_equal(draw(&curve, noisy), POINTS);
    advice = tn_lr_curve_advise(&curve);
    assert_true(advice.least == -1 && advice.steepest == -1);
  }
  draw(&curve, rising);
  advice = tn_lr_curve_advise(&curve);
  assert_true(advice.least == -1 && advice.steepest == -1);
}

static void losses_below_zero_have_an_end_too(void **state) {
  (void)state;
  tn_lr_curve curve;
  int32_t n = draw(&curve, below_zero);
  assert_true(n > 80 && n < POINTS);
  tn_lr_advice advice = tn_lr_curve_advise(&curve);
  assert_true(points[advice.steepest].lr > 1e-3 && points[advice.steepest].lr < 1e-2);
}

/* The average weighs what there is: a constant stays what it is from the first point on. */
static double constant(double lr) { return lr > 0 ? 3 : 0; }
static void the_average_has_no_bias_at_the_start(void **state) {
  (void)state;
  tn_lr_curve curve;
  draw(&curve, constant);
  for (int32_t i = 0; i < POINTS; i++) assert_true(fabs(points[i].smoothed - 3) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_valley_has_its_slope_and_its_ground),
      cmocka_unit_test(noise_gives_no_advice),
      cmocka_unit_test(losses_below_zero_have_an_end_too),
      cmocka_unit_test(the_average_has_no_bias_at_the_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
