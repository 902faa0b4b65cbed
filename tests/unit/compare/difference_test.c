/* Differences between tensors: the largest, its place, and units in the last place of every float type. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/compare/difference.h"

static tn_type vector(int32_t dtype, int64_t n) { return (tn_type){.dtype = dtype, .rank = 1, .dims = {n}}; }

static void equal_tensors_have_none(void **state) {
  (void)state;
  float v[] = {1, -2, INFINITY, NAN};
  tn_type type = vector(TN_F32, 4);
  tn_difference d = tn_difference_of(&type, v, v);
  assert_true(d.largest == 0 && d.ulp == 0 && d.at == -1);
  assert_true(d.magnitude == 2);
}

static void the_largest_is_found(void **state) {
  (void)state;
  float a[] = {1, 2, 3, -8}, b[] = {1, 2.25f, 2.5f, -8};
  tn_type type = vector(TN_F32, 4);
  tn_difference d = tn_difference_of(&type, a, b);
  assert_true(d.largest == 0.5 && d.at == 2 && d.expected == 3 && d.found == 2.5 && d.magnitude == 8);
  assert_true(d.ulp == 0.5 / 0x1p-22);
}

static void a_number_against_none_is_infinite(void **state) {
  (void)state;
  float a[] = {1, INFINITY, 1}, nan[] = {1, INFINITY, NAN}, minus[] = {1, -INFINITY, 1};
  tn_type type = vector(TN_F32, 3);
  tn_difference d = tn_difference_of(&type, a, nan);
  assert_true(isinf(d.largest) && isinf(d.ulp) && d.at == 2);
  d = tn_difference_of(&type, a, minus);
  assert_true(isinf(d.largest) && d.at == 1);
}

static void integers_count_in_ones(void **state) {
  (void)state;
  int64_t a[] = {5, -7}, b[] = {5, -4};
  tn_type type = vector(TN_I64, 2);
  tn_difference d = tn_difference_of(&type, a, b);
  assert_true(d.largest == 3 && d.ulp == 3 && d.at == 1);
}

static void halves_are_read(void **state) {
  (void)state;
  uint16_t bf16[] = {0x3f80, 0x4000}, bf16_up[] = {0x3f81, 0x4000}, f16[] = {0x3c00}, f16_up[] = {0x3c01};
  tn_type type = vector(TN_BF16, 2);
  tn_difference d = tn_difference_of(&type, bf16, bf16_up);
  assert_true(d.largest == 0x1p-7 && d.ulp == 1 && d.at == 0);
  type = vector(TN_F16, 1);
  d = tn_difference_of(&type, f16, f16_up);
  assert_true(d.largest == 0x1p-10 && d.ulp == 1);
}

/* Below the smallest normal number the distance of elements no longer shrinks. */
static void units_of_small_numbers(void **state) {
  (void)state;
  assert_true(tn_difference_ulp(TN_F32, 0, 0x1p-149) == 1);
  assert_true(tn_difference_ulp(TN_F32, 0x1p-140, 0x1p-149) == 1);
  assert_true(tn_difference_ulp(TN_F32, 0x1p-126, 0x1p-149) == 1);
  assert_true(tn_difference_ulp(TN_F32, 0x1p-125, 0x1p-149) == 0.5);
  assert_true(tn_difference_ulp(TN_F64, 1, 0x1p-52) == 1);
}

static void no_elements_have_none(void **state) {
  (void)state;
  tn_type type = vector(TN_F32, 0);
  tn_difference d = tn_difference_of(&type, NULL, NULL);
  assert_true(d.largest == 0 && d.at == -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_tensors_have_none),
      cmocka_unit_test(the_largest_is_found),
      cmocka_unit_test(a_number_against_none_is_infinite),
      cmocka_unit_test(integers_count_in_ones),
      cmocka_unit_test(halves_are_read),
      cmocka_unit_test(units_of_small_numbers),
      cmocka_unit_test(no_elements_have_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
