/* Control data between ranks, and the propagation of failures. The clock is held, and time passes when the
 * ranks that are to wait do so. */
#include "tests/unit/run/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/exec/flight_recorder.h"
#include "core/distributed/ranks/rank_set.h"
#include "tenon/plugin/communicator.h"
#include "tests/support/await.h"
#include "tests/support/test_clock.h"

enum { RANKS = 4 };

/* The data that the ranks of a test share. */
typedef struct meeting {
  tn_rank_set *ranks;
  tn_env env[RANKS];
  tn_error_record records[RANKS];
  uint64_t hash[RANKS];
  int32_t fails; /* the rank that fails, or stays away; -1: no rank */
  int decides;   /* the others decide, and do not gather */
  tn_status outcomes[RANKS];
  atomic_int begun; /* the ranks that have begun to stay away or to wait */
} meeting;

static meeting open_meeting(void) {
  meeting m = {.fails = -1};
  rig_expect_ok(tn_ranks_create(&R.env, RANKS, NULL, &m.ranks));
  return m;
}

static tn_status conclude(meeting *m, int32_t rank, tn_status status) {
  m->outcomes[rank] = status;
  if (status != TN_OK) tn_ranks_fail(m->ranks, rank, &m->env[rank], status);
  return status;
}

static void run(meeting *m, tn_status (*body)(void *context, int32_t rank)) {
  for (int32_t r = 0; r < RANKS; r++) tn_error_record_init(&m->env[r], &m->records[r], &R.env);
  tn_ranks_run(m->ranks, &R.env, body, m);
}

/* ---- plans ---- */

static tn_status compare(void *context, int32_t rank) {
  meeting *m = context;
  return conclude(m, rank, tn_ranks_compare_plans(m->ranks, &m->env[rank], rank, m->hash[rank]));
}

static void equal_plans_pass(void **state) {
  (void)state;
  meeting m = open_meeting();
  for (int32_t r = 0; r < RANKS; r++) m.hash[r] = 42;
  run(&m, compare);
  for (int32_t r = 0; r < RANKS; r++) assert_int_equal(m.outcomes[r], TN_OK);
  rig_expect_ok(tn_ranks_failure(m.ranks, &R.env));
  tn_ranks_destroy(m.ranks);
}

static void a_rank_with_another_plan_is_reported_with_both_hashes(void **state) {
  (void)state;
  meeting m = open_meeting();
  for (int32_t r = 0; r < RANKS; r++) m.hash[r] = r == 2 ? 0xBAD : 0x600D;
  run(&m, compare);
  for (int32_t r = 0; r < RANKS; r++) assert_int_equal(m.outcomes[r], TN_ECOMM);
  rig_expect_error(
      tn_ranks_failure(m.ranks, &R.env), TN_ECOMM,
      "rank 2: the plan of rank 2 has hash 0000000000000bad, that of rank 0 000000000000600d; all "
      "ranks must have the same devices, plugins and configuration");
  tn_ranks_destroy(m.ranks);
}

/* ---- gatherings ---- */

static tn_status exchange(void *context, int32_t rank) {
  meeting *m = context;
  int64_t mine = 10 + rank, all[RANKS], shared = rank == 0 ? 77 : 0;
  tn_status status = TN_OK;
  for (int i = 0; i < 100 && status == TN_OK; i++) {
    int32_t decision = rank == 0 ? i : -1;
    status = tn_ranks_all_gather(m->ranks, &m->env[rank], rank, "a test", &mine, sizeof mine, all);
    for (int32_t r = 0; r < RANKS && status == TN_OK; r++)
      if (all[r] != 10 + r) status = TN_EINTERNAL;
    memset(all, 0, sizeof all);
    if (status == TN_OK)
      status = tn_ranks_gather(m->ranks, &m->env[rank], rank, "for rank 0", &mine, sizeof mine,
                               rank == 0 ? all : NULL);
    for (int32_t r = 0; r < RANKS && status == TN_OK; r++)
      if (all[r] != (rank == 0 ? 10 + r : 0)) status = TN_EINTERNAL;
    if (status == TN_OK)
      status = tn_ranks_broadcast(m->ranks, &m->env[rank], rank, "a test", &shared, sizeof shared);
    if (status == TN_OK && shared != 77) status = TN_EINTERNAL;
    if (status == TN_OK) status = tn_ranks_decide(m->ranks, &m->env[rank], rank, &decision);
    if (status == TN_OK && decision != i) status = TN_EINTERNAL;
    if (status == TN_OK && rank == m->fails && i == 50)
      status = tn_failf(&m->env[rank], TN_EIO, "the disk is full");
  }
  return conclude(m, rank, status);
}

static void ranks_gather_broadcast_and_follow_decisions(void **state) {
  (void)state;
  meeting m = open_meeting();
  run(&m, exchange);
  for (int32_t r = 0; r < RANKS; r++) assert_int_equal(m.outcomes[r], TN_OK);
  tn_ranks_destroy(m.ranks);
}

static void waiting_ranks_receive_the_failure_of_another(void **state) {
  (void)state;
  for (int32_t rank = 0; rank < RANKS; rank++) {
    meeting m = open_meeting();
    char text[64];
    m.fails = rank;
    run(&m, exchange);
    snprintf(text, sizeof text, "rank %d: the disk is full", (int)rank);
    for (int32_t r = 0; r < RANKS; r++) {
      assert_int_equal(m.outcomes[r], r == rank ? TN_EIO : TN_ECOMM);
      if (r != rank) assert_string_equal(tn_error_text(&m.env[r]), text);
    }
    rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_EIO, text);
    tn_ranks_destroy(m.ranks);
  }
}

/* ---- ranks that stay away ---- */

static void watch(meeting *m) {
  const tn_rank_watch watch = {.timeout_s = 0.5};
  tn_ranks_watch(m->ranks, &watch);
}

/* All others wait for rank m->fails: each for it, or, where they decide, rank 0 for it and they for rank 0.
 */
static bool others_wait(const meeting *m) {
  bool all = atomic_load(&m->begun) == RANKS; /* one that begins behind the failure has no outcome */
  for (int32_t r = 0; r < RANKS; r++) {
    const tn_rank_member *member = &m->ranks->members[r];
    int32_t awaited = atomic_load(&member->awaited);
    bool waits = atomic_load(&member->since_s) > 0;
    if (m->decides && m->fails > 0) waits = r > 0 || (waits && awaited == m->fails);
    all = all && (waits || r == m->fails);
  }
  return all;
}

/* Rank m->fails comes to no exchange until the others have failed. */
static tn_status stay_away(void *context, int32_t rank) {
  meeting *m = context;
  int32_t decision = rank == 0 ? 7 : 0;
  tn_status status = TN_OK;
  atomic_fetch_add(&m->begun, 1);
  if (rank == m->fails) {
    AWAIT(others_wait(m) || tn_ranks_have_failed(m->ranks));
    test_clock_pass(0.75);
    AWAIT(tn_ranks_failure(m->ranks, &m->env[rank]) != TN_OK);
    return conclude(m, rank, TN_OK);
  }
  if (m->decides)
    while (status == TN_OK) status = tn_ranks_decide(m->ranks, &m->env[rank], rank, &decision);
  else
    status = tn_ranks_all_gather(m->ranks, &m->env[rank], rank, "a test", NULL, 0, NULL);
  return conclude(m, rank, status);
}

static void a_rank_that_stays_away_is_named_after_the_timeout(void **state) {
  (void)state;
  for (int32_t rank = 0; rank < RANKS; rank++)
    for (int decides = 0; decides < 2; decides++) {
      meeting m = open_meeting();
      char text[96];
      m.fails = rank;
      m.decides = decides;
      watch(&m);
      run(&m, stay_away);
      snprintf(text, sizeof text, "rank %d did not come to an exchange between the ranks within 0.5 s",
               (int)rank);
      rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_ECOMM, text);
      snprintf(text, sizeof text, "; rank %d has not come to exchange 1", (int)rank);
      rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_ECOMM, text);
      rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_ECOMM, "; its host computes, or launches work");
      assert_int_equal(tn_ranks_hung(m.ranks), -1);
      for (int32_t r = 0; r < RANKS; r++) assert_int_equal(m.outcomes[r], r == rank ? TN_OK : TN_ECOMM);
      tn_ranks_destroy(m.ranks);
    }
}

/* The state of a rank that its host does not ask for. */
static tn_status lost_device(void *context, tn_env *env, int32_t rank) {
  return rank == ((meeting *)context)->fails ? tn_failf(env, TN_ECOMM, "the device is lost") : TN_OK;
}

static void the_state_of_a_busy_rank_is_asked_for(void **state) {
  (void)state;
  meeting m = open_meeting();
  const tn_rank_watch watch = {.timeout_s = 60, .status = lost_device, .context = &m};
  m.fails = 2;
  tn_ranks_watch(m.ranks, &watch);
  run(&m, stay_away);
  rig_expect_error(tn_ranks_failure(m.ranks, &R.env), TN_ECOMM, "rank 2: the device is lost");
  tn_ranks_destroy(m.ranks);
}

static bool others_have_ended(const meeting *m) {
  int32_t ended = 0;
  pthread_mutex_lock(&m->ranks->lock);
  for (int32_t r = 0; r < RANKS; r++) ended += m->ranks->members[r].ended;
  pthread_mutex_unlock(&m->ranks->lock);
  return ended == RANKS - 1;
}

/* The limit of the wait ends, and then that of the thread. */
static tn_status never_end(void *context, int32_t rank) {
  meeting *m = context;
  atomic_fetch_add(&m->begun, 1);
  if (rank == m->fails) {
    AWAIT(others_wait(m));
    test_clock_pass(0.75);
    AWAIT(others_have_ended(m));
    test_clock_pass(0.75);
    for (;;) pause();
  }
  return conclude(m, rank, tn_ranks_all_gather(m->ranks, &m->env[rank], rank, "a test", NULL, 0, NULL));
}

/* The memory of these ranks is never freed. */
static void a_thread_that_never_ends_is_left(void **state) {
  (void)state;
  static meeting m[RANKS];
  for (int32_t rank = 0; rank < RANKS; rank++) {
    int64_t before = R.blocks;
    m[rank] = open_meeting();
    m[rank].fails = rank;
    watch(&m[rank]);
    run(&m[rank], never_end);
    assert_int_equal(tn_ranks_hung(m[rank].ranks), rank);
    char text[96];
    snprintf(text, sizeof text, "the thread of rank %d has not ended 0.5 s after that", (int)rank);
    rig_expect_error(tn_ranks_failure(m[rank].ranks, &R.env), TN_ECOMM, text);
    R.blocks = before;
  }
}

/* ---- files ---- */

/* A message and names that are not UTF-8, or are cut inside of a character. */
static tn_status fail_in_latin_1(void *context, int32_t rank) {
  meeting *m = context;
  const tn_flight_call calls[] = {
      tn_flight_call_of("step", "a\xe4\xf6\xfc", TN_ALL_REDUCE, TN_F32, 1),
      tn_flight_call_of("step", "äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü", TN_ALL_REDUCE, TN_F32, 1)};
  for (int i = 0; i < 2; i++) tn_flight_begin(tn_ranks_flight(m->ranks, rank), &calls[i]);
  tn_status met = tn_ranks_all_gather(m->ranks, &m->env[rank], rank, "a test", NULL, 0, NULL);
  if (met != TN_OK) return conclude(m, rank, met);
  return conclude(m, rank, rank > 0 ? TN_OK : tn_failf(&m->env[rank], TN_EIO, "f\xfcr"));
}

static void texts_that_are_not_utf_8_are_written(void **state) {
  (void)state;
  char path[64] = "/tmp/tenon-ranks-XXXXXX", folder[96], name[128], text[8192];
  meeting m = open_meeting();
  watch(&m);
  assert_non_null(mkdtemp(path));
  snprintf(folder, sizeof folder, "%s/failure", path);
  rig_expect_ok(tn_ranks_set_failure_folder(m.ranks, &R.env, folder));
  run(&m, fail_in_latin_1);
  for (int32_t r = 0; r < RANKS; r++) {
    snprintf(name, sizeof name, "%s/rank%d.jsonl", folder, (int)r);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(name);
    assert_non_null(strstr(text, "\"f?r\""));
    assert_non_null(strstr(text, "\"a???\""));
    assert_non_null(strstr(text, "\"äöüäöüäöüäöüäöüäöüäöüäö\"")); /* 46 of 47 bytes */
  }
  rmdir(folder);
  rmdir(path);
  tn_ranks_destroy(m.ranks);
}

int main(void) {
  test_clock_hold();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(equal_plans_pass, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_rank_with_another_plan_is_reported_with_both_hashes, rig_open,
                                      rig_close),
      cmocka_unit_test_setup_teardown(ranks_gather_broadcast_and_follow_decisions, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(waiting_ranks_receive_the_failure_of_another, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_rank_that_stays_away_is_named_after_the_timeout, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(the_state_of_a_busy_rank_is_asked_for, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_thread_that_never_ends_is_left, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(texts_that_are_not_utf_8_are_written, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
