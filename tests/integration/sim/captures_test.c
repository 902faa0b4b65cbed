/* Captured parts on a device that runs work as late as allowed: a launch that cannot be captured leaves the
 * launches on both sides captured, in every order, and dropping any of the awaits between them is detected.
 */
#include "scenario.h"

static void not_captured(scenario_program *p, int32_t step) { p->groups[step].choice.capturable = false; }

/* y | z | s, out: z, a collective, is awaited between the last two parts. */
static void collective_in_the_middle(scenario_program *p) { not_captured(p, 1); }
/* y, z | s | out: the first part awaits z at its end. */
static void kernel_in_the_middle(scenario_program *p) { not_captured(p, 2); }
static void kernel_at_the_beginning(scenario_program *p) { not_captured(p, 0); }
/* y, z, s | out: the segment awaits `out`. */
static void collective_at_the_end(scenario_program *p) { not_captured(p, 3); }
/* y | z | s | out: only the two kernels of the compute stream are captured. */
static void both_collectives(scenario_program *p) { not_captured(p, 1), not_captured(p, 3); }
/* y | z, s | out: a step that is not captured awaits a collective of the same kind. */
static void collective_and_its_reader(scenario_program *p) { not_captured(p, 1), not_captured(p, 2); }
static void everything(scenario_program *p) {
  for (int32_t i = 0; i < 4; i++) not_captured(p, i);
}

/* Slots run again before their last run was waited for, so only events order the runs. */
static bool run_ahead(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (int32_t i = 0; i < 7; i++)
    if (!scenario_run(s, i % SCENARIO_SLOTS)) return false;
  return scenario_collect(s, 1) && scenario_collect(s, 0) && scenario_read_state(s);
}

#define KIND(how)                                                                                            \
  { .change = how, .setup = scenario_create_executor, .act = run_ahead }
static const scenario_kind kinds[] = {KIND(collective_in_the_middle),
                                      KIND(kernel_in_the_middle),
                                      KIND(kernel_at_the_beginning),
                                      KIND(collective_at_the_end),
                                      KIND(both_collectives),
                                      KIND(collective_and_its_reader),
                                      KIND(everything)};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- cases ---- */

static void results_do_not_depend_on_what_is_captured(void **state) {
  (void)state;
  scenario_kind whole = KIND(NULL);
  scenario *complete = scenario_play(&whole, "eager", "", true);
  for (int32_t i = 0; i < KINDS; i++) {
    scenario_check_orders(&kinds[i]);
    scenario *cut = scenario_play(&kinds[i], "random", "", false);
    if (!scenario_equal(complete, cut)) fail_msg("kind %d: %s", (int)i, cut->message);
    free(cut);
  }
  free(complete);
}

static void launches_on_both_sides_are_captured_and_the_one_between_is_named(void **state) {
  (void)state;
  static const char *const says[KINDS] = {
      "program 'step': 2 captured parts, 1 launch not captured: z (kernel sum cannot be captured)",
      "program 'step': 2 captured parts, 1 launch not captured: s (kernel sum cannot be captured)",
      "program 'step': 1 captured part, 1 launch not captured: y (kernel sum cannot be captured)",
      "program 'step': 1 captured part, 1 launch not captured: out (kernel sum cannot be captured)",
      "program 'step': 2 captured parts, 2 launches not captured: z (kernel sum cannot be captured), out "
      "(kernel sum cannot be captured)",
      "program 'step': 2 captured parts, 2 launches not captured: z (kernel sum cannot be captured), s "
      "(kernel sum cannot be captured)",
      "program 'step': 0 captured parts, 4 launches not captured: y"};
  for (int32_t i = 0; i < KINDS; i++) {
    scenario *s = scenario_play(&kinds[i], "eager", "", false);
    assert_int_equal(s->status, TN_OK);
    if (strstr(s->captures, says[i]) == NULL) fail_msg("'%s' does not say '%s'", s->captures, says[i]);
    free(s);
    s = scenario_play(&kinds[i], "eager", "", true);
    assert_string_equal(s->captures, ""); /* without captures there is nothing to name */
    free(s);
  }
}

/* The first run and every replay take the same events, so every one of them is needed. */
static void a_dropped_await_between_parts_is_detected(void **state) {
  (void)state;
  for (int32_t i = 0; i < KINDS; i++) scenario_check_drops(&kinds[i], "await", TN_SIM_DROP_AWAIT, false, "");
}

static void a_dropped_record_between_parts_is_detected(void **state) {
  (void)state;
  for (int32_t i = 0; i < KINDS; i++)
    scenario_check_drops(&kinds[i], "record", TN_SIM_DROP_RECORD, false, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_do_not_depend_on_what_is_captured),
      cmocka_unit_test(launches_on_both_sides_are_captured_and_the_one_between_is_named),
      cmocka_unit_test(a_dropped_await_between_parts_is_detected),
      cmocka_unit_test(a_dropped_record_between_parts_is_detected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
