/* The search for the largest batch that fits. */
#include "core/step/programs/largest_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct memory {
  double fixed, each, square; /* fixed + each * batch + square * batch * batch */
  int64_t refused;            /* batches from here on have no plan; 0: all have one */
  int32_t plans;
} memory;

static int64_t bytes_of(const memory *m, int64_t batch) {
  return (int64_t)(m->fixed + m->each * (double)batch + m->square * (double)batch * (double)batch);
}

static bool plan(void *context, int64_t batch, int64_t *bytes) {
  memory *m = context;
  m->plans++;
  *bytes = bytes_of(m, batch);
  return m->refused == 0 || batch < m->refused;
}

/* The result must be the largest; returns the number of plans. */
static int32_t expect_largest(memory m, int64_t batch, int64_t limit) {
  bool certain;
  int64_t found = tn_largest_batch(plan, &m, batch, bytes_of(&m, batch), limit, &certain);
  assert_true(found >= 1 && found < batch && certain);
  assert_true(bytes_of(&m, found) <= limit && bytes_of(&m, found + 1) > limit);
  return m.plans;
}

static void a_straight_line_takes_three_plans(void **state) {
  (void)state;
  for (int64_t limit = 2000; limit < 100000; limit += 977)
    assert_true(expect_largest((memory){.fixed = 1000, .each = 100}, 1024, limit) <= 4);
}

static void curves_are_searched_too(void **state) {
  (void)state;
  for (int64_t limit = 2000; limit < 100000; limit += 977)
    expect_largest((memory){.fixed = 1000, .each = 10, .square = 1}, 512, limit);
}

static void nothing_fits_or_nothing_can_be_planned(void **state) {
  bool certain;
  memory m = {.fixed = 1000, .each = 100};
  (void)state;
  assert_int_equal(tn_largest_batch(plan, &m, 64, 7400, 1099, &certain), 0);
  assert_int_equal(tn_largest_batch(plan, &m, 1, 1100, 1099, &certain), 0);
  assert_int_equal(tn_largest_batch(plan, &m, 64, 7400, 1100, &certain), 1);
  assert_true(certain);
  m.refused = 1;
  assert_int_equal(tn_largest_batch(plan, &m, 64, 7400, 5000, &certain), 0);
  m.refused = 2;
  assert_int_equal(tn_largest_batch(plan, &m, 64, 7400, 5000, &certain), 1);
  assert_false(certain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_straight_line_takes_three_plans),
      cmocka_unit_test(curves_are_searched_too),
      cmocka_unit_test(nothing_fits_or_nothing_can_be_planned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
