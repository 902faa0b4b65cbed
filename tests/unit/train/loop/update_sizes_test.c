/* The batches of updates, and the steps of a run that has them. */
#include "tests/unit/run/rig.h"

#include "core/train/loop/update_sizes.h"

/* The factor rises from 1/4 to 1 over eight batches; the test may set it for all. */
static double fixed;
static double rises(const void *options, const tn_schedule_at *at) {
  (void)options;
  if (fixed > 0) return fixed;
  return at->step >= 8 ? 1 : 0.25 + 0.75 * (double)at->step / 8;
}
static const tn_schedule kind = {.factor = rises};
static tn_schedule_setting setting = {.name = "schedule.accumulate", .kind = &kind, .warmup_start = -1};

/* Three epochs of ten batches of 6 samples, and at most four of them in an update. */
static tn_update_sizes sizes_of(bool pads) {
  fixed = 0;
  return (tn_update_sizes){.schedule = &setting,
                           .where = "net.ini:9",
                           .most = 4,
                           .epochs = 3,
                           .batches = 10,
                           .batch = 6,
                           .pads = pads};
}

static void expect_epoch(const tn_update_sizes *s, int64_t epoch, int64_t updates, int64_t batches,
                         int64_t last) {
  tn_update_walk walk = tn_update_sizes_walk(s, epoch, INT64_MAX, INT64_MAX);
  assert_int_equal(walk.updates, updates);
  assert_int_equal(walk.batches, batches);
  assert_int_equal(walk.last, last);
}

static void an_update_has_the_count_of_its_first_batch(void **state) {
  (void)state;
  static const int64_t first[] = {1, 1, 2, 3, 4}; /* at batches 0, 1, 2, 4, 7; 11 would be over */
  tn_update_sizes s = sizes_of(true);
  tn_update_walk walk = {.epoch = 0};
  for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
    assert_int_equal(tn_update_sizes_next(&s, &walk), first[i]);
    assert_true(tn_update_sizes_step(&s, &walk));
  }
  assert_int_equal(tn_update_sizes_next(&s, &walk), 0);
  assert_false(tn_update_sizes_step(&s, &walk));
}

static void the_last_update_is_padded_or_left_out(void **state) {
  (void)state;
  tn_update_sizes s = sizes_of(true);
  expect_epoch(&s, 0, 5, 11, 7);
  expect_epoch(&s, 1, 3, 12, 8);
  s.pads = false;
  expect_epoch(&s, 0, 4, 7, 4);
  expect_epoch(&s, 1, 2, 8, 4);
}

static void a_walk_ends_at_an_update_or_in_front_of_a_batch(void **state) {
  (void)state;
  const tn_update_sizes s = sizes_of(true);
  assert_int_equal(tn_update_sizes_walk(&s, 0, 3, INT64_MAX).batches, 4);
  assert_int_equal(tn_update_sizes_walk(&s, 0, INT64_MAX, 4).updates, 3);
  assert_int_equal(tn_update_sizes_walk(&s, 0, INT64_MAX, 6).updates, 3);
  assert_int_equal(tn_update_sizes_walk(&s, 0, 0, INT64_MAX).batches, 0);
}

static void expect_point(const tn_update_sizes *s, size_t i, int64_t step, double epochs, double samples) {
  assert_true(i < s->points.n);
  assert_int_equal(s->points.v[i].step, step);
  assert_true(s->points.v[i].epochs == epochs && s->points.v[i].samples == samples);
}

/* A point stands where the count changes, where an epoch begins, and at the end. */
static void a_plan_counts_the_steps(void **state) {
  (void)state;
  tn_update_sizes s = sizes_of(false);
  int64_t steps;
  rig_expect_ok(tn_update_sizes_plan(&R.env, &s, &(tn_update_anchor){0, 0, INT64_MAX}, &steps));
  assert_int_equal(steps, 8);
  assert_int_equal(s.points.n, 6);
  expect_point(&s, 0, 0, 0, 0);
  expect_point(&s, 1, 2, 2.0 / 7, 12);
  expect_point(&s, 2, 3, 4.0 / 7, 24);
  expect_point(&s, 3, 4, 1, 42);
  expect_point(&s, 4, 6, 2, 90);
  expect_point(&s, 5, 8, 3, 138);
  tn_update_sizes_free(&R.env, &s);
}

/* A run that began with other updates is at step 10 where the second epoch begins. */
static void a_plan_begins_where_the_run_stands(void **state) {
  (void)state;
  tn_update_sizes s = sizes_of(false);
  int64_t steps;
  rig_expect_ok(tn_update_sizes_plan(&R.env, &s, &(tn_update_anchor){1, 10, INT64_MAX}, &steps));
  assert_int_equal(steps, 14);
  expect_point(&s, 3, 10, 1, 42);
  rig_expect_ok(tn_update_sizes_plan(&R.env, &s, &(tn_update_anchor){3, 20, INT64_MAX}, &steps));
  assert_int_equal(steps, 20); /* it is over */
  s.epochs = 0;
  rig_expect_ok(tn_update_sizes_plan(&R.env, &s, &(tn_update_anchor){0, 0, INT64_MAX}, &steps));
  assert_int_equal(steps, 0);
  assert_true(s.points.n >= 2);
  tn_update_sizes_free(&R.env, &s);
}

static void a_plan_refuses_what_cannot_be(void **state) {
  (void)state;
  tn_update_sizes s = sizes_of(false);
  int64_t steps;
  const tn_update_anchor begin = {0, 0, INT64_MAX};
  fixed = 1.25;
  rig_expect_error(tn_update_sizes_plan(&R.env, &s, &begin, &steps), TN_EINVAL,
                   "net.ini:9: [schedule.accumulate] asks for 5 batches in an update at batch 1 of epoch 1");
  fixed = 1;
  s.batches = 3;
  rig_expect_error(tn_update_sizes_plan(&R.env, &s, &begin, &steps), TN_EINVAL,
                   "asks for 4 batches in the first update of epoch 1, and an epoch has 3");
  s.epochs = s.batches = INT64_MAX;
  rig_expect_error(tn_update_sizes_plan(&R.env, &s, &begin, &steps), TN_EINVAL,
                   "the run has more than 4194304 updates");
  tn_update_sizes_free(&R.env, &s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(an_update_has_the_count_of_its_first_batch),
      CASE(the_last_update_is_padded_or_left_out),
      CASE(a_walk_ends_at_an_update_or_in_front_of_a_batch),
      CASE(a_plan_counts_the_steps),
      CASE(a_plan_begins_where_the_run_stands),
      CASE(a_plan_refuses_what_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
