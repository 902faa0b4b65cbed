/* Which variants are measured, and which are kept. */
#include "core/compile/kernels/measure_variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 };
static int32_t timed[MOST], n_timed;
static int32_t refused;                     /* the variant that cannot be measured; -1: none */
static int32_t broken;                      /* the variant with which the device fails; -1: none */
static int32_t first_faulted, last_faulted; /* variants with which it failed before; last < first: none */

/* The more a variant was expected to cost, the less it does. */
static tn_status time_backwards(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning,
                                const tn_choice *choice, double *seconds) {
  (void)tuner, (void)env, (void)tuning;
  *seconds = 0;
  if (choice->id == broken) return TN_EDEVICE;
  if (choice->id == refused) return TN_OK;
  timed[n_timed++] = choice->id;
  *seconds = 1.0 - choice->cost_s;
  return TN_OK;
}

static bool has_faulted(tn_tuner *tuner, const tn_tuning *tuning, const tn_choice *choice) {
  (void)tuner, (void)tuning;
  return choice->id >= first_faulted && choice->id <= last_faulted;
}

static tn_tuner tuner = {.time = time_backwards, .has_faulted = has_faulted};
static const tn_type type = {TN_F32, 1, {8}};
static const tn_type *const types[] = {&type};
static const tn_match match = {sizeof match, 1, 1, 0, types, types, NULL, NULL, NULL};
static const tn_tuning tuning = {.match = &match, .nodes = "made up"};

static int start(void **state) {
  (void)state;
  n_timed = 0;
  refused = broken = last_faulted = -1;
  first_faulted = 0;
  return 0;
}

/* Variant i costs (n - i) ms: the last is the best by estimate. */
static void fill(tn_choice *variants, int32_t n) {
  memset(variants, 0, (size_t)n * sizeof *variants);
  for (int32_t i = 0; i < n; i++) {
    variants[i].id = i;
    variants[i].cost_s = (n - i) * 1e-3;
  }
}

static void the_best_sixteen_of_many_are_measured(void **state) {
  tn_choice variants[40];
  int32_t n = 40, best = -1;
  (void)state;
  fill(variants, n);
  assert_int_equal(tn_measure_variants(&tuner, NULL, &tuning, variants, &n, &best), TN_OK);
  assert_int_equal(n_timed, 16);
  for (int32_t i = 0; i < 16; i++) assert_int_equal(timed[i], 24 + i);
  assert_int_equal(n, 16);
  for (int32_t i = 0; i < n; i++) assert_true(variants[i].measured && variants[i].id == 24 + i);
  assert_int_equal(variants[best].id, 24);
  assert_true(variants[best].cost_s == 1.0 - 16 * 1e-3);
}

/* A layout without a measured variant keeps its best by estimate: the reorders around it may decide. */
static void other_layouts_stay(void **state) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY}, same = {.rule = TN_LAYOUT_SAME_AS};
  tn_choice variants[20];
  int32_t n = 20, best = -1;
  (void)state;
  fill(variants, n);
  variants[0].in_rule = variants[0].out_rule = variants[1].in_rule = variants[1].out_rule = &any;
  variants[2].in_rule = variants[2].out_rule = &same;
  assert_int_equal(tn_measure_variants(&tuner, NULL, &tuning, variants, &n, &best), TN_OK);
  assert_int_equal(n_timed, 16);
  assert_int_equal(n, 18);
  assert_true(variants[0].id == 1 && !variants[0].measured && variants[0].cost_s == 19 * 1e-3);
  assert_true(variants[1].id == 2 && !variants[1].measured);
  for (int32_t i = 2; i < n; i++) assert_true(variants[i].measured);
  assert_int_equal(variants[best].id, 2);
}

static void rivals_are_measured_together_or_not_at_all(void **state) {
  tn_choice variants[20], before[20];
  int32_t n = 20, best = 7;
  (void)state;
  fill(variants, n);
  memcpy(before, variants, sizeof before);
  refused = 17;
  assert_int_equal(tn_measure_variants(&tuner, NULL, &tuning, variants, &n, &best), TN_OK);
  assert_int_equal(n, 20);
  assert_int_equal(best, 7);
  assert_memory_equal(variants, before, sizeof before);
}

static void a_variant_without_a_rival_is_not_measured(void **state) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  tn_choice variants[2];
  (void)state;
  fill(variants, 2);
  assert_true(tn_variants_have_rivals(&match, variants, 2));
  assert_false(tn_variants_have_rivals(&match, variants, 1));
  variants[1].in_rule = &any;
  assert_false(tn_variants_have_rivals(&match, variants, 2));
}

static void a_failure_of_the_device_comes_up(void **state) {
  tn_choice variants[4];
  int32_t n = 4, best = 2;
  (void)state;
  fill(variants, n);
  broken = 1;
  assert_int_equal(tn_measure_variants(&tuner, NULL, &tuning, variants, &n, &best), TN_EDEVICE);
  assert_int_equal(n_timed, 1);
  assert_int_equal(n, 4);
  assert_int_equal(best, 2);
}

static void variants_that_faulted_are_marked(void **state) {
  tn_choice variants[4];
  (void)state;
  fill(variants, 4);
  first_faulted = 1;
  last_faulted = 2;
  tn_mark_faulted_variants(&tuner, &tuning, variants, 4);
  for (int32_t i = 0; i < 4; i++) assert_int_equal(variants[i].faulted, i == 1 || i == 2);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_best_sixteen_of_many_are_measured),      TEST(other_layouts_stay),
      TEST(rivals_are_measured_together_or_not_at_all), TEST(a_variant_without_a_rival_is_not_measured),
      TEST(a_failure_of_the_device_comes_up),           TEST(variants_that_faulted_are_marked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
