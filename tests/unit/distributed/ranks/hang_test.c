/* Ranks that hang: a rank's own time, its limit, and the time that threads have after a failure. The clock is
 * held, and time passes when the watch has seen what it is to judge. */
#include "tests/unit/run/rig.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/exec/flight_recorder.h"
#include "core/distributed/ranks/hang.h"
#include "core/distributed/ranks/rank_set.h"
#include "core/distributed/wire/wire.h"
#include "tests/support/await.h"
#include "tests/support/test_clock.h"

/* ---- own time ---- */

static void own_time_is_that_without_a_wait(void **state) {
  (void)state;
  tn_own_time own = {.longest_s = 0};
  tn_own_look look = {.wait = TN_FLIGHT_NOTHING, .step = 1};
  assert_true(tn_own_time_look(&own, &look, 100, 0) == 0);
  assert_true(tn_own_time_look(&own, &look, 103, 0) == 3);
  look.begun = 1; /* a collective */
  assert_true(tn_own_time_look(&own, &look, 104, 0) == 0);
  assert_true(own.longest_s == 4);
  look.wait = TN_FLIGHT_HOST; /* its next batch */
  look.wait_since_s = 105;
  assert_true(tn_own_time_look(&own, &look, 105, 0) == 0);
  assert_true(tn_own_time_look(&own, &look, 205, 0) == 0);
  for (int32_t wait = TN_FLIGHT_COLLECTIVE; wait < TN_FLIGHT_WAITS; wait++) {
    look.wait = wait;
    assert_true(tn_own_time_look(&own, &look, 206, 0) == 0);
    assert_true(tn_own_time_look(&own, &look, 306, 0) == 0);
  }
  assert_true(own.longest_s == 4);
}

static void a_device_counts_where_it_is_in_no_collective(void **state) {
  (void)state;
  tn_own_time own = {.longest_s = 0};
  tn_own_look look = {.wait = TN_FLIGHT_DEVICE, .device = TN_DEVICE_OUTSIDE, .step = 1};
  tn_own_time_look(&own, &look, 10, 0);
  assert_true(tn_own_time_look(&own, &look, 12, 0) == 2);
  look.device = TN_DEVICE_INSIDE;
  look.inside = 7;
  assert_true(tn_own_time_look(&own, &look, 13, 0) == 0);
  assert_true(tn_own_time_look(&own, &look, 20, 0) == 0);
  look.wait = TN_FLIGHT_NOTHING; /* a launch that waits for room in the queue of the device */
  assert_true(tn_own_time_look(&own, &look, 21, 0) == 0);
  assert_true(tn_own_time_look(&own, &look, 30, 0) == 0);
  look.device = TN_DEVICE_OUTSIDE;
  assert_true(tn_own_time_look(&own, &look, 31, 0) == 0);
  assert_true(tn_own_time_look(&own, &look, 32, 0) == 1);
  assert_true(own.longest_s == 3);
}

static void the_time_of_a_stopped_process_does_not_count(void **state) {
  (void)state;
  tn_own_time own = {.longest_s = 0};
  const tn_own_look look = {.wait = TN_FLIGHT_NOTHING, .step = 1};
  tn_own_time_look(&own, &look, 10, 0);
  assert_true(tn_own_time_look(&own, &look, 1011, 1000) == 1);
}

static void the_limit_is_ten_times_the_longest_time(void **state) {
  (void)state;
  tn_own_time own = {.longest_s = 0.1};
  assert_true(tn_own_time_limit(&own, -1, 300) == 20);
  own.longest_s = 6;
  assert_true(tn_own_time_limit(&own, -1, 300) == 60);
  own.longest_s = 60;
  assert_true(tn_own_time_limit(&own, -1, 300) == 300);
  assert_true(tn_own_time_limit(&own, 40, 300) == 40);
  assert_true(tn_own_time_limit(&own, 0, 300) == 300);
}

/* ---- ranks ---- */

enum { RANKS = 3 };

enum { SPINS, IS_NEW, DECLARES, NEVER_ENDS, SAVES };

typedef struct meeting {
  tn_rank_set *ranks;
  tn_env env[RANKS];
  tn_error_record records[RANKS];
  int does; /* what rank `odd` does after some steps */
  int32_t odd;
  double seconds;       /* for which it does that */
  atomic_bool begun;    /* it does that, or has done it */
  atomic_bool released; /* it may end */
  atomic_bool ended;    /* tn_ranks_run has returned */
  atomic_int looks;     /* of the watch, until a rank fails */
} meeting;

static tn_status count_look(void *context, tn_env *env, int32_t rank) {
  (void)env;
  if (rank == 0) atomic_fetch_add(&((meeting *)context)->looks, 1);
  return TN_OK;
}

static void open_meeting(meeting *m, double timeout_s, double hang_s) {
  const tn_rank_watch watch = {.timeout_s = timeout_s, .hang_s = hang_s, .status = count_look, .context = m};
  rig_expect_ok(tn_ranks_create(&R.env, RANKS, NULL, &m->ranks));
  tn_ranks_watch(m->ranks, &watch);
  for (int32_t r = 0; r < RANKS; r++) tn_error_record_init(&m->env[r], &m->records[r], &R.env);
}

/* Returns when the watch has looked at all ranks since the call, or a rank has failed. */
static void await_look(meeting *m) {
  int before = atomic_load(&m->looks);
  AWAIT(atomic_load(&m->looks) >= before + 2 || tn_ranks_have_failed(m->ranks));
}

/* The watch sees all ranks, the others while they wait for the odd one, and then the time that passes. */
static void pass(meeting *m) {
  for (int32_t r = 0; r < RANKS; r++) AWAIT(r == m->odd || atomic_load(&m->ranks->members[r].since_s) > 0);
  await_look(m);
  test_clock_pass(m->seconds);
  await_look(m);
}

static void do_odd(meeting *m, tn_flight *flight) {
  tn_flight_wait before = {0};
  tn_flight_save(flight, m->does == SAVES);
  atomic_store(&m->begun, true);
  if (m->does == NEVER_ENDS)
    for (;;) pause();
  if (m->does == IS_NEW) tn_flight_new_program(flight);
  if (m->does == DECLARES) before = tn_flight_begin_wait(flight, TN_FLIGHT_HOST, "its next batch");
  if (m->does == SAVES)
    AWAIT(atomic_load(&m->released));
  else
    pass(m);
  if (m->does == DECLARES) tn_flight_end_wait(flight, &before);
  tn_flight_save(flight, false);
}

/* After the odd rank has begun: a rank that notes the failure before would end with it. */
static tn_status fail_last(meeting *m, int32_t rank) {
  AWAIT(atomic_load(&m->begun));
  return tn_failf(&m->env[rank], TN_EIO, "the disk is full");
}

static tn_status train(void *context, int32_t rank) {
  meeting *m = context;
  tn_flight *flight = tn_ranks_flight(m->ranks, rank);
  tn_status status = TN_OK;
  for (int32_t step = 1; step <= 2 * TN_FLIGHT_NEW && status == TN_OK; step++) {
    int32_t decision = 0;
    tn_flight_step(flight, step);
    if (step == 1) tn_flight_new_program(flight);
    status = tn_ranks_decide(m->ranks, &m->env[rank], rank, &decision);
  }
  if (status == TN_OK && rank == m->odd) do_odd(m, flight);
  if (status == TN_OK && (m->does == SAVES || m->does == NEVER_ENDS) && rank == RANKS - 1)
    status = fail_last(m, rank);
  else if (status == TN_OK)
    status = tn_ranks_all_gather(m->ranks, &m->env[rank], rank, "a test", NULL, 0, NULL);
  if (status != TN_OK) tn_ranks_fail(m->ranks, rank, &m->env[rank], status);
  return status;
}

static void a_rank_that_does_not_end_its_work_hangs(void **state) {
  (void)state;
  meeting m = {.does = SPINS, .odd = 1, .seconds = 0.55};
  open_meeting(&m, 60, 0.5);
  tn_ranks_run(m.ranks, &R.env, train, &m);
  rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_ECOMM,
                   "rank 1: its thread computes, or launches work, for 0.55 s in step 16, outside of "
                   "collectives and without an end: it hangs, since the longest such time before was 0 s");
  rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_ECOMM,
                   "; rank 1 has not come to exchange 17 (a test), for which ranks 0 and 2 waited");
  tn_ranks_destroy(m.ranks);
}

/* A program that runs for the first time, a wait that is declared, and a run without a limit. */
static void other_ranks_do_not_hang(void **state) {
  (void)state;
  static const int what[] = {IS_NEW, DECLARES, SPINS};
  for (int i = 0; i < 3; i++) {
    meeting m = {.does = what[i], .odd = 2, .seconds = 1};
    open_meeting(&m, 60, what[i] == SPINS ? 0 : 0.5);
    rig_expect_ok(tn_ranks_run(m.ranks, &R.env, train, &m));
    rig_expect_ok(tn_ranks_failure(m.ranks, &R.env));
    tn_ranks_destroy(m.ranks);
  }
}

/* ---- the end after a failure ---- */

static void *run_meeting(void *context) {
  meeting *m = context;
  tn_ranks_run(m->ranks, &m->env[RANKS - 1], train, m);
  atomic_store(&m->ended, true);
  return NULL;
}

/* Two ranks fail; a third hangs, which is a failure after half a second. */
static void await_failures(const meeting *stuck, meeting *hung, const meeting *saves) {
  AWAIT(tn_ranks_have_failed(stuck->ranks) && tn_ranks_have_failed(saves->ranks));
  AWAIT(atomic_load(&hung->begun));
  await_look(hung);
  test_clock_pass(0.55);
  AWAIT(tn_ranks_have_failed(hung->ranks));
}

/* Rank 0 too; not while it writes a checkpoint. The memory of a thread that is left is never freed. */
static void threads_have_15_s_to_end(void **state) {
  (void)state;
  static meeting stuck, hung, saves;
  meeting *const all[] = {&stuck, &hung, &saves};
  pthread_t threads[3];
  int64_t before = R.blocks;
  stuck = (meeting){.does = NEVER_ENDS, .odd = 0};
  hung = (meeting){.does = NEVER_ENDS, .odd = RANKS - 1};
  saves = (meeting){.does = SAVES, .odd = 0};
  for (int i = 0; i < 3; i++) open_meeting(all[i], 60, 0);
  const tn_rank_watch watch = {.timeout_s = 60, .hang_s = 0.5, .status = count_look, .context = &hung};
  tn_ranks_watch(hung.ranks, &watch);
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_meeting, all[i]), 0);
  await_failures(&stuck, &hung, &saves);
  test_clock_pass(5.25);
  AWAIT(atomic_load(&hung.ended));
  test_clock_pass(10);
  AWAIT(atomic_load(&stuck.ended));
  test_clock_await_reads(8); /* by the watch of the third, which alone still runs */
  assert_false(atomic_load(&saves.ended));
  atomic_store(&saves.released, true);
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(tn_ranks_hung(stuck.ranks), 0);
  rig_expect_error(tn_ranks_failure(stuck.ranks, &R.env), TN_EIO,
                   "the thread of rank 0 has not ended 15 s after that");
  assert_int_equal(tn_ranks_hung(hung.ranks), RANKS - 1);
  rig_expect_error(tn_ranks_failure(hung.ranks, &R.env), TN_ECOMM,
                   "the thread of rank 2 has not ended 5 s after that");
  assert_int_equal(tn_ranks_hung(saves.ranks), -1);
  rig_expect_error(tn_ranks_failure(saves.ranks, &R.env), TN_EIO, "rank 2: the disk is full");
  tn_ranks_destroy(saves.ranks);
  R.blocks = before;
}

int main(void) {
  test_clock_hold();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(own_time_is_that_without_a_wait),
      cmocka_unit_test(a_device_counts_where_it_is_in_no_collective),
      cmocka_unit_test(the_time_of_a_stopped_process_does_not_count),
      cmocka_unit_test(the_limit_is_ten_times_the_longest_time),
      cmocka_unit_test_setup_teardown(a_rank_that_does_not_end_its_work_hangs, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(other_ranks_do_not_hang, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(threads_have_15_s_to_end, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
