/* Fallback segments, on a device and a fallback that both run work as late as allowed: dropping any of the
 * waits and copies around a segment is detected. */
#include "scenario.h"

/* ---- a fallback in host memory that launches at the wait ---- */

static struct helper {
  tn_status (*launch)(tn_launch *l);
  tn_launch *l;
  int32_t waits, dropped; /* number of the wait that does nothing; 0: all waits work */
} helper;

static tn_status new_event(tn_env *env, void *device, void **event) {
  return (void)env, *event = device, TN_OK;
}
static tn_status order(tn_env *env, void *event, void *stream) {
  return (void)event, (void)env, (void)stream, TN_OK;
}
static tn_status wait(tn_env *env, void *event) { return (void)event, (void)env, TN_OK; }
static tn_status copy(tn_env *env, void *stream, int32_t way, void *to, const void *from, uint64_t bytes) {
  return (void)stream, (void)env, (void)way, memmove(to, from, bytes), TN_OK;
}
static tn_status fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  return (void)stream, (void)env, memset(address, 0, bytes), TN_OK;
}
static tn_status enqueue(tn_env *env, void *stream, tn_status (*launch)(tn_launch *l), tn_launch *l) {
  (void)stream, (void)env;
  helper.launch = launch;
  helper.l = l;
  return TN_OK;
}
static tn_status stream_wait(tn_env *env, void *stream) {
  (void)stream, (void)env;
  if (++helper.waits == helper.dropped || helper.launch == NULL) return TN_OK;
  tn_status (*launch)(tn_launch * l) = helper.launch;
  helper.launch = NULL;
  return launch(helper.l);
}

static const tn_backend late_helper = {
    .item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "helper", "for tests"),
    .accepts = "cpu",
    .stream_wait = stream_wait,
    .event_new = new_event,
    .event_record = order,
    .event_await = order,
    .event_wait = wait,
    .copy = copy,
    .fill_zero = fill_zero,
    .enqueue = enqueue,
};

static bool start(scenario *s) {
  helper = (struct helper){.dropped = helper.dropped};
  return scenario_create_executor(s);
}

/* ---- scenarios ---- */

static void fetch(scenario_program *p) { scenario_program_use_fallback(p, true); }
static void fetch_nothing(scenario_program *p) { scenario_program_use_fallback(p, false); }

/* Slots run again before their last run was waited for. */
static bool run_ahead(scenario *s) {
  scenario_fill(s, 0, 10), scenario_fill(s, 1, 20);
  for (int32_t i = 0; i < 5; i++)
    if (!scenario_run(s, i % SCENARIO_SLOTS)) return false;
  return scenario_collect(s, 1) && scenario_collect(s, 0) && scenario_read_state(s);
}

/* Each run has new inputs, so that every copy and every wait of the fallback segment matters. */
static bool take_turns(scenario *s) {
  for (int32_t i = 0; i < 5; i++) {
    if (i >= SCENARIO_SLOTS && !scenario_collect(s, i % SCENARIO_SLOTS)) return false;
    scenario_fill(s, i % SCENARIO_SLOTS, (float)(100 * (i + 1)));
    if (!scenario_run(s, i % SCENARIO_SLOTS)) return false;
  }
  return scenario_collect(s, 1) && scenario_collect(s, 0) && scenario_read_state(s);
}

static const scenario_kind
    fetching = {.change = fetch, .fallback = &late_helper, .setup = start, .act = take_turns},
    not_fetching = {.change = fetch_nothing, .fallback = &late_helper, .setup = start, .act = take_turns},
    fetching_ahead = {.change = fetch, .fallback = &late_helper, .setup = start, .act = run_ahead},
    not_fetching_ahead = {
        .change = fetch_nothing, .fallback = &late_helper, .setup = start, .act = run_ahead};

/* ---- cases ---- */

static void results_do_not_depend_on_order_or_capture(void **state) {
  (void)state;
  scenario_check_orders(&fetching);
  scenario_check_orders(&not_fetching);
  scenario_check_orders(&fetching_ahead);
  scenario_check_orders(&not_fetching_ahead);
}

/* A fallback segment waits for all work before it, which includes the slot's last run, so the later wait for
 * that run is redundant. Without work before the segment its first wait is redundant. */
static void a_dropped_wait_of_a_segment_is_detected(void **state) {
  (void)state;
  static const char again[] = "wait:3 wait:5 wait:7 wait:9 ";
  scenario_check_drops(&fetching, "wait", TN_SIM_DROP_WAIT, true, again);
  scenario_check_drops(&fetching, "wait", TN_SIM_DROP_WAIT, false, again);
  scenario_check_drops(&not_fetching, "wait", TN_SIM_DROP_WAIT, true, "wait:1 ");
  scenario_check_drops(&not_fetching, "wait", TN_SIM_DROP_WAIT, false, "wait:1 ");
}

static void a_dropped_copy_of_a_segment_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&fetching, "copy", TN_SIM_DROP_COPY);
  scenario_check_drops_both(&not_fetching, "copy", TN_SIM_DROP_COPY);
}

/* Redundant: a copy in and a computation that await the computation and the copy out of the slot's last run.
 */
static void a_dropped_await_of_a_segment_is_detected(void **state) {
  (void)state;
  static const int32_t which = TN_SIM_DROP_AWAIT;
  scenario_check_drops(&fetching_ahead, "await", which, true,
                       "await:13 await:15 await:21 await:23 await:29 await:31 ");
  scenario_check_drops(&fetching_ahead, "await", which, false,
                       "await:15 await:17 await:21 await:23 await:27 await:29 ");
  scenario_check_drops(&not_fetching_ahead, "await", which, true, "await:11 await:18 await:25 ");
  scenario_check_drops(&not_fetching_ahead, "await", which, false, "await:13 await:18 await:23 ");
}

/* Redundant: the record that an earlier run than the last has been copied out. */
static void a_dropped_record_of_a_segment_is_detected(void **state) {
  (void)state;
  static const int32_t which = TN_SIM_DROP_RECORD;
  scenario_check_drops(&fetching_ahead, "record", which, true, "record:8 record:16 record:24 record:32 ");
  scenario_check_drops(&fetching_ahead, "record", which, false, "record:12 record:18 record:24 record:30 ");
  scenario_check_drops(&not_fetching_ahead, "record", which, true, "record:2 ");
  scenario_check_drops(&not_fetching_ahead, "record", which, false, "record:2 ");
}

static void a_dropped_wait_for_the_fallback_is_detected(void **state) {
  (void)state;
  helper.dropped = 0;
  scenario *complete = scenario_play(&fetching, "lazy", "", true);
  int32_t waits = helper.waits;
  assert_int_equal(complete->status, TN_OK);
  assert_int_equal(waits, 5);
  for (helper.dropped = 1; helper.dropped <= waits; helper.dropped++) {
    scenario *s = scenario_play(&fetching, "lazy", "", true);
    if (scenario_equal(complete, s)) fail_msg("dropping wait %d has no effect", (int)helper.dropped);
    free(s);
  }
  helper.dropped = 0;
  free(complete);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_do_not_depend_on_order_or_capture),
      cmocka_unit_test(a_dropped_wait_of_a_segment_is_detected),
      cmocka_unit_test(a_dropped_copy_of_a_segment_is_detected),
      cmocka_unit_test(a_dropped_await_of_a_segment_is_detected),
      cmocka_unit_test(a_dropped_record_of_a_segment_is_detected),
      cmocka_unit_test(a_dropped_wait_for_the_fallback_is_detected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
