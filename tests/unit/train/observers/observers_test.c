/* The queue of events: what a slow observer receives, and how long training waits for it. */
#include "core/train/observers/observers.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/base/system/system.h"
#include "core/plugin/registry.h"
#include "tests/unit/run/rig.h"

enum { QUEUE = 256 };

/* ---- an observer that can be paused ---- */

static struct {
  sem_t paused; /* posted when it begins to wait */
  sem_t go_on;  /* awaited by the event of step `pause_at` */
  int64_t pause_at;
  double pause_s; /* of the event of step `pause_at`, if go_on is not used */
  int64_t received, last;
} slow;

static tn_status slow_open(tn_env *env, const void *options, const tn_run_info *run, void **self) {
  (void)env, (void)options, (void)run;
  *self = NULL;
  return TN_OK;
}

static void slow_close(tn_env *env, void *self) { (void)env, (void)self; }

static void pause_for(double seconds) {
  struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  while (nanosleep(&left, &left) != 0) continue;
}

static tn_status slow_event(tn_env *env, void *self, const tn_event *event) {
  (void)env, (void)self;
  if (event->kind != TN_EVENT_STEP) return TN_OK;
  slow.received++;
  slow.last = event->step;
  if (event->step != slow.pause_at) return TN_OK;
  sem_post(&slow.paused);
  if (slow.pause_s > 0)
    pause_for(slow.pause_s);
  else
    while (sem_wait(&slow.go_on) != 0) continue;
  return TN_OK;
}

static const tn_observer slow_observer = {
    .item = TN_ITEM_PLAIN(tn_observer, TN_OBSERVER, "slow", "an observer that can be paused"),
    .always = 1,
    .open = slow_open,
    .event = slow_event,
    .close = slow_close};
static const tn_item *const slow_items[] = {&slow_observer.item, NULL};
static const tn_plugin slow_plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "slow", "1", "MIT",
                                      TN_BUILD_TEXT,     slow_items};

/* ---- a run with that observer ---- */

static tn_run run;
static tn_observers *observers;

static int open_run(void **state) {
  rig_open(state);
  memset(&slow, 0, sizeof slow);
  sem_init(&slow.paused, 0, 0);
  sem_init(&slow.go_on, 0, 0);
  memset(&run, 0, sizeof run);
  run.env = R.env;
  run.registry = R.registry;
  run.arena = tn_arena_new(&run.env);
  rig_expect_ok(tn_ini_parse(&R.env, "", "slow.ini", ".", &run.ini));
  run.settings.run.observers = "";
  rig_expect_ok(tn_registry_add(R.registry, &R.env, &slow_plugin, ""));
  rig_expect_ok(
      tn_observers_start(&run, &(tn_run_info){.struct_size = sizeof(tn_run_info), .folder = ""}, &observers));
  return 0;
}

static int close_run(void **state) {
  tn_ini_free(&run.ini);
  tn_arena_free(&run.arena);
  sem_destroy(&slow.paused);
  sem_destroy(&slow.go_on);
  return rig_close(state);
}

/* Returns how long it took. */
static double post_steps(int64_t first, int64_t n, double run_s) {
  double start_s = tn_clock_s();
  for (int64_t step = first; step < first + n; step++)
    tn_observers_post(observers, &(tn_event){.struct_size = sizeof(tn_event),
                                             .kind = TN_EVENT_STEP,
                                             .step = step,
                                             .seconds = run_s,
                                             .text = "",
                                             .skipped = -1});
  return tn_clock_s() - start_s;
}

static void await_pause(void) {
  while (sem_wait(&slow.paused) != 0) continue;
}

/* As a disk that writes nothing for a moment. */
static void a_pause_loses_no_event(void **state) {
  (void)state;
  slow.pause_at = 1;
  slow.pause_s = 0.2;
  post_steps(1, 4 * QUEUE, 0);
  tn_observers_stop(observers);
  assert_int_equal(slow.received, 4 * QUEUE);
  assert_int_equal(slow.last, 4 * QUEUE);
}

static void training_does_not_wait_for_an_observer_that_hangs(void **state) {
  (void)state;
  slow.pause_at = 1;
  post_steps(1, 1, 0);
  await_pause();
  assert_true(post_steps(2, QUEUE - 1, 0) < 1);
  double full_s = post_steps(QUEUE + 1, 1000, 0);
  assert_true(full_s >= 0.9);
  assert_true(full_s < 10); /* each of them would wait for a second */
  sem_post(&slow.go_on);
  tn_observers_flush(observers);
  assert_int_equal(slow.received, QUEUE);
  post_steps(5000, 1, 0); /* there is room again */
  tn_observers_stop(observers);
  assert_int_equal(slow.received, QUEUE + 1);
  assert_int_equal(slow.last, 5000);
}

/* The share of a long run's time, but not all of it for one event. */
static void a_long_run_may_wait_longer(void **state) {
  (void)state;
  slow.pause_at = 1;
  post_steps(1, 1, 0);
  await_pause();
  post_steps(2, QUEUE - 1, 0);
  double one_s = post_steps(QUEUE + 1, 1, 1e6);
  assert_true(one_s >= 0.9);
  assert_true(one_s < 10);
  assert_true(post_steps(QUEUE + 2, 1, 0) < 0.9);   /* the second is used up */
  assert_true(post_steps(QUEUE + 3, 1, 50) >= 0.4); /* half a second of 50 s */
  sem_post(&slow.go_on);
  tn_observers_stop(observers);
  assert_int_equal(slow.received, QUEUE);
}

#define test(f) cmocka_unit_test_setup_teardown(f, open_run, close_run)
int main(void) {
  const struct CMUnitTest tests[] = {
      test(a_pause_loses_no_event),
      test(training_does_not_wait_for_an_observer_that_hangs),
      test(a_long_run_may_wait_longer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
