/* Initializers, emitted for tensors of several shapes. */
#include "tests/unit/model/rig.h"

static void constants_are_filled(void **state) {
  (void)state;
  const tn_type type = {TN_F32, 2, {2, 3}};
  rig_expect_initializer("zeros", &type,
                         "%1: f32[2, 3] = full(dims=[2, 3])\n"
                         "output value = %1\n");
  rig_expect_initializer("ones", &type,
                         "%1: f32[2, 3] = full(dims=[2, 3], value=1)\n"
                         "output value = %1\n");
  rig_expect_initializer("constant(-2.5)", &type,
                         "%1: f32[2, 3] = full(dims=[2, 3], value=-2.5)\n"
                         "output value = %1\n");
}

static void random_ones_take_their_bounds(void **state) {
  (void)state;
  const tn_type type = {TN_F32, 1, {4}};
  rig_expect_initializer("uniform(-1, 2)", &type,
                         "%1: i64[] = full(dtype=i64)\n"
                         "%2: f32[4] = random_uniform(%1, dims=[4], stream=1, a=-1, b=2)\n"
                         "output value = %2\n");
  rig_expect_initializer("normal(std=0.02)", &type,
                         "%1: i64[] = full(dtype=i64)\n"
                         "%2: f32[4] = random_normal(%1, dims=[4], stream=1, b=0.02)\n"
                         "output value = %2\n");
}

/* torch.nn.init of a (8, 4, 3, 3) weight: fan_in 36, fan_out 72. */
static void fans_are_those_of_pytorch(void **state) {
  (void)state;
  const tn_type conv = {TN_F32, 4, {8, 4, 3, 3}};
  rig_expect_initializer(
      "kaiming_normal", &conv,
      "%1: i64[] = full(dtype=i64)\n"
      "%2: f32[8, 4, 3, 3] = random_normal(%1, dims=[8, 4, 3, 3], stream=1, b=0.23570226039551587)\n"
      "output value = %2\n");
  rig_expect_initializer(
      "kaiming_normal(mode=fan_out)", &conv,
      "%1: i64[] = full(dtype=i64)\n"
      "%2: f32[8, 4, 3, 3] = random_normal(%1, dims=[8, 4, 3, 3], stream=1, b=0.16666666666666669)\n"
      "output value = %2\n");
  rig_expect_initializer("kaiming_uniform(a=1)", &conv,
                         "%1: i64[] = full(dtype=i64)\n"
                         "%2: f32[8, 4, 3, 3] = random_uniform(%1, dims=[8, 4, 3, 3], stream=1, "
                         "a=-0.28867513459481287, b=0.28867513459481287)\n"
                         "output value = %2\n");
  rig_expect_initializer("xavier_uniform", &conv,
                         "%1: i64[] = full(dtype=i64)\n"
                         "%2: f32[8, 4, 3, 3] = random_uniform(%1, dims=[8, 4, 3, 3], stream=1, "
                         "a=-0.23570226039551584, b=0.23570226039551584)\n"
                         "output value = %2\n");
  rig_expect_initializer(
      "xavier_normal(2)", &conv,
      "%1: i64[] = full(dtype=i64)\n"
      "%2: f32[8, 4, 3, 3] = random_normal(%1, dims=[8, 4, 3, 3], stream=1, b=0.2721655269759087)\n"
      "output value = %2\n");
}

static void empty_and_flat_tensors_have_fans_too(void **state) {
  (void)state;
  const tn_type none = {TN_F32, 2, {0, 0}}, flat = {TN_F32, 1, {9}}, scalar = {TN_F32, 0, {0}};
  rig_expect_initializer("kaiming_normal", &none,
                         "%1: i64[] = full(dtype=i64)\n"
                         "%2: f32[0, 0] = random_normal(%1, dims=[0, 0], stream=1, b=1.4142135623730951)\n"
                         "output value = %2\n");
  rig_expect_initializer("kaiming_normal", &flat,
                         "%1: i64[] = full(dtype=i64)\n"
                         "%2: f32[9] = random_normal(%1, dims=[9], stream=1, b=0.47140452079103173)\n"
                         "output value = %2\n");
  rig_expect_initializer(
      "xavier_uniform", &scalar,
      "%1: i64[] = full(dtype=i64)\n"
      "%2: f32[] = random_uniform(%1, dims=[], stream=1, a=-1.7320508075688772, b=1.7320508075688772)\n"
      "output value = %2\n");
}

static void mistakes_name_the_initializer(void **state) {
  (void)state;
  rig_expect_initializer_error(
      "normall", "initializer 'normall': there is no initializer 'normall', did you mean 'normal'?");
  rig_expect_initializer_error("normal(1, 2, 3)",
                               "initializer 'normal(1, 2, 3)': argument 3 is one too many");
  rig_expect_initializer_error("normal(0, -1)",
                               "initializer 'normal(0, -1)': std: -1 is out of range, expected >= 0");
  rig_expect_initializer_error(
      "normal(sdt=1)", "initializer 'normal(sdt=1)': sdt: unknown option of normal, did you mean 'std'?");
  rig_expect_initializer_error(
      "constant",
      "initializer 'constant': value: constant needs this option, expected a number (every element)");
  rig_expect_initializer_error("kaiming_uniform(mode=fan)",
                               "initializer 'kaiming_uniform(mode=fan)': mode: 'fan' is not one of "
                               "fan_in|fan_out, did you mean 'fan_in'?");
  rig_expect_initializer_error("3", "initializer '3': expected an initializer like normal(0, 0.02)");
  rig_expect_initializer_error(
      "normal(", "initializer 'normal(': 'normal(': expected a value, found the end of the line");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(constants_are_filled, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(random_ones_take_their_bounds, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(fans_are_those_of_pytorch, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(empty_and_flat_tensors_have_fans_too, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(mistakes_name_the_initializer, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
