/* The executor on a device that runs work as late as allowed: dropping any one of its waits or copies is
 * detected, by the device or by a different result. */
#include "scenario.h"

/* Slots run again before their last run was waited for, so only events order the runs. */
static bool run_ahead(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (int32_t i = 0; i < 7; i++)
    if (!scenario_run(s, i % SCENARIO_SLOTS)) return false;
  return scenario_collect(s, 1) && scenario_collect(s, 0) && scenario_read_state(s);
}

/* The order of training: a slot is waited for, read, filled and run while the other one runs. */
static bool take_turns(scenario *s) {
  for (int32_t i = 0; i < 6; i++) {
    if (i >= SCENARIO_SLOTS && !scenario_collect(s, i % SCENARIO_SLOTS)) return false;
    scenario_fill(s, i % SCENARIO_SLOTS, (float)(100 * (i + 1)));
    if (!scenario_run(s, i % SCENARIO_SLOTS)) return false;
  }
  return scenario_collect(s, 0) && scenario_collect(s, 1);
}

/* Runs of both slots that are enqueued together, between single runs. */
static bool run_pairs(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (int32_t i = 0; i < 3; i++)
    if (!scenario_run_both(s)) return false;
  if (!scenario_run(s, 1) || !scenario_run(s, 0) || !scenario_run_both(s)) return false;
  return scenario_collect(s, 0) && scenario_collect(s, 1) && scenario_read_state(s);
}

/* The same without state and without a wait before the end. */
static bool run_short_pairs(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (int32_t i = 0; i < 5; i++)
    if (!scenario_run_both(s)) return false;
  return scenario_collect(s, 1) && scenario_collect(s, 0);
}

/* The same with other results at the end than before, so that the last copy matters. */
static bool run_changing_pairs(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (int32_t i = 0; i < 3; i++)
    if (!scenario_run_both(s)) return false;
  if (!scenario_collect(s, 0)) return false;
  scenario_fill(s, 0, 30), scenario_fill(s, 1, 40);
  return scenario_run_both(s) && scenario_collect(s, 1) && scenario_collect(s, 0);
}

/* The runs of run_pairs one by one. */
static bool run_pairs_apart(scenario *s) {
  static const int32_t slots[] = {0, 1, 0, 1, 0, 1, 1, 0, 0, 1};
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
    if (!scenario_run(s, slots[i])) return false;
  return scenario_collect(s, 0) && scenario_collect(s, 1) && scenario_read_state(s);
}

/* Pairs that are waited for, read and filled: each copy brings the inputs or the outputs of both slots. */
static bool take_turns_in_pairs(scenario *s) {
  for (int32_t i = 0; i < 4; i++) {
    scenario_fill(s, 0, (float)(100 * (i + 1))), scenario_fill(s, 1, (float)(-30 * (i + 1)));
    if (!scenario_run_both(s) || !scenario_collect(s, 0) || !scenario_collect(s, 1)) return false;
  }
  return scenario_read_state(s);
}

/* State is written and read while programs are under way. */
static bool touch_state(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  if (!scenario_run(s, 0) || !scenario_run(s, 1) || !scenario_write_state(s, 1000)) return false;
  if (!scenario_run(s, 0) || !scenario_read_state(s) || !scenario_run(s, 1) || !scenario_write_state(s, 2000))
    return false;
  return scenario_run(s, 1) && scenario_read_state(s);
}

/* One run after the other; every copy matters. */
static bool use_state(scenario *s) {
  for (int32_t i = 0; i < 4; i++) {
    scenario_fill(s, i % SCENARIO_SLOTS, (float)(100 * (i + 1)));
    if (!scenario_run(s, i % SCENARIO_SLOTS) || !scenario_collect(s, i % SCENARIO_SLOTS) ||
        !scenario_read_state(s) || !scenario_write_state(s, (float)(1000 + i)))
      return false;
  }
  return scenario_read_state(s);
}

static bool end_early(scenario *s) { return scenario_run(s, 0); }

static const scenario_kind running_ahead = {.setup = scenario_create_executor, .act = run_ahead},
                           taking_turns = {.setup = scenario_create_executor, .act = take_turns},
                           short_pairs = {.change = scenario_program_shorten,
                                          .setup = scenario_create_executor,
                                          .act = run_short_pairs},
                           changing_pairs = {.change = scenario_program_shorten,
                                             .setup = scenario_create_executor,
                                             .act = run_changing_pairs},
                           running_pairs = {.setup = scenario_create_executor, .act = run_pairs},
                           running_pairs_apart = {.setup = scenario_create_executor, .act = run_pairs_apart},
                           taking_turns_in_pairs = {.setup = scenario_create_executor,
                                                    .act = take_turns_in_pairs},
                           touching_state = {.setup = scenario_create_executor, .act = touch_state},
                           using_state = {.setup = scenario_create_executor, .act = use_state},
                           ending_early = {
                               .setup = scenario_create_executor, .act = end_early, .ends_early = true};

/* ---- cases ---- */

static void results_do_not_depend_on_order_or_capture(void **state) {
  (void)state;
  scenario_check_orders(&running_ahead);
  scenario_check_orders(&taking_turns);
  scenario_check_orders(&touching_state);
  scenario_check_orders(&using_state);
}

static void runs_that_are_enqueued_together_give_the_results_of_single_runs(void **state) {
  (void)state;
  scenario_check_orders(&running_pairs);
  scenario_check_orders(&taking_turns_in_pairs);
  for (int uncaptured = 0; uncaptured < 2; uncaptured++) {
    scenario *together = scenario_play(&running_pairs, "lazy", "copy:1000000", uncaptured);
    scenario *apart = scenario_play(&running_pairs_apart, "lazy", "copy:1000000", uncaptured);
    assert_string_equal(together->message, "");
    assert_true(scenario_equal(together, apart));
    assert_true(together->seen[TN_SIM_DROP_COPY] < apart->seen[TN_SIM_DROP_COPY]);
    free(together);
    free(apart);
  }
}

static void a_dropped_await_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&running_ahead, "await", TN_SIM_DROP_AWAIT);
  scenario_check_drops_both(&short_pairs, "await", TN_SIM_DROP_AWAIT);
}
static void a_dropped_record_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&running_ahead, "record", TN_SIM_DROP_RECORD);
  scenario_check_drops_both(&changing_pairs, "record", TN_SIM_DROP_RECORD);
}
static void a_dropped_wait_for_a_slot_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&taking_turns, "wait", TN_SIM_DROP_WAIT);
}
static void a_dropped_copy_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&taking_turns, "copy", TN_SIM_DROP_COPY);
  scenario_check_drops_both(&taking_turns_in_pairs, "copy", TN_SIM_DROP_COPY);
}
static void a_dropped_wait_for_state_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&touching_state, "rest", TN_SIM_DROP_REST);
  scenario_check_drops_both(&using_state, "copy", TN_SIM_DROP_COPY);
}

/* State begins as zeros. The zeros of slots are for padding, which this program does not have. */
static void dropped_zeros_are_detected(void **state) {
  (void)state;
  static const char slots[] = "zero:2 zero:3 ";
  scenario_check_drops(&using_state, "zero", TN_SIM_DROP_ZERO, true, slots);
  scenario_check_drops(&using_state, "zero", TN_SIM_DROP_ZERO, false, slots);
}

/* Destroying the executor waits for every stream; the last work here is a copy out. */
static void memory_is_freed_after_the_last_copy(void **state) {
  (void)state;
  char drop[64];
  scenario *complete = scenario_play(&ending_early, "lazy", "rest:1000000", true);
  long long before = (long long)complete->seen[TN_SIM_DROP_REST];
  snprintf(drop, sizeof drop, "rest:%lld", before + 1 + TN_STREAM_COPY_OUT);
  scenario *s = scenario_play(&ending_early, "lazy", drop, true);
  assert_string_equal(complete->message, "");
  if (strstr(s->message, "given back before the host had waited") == NULL) fail_msg("'%s'", s->message);
  free(s);
  free(complete);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_do_not_depend_on_order_or_capture),
      cmocka_unit_test(runs_that_are_enqueued_together_give_the_results_of_single_runs),
      cmocka_unit_test(a_dropped_await_is_detected),
      cmocka_unit_test(a_dropped_record_is_detected),
      cmocka_unit_test(a_dropped_wait_for_a_slot_is_detected),
      cmocka_unit_test(a_dropped_copy_is_detected),
      cmocka_unit_test(a_dropped_wait_for_state_is_detected),
      cmocka_unit_test(dropped_zeros_are_detected),
      cmocka_unit_test(memory_is_freed_after_the_last_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
