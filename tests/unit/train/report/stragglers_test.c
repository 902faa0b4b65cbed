/* The rank that is slower than the median. */
#include "tests/unit/run/rig.h"

#include <math.h>

#include "core/train/report/stragglers.h"

static void expect(int32_t rank, double median_ms, double factor, const double *ms, int32_t n) {
  tn_own_time all[8];
  double median_s = -1;
  for (int32_t i = 0; i < n; i++) all[i] = (tn_own_time){.seconds = ms[i] / 1e3, .looks = 100};
  assert_int_equal(tn_straggler_find(all, n, factor, &median_s), rank);
  if (rank >= 0) assert_true(fabs(median_s * 1e3 - median_ms) < 1e-9);
}
#define EXPECT(rank, median, factor, ...)                                                                    \
  do {                                                                                                       \
    const double ms_[] = {__VA_ARGS__};                                                                      \
    expect(rank, median, factor, ms_, (int32_t)(sizeof ms_ / sizeof *ms_));                                  \
  } while (0)

static void a_rank_above_the_factor_is_found(void **state) {
  (void)state;
  EXPECT(2, 10, 1.5, 10, 10, 15.1, 10);
  EXPECT(-1, 0, 1.5, 10, 10, 14.9, 10);
  EXPECT(0, 11, 1.5, 40, 10, 11, 12, 9);
  EXPECT(3, 10, 1.5, 10, 10, 20, 30, 10); /* the slowest of two */
  EXPECT(1, 10, 1.5, 10, 30);             /* of two ranks the median is the lower */
  EXPECT(-1, 0, 3.5, 10, 30);
  EXPECT(-1, 0, 1.5, 10, 10, 10, 10);
  EXPECT(-1, 0, 1.5, 30, 30, 10, 30); /* a fast one is no straggler */
}

static void jitter_is_no_reason(void **state) {
  (void)state;
  EXPECT(-1, 0, 1.5, 0.1, 0.1, 0.9);
  EXPECT(2, 0.1, 1.5, 0.1, 0.1, 1.2);
  EXPECT(1, 0, 1.5, 0, 3, 0);
}

static void an_unknown_time_judges_no_rank(void **state) {
  (void)state;
  EXPECT(-1, 0, 1.5, 10, (double)NAN, 40);
  EXPECT(-1, 0, 1.5, 10, (double)INFINITY, 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_rank_above_the_factor_is_found),
                                     cmocka_unit_test(jitter_is_no_reason),
                                     cmocka_unit_test(an_unknown_time_judges_no_rank)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
