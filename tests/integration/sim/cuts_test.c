/* The cut of a fallback, on a device that runs as late as it may and with a fallback that works late as well:
 * leaving out any of its waits and copies is found. */
#include "story.h"

/* ---- a fallback in host memory that does nothing before it is waited for ---- */

static struct helper {
  tn_status (*launch)(tn_launch *l);
  tn_launch *l;
  int32_t waits, left_out; /* which wait does not happen; 0: none */
} helper;

static tn_status open_helper(tn_env *env, const void *options, void **self) {
  return (void)env, (void)options, *self = &helper, TN_OK;
}
static tn_status count(tn_env *env, void *self, int32_t *n) { return (void)self, (void)env, *n = 1, TN_OK; }
static tn_status properties(tn_env *env, void *self, int32_t index, tn_device_properties *p) {
  (void)self, (void)env, (void)index;
  *p =
      (tn_device_properties){.struct_size = sizeof *p, .host_addressable = 1, .threads = 1, .name = "helper"};
  return TN_OK;
}
static tn_status open_device(tn_env *env, void *self, int32_t index, void **device) {
  return (void)env, (void)index, *device = self, TN_OK;
}
static tn_status new_stream(tn_env *env, void *device, int32_t role, void **stream) {
  return (void)env, (void)role, *stream = device, TN_OK;
}
static tn_status new_event(tn_env *env, void *device, void **event) {
  return (void)env, *event = device, TN_OK;
}
static void drop(tn_env *env, void *object) { (void)object, (void)env; }
static tn_status no_memory(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  return (void)device, (void)kind, (void)bytes, (void)address, tn_fail(env, TN_ENOMEM, NULL, "none");
}
static void delete_memory(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)device, (void)kind, (void)address, (void)bytes, (void)env;
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
  if (++helper.waits == helper.left_out || helper.launch == NULL) return TN_OK;
  tn_status (*launch)(tn_launch * l) = helper.launch;
  helper.launch = NULL;
  return launch(helper.l);
}

static const tn_backend late_helper = {
    .item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "helper", "for tests"),
    .accepts = "cpu",
    .open = open_helper,
    .close = drop,
    .count = count,
    .properties = properties,
    .device_open = open_device,
    .device_close = drop,
    .memory_new = no_memory,
    .memory_delete = delete_memory,
    .stream_new = new_stream,
    .stream_delete = drop,
    .stream_wait = stream_wait,
    .event_new = new_event,
    .event_delete = drop,
    .event_record = order,
    .event_await = order,
    .event_wait = wait,
    .copy = copy,
    .fill_zero = fill_zero,
    .enqueue = enqueue,
};

static bool start(story *s) {
  helper = (struct helper){.left_out = helper.left_out};
  return story_executor(s);
}

/* ---- tales ---- */

static void fetch(story_program *p) { story_program_cut(p, true); }
static void fetch_nothing(story_program *p) { story_program_cut(p, false); }

/* Slots are run again before anyone has waited for them. */
static bool run_ahead(story *s) {
  story_put(s, 0, 10), story_put(s, 1, 20);
  for (int32_t i = 0; i < 5; i++)
    if (!story_run(s, i % STORY_SLOTS)) return false;
  return story_get(s, 1) && story_get(s, 0) && story_read_state(s);
}

/* What each run brings is new, so that every copy and every wait of the cut matters. */
static bool take_turns(story *s) {
  for (int32_t i = 0; i < 5; i++) {
    if (i >= STORY_SLOTS && !story_get(s, i % STORY_SLOTS)) return false;
    story_put(s, i % STORY_SLOTS, (float)(100 * (i + 1)));
    if (!story_run(s, i % STORY_SLOTS)) return false;
  }
  return story_get(s, 1) && story_get(s, 0) && story_read_state(s);
}

static const tale
    fetching = {.change = fetch, .helper = &late_helper, .begin = start, .tell = take_turns},
    not_fetching = {.change = fetch_nothing, .helper = &late_helper, .begin = start, .tell = take_turns},
    fetching_ahead = {.change = fetch, .helper = &late_helper, .begin = start, .tell = run_ahead},
    not_fetching_ahead = {.change = fetch_nothing, .helper = &late_helper, .begin = start, .tell = run_ahead};

/* ---- cases ---- */

static void every_order_tells_the_same_story_captured_or_not(void **state) {
  (void)state;
  story_every_order(&fetching);
  story_every_order(&not_fetching);
  story_every_order(&fetching_ahead);
  story_every_order(&not_fetching_ahead);
}

/* A cut waits for all that came before it. So whoever has run again has waited for the slot's last run
 * already, and where nothing came before there is nothing to wait for: those are the ones that nobody misses.
 */
static void a_wait_of_a_cut_left_out_is_found(void **state) {
  (void)state;
  static const char again[] = "wait:3 wait:5 wait:7 wait:9 ";
  story_leave_out(&fetching, "wait", TN_SIM_DROP_WAIT, true, again);
  story_leave_out(&fetching, "wait", TN_SIM_DROP_WAIT, false, again);
  story_leave_out(&not_fetching, "wait", TN_SIM_DROP_WAIT, true, "wait:1 ");
  story_leave_out(&not_fetching, "wait", TN_SIM_DROP_WAIT, false, "wait:1 ");
}

static void a_copy_of_a_cut_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&fetching, "copy", TN_SIM_DROP_COPY);
  story_leave_out_twice(&not_fetching, "copy", TN_SIM_DROP_COPY);
}

/* Not missed: a copy in and a computation that await what the same slot's last run has computed and copied
 * out. */
static void an_await_of_a_cut_left_out_is_found(void **state) {
  (void)state;
  static const int32_t which = TN_SIM_DROP_AWAIT;
  story_leave_out(&fetching_ahead, "await", which, true,
                  "await:13 await:15 await:21 await:23 await:29 await:31 ");
  story_leave_out(&fetching_ahead, "await", which, false,
                  "await:15 await:17 await:21 await:23 await:27 await:29 ");
  story_leave_out(&not_fetching_ahead, "await", which, true, "await:11 await:18 await:25 ");
  story_leave_out(&not_fetching_ahead, "await", which, false, "await:13 await:18 await:23 ");
}

/* Not missed: that a run before the last has been copied out. */
static void a_record_of_a_cut_left_out_is_found(void **state) {
  (void)state;
  static const int32_t which = TN_SIM_DROP_RECORD;
  story_leave_out(&fetching_ahead, "record", which, true, "record:8 record:16 record:24 record:32 ");
  story_leave_out(&fetching_ahead, "record", which, false, "record:12 record:18 record:24 record:30 ");
  story_leave_out(&not_fetching_ahead, "record", which, true, "record:2 ");
  story_leave_out(&not_fetching_ahead, "record", which, false, "record:2 ");
}

static void the_wait_for_the_fallback_left_out_is_found(void **state) {
  (void)state;
  helper.left_out = 0;
  story *whole = story_live(&fetching, "lazy", "", true);
  int32_t waits = helper.waits;
  assert_int_equal(whole->status, TN_OK);
  assert_int_equal(waits, 5);
  for (helper.left_out = 1; helper.left_out <= waits; helper.left_out++) {
    story *s = story_live(&fetching, "lazy", "", true);
    if (story_same(whole, s)) fail_msg("nobody missed wait %d", (int)helper.left_out);
    free(s);
  }
  helper.left_out = 0;
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_order_tells_the_same_story_captured_or_not),
      cmocka_unit_test(a_wait_of_a_cut_left_out_is_found),
      cmocka_unit_test(a_copy_of_a_cut_left_out_is_found),
      cmocka_unit_test(an_await_of_a_cut_left_out_is_found),
      cmocka_unit_test(a_record_of_a_cut_left_out_is_found),
      cmocka_unit_test(the_wait_for_the_fallback_left_out_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
