/* The factor of the learning rate: the host's warm-up times each of the project's schedules. */
#include "tests/unit/train/rig.h"

#include <math.h>
#include <string.h>

#include "core/train/programs/control_block.h"

extern const tn_plugin *tn_static_schedules(void);

static const double pi = 3.14159265358979323846;
static tn_arena arena;
static tn_settings settings;

static int set_up(void **state) {
  rig_open(state);
  arena = tn_arena_new(&R.env);
  memset(&settings, 0, sizeof settings);
  return 0;
}

static int tear_down(void **state) {
  tn_arena_free(&arena);
  return rig_close(state);
}

static const tn_item *find(const char *name) {
  for (const tn_item *const *item = tn_static_schedules()->items; *item; item++)
    if (strcmp((*item)->name, name) == 0) return *item;
  fail_msg("there is no schedule '%s'", name);
  return NULL;
}

/* Chooses a schedule; `option` NULL: with its defaults. */
static void choose(const char *name, int64_t warmup, const char *option, const char *value) {
  const tn_item *item = find(name);
  tn_options options;
  rig_expect_ok(tn_options_start(&R.env, &arena, item, &options));
  if (option) rig_expect_ok(tn_options_set_text(&R.env, &options, option, value));
  settings.schedule_kind = (const tn_schedule *)item;
  settings.schedule_options = options.data;
  settings.schedule.warmup = warmup;
}

/* In a run of 100 steps, 10 in an epoch. */
static void expect(int64_t step, double factor) {
  double found = tn_learning_rate_factor(&settings, step, 100, 10);
  if (fabs(found - factor) > 1e-12)
    fail_msg("step %lld: %.17g, expected %.17g", (long long)step, found, factor);
}

static void constant_is_one_throughout(void **state) {
  (void)state;
  choose("constant", 0, NULL, NULL);
  expect(0, 1);
  expect(99, 1);
}

static void warm_up_rises_by_equal_parts_and_never_from_nothing(void **state) {
  (void)state;
  choose("constant", 4, NULL, NULL);
  expect(0, 0.2);
  expect(1, 0.4);
  expect(3, 0.8);
  expect(4, 1);
  expect(5, 1);
}

static void cosine_falls_from_one_to_its_floor(void **state) {
  (void)state;
  choose("cosine", 0, NULL, NULL);
  expect(0, 1);
  expect(25, 0.5 * (1 + cos(0.25 * pi)));
  expect(50, 0.5);
  expect(100, 0);
  choose("cosine", 0, "floor", "0.2");
  expect(50, 0.6);
  expect(100, 0.2);
}

static void cosine_begins_to_fall_where_warm_up_ends(void **state) {
  (void)state;
  choose("cosine", 20, NULL, NULL);
  expect(9, 10.0 / 21);
  expect(20, 1);
  expect(60, 0.5);
}

static void cosine_of_a_length_of_its_own_stays_at_the_floor(void **state) {
  (void)state;
  choose("cosine", 0, "steps", "40");
  expect(20, 0.5);
  expect(40, 0);
  expect(90, 0);
}

static void a_warm_up_as_long_as_the_run_leaves_nothing_to_fall(void **state) {
  (void)state;
  choose("cosine", 100, NULL, NULL);
  expect(50, 51.0 / 101);
  expect(99, 100.0 / 101);
}

static void cosine_of_a_run_without_known_length_stays(void **state) {
  (void)state;
  choose("cosine", 0, NULL, NULL);
  assert_true(tn_learning_rate_factor(&settings, 50, -1, -1) == 1.0);
}

static void step_drops_by_epochs(void **state) {
  (void)state;
  choose("step", 0, "every_epochs", "3");
  expect(29, 1);
  expect(30, 0.1);
  expect(59, 0.1);
  expect(60, 0.01);
}

static void step_drops_by_steps_where_they_are_given(void **state) {
  (void)state;
  choose("step", 2, "every_steps", "7");
  expect(0, 1.0 / 3);
  expect(6, 1);
  expect(7, 0.1);
  expect(14, 0.01);
}

static void step_by_epochs_of_unknown_length_stays(void **state) {
  (void)state;
  choose("step", 0, NULL, NULL);
  assert_true(tn_learning_rate_factor(&settings, 1000000, -1, -1) == 1.0);
}

/* The longest counts that an option takes. */
static void a_warm_up_without_end_and_epochs_without_number_do_not_overflow(void **state) {
  (void)state;
  choose("constant", INT64_MAX, NULL, NULL);
  expect(0, 0x1p-63);
  expect(99, 100 * 0x1p-63);
  assert_true(tn_learning_rate_factor(&settings, 0, 100, 10) > 0);
  choose("step", 0, "every_epochs", "9223372036854775807");
  expect(0, 1);
  expect(99, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(constant_is_one_throughout),
      CASE(warm_up_rises_by_equal_parts_and_never_from_nothing),
      CASE(cosine_falls_from_one_to_its_floor),
      CASE(cosine_begins_to_fall_where_warm_up_ends),
      CASE(cosine_of_a_length_of_its_own_stays_at_the_floor),
      CASE(a_warm_up_as_long_as_the_run_leaves_nothing_to_fall),
      CASE(cosine_of_a_run_without_known_length_stays),
      CASE(step_drops_by_epochs),
      CASE(step_drops_by_steps_where_they_are_given),
      CASE(step_by_epochs_of_unknown_length_stays),
      CASE(a_warm_up_without_end_and_epochs_without_number_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
