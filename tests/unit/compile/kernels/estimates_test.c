/* The costs of variants that give none follow from the rates of the device. */
#include "tests/unit/compile/fixture.h"

#include <math.h>

#include "core/compile/program.h"
#include "tests/unit/compile/kernels.h"

static const tn_item *const kernels[] = {KERNELS_PLAIN, NULL};
static fixture F;

/* The cost of the only launch of a graph. */
static double cost_of(const char *graph) {
  tn_program *program = fixture_program(&F, graph);
  assert_int_equal(program->n_steps, 1);
  double cost_s = program->steps[0].group->choice.cost_s;
  tn_program_destroy(program);
  return cost_s;
}

static void expect_near(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-9 * expected)) fail_msg("%g s, expected %g s", value, expected);
}

#define MATMUL(dtype)                                                                                        \
  "a: " dtype "[512, 1024] = input(name=a)\n"                                                                \
  "b: " dtype "[1024, 256] = input(name=b)\n"                                                                \
  "c: " dtype "[512, 256] = matmul(a, b)\n"                                                                  \
  "output c = c\n"

static void products_take_the_rate_of_their_dtype(void **state) {
  (void)state;
  fixture_open(&F, kernels);
  tn_device_properties *p = &F.target.properties;
  p->bytes_per_s = 1e13;
  p->launch_s = 2e-6;
  p->matrix_flops_per_s[TN_F16] = 4e12;
  p->matrix_flops_per_s[TN_F32] = 1e12;
  double flops = 2.0 * 512 * 1024 * 256;
  expect_near(cost_of(MATMUL("f16")), 2e-6 + flops / 4e12);
  expect_near(cost_of(MATMUL("f32")), 2e-6 + flops / 1e12);
  fixture_close(&F);
}

static void other_ops_take_the_slower_of_memory_and_arithmetic(void **state) {
  static const char graph[] = "x: f32[1024, 1024] = input(name=x)\n"
                              "y: f32[1024, 1024] = relu(x)\n"
                              "output y = y\n";
  (void)state;
  fixture_open(&F, kernels);
  tn_device_properties *p = &F.target.properties;
  p->bytes_per_s = 4e12;
  p->launch_s = 1e-7;
  p->vector_flops_per_s = 1e14;
  expect_near(cost_of(graph), 1e-7 + 2.0 * 1024 * 1024 * 4 / 4e12);
  p->vector_flops_per_s = 1e9;
  expect_near(cost_of(graph), 1e-7 + 1024.0 * 1024 / 1e9);
  fixture_close(&F);
}

static void unknown_rates_are_completed(void **state) {
  (void)state;
  tn_device_properties p = {.struct_size = sizeof p, .threads = 4, .bytes_per_s = 3e12};
  p.matrix_flops_per_s[TN_BF16] = 5e14;
  p.launch_s = -1;
  tn_properties_complete(&p);
  assert_true(p.bytes_per_s == 3e12 && p.matrix_flops_per_s[TN_BF16] == 5e14);
  assert_true(p.vector_flops_per_s == 8e10 && p.launch_s == 1e-6);
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) assert_true(p.matrix_flops_per_s[dtype] > 0);
}

static double offered_s;
static tn_status offer_with_cost(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .cost_s = offered_s};
  tn_add_variant(q, &v);
  return TN_OK;
}
static KERNEL(k_costly, "t.costly", "t", "y = matmul(a, b)", offer_with_cost);
static const tn_item *const costly[] = {&k_costly.item, NULL};

/* Comparisons with NaN are false, and an infinity is no number of JSON. */
static void a_cost_that_is_no_number_is_none(void **state) {
  static const double wrong[] = {NAN, INFINITY, -1, 0};
  (void)state;
  fixture_open(&F, costly);
  tn_device_properties *p = &F.target.properties;
  p->bytes_per_s = 1e13;
  p->launch_s = 2e-6;
  p->matrix_flops_per_s[TN_F32] = 1e12;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    offered_s = wrong[i];
    expect_near(cost_of(MATMUL("f32")), 2e-6 + 2.0 * 512 * 1024 * 256 / 1e12);
  }
  offered_s = 3;
  expect_near(cost_of(MATMUL("f32")), 3);
  fixture_close(&F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_take_the_rate_of_their_dtype),
      cmocka_unit_test(other_ops_take_the_slower_of_memory_and_arithmetic),
      cmocka_unit_test(unknown_rates_are_completed),
      cmocka_unit_test(a_cost_that_is_no_number_is_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
