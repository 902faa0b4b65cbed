/* The executor on a device that runs as late as it may: leaving out any one of its waits or copies is found,
 * by the device, or because the result is another one. */
#include "story.h"

/* Slots run again before they were waited for, so that only the device's own order keeps runs apart. */
static bool run_ahead(story *s) {
  story_put(s, 0, 10), story_put(s, 1, 20);
  for (int32_t i = 0; i < 7; i++)
    if (!story_run(s, i % STORY_SLOTS)) return false;
  return story_get(s, 1) && story_get(s, 0) && story_read_state(s);
}

/* As training does it: a slot is waited for, read, filled anew and run; meanwhile the other one runs. */
static bool take_turns(story *s) {
  for (int32_t i = 0; i < 6; i++) {
    if (i >= STORY_SLOTS && !story_get(s, i % STORY_SLOTS)) return false;
    story_put(s, i % STORY_SLOTS, (float)(100 * (i + 1)));
    if (!story_run(s, i % STORY_SLOTS)) return false;
  }
  return story_get(s, 0) && story_get(s, 1);
}

/* State is written and read while programs are under way. */
static bool touch_state(story *s) {
  story_put(s, 0, 10), story_put(s, 1, 20);
  if (!story_run(s, 0) || !story_run(s, 1) || !story_write_state(s, 1000)) return false;
  if (!story_run(s, 0) || !story_read_state(s) || !story_run(s, 1) || !story_write_state(s, 2000))
    return false;
  return story_run(s, 1) && story_read_state(s);
}

/* One after the other, and every copy matters. */
static bool use_state(story *s) {
  for (int32_t i = 0; i < 4; i++) {
    story_put(s, i % STORY_SLOTS, (float)(100 * (i + 1)));
    if (!story_run(s, i % STORY_SLOTS) || !story_get(s, i % STORY_SLOTS) || !story_read_state(s) ||
        !story_write_state(s, (float)(1000 + i)))
      return false;
  }
  return story_read_state(s);
}

static bool leave_early(story *s) { return story_run(s, 0); }

static const tale running_ahead = {.begin = story_executor, .tell = run_ahead},
                  taking_turns = {.begin = story_executor, .tell = take_turns},
                  touching_state = {.begin = story_executor, .tell = touch_state},
                  using_state = {.begin = story_executor, .tell = use_state},
                  leaving_early = {.begin = story_executor, .tell = leave_early, .leaves_early = true};

/* ---- cases ---- */

static void every_order_tells_the_same_story_captured_or_not(void **state) {
  (void)state;
  story_every_order(&running_ahead);
  story_every_order(&taking_turns);
  story_every_order(&touching_state);
  story_every_order(&using_state);
}

static void an_await_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&running_ahead, "await", TN_SIM_DROP_AWAIT);
}
static void a_record_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&running_ahead, "record", TN_SIM_DROP_RECORD);
}
static void a_wait_for_a_slot_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&taking_turns, "wait", TN_SIM_DROP_WAIT);
}
static void a_copy_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&taking_turns, "copy", TN_SIM_DROP_COPY);
}
static void a_wait_for_state_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&touching_state, "rest", TN_SIM_DROP_REST);
  story_leave_out_twice(&using_state, "copy", TN_SIM_DROP_COPY);
}

/* State begins as zeros. Those of the slots are for padding, which this program has none of. */
static void zeros_left_out_are_found(void **state) {
  (void)state;
  static const char slots[] = "zero:2 zero:3 zero:4 zero:5 ";
  story_leave_out(&using_state, "zero", TN_SIM_DROP_ZERO, true, slots);
  story_leave_out(&using_state, "zero", TN_SIM_DROP_ZERO, false, slots);
}

/* The end waits for every stream. Here copies out come last. */
static void memory_is_given_back_after_the_last_copy(void **state) {
  (void)state;
  char drop[64];
  story *whole = story_live(&leaving_early, "lazy", "rest:1000000", true);
  long long before = (long long)whole->seen[TN_SIM_DROP_REST];
  snprintf(drop, sizeof drop, "rest:%lld", before + 1 + TN_STREAM_COPY_OUT);
  story *s = story_live(&leaving_early, "lazy", drop, true);
  assert_string_equal(whole->said, "");
  if (strstr(s->said, "given back before the host had waited") == NULL) fail_msg("'%s'", s->said);
  free(s);
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_order_tells_the_same_story_captured_or_not),
      cmocka_unit_test(an_await_left_out_is_found),
      cmocka_unit_test(a_record_left_out_is_found),
      cmocka_unit_test(a_wait_for_a_slot_left_out_is_found),
      cmocka_unit_test(a_copy_left_out_is_found),
      cmocka_unit_test(a_wait_for_state_left_out_is_found),
      cmocka_unit_test(zeros_left_out_are_found),
      cmocka_unit_test(memory_is_given_back_after_the_last_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
