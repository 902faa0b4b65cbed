/* The factor of the learning rate: the host's warm-up times each of the project's schedules. */
#include "tests/unit/run/rig.h"

#include <math.h>
#include <string.h>

#include "core/step/values/schedule_values.h"
#include "tests/unit/step/update/schedule_goldens.h"

extern const tn_plugin *tn_static_schedules(void);

static const double pi = 3.14159265358979323846;
static tn_arena arena;
static tn_schedule_setting schedule;
static double epochs[TN_SCHEDULE_STATE]; /* the state of the schedule */

static int set_up(void **state) {
  rig_open(state);
  arena = tn_arena_new(&R.env);
  schedule = (tn_schedule_setting){.warmup_start = -1, .section.warmup_unit = TN_UNIT_STEPS};
  memset(epochs, 0, sizeof epochs);
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
  schedule.kind = (const tn_schedule *)item;
  schedule.options = options.data;
  schedule.section.warmup = warmup;
}

/* With several options, "name", "value", ... NULL. */
static void choose_with(const char *name, int64_t warmup, const char *const *pairs) {
  const tn_item *item = find(name);
  tn_options options;
  rig_expect_ok(tn_options_start(&R.env, &arena, item, &options));
  for (; *pairs; pairs += 2) rig_expect_ok(tn_options_set_text(&R.env, &options, pairs[0], pairs[1]));
  rig_expect_ok(tn_options_finish(&R.env, &options));
  schedule.kind = (const tn_schedule *)item;
  schedule.options = options.data;
  schedule.section.warmup = warmup;
  if (schedule.kind->check) rig_expect_ok(schedule.kind->check(&R.env, options.data));
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The factor at a step of 6 samples in a run of 100 steps, 10 in an epoch. */
static double factor_at(int64_t step) {
  return tn_schedule_factor(&schedule, &(tn_step_position){step, 100, 10, 6, epochs, false, NULL, 0});
}

static double factor_of_unknown_length(int64_t step) {
  return tn_schedule_factor(&schedule, &(tn_step_position){step, -1, -1, -1, epochs, false, NULL, 0});
}

static void expect(int64_t step, double factor) {
  double found = factor_at(step);
  if (!(fabs(found - factor) <= 1e-12))
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
  assert_true(factor_of_unknown_length(50) == 1.0);
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
  assert_true(factor_of_unknown_length(1000000) == 1.0);
}

/* torch.optim.lr_scheduler computes some of these by recurrence, in f64. */
static void expect_torch(const double *factors) {
  for (int64_t step = 0; step < 100; step++) {
    double found = factor_at(step);
    if (!(fabs(found - factors[step]) <= 1e-12))
      fail_msg("step %lld: %.17g, torch has %.17g", (long long)step, found, factors[step]);
  }
}

static void one_cycle_has_the_values_of_torch(void **state) {
  (void)state;
  choose("one_cycle", 0, NULL, NULL);
  expect_torch(torch_one_cycle);
  choose_with("one_cycle", 0,
              PAIRS("pct_start", "0.125", "div_factor", "10", "final_div_factor", "100", "anneal", "linear"));
  expect_torch(torch_one_cycle_linear);
  choose("one_cycle", 0, "pct_start", "0");
  expect_torch(torch_one_cycle_falls);
}

static void one_cycle_stays_at_its_end_and_has_limits(void **state) {
  (void)state;
  choose("one_cycle", 0, "steps", "40");
  expect(39, 4e-6);
  expect(99, 4e-6);
  choose("one_cycle", 0, "pct_start", "1"); /* only rises */
  expect(0, 0.04);
  expect(99, 1);
  choose("one_cycle", 0, "pct_start", "0.01"); /* the peak is the first step */
  expect(0, 1);
  expect(99, 4e-6);
  choose("one_cycle", 0, "steps", "1");
  expect(0, 4e-6);
  choose("one_cycle", 0, NULL, NULL);
  assert_true(factor_of_unknown_length(50) == 1.0);
  choose("one_cycle", 10, "steps", "50"); /* warm-up, then a cycle of 40 steps */
  expect(9, 10.0 / 11 * 0.04);
  expect(10, 0.04);
  expect(21, 1);
  expect(49, 4e-6);
}

static void exponential_has_the_values_of_torch(void **state) {
  (void)state;
  choose("exponential", 0, "gamma", "0.7");
  expect_torch(torch_exponential);
  assert_true(factor_of_unknown_length(50) == 1.0);
  choose_with("exponential", 0, PAIRS("gamma", "0.97", "unit", "steps"));
  expect_torch(torch_exponential_steps);
}

static void polynomial_has_the_values_of_torch(void **state) {
  (void)state;
  choose("polynomial", 0, "power", "2.5");
  expect_torch(torch_polynomial);
  choose("polynomial", 0, "steps", "40");
  expect_torch(torch_polynomial_short);
  choose_with("polynomial", 20, PAIRS("power", "2", "floor", "0.2"));
  expect(20, 1);
  expect(60, 0.2 + 0.8 * 0.25);
  expect(100, 0.2);
}

static void multistep_has_the_values_of_torch(void **state) {
  (void)state;
  choose_with("multistep", 0, PAIRS("milestones", "[3, 6, 8]", "gamma", "0.2"));
  expect_torch(torch_multistep);
  assert_true(factor_of_unknown_length(50) == 1.0);
  choose_with("multistep", 0, PAIRS("milestones", "[1, 33, 99]", "unit", "steps"));
  expect_torch(torch_multistep_steps);
}

static void cosine_restarts_has_the_values_of_torch(void **state) {
  (void)state;
  choose("cosine_restarts", 0, "t_0", "2");
  expect_torch(torch_restarts);
  assert_true(factor_of_unknown_length(50) == 1.0);
  choose_with("cosine_restarts", 0, PAIRS("t_0", "7", "t_mult", "2", "floor", "0.01", "unit", "steps"));
  expect_torch(torch_restarts_steps);
  choose_with("cosine_restarts", 10, PAIRS("t_0", "20", "unit", "steps")); /* cycles follow the warm-up */
  expect(10, 1);
  expect(20, 0.5);
  expect(30, 1);
}

/* The factor after each epoch, for the values of the goldens. */
static void expect_plateau(int larger_is_better, const double *values, const double *factors, int n) {
  memset(epochs, 0, sizeof epochs);
  for (int i = 0; i < n; i++) {
    const tn_schedule_result result = {sizeof result, larger_is_better, i, values[i]};
    schedule.kind->epoch(schedule.options, &result, epochs);
    double found = factor_at(0);
    if (!(fabs(found - factors[i]) <= 1e-15))
      fail_msg("after epoch %d: %.17g, torch has %.17g", i, found, factors[i]);
  }
}

static void plateau_has_the_values_of_torch(void **state) {
  (void)state;
  enum { N = sizeof torch_plateau_losses / sizeof *torch_plateau_losses };
  choose("plateau", 0, NULL, NULL);
  assert_true(factor_at(0) == 1.0);
  expect_plateau(0, torch_plateau_losses, torch_plateau, N);
  choose_with("plateau", 0, PAIRS("gamma", "0.5", "patience", "1", "threshold", "0.05", "cooldown", "2"));
  expect_plateau(0, torch_plateau_losses, torch_plateau_cooldown, N);
  choose_with(
      "plateau", 0,
      PAIRS("gamma", "0.5", "patience", "2", "threshold", "0.02", "threshold_mode", "abs", "floor", "0.1"));
  expect_plateau(0, torch_plateau_losses, torch_plateau_absolute, N);
  choose_with("plateau", 0, PAIRS("gamma", "0.5", "patience", "0", "threshold", "0.01"));
  expect_plateau(1, torch_plateau_losses, torch_plateau_larger, N);
}

static void constant_has_the_values_of_torch(void **state) {
  (void)state;
  choose_with("constant", 0, PAIRS("factor", "0.25", "steps", "40"));
  expect_torch(torch_constant);
  choose("constant", 0, "factor", "0.25");
  expect(99, 0.25);
}

static void linear_has_the_values_of_torch(void **state) {
  (void)state;
  choose_with("linear", 0, PAIRS("start_factor", "0.2", "end_factor", "0.9", "steps", "40"));
  expect_torch(torch_linear);
  choose("linear", 20, NULL, NULL);
  expect(20, 1);
  expect(60, 0.5);
  expect(100, 0);
}

static void cyclic_has_the_values_of_torch(void **state) {
  (void)state;
  choose("cyclic", 0, "steps_up", "13");
  expect_torch(torch_cyclic);
  choose_with("cyclic", 0,
              PAIRS("floor", "0.25", "steps_up", "7", "steps_down", "12", "mode", "triangular2"));
  expect_torch(torch_cyclic_halves);
  choose_with("cyclic", 0, PAIRS("steps_up", "10", "steps_down", "5", "mode", "exp_range", "gamma", "0.97"));
  expect_torch(torch_cyclic_range);
}

static void inverse_sqrt_has_the_values_of_transformers(void **state) {
  (void)state;
  choose("inverse_sqrt", 0, "timescale", "30");
  expect_torch(torch_inverse_sqrt);
  choose("inverse_sqrt", 20, NULL, NULL); /* the warm-up is the scale */
  expect(20, 1);
  expect(80, 0.5);
}

static void wsd_has_the_values_of_transformers(void **state) {
  (void)state;
  choose_with("wsd", 0, PAIRS("decay", "0.2", "floor", "0.1"));
  expect_torch(torch_wsd);
  choose_with("wsd", 0, PAIRS("decay", "0.4", "shape", "cosine"));
  expect_torch(torch_wsd_cosine);
  choose_with("wsd", 0, PAIRS("decay", "0.25", "shape", "sqrt"));
  expect_torch(torch_wsd_sqrt);
  choose("wsd", 0, NULL, NULL);
  assert_true(factor_of_unknown_length(50) == 1.0);
}

static void tanh_has_the_values_of_timm(void **state) {
  (void)state;
  choose_with("tanh", 0, PAIRS("lb", "-6", "floor", "0.05"));
  expect_torch(torch_tanh);
}

/* A list of schedules, as the reader of settings sets it. */
static void choose_parts(const char *name, const tn_schedule_part *parts, int64_t n, const char *milestones) {
  const tn_item *item = find(name);
  tn_options options;
  rig_expect_ok(tn_options_start(&R.env, &arena, item, &options));
  rig_expect_ok(tn_options_set_schedules(&R.env, &options, "schedules", &(tn_schedules){n, parts}));
  if (milestones) {
    rig_expect_ok(tn_options_set_text(&R.env, &options, "milestones", milestones));
    rig_expect_ok(tn_options_set_text(&R.env, &options, "unit", "steps"));
  }
  schedule.kind = (const tn_schedule *)item;
  schedule.options = options.data;
  schedule.section.warmup = 0;
  rig_expect_ok(schedule.kind->check(&R.env, options.data));
}

static tn_schedule_part part(const char *name, const char *const *pairs) {
  choose_with(name, 0, pairs);
  return (tn_schedule_part){schedule.kind, schedule.options};
}

static void sequential_has_the_values_of_torch(void **state) {
  (void)state;
  const tn_schedule_part parts[] = {part("linear", PAIRS("start_factor", "0.1", "end_factor", "1")),
                                    part("cosine", PAIRS("floor", "0.05")),
                                    part("exponential", PAIRS("gamma", "0.9", "unit", "steps"))};
  choose_parts("sequential", parts, 3, "[20, 70]");
  expect_torch(torch_sequential);
  choose_parts("sequential", parts, 1, "[]"); /* one part has the whole run */
  expect(50, 0.55);
  choose_parts("sequential", parts, 2, "[200]"); /* behind the end of the run */
  expect(50, 0.325);
  assert_true(factor_of_unknown_length(50) == 0.1 + 0.9 * 0.25);
}

static void chained_has_the_values_of_torch(void **state) {
  (void)state;
  const tn_schedule_part parts[] = {
      part("constant", PAIRS("factor", "0.1", "steps", "30")),
      part("exponential", PAIRS("gamma", "0.97", "unit", "steps")),
      part("multistep", PAIRS("milestones", "[50, 80]", "gamma", "0.5", "unit", "steps"))};
  choose_parts("chained", parts, 3, NULL);
  expect_torch(torch_chained);
}

static void refused(const char *says) {
  assert_int_equal(schedule.kind->check(&R.env, schedule.options), TN_EINVAL);
  if (strstr(tn_error_text(&R.env), says) == NULL) fail_msg("%s", tn_error_text(&R.env));
  tn_error_clear(&R.env);
}

static void combined_schedules_refuse_what_does_not_fit(void **state) {
  (void)state;
  const tn_schedule_part good = part("constant", PAIRS("factor", "1")),
                         plateau = {(const tn_schedule *)find("plateau"), NULL},
                         wrong = {(const tn_schedule *)find("multistep"),
                                  &(const struct { tn_ints milestones; }){{2, (const int64_t[]){8, 6}}}};
  const struct {
    tn_schedules schedules;
    tn_ints milestones;
    int32_t unit;
  } none = {{0, NULL}, {0, NULL}, 0}, few = {{2, (const tn_schedule_part[]){good, good}}, {0, NULL}, 0},
    follows = {{1, &plateau}, {0, NULL}, 0}, inner = {{1, &wrong}, {0, NULL}, 0},
    falls = {{3, (const tn_schedule_part[]){good, good, good}}, {2, (const int64_t[]){5, 5}}, 0};
  schedule.kind = (const tn_schedule *)find("sequential");
  schedule.options = &none, refused("the list is empty, expected schedules such as [cosine]");
  schedule.options = &few, refused("0 milestones for 2 schedules, expected one less than schedules");
  schedule.options = &follows, refused("plateau follows a metric, and stands alone");
  schedule.options = &inner, refused("schedules: multistep: milestones: 6 comes after 8");
  schedule.options = &falls, refused("milestones: 5 comes after 5, expected ascending numbers");
}

static void warm_up(int32_t shape, double start, int64_t n, int32_t unit) {
  schedule.section.warmup = n;
  schedule.section.warmup_unit = unit;
  schedule.section.warmup_shape = shape;
  schedule.warmup_start = start;
}

static void warm_up_has_the_values_of_torch(void **state) {
  (void)state;
  choose("constant", 0, NULL, NULL);
  warm_up(TN_WARMUP_LINEAR, 0.25, 40, TN_UNIT_STEPS);
  expect_torch(torch_warm_linear);
  warm_up(TN_WARMUP_CONSTANT, 0.25, 4, TN_UNIT_EPOCHS); /* 40 steps */
  expect_torch(torch_warm_constant);
  warm_up(TN_WARMUP_EXPONENTIAL, 0.01, 40, TN_UNIT_STEPS);
  expect(0, 0.01);
  expect(20, 0.1);
  expect(40, 1);
  warm_up(TN_WARMUP_COSINE, 0.5, 40, TN_UNIT_STEPS);
  expect(0, 0.5);
  expect(20, 0.75);
  warm_up(TN_WARMUP_LINEAR, 0, 55, TN_UNIT_SAMPLES); /* 10 steps of 6 samples */
  expect(0, 0);
  expect(5, 0.5);
  expect(10, 1);
  assert_true(factor_of_unknown_length(0) == 1);
}

static void units_of_samples(void **state) {
  (void)state;
  choose_with("multistep", 0, PAIRS("milestones", "[55, 120]", "unit", "samples"));
  expect(9, 1);
  expect(10, 0.1);
  expect(19, 0.1);
  expect(20, 0.01);
}

static void cosine_has_the_values_of_torch_and_timm(void **state) {
  (void)state;
  choose("cosine", 0, "floor", "0.1");
  expect_torch(torch_cosine);
  choose_with("cosine_restarts", 0,
              PAIRS("t_0", "20", "unit", "steps", "floor", "0.01", "t_mult", "1.5", "decay", "0.5", "cycles",
                    "2", "k_decay", "1.5"));
  expect_torch(torch_timm_restarts);
  choose_with("cosine", 0, PAIRS("floor", "0.01", "k_decay", "0.7"));
  warm_up(TN_WARMUP_LINEAR, 0.1, 10, TN_UNIT_STEPS);
  expect_torch(torch_timm_warm);
}

/* Steps of 6 and 12 samples: 20 in the first epoch, 10 in the second, 10 in the third. */
static const tn_schedule_point points[] = {{0, 0, 0}, {20, 1, 120}, {30, 2, 240}, {40, 3, 360}};

static void expect_between_points(int64_t step, double factor) {
  const tn_step_position at = {
      .step = step, .steps = 40, .steps_per_epoch = 20, .samples = 6, .points = points, .n_points = 4};
  double found = tn_schedule_factor(&schedule, &at);
  if (!(fabs(found - factor) <= 1e-12))
    fail_msg("step %lld: %.17g, expected %.17g", (long long)step, found, factor);
}

static void epochs_and_samples_of_steps_that_differ(void **state) {
  (void)state;
  choose_with("multistep", 0, PAIRS("milestones", "[1, 2]"));
  expect_between_points(19, 1);
  expect_between_points(20, 0.1);
  expect_between_points(29, 0.1);
  expect_between_points(30, 0.01);
  choose_with("multistep", 0, PAIRS("milestones", "[60, 130]", "unit", "samples"));
  expect_between_points(9, 1);
  expect_between_points(10, 0.1);
  expect_between_points(20, 0.1);
  expect_between_points(21, 0.01); /* 132 samples are over */
  choose_with("step", 0, PAIRS("every_epochs", "2"));
  expect_between_points(29, 1);
  expect_between_points(30, 0.1);
  choose("constant", 0, NULL, NULL);
  warm_up(TN_WARMUP_LINEAR, 0, 2, TN_UNIT_EPOCHS); /* 30 steps */
  expect_between_points(15, 0.5);
  expect_between_points(30, 1);
  warm_up(TN_WARMUP_LINEAR, 0, 0, TN_UNIT_STEPS);
}

/* The cycles of the second schedule are counted from its beginning. */
static void a_schedule_behind_another_counts_epochs_that_differ(void **state) {
  (void)state;
  const tn_item *item = find("cosine_restarts");
  tn_options options;
  rig_expect_ok(tn_options_start(&R.env, &arena, item, &options));
  rig_expect_ok(tn_options_set_text(&R.env, &options, "t_0", "1"));
  tn_schedule_at at = {.step = 10, .steps = 20, .points = points, .n_points = 4, .origin = 20};
  double at_20 =
      ((const tn_schedule *)item)->factor(options.data, &at); /* step 30: the second cycle begins */
  assert_true(at_20 == 1);
  at.step = 5;
  assert_true(fabs(((const tn_schedule *)item)->factor(options.data, &at) - 0.5) <= 1e-12);
  assert_int_equal(tn_schedule_steps(&at, 1, TN_UNIT_EPOCHS), 10);
  assert_int_equal(tn_schedule_steps(&at, 3, TN_UNIT_EPOCHS), 30); /* behind the last point */
  assert_true(tn_schedule_units(&at, 20, TN_UNIT_SAMPLES) == 240);
}

/* The momentum of a cycle goes against its learning rate. */
static void values_move_toward_another(void **state) {
  (void)state;
  choose("one_cycle", 0, "div_factor", "0");
  schedule.section.toward = 0.95;
  for (int64_t step = 0; step < 100; step++)
    assert_true(fabs(tn_schedule_value(&schedule, 0.85,
                                       &(tn_step_position){step, 100, 10, 6, epochs, false, NULL, 0}) -
                     torch_momentum[step]) <= 1e-12);
  choose_with("cyclic", 0, PAIRS("steps_up", "13", "floor", "0"));
  schedule.section.toward = 0.9;
  for (int64_t step = 0; step < 100; step++)
    assert_true(fabs(tn_schedule_value(&schedule, 0.8,
                                       &(tn_step_position){step, 100, 10, 6, epochs, false, NULL, 0}) -
                     torch_momentum_cyclic[step]) <= 1e-12);
  const tn_step_position plain = {.step = 50, .plain = true};
  assert_true(tn_schedule_value(&schedule, 0.8, &plain) == 0.8);
  assert_true(tn_schedule_value(NULL, 0.8, &plain) == 0.8);
}

static void milestones_must_ascend(void **state) {
  (void)state;
  static const int64_t down[] = {8, 6};
  const struct { tn_ints milestones; } options = {{2, down}};
  const tn_schedule *multistep = (const tn_schedule *)find("multistep");
  assert_int_equal(multistep->check(&R.env, &options), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&R.env), "milestones: 6 comes after 8, expected ascending numbers"));
  tn_error_clear(&R.env);
}

/* The longest counts that an option takes. */
static void a_warm_up_without_end_and_epochs_without_number_do_not_overflow(void **state) {
  (void)state;
  choose("constant", INT64_MAX, NULL, NULL);
  expect(0, 0x1p-63);
  expect(99, 100 * 0x1p-63);
  assert_true(factor_at(0) > 0);
  choose("step", 0, "every_epochs", "9223372036854775807");
  expect(0, 1);
  expect(99, 1);
  choose("multistep", 0, "milestones", "[9223372036854775807]");
  expect(99, 1);
  choose_with("cosine_restarts", 0,
              PAIRS("t_0", "9223372036854775807", "t_mult", "9223372036854775807", "unit", "steps"));
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
      CASE(one_cycle_has_the_values_of_torch),
      CASE(one_cycle_stays_at_its_end_and_has_limits),
      CASE(exponential_has_the_values_of_torch),
      CASE(polynomial_has_the_values_of_torch),
      CASE(multistep_has_the_values_of_torch),
      CASE(cosine_restarts_has_the_values_of_torch),
      CASE(plateau_has_the_values_of_torch),
      CASE(constant_has_the_values_of_torch),
      CASE(linear_has_the_values_of_torch),
      CASE(cyclic_has_the_values_of_torch),
      CASE(inverse_sqrt_has_the_values_of_transformers),
      CASE(wsd_has_the_values_of_transformers),
      CASE(tanh_has_the_values_of_timm),
      CASE(sequential_has_the_values_of_torch),
      CASE(chained_has_the_values_of_torch),
      CASE(combined_schedules_refuse_what_does_not_fit),
      CASE(warm_up_has_the_values_of_torch),
      CASE(units_of_samples),
      CASE(epochs_and_samples_of_steps_that_differ),
      CASE(a_schedule_behind_another_counts_epochs_that_differ),
      CASE(cosine_has_the_values_of_torch_and_timm),
      CASE(values_move_toward_another),
      CASE(milestones_must_ascend),
      CASE(a_warm_up_without_end_and_epochs_without_number_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
