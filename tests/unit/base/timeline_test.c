/* Spans of several threads; an array that is closed takes none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "core/base/timeline.h"
#include "tests/support/test_env.h"

enum { THREADS = 4, EACH = 500 };
static test_env env;
static tn_timeline *timeline;

static int start(void **state) {
  (void)state;
  test_env_start(&env);
  timeline = tn_timeline_new(&env);
  return timeline == NULL;
}

static int stop(void **state) {
  (void)state;
  tn_timeline_free(timeline);
  return env.live != 0;
}

static void *add_spans(void *arg) {
  for (int i = 0; i < EACH; i++)
    tn_timeline_add(timeline, &(tn_span){.kind = TN_SPAN_READ, .track = *(int *)arg, .number = i});
  return NULL;
}

static void threads_add_spans_that_keep_their_order(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  int tracks[THREADS], next[THREADS] = {0};
  size_t n;
  int64_t lost;
  tn_timeline_open(timeline, true);
  for (int i = 0; i < THREADS; i++) {
    tracks[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, add_spans, &tracks[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  tn_timeline_open(timeline, false);
  const tn_span *spans = tn_timeline_spans(timeline, &n, &lost);
  assert_int_equal(n, THREADS * EACH);
  assert_int_equal(lost, 0);
  for (size_t i = 0; i < n; i++) assert_int_equal(spans[i].number, next[spans[i].track]++);
}

static void a_closed_timeline_drops_spans(void **state) {
  (void)state;
  size_t n;
  int64_t lost;
  tn_span span = {.number = 7};
  tn_timeline_add(timeline, &span);
  tn_timeline_open(timeline, true);
  tn_timeline_add(timeline, &span);
  tn_timeline_open(timeline, false);
  tn_timeline_add(timeline, &span);
  tn_timeline_spans(timeline, &n, &lost);
  assert_int_equal(n, 1);
  assert_int_equal(lost, 0);
  tn_timeline_clear(timeline);
  tn_timeline_spans(timeline, &n, &lost);
  assert_int_equal(n, 0);
}

static void spans_past_the_limit_are_counted(void **state) {
  (void)state;
  size_t n;
  int64_t lost;
  tn_timeline_open(timeline, true);
  for (int i = 0; i < (1 << 20) + 3; i++) tn_timeline_add(timeline, &(tn_span){.number = i});
  tn_timeline_open(timeline, false);
  tn_timeline_spans(timeline, &n, &lost);
  assert_int_equal(n, 1 << 20);
  assert_int_equal(lost, 3);
}

static void a_span_without_memory_is_lost(void **state) {
  (void)state;
  size_t n;
  int64_t lost;
  tn_timeline_open(timeline, true);
  env.fail_at = 1;
  tn_timeline_add(timeline, &(tn_span){.number = 1});
  env.fail_at = 0;
  tn_timeline_add(timeline, &(tn_span){.number = 2});
  tn_timeline_open(timeline, false);
  const tn_span *spans = tn_timeline_spans(timeline, &n, &lost);
  assert_int_equal(n, 1);
  assert_int_equal(spans[0].number, 2);
  assert_int_equal(lost, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(threads_add_spans_that_keep_their_order, start, stop),
      cmocka_unit_test_setup_teardown(a_closed_timeline_drops_spans, start, stop),
      cmocka_unit_test_setup_teardown(spans_past_the_limit_are_counted, start, stop),
      cmocka_unit_test_setup_teardown(a_span_without_memory_is_lost, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
