/* Numbers as elements of every dtype: rounding to nearest, once. */
#include "tests/support/check_status.h"

#include <math.h>

#include "core/base/element.h"

static double stored(int32_t dtype, double v) {
  uint64_t element = 0;
  tn_element_store(dtype, &element, 0, v);
  return tn_element_load(dtype, &element, 0);
}

static void bf16_rounds_to_nearest_even(void **state) {
  (void)state;
  assert_true(stored(TN_BF16, 0x1.01p0) == 0x1p0);      /* a tie: the even one is below */
  assert_true(stored(TN_BF16, 0x1.03p0) == 0x1.04p0);   /* a tie: the even one is above */
  assert_true(stored(TN_BF16, 0x1.011p0) == 0x1.02p0);  /* above the tie */
  assert_true(stored(TN_BF16, -0x1.03p0) == -0x1.04p0); /* away from zero as well */
}

/* In f32 the number would be the tie itself. */
static void bf16_of_f64_rounds_once(void **state) {
  (void)state;
  assert_true(stored(TN_BF16, 0x1.0100000000001p0) == 0x1.02p0);
  assert_true(stored(TN_BF16, 0x1.02fffffffffffp0) == 0x1.02p0);
  assert_true(stored(TN_BF16, -0x1.0100000000001p0) == -0x1.02p0);
}

static void the_ends_of_the_range_hold(void **state) {
  (void)state;
  assert_true(stored(TN_BF16, 0x1.fep127) == 0x1.fep127);
  assert_true(isinf(stored(TN_BF16, 0x1.ffp127)) != 0); /* rounds beyond the largest bf16 */
  assert_true(stored(TN_BF16, -INFINITY) == -INFINITY);
  assert_true(stored(TN_BF16, 1e300) == INFINITY);
  assert_true(stored(TN_BF16, 0x1p-133) == 0x1p-133); /* the smallest denormal */
  assert_true(signbit(stored(TN_BF16, -0.0)) != 0);
}

/* A NaN whose payload lies in the half that bf16 has not. */
static void a_nan_stays_one(void **state) {
  (void)state;
  uint32_t bits = 0x7f800001u;
  float nan;
  memcpy(&nan, &bits, sizeof nan);
  assert_true(isnan(stored(TN_BF16, (double)nan)));
  assert_true(isnan(stored(TN_F16, NAN)));
  assert_true(isnan(stored(TN_F32, NAN)));
}

static void integers_are_kept(void **state) {
  (void)state;
  assert_true(stored(TN_U8, 255) == 255);
  assert_true(stored(TN_I32, -0x1p31) == -0x1p31);
  assert_true(stored(TN_I64, 0x1p53) == 0x1p53);
  assert_true(stored(TN_BOOL, 1) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bf16_rounds_to_nearest_even), cmocka_unit_test(bf16_of_f64_rounds_once),
      cmocka_unit_test(the_ends_of_the_range_hold),  cmocka_unit_test(a_nan_stays_one),
      cmocka_unit_test(integers_are_kept),
  };
  return cmocka_run_group_tests_name("element", tests, NULL, NULL);
}
