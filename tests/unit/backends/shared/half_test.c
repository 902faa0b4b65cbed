/* tests/unit/backends/shared/half_test.c: half-precision conversions against IEEE 754, computed with other
 * formulas. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

#include "backends/shared/half.h"

/* A format with `digits` bits of mantissa, the hidden bit included; `least` is its smallest normal exponent.
 */
typedef struct format {
  int digits, least, most; /* values are below 2^most */
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
} format;

static const format f16 = {11, -14, 16, tn_f32_of_f16, tn_f16_of_f32};
static const format bf16 = {8, -126, 128, tn_f32_of_bf16, tn_bf16_of_f32};

/* Rounds to the format by dividing by the unit in the last place; nearbyint rounds ties to even. */
static double rounded(const format *f, double x) {
  int exponent;
  if (!isfinite(x) || x == 0) return x;
  frexp(x, &exponent);
  if (exponent - 1 < f->least) exponent = f->least + 1;
  double y = ldexp(nearbyint(ldexp(x, f->digits - exponent)), exponent - f->digits);
  return fabs(y) >= ldexp(1, f->most) ? copysign(INFINITY, x) : y;
}

static void check(const format *f, float x) {
  float y = f->widen(f->narrow(x));
  if (isnan(x))
    assert_true(isnan(y));
  else
    assert_int_equal(tn_bits_of_f32(y), tn_bits_of_f32((float)rounded(f, (double)x)));
}

static void every_half_survives_widening(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 65536; h++) {
    float x = tn_f32_of_f16((uint16_t)h), y = tn_f32_of_bf16((uint16_t)h);
    if (!isnan(x)) assert_int_equal(tn_f16_of_f32(x), h);
    if (!isnan(y)) assert_int_equal(tn_bf16_of_f32(y), h);
    assert_int_equal(isnan(x) != 0, (h & 0x7fff) > 0x7c00);
  }
}

static void the_values_of_f16_are_those_of_the_standard(void **state) {
  (void)state;
  assert_true(tn_f32_of_f16(0x3c00) == 1.0f);
  assert_true(tn_f32_of_f16(0xc000) == -2.0f);
  assert_true(tn_f32_of_f16(0x0001) == 0x1p-24f);
  assert_true(tn_f32_of_f16(0x03ff) == 0x1p-14f - 0x1p-24f);
  assert_true(tn_f32_of_f16(0x0400) == 0x1p-14f);
  assert_true(tn_f32_of_f16(0x7bff) == 65504.0f);
  assert_true(isinf(tn_f32_of_f16(0x7c00)));
}

static void drawn_values_round_to_nearest_even(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(1, 0);
  for (int32_t i = 0; i < 300000; i++) {
    uint32_t bits = tn_rng_u32(&rng);
    check(&f16, tn_f32_of_bits(bits));
    check(&bf16, tn_f32_of_bits(bits));
    check(&f16, (float)ldexp(tn_rng_between(&rng, -2, 2), (int)tn_rng_below(&rng, 44) - 27));
  }
}

static void values_half_way_round_to_even(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 0x7c00; h++) {
    float low = tn_f32_of_f16((uint16_t)h), step = tn_f32_of_f16((uint16_t)(h + 1)) - low;
    check(&f16, h == 0x7bff ? 65520.0f : low + step / 2);
    check(&f16, nextafterf(h == 0x7bff ? 65520.0f : low + step / 2, 0));
    check(&bf16, tn_f32_of_bits(h << 16 | 0x8000u));
    check(&bf16, tn_f32_of_bits(h << 16 | 0x7fffu));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half_survives_widening),
      cmocka_unit_test(the_values_of_f16_are_those_of_the_standard),
      cmocka_unit_test(drawn_values_round_to_nearest_even),
      cmocka_unit_test(values_half_way_round_to_even),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
