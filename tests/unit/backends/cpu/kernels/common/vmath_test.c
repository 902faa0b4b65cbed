/* The elementary functions in f32, over all of f32 in small steps, against libm in f64. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

#include "backends/cpu/kernels/common/vmath.h"
#include "backends/shared/normal.h"

typedef struct extreme {
  double ulps;
  float at;
} extreme;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static extreme worst_of(float (*f)(float), double (*meaning)(double)) {
  extreme worst = {0, 0};
  for (uint32_t bits = 0; bits < 0xffffff00u; bits += 9973) {
    float x = vm_float(bits), y = f(x);
    double want = meaning((double)x), ulps = 0;
    float rounded = (float)want;
    if (y == rounded || (y != y && rounded != rounded)) continue;
    ulps = isfinite(y) && isfinite(rounded) ? fabs((double)y - want) / rig_ulp(TN_F32, want) : 1e9;
    if (ulps > worst.ulps) worst = (extreme){ulps, x};
  }
  return worst;
}

#define WORST(name, meaning, bound)                                                                          \
  do {                                                                                                       \
    extreme e = worst_of(name, meaning);                                                                     \
    if (e.ulps > (bound))                                                                                    \
      fail_msg(#name "(%a) is %.3f ulp off, expected at most %g", (double)e.at, e.ulps, bound);              \
  } while (0)

static void functions_stay_within_the_errors_that_their_header_states(void **state) {
  (void)state;
  WORST(vm_exp, exp, 1.0);
  WORST(vm_log, log, 0.9);
  WORST(vm_tanh, tanh, 1.4);
  WORST(vm_erf, erf, 1.3);
  WORST(vm_sigmoid, sigmoid, 2.4);
}

static void sine_and_cosine_of_a_turn_are_exact_at_quarters_and_near_elsewhere(void **state) {
  (void)state;
  static const float quarters[5][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  float sine, cosine;
  for (int i = 0; i < 5; i++) {
    tn_turn((float)i / 4, &sine, &cosine);
    assert_true(sine == quarters[i][0] && cosine == quarters[i][1]);
  }
  const double turn = 2 * acos(-1);
  for (uint32_t k = 1; k < 1u << 24; k += 61) {
    float u = (float)k * 0x1p-24f;
    tn_turn(u, &sine, &cosine);
    double s = sin(turn * (double)u), c = cos(turn * (double)u);
    assert_true(fabs((double)sine - s) <= 1.6 * rig_ulp(TN_F32, s) + 1e-15);
    assert_true(fabs((double)cosine - c) <= 1.6 * rig_ulp(TN_F32, c) + 1e-15);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_stay_within_the_errors_that_their_header_states),
      cmocka_unit_test(sine_and_cosine_of_a_turn_are_exact_at_quarters_and_near_elsewhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
