/* The arithmetic of collectives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/shared/reduce.h"
#include "backends/shared/reduce_loops.h"

static void halves_are_rounded_after_each_addition_and_extremes_keep_a_nan(void **state) {
  (void)state;
  uint16_t a = 0x6800 /* 2048 */, b = 0x3C00 /* 1 */, sum, tiny = 0x0001, huge = 0x7BFF;
  const void *thrice[] = {&a, &b, &b};
  tn_reduce(TN_F16, TN_REDUCTION_SUM, 3, thrice, &sum, 1);
  assert_int_equal(sum, 0x6800); /* 2048 + 1 is 2048 in f16; rounded once, the sum would be 2050 */
  tn_reduce(TN_F16, TN_REDUCTION_MEAN, 3, thrice, &sum, 1);
  assert_int_equal(sum, 0x6155); /* 2048 / 3 = 682.67, rounded to 682.5 */
  uint16_t wide = 0x4380 /* 256 */, unit = 0x3F80 /* 1 */;
  const void *brain[] = {&wide, &unit, &unit};
  tn_reduce(TN_BF16, TN_REDUCTION_SUM, 3, brain, &sum, 1);
  assert_int_equal(sum, 0x4380); /* bf16 has 8 bits: 257 is 256 */
  const void *small[] = {&tiny, &tiny};
  tn_reduce(TN_F16, TN_REDUCTION_SUM, 2, small, &sum, 1);
  assert_int_equal(sum, 0x0002);
  const void *large[] = {&huge, &huge};
  tn_reduce(TN_F16, TN_REDUCTION_SUM, 2, large, &sum, 1);
  assert_int_equal(sum, 0x7C00);
  float one = 1, nan = NAN, least;
  const void *odd[] = {&one, &nan, &one};
  tn_reduce(TN_F32, TN_REDUCTION_MIN, 3, odd, &least, 1);
  assert_true(isnan(least));
  int32_t top = INT32_MAX, next = 1, wrapped;
  const void *over[] = {&top, &next};
  tn_reduce(TN_I32, TN_REDUCTION_SUM, 2, over, &wrapped, 1);
  assert_int_equal(wrapped, INT32_MIN);
}

/* ---- instruction sets ---- */

enum { OPERANDS = 3, ELEMENTS = 5001, BYTES = ELEMENTS * 8 };

/* Any bits: numbers of all sizes, infinities, and of floats some NaN. */
static void draw_bits(uint8_t *to, uint32_t seed) {
  uint32_t state = seed;
  for (int i = 0; i < BYTES; i++) {
    state = state * 1664525u + 1013904223u; /* Numerical Recipes */
    to[i] = (uint8_t)(state >> 24);
  }
}

/* The first NaN of a sum, and its sign, depend on the order in which the processor gets the operands. */
static int is_nan(int32_t dtype, const uint8_t *element) {
  uint16_t half;
  float f;
  double d;
  memcpy(&half, element, 2);
  if (dtype == TN_F16) return (half & 0x7fff) > 0x7c00;
  if (dtype == TN_BF16) return (half & 0x7fff) > 0x7f80;
  if (dtype == TN_F32) return memcpy(&f, element, sizeof f), isnan(f);
  if (dtype == TN_F64) return memcpy(&d, element, sizeof d), isnan(d);
  return 0;
}

static void compare_loops(int32_t dtype, int32_t reduction) {
  static uint8_t operands[OPERANDS][BYTES], plain[BYTES], other[BYTES];
  const void *from[OPERANDS];
  size_t size = tn_dtype_size(dtype);
  for (int32_t r = 0; r < OPERANDS; r++) {
    draw_bits(operands[r], (uint32_t)(dtype * 100 + reduction * 10 + r));
    from[r] = operands[r];
  }
  tn_reduce_loops_plain[dtype](reduction, OPERANDS, from, plain, ELEMENTS);
  tn_reduce(dtype, reduction, OPERANDS, from, other, ELEMENTS); /* as this processor does it */
  for (size_t i = 0; i < ELEMENTS; i++) {
    const uint8_t *a = plain + i * size, *b = other + i * size;
    if (memcmp(a, b, size) != 0 && !(is_nan(dtype, a) && is_nan(dtype, b)))
      fail_msg("%s, reduction %d: element %d differs", tn_dtype_name(dtype), (int)reduction, (int)i);
  }
  tn_reduce(dtype, reduction, OPERANDS, from, operands[1], ELEMENTS); /* in place of an operand */
  assert_memory_equal(operands[1], other, ELEMENTS * size);
}

static void all_instruction_sets_give_the_same_bits(void **state) {
  (void)state;
  int32_t uses = 0;
  for (int32_t dtype = 1; dtype < TN_DTYPES; dtype++) {
    for (int32_t reduction = TN_REDUCTION_SUM; reduction <= TN_REDUCTION_MEAN; reduction++) {
      if (!tn_can_reduce(dtype, reduction)) continue;
      uses++;
      compare_loops(dtype, reduction);
    }
  }
  assert_int_equal(uses, 4 * 4 + 4 * 3); /* floats and integers */
  assert_false(tn_can_reduce(TN_F32, TN_REDUCTION_MEAN + 1));
  assert_false(tn_can_reduce(TN_BOOL, TN_REDUCTION_SUM));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halves_are_rounded_after_each_addition_and_extremes_keep_a_nan),
      cmocka_unit_test(all_instruction_sets_give_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
