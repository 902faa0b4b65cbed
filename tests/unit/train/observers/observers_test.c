/* The queue of events: what a slow observer receives, and how long training waits for it. The clocks stand
 * still, and a wait with a limit moves them. */
#include "core/train/observers/observers.h"

#include <errno.h>
#include <math.h>
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
  int goes_on; /* when training waits for it */
  int64_t received, last;
  char media[16]; /* of a SAMPLES event */
} slow;

static tn_status slow_open(tn_env *env, const void *options, const tn_run_info *run, void **self) {
  (void)env, (void)options, (void)run;
  *self = NULL;
  return TN_OK;
}

static void slow_close(tn_env *env, void *self) { (void)env, (void)self; }

static tn_status slow_event(tn_env *env, void *self, const tn_event *event) {
  (void)env, (void)self;
  for (int32_t i = 0; event->kind == TN_EVENT_SAMPLES && i < event->n_media; i++)
    memcpy(slow.media + i, event->media[i].data, event->media[i].bytes);
  if (event->kind != TN_EVENT_STEP) return TN_OK;
  slow.received++;
  slow.last = event->step;
  if (event->step != slow.pause_at) return TN_OK;
  sem_post(&slow.paused);
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

/* ---- time ---- */

static _Atomic(double) time_s = 1000; /* of all clocks */

int clock_gettime(clockid_t clock, struct timespec *now) {
  double seconds = atomic_load(&time_s);
  (void)clock;
  now->tv_sec = (time_t)seconds;
  now->tv_nsec = (long)(1e9 * (seconds - (double)now->tv_sec));
  return 0;
}

/* Training waits for room in the queue: for the observer that goes on, or until the limit ends. */
int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
  if (slow.goes_on) {
    sem_post(&slow.go_on);
    while (sem_wait(semaphore) != 0) continue;
    return 0;
  }
  atomic_store(&time_s, (double)until->tv_sec + 1e-9 * (double)until->tv_nsec);
  errno = ETIMEDOUT;
  return -1;
}

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

static void expect_time(double seconds, double want) {
  if (fabs(seconds - want) > 1e-6) fail_msg("%g s, expected %g s", seconds, want);
}

static void await_pause(void) {
  while (sem_wait(&slow.paused) != 0) continue;
}

/* As a disk that writes nothing for a moment. */
static void a_pause_loses_no_event(void **state) {
  (void)state;
  slow.pause_at = 1;
  slow.goes_on = 1;
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
  expect_time(post_steps(2, QUEUE - 1, 0), 0);
  expect_time(post_steps(QUEUE + 1, 1000, 0), 1); /* the first of them alone waits */
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
  expect_time(post_steps(QUEUE + 1, 1, 1e6), 1);
  expect_time(post_steps(QUEUE + 2, 1, 0), 0);    /* the second is used up */
  expect_time(post_steps(QUEUE + 3, 1, 50), 0.5); /* half a second of 50 s */
  sem_post(&slow.go_on);
  tn_observers_stop(observers);
  assert_int_equal(slow.received, QUEUE);
}

/* The data of an event are those of the call that posted it. */
static void media_are_copied(void **state) {
  (void)state;
  char first[] = "a", second[] = "bcd";
  const tn_media media[] = {{.kind = TN_MEDIA_PNG, .name = "samples/0", .data = first, .bytes = 1},
                            {.kind = TN_MEDIA_TEXT, .name = "samples/table", .data = second, .bytes = 3}};
  slow.pause_at = 1;
  post_steps(1, 1, 0);
  await_pause();
  tn_observers_post(
      observers,
      &(tn_event){.struct_size = sizeof(tn_event), .kind = TN_EVENT_SAMPLES, .n_media = 2, .media = media});
  memset(first, '-', 1);
  memset(second, '-', 3);
  sem_post(&slow.go_on);
  tn_observers_stop(observers);
  assert_string_equal(slow.media, "abcd");
}

#define test(f) cmocka_unit_test_setup_teardown(f, open_run, close_run)
int main(void) {
  const struct CMUnitTest tests[] = {
      test(a_pause_loses_no_event),
      test(training_does_not_wait_for_an_observer_that_hangs),
      test(a_long_run_may_wait_longer),
      test(media_are_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
