/* Ranks of several processes with several threads each: exchanges, failures, ranks that stay away. */
#include "tests/unit/distributed/crew.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/base/text/text.h"
#include "core/exec/flight_recorder.h"
#include "core/distributed/ranks/rank_set.h"
#include "tests/support/folder.h"

enum { PROCESSES = 2, LOCALS = 2, RANKS = PROCESSES * LOCALS };

/* The data that the ranks of a process share. */
typedef struct hall {
  member *m;
  tn_rank_set *ranks;
  int32_t first;
  tn_env env[LOCALS];
  tn_error_record records[LOCALS];
  tn_status outcomes[LOCALS];
  atomic_int aborts, stops;
  int decides;
} hall;

static int32_t chosen; /* the rank that fails, or stays away */
static int by_decision, all_of_process;

static crew crew_of_pairs(void) {
  crew c = crew_new(PROCESSES);
  for (int32_t i = 0; i < PROCESSES; i++) c.ranks[i] = LOCALS;
  return c;
}

static void hall_open(hall *h, member *m) {
  memset(h, 0, sizeof *h);
  h->m = m;
  tn_status status = tn_link_open(&m->env, &m->request, &m->link);
  EXPECT(status == TN_OK);
  EXPECT(tn_ranks_create(&m->env, LOCALS, m->link, &h->ranks) == TN_OK);
  EXPECT(tn_ranks_count(h->ranks) == RANKS);
  h->first = tn_link_first_rank(m->link);
  for (int32_t r = 0; r < LOCALS; r++) tn_error_record_init(&h->env[r], &h->records[r], &m->env);
}

static void hall_close(hall *h, int in_order) {
  tn_ranks_destroy(h->ranks);
  member_close(h->m, in_order);
}

static tn_status conclude(hall *h, int32_t local, tn_status status) {
  h->outcomes[local] = status;
  if (status != TN_OK) tn_ranks_fail(h->ranks, h->first + local, &h->env[local], status);
  return status;
}

static void expect_failure(hall *h, tn_status want, const char *text) {
  EXPECT(tn_ranks_failure(h->ranks, &h->m->env) == want);
  EXPECT_TEXT(tn_error_text(&h->m->env), text);
}

/* ---- exchanges ---- */

static tn_status exchange_once(hall *h, int32_t local, int i) {
  tn_env *env = &h->env[local];
  int32_t rank = h->first + local, decision = rank == 0 ? i : -1;
  int64_t mine[3] = {10 + rank, i, rank * i}, all[3 * RANKS], shared = rank == 0 ? 77 + i : 0;
  TN_TRY(tn_ranks_all_gather(h->ranks, env, rank, "a test", mine, sizeof mine, all));
  for (int32_t r = 0; r < RANKS; r++)
    if (all[3 * r] != 10 + r || all[3 * r + 1] != i || all[3 * r + 2] != r * i) return TN_EINTERNAL;
  memset(all, 0, sizeof all);
  TN_TRY(tn_ranks_gather(h->ranks, env, rank, "for rank 0", mine, sizeof mine, rank == 0 ? all : NULL));
  for (int32_t r = 0; r < RANKS && rank == 0; r++)
    if (all[3 * r] != 10 + r || all[3 * r + 1] != i || all[3 * r + 2] != r * i) return TN_EINTERNAL;
  TN_TRY(tn_ranks_all_gather(h->ranks, env, rank, "nothing", NULL, 0, NULL));
  TN_TRY(tn_ranks_broadcast(h->ranks, env, rank, "a test", &shared, sizeof shared));
  if (shared != 77 + i) return TN_EINTERNAL;
  TN_TRY(tn_ranks_broadcast(h->ranks, env, rank, "nothing", NULL, 0));
  TN_TRY(tn_ranks_decide(h->ranks, env, rank, &decision));
  if (decision != i) return TN_EINTERNAL;
  return rank == chosen && i == 50 ? tn_failf(env, TN_EIO, "the disk is full") : TN_OK;
}

static tn_status exchange(void *context, int32_t local) {
  hall *h = context;
  tn_status status = TN_OK;
  for (int i = 0; i < 200 && status == TN_OK; i++) status = exchange_once(h, local, i);
  return conclude(h, local, status);
}

static void exchange_all(member *m) {
  hall h;
  char *told = m->place.process == 0 ? tn_strdup(&m->env, "forty-two") : NULL;
  hall_open(&h, m);
  EXPECT(tn_ranks_tell_text(h.ranks, &m->env, "a test", &told) == TN_OK);
  EXPECT(told != NULL && strcmp(told, "forty-two") == 0);
  tn_release(&m->env, told);
  EXPECT(tn_ranks_run(h.ranks, &m->env, exchange, &h) == TN_OK);
  for (int32_t r = 0; r < LOCALS; r++) EXPECT(h.outcomes[r] == TN_OK);
  EXPECT(tn_ranks_failure(h.ranks, &m->env) == TN_OK);
  hall_close(&h, 1);
}

static void ranks_of_processes_exchange_data(void **state) {
  (void)state;
  chosen = -1;
  crew c = crew_of_pairs();
  crew_run(&c, exchange_all);
}

/* Process 0 announces more bytes than a text may have. */
static void tell_too_much(member *m) {
  hall h;
  char *told = NULL;
  uint64_t bytes = (uint64_t)1 << 40;
  hall_open(&h, m);
  if (m->place.process == 0) {
    EXPECT(tn_link_broadcast(m->link, "a test", &bytes, sizeof bytes) == TN_OK);
  } else {
    EXPECT(tn_ranks_tell_text(h.ranks, &m->env, "a test", &told) == TN_ECOMM);
    EXPECT(told == NULL);
    EXPECT_TEXT(tn_error_text(&m->env),
                "the text of process 0 ('a test') has 1099511627776 bytes, expected at most 67108864");
  }
  hall_close(&h, 1);
}

static void a_text_that_is_too_long_is_refused(void **state) {
  (void)state;
  crew c = crew_of_pairs();
  crew_run(&c, tell_too_much);
}

static tn_status decide_often(void *context, int32_t local) {
  hall *h = context;
  int32_t rank = h->first + local, sum = 0;
  tn_status status = TN_OK;
  for (int32_t i = 0; i < 20000 && status == TN_OK; i++) {
    int32_t decision = rank == 0 ? i : -1;
    status = tn_ranks_decide(h->ranks, &h->env[local], rank, &decision);
    sum += decision != i;
  }
  return conclude(h, local, sum == 0 ? status : TN_EINTERNAL);
}

static void decide_all(member *m) {
  hall h;
  hall_open(&h, m);
  double began = tn_clock_s();
  EXPECT(tn_ranks_run(h.ranks, &m->env, decide_often, &h) == TN_OK);
  if (m->place.process == 1) crew_note(m->crew, 0, (int64_t)((tn_clock_s() - began) * 1e9 / 20000));
  hall_close(&h, 1);
}

static void decisions_reach_all_ranks(void **state) {
  (void)state;
  crew c = crew_of_pairs();
  crew_start_all(&c, decide_all);
  for (int32_t i = 0; i < PROCESSES; i++) crew_expect_end(&c, i);
  print_message("a decision in a row takes %.1f us\n", (double)c.notes[0] / 1e3);
  crew_end(&c);
}

/* ---- failures ---- */

static void exchange_and_fail(member *m) {
  hall h;
  char text[96];
  hall_open(&h, m);
  tn_ranks_run(h.ranks, &m->env, exchange, &h);
  snprintf(text, sizeof text, "rank %d (process %d, id ", (int)chosen, (int)chosen / LOCALS);
  expect_failure(&h, TN_EIO, text);
  snprintf(text, sizeof text, "id %lld on host ", (long long)tn_link_member(m->link, chosen / LOCALS)->pid);
  expect_failure(&h, TN_EIO, text);
  expect_failure(&h, TN_EIO, "): the disk is full");
  for (int32_t r = 0; r < LOCALS; r++) {
    EXPECT(h.outcomes[r] == (h.first + r == chosen ? TN_EIO : TN_ECOMM));
    EXPECT_TEXT(tn_error_text(&h.env[r]), "the disk is full");
  }
  hall_close(&h, 0);
}

static void the_failure_of_a_rank_arrives_at_all(void **state) {
  (void)state;
  for (chosen = 0; chosen < RANKS; chosen++) {
    crew c = crew_of_pairs();
    crew_run(&c, exchange_and_fail);
  }
}

/* After a failure in one rank set, another one over the same link fails as well and does not wait. */
static void fail_twice(member *m) {
  hall h;
  hall_open(&h, m);
  if (m->place.process == 1) {
    tn_status status = tn_failf(&h.env[0], TN_EIO, "the disk is full");
    tn_ranks_fail(h.ranks, 2, &h.env[0], status);
  }
  for (int i = 0; i < 2; i++) {
    tn_status status = TN_OK;
    while (status == TN_OK) {
      char own[] = "", *text = m->place.process == 0 ? own : NULL;
      status = tn_ranks_tell_text(h.ranks, &m->env, "a test", &text);
      if (text != own) tn_release(&m->env, text);
    }
    EXPECT(status == TN_ECOMM);
    EXPECT_TEXT(tn_error_text(&m->env), "rank 2 (process 1, id ");
    tn_ranks_destroy(h.ranks);
    EXPECT(tn_ranks_create(&m->env, LOCALS, m->link, &h.ranks) == TN_OK);
  }
  hall_close(&h, 0);
}

static void a_later_set_of_ranks_knows_the_failure(void **state) {
  (void)state;
  crew c = crew_of_pairs();
  crew_run(&c, fail_twice);
}

/* ---- the watch ---- */

static void count_abort(void *context) { atomic_fetch_add(&((hall *)context)->aborts, 1); }

static tn_status stay_away(void *context, int32_t local) {
  hall *h = context;
  int32_t rank = h->first + local, decision = rank == 0 ? 7 : 0;
  tn_status status = TN_OK;
  if (rank == chosen || (all_of_process && rank / LOCALS == chosen / LOCALS)) {
    AWAIT(tn_ranks_failure(h->ranks, &h->env[local]) != TN_OK);
    return conclude(h, local, TN_OK);
  }
  if (by_decision)
    AWAIT((status = tn_ranks_decide(h->ranks, &h->env[local], rank, &decision)) != TN_OK);
  else
    status = tn_ranks_all_gather(h->ranks, &h->env[local], rank, "a test", NULL, 0, NULL);
  return conclude(h, local, status);
}

/* The other rank of the process waits for the chosen one. */
static bool sibling_waits(hall *h) {
  const tn_rank_member *m = &h->ranks->members[LOCALS - 1 - chosen % LOCALS];
  int32_t awaited = atomic_load(&m->awaited);
  return atomic_load(&m->since_s) > 0 && (awaited == chosen || awaited == AWAITS_ALL);
}

/* The process waits as long as the chosen rank stays away. Decisions of process 0 do not wait for another
 * process. */
static bool process_waits(hall *h) {
  double since;
  const char *what;
  bool here = h->first / LOCALS == chosen / LOCALS;
  if (here) return all_of_process || sibling_waits(h);
  return (by_decision && h->first == 0) || tn_link_awaited(h->m->link, &since, &what) >= 0;
}

/* Called at each look of the watch. */
static tn_status note_waits(void *context, tn_env *env, int32_t local) {
  hall *h = context;
  (void)env, (void)local;
  if (process_waits(h)) crew_note(h->m->crew, h->m->place.process, 1);
  return TN_OK;
}

static void miss_a_rank(member *m) {
  hall h;
  char text[96];
  hall_open(&h, m);
  const tn_rank_watch watch = {.timeout_s = 1, .status = note_waits, .abort = count_abort, .context = &h};
  tn_ranks_watch(h.ranks, &watch);
  tn_ranks_run(h.ranks, &m->env, stay_away, &h);
  if (all_of_process) {
    snprintf(text, sizeof text, "rank %d (process %d, id ", (int)chosen, (int)chosen / LOCALS);
    expect_failure(&h, TN_ECOMM, text);
    expect_failure(&h, TN_ECOMM, "): did not come to an exchange between the processes within 1 s (a test)");
  } else {
    snprintf(text, sizeof text, "): rank %d did not come to an exchange between the ranks within 1 s (%s)",
             (int)chosen, by_decision ? "the next step" : "a test");
    expect_failure(&h, TN_ECOMM, text);
  }
  EXPECT(h.aborts > 0);
  EXPECT(tn_ranks_hung(h.ranks) == -1);
  hall_close(&h, 0);
}

static void await_waits(const crew *c) {
  for (int32_t i = 0; i < PROCESSES; i++) AWAIT(atomic_load(&c->notes[i]) == 1);
}

static void end_after_the_limit(crew *c) {
  for (int32_t i = 0; i < PROCESSES; i++) crew_pass_until_end(c, i, 0.25);
  crew_end(c);
}

/* All at a time, since they wait most of it. */
static void a_rank_that_stays_away_is_named(void **state) {
  (void)state;
  crew c[2][RANKS], whole[PROCESSES];
  test_clock_hold();
  all_of_process = 1;
  for (int32_t i = 0; i < PROCESSES; i++) {
    chosen = i * LOCALS;
    whole[i] = crew_of_pairs();
    crew_start_all(&whole[i], miss_a_rank);
  }
  all_of_process = 0;
  for (by_decision = 0; by_decision < 2; by_decision++)
    for (chosen = 0; chosen < RANKS; chosen++) {
      c[by_decision][chosen] = crew_of_pairs();
      crew_start_all(&c[by_decision][chosen], miss_a_rank);
    }
  for (int32_t i = 0; i < PROCESSES; i++) await_waits(&whole[i]);
  for (int32_t i = 0; i < 2 * RANKS; i++) await_waits(&c[i / RANKS][i % RANKS]);
  for (int32_t i = 0; i < PROCESSES; i++) end_after_the_limit(&whole[i]);
  for (int32_t i = 0; i < 2 * RANKS; i++) end_after_the_limit(&c[i / RANKS][i % RANKS]);
  test_clock_run();
}

/* The device of a rank is asked while the first rank waits for another process. */
static tn_status lost_device(void *context, tn_env *env, int32_t local) {
  hall *h = context;
  return h->first + local == chosen ? tn_failf(env, TN_EDEVICE, "the device is lost") : TN_OK;
}

static tn_status wait_for_a_failure(void *context, int32_t local) {
  hall *h = context;
  tn_env *env = &h->env[local];
  /* process 0 does not come */
  if (h->first == 0) AWAIT(tn_ranks_failure(h->ranks, env) != TN_OK);
  tn_status status = tn_ranks_all_gather(h->ranks, env, h->first + local, "a test", NULL, 0, NULL);
  return conclude(h, local, status);
}

static void lose_a_device(member *m) {
  hall h;
  hall_open(&h, m);
  const tn_rank_watch watch = {
      .timeout_s = CREW_LIMIT_S, .status = lost_device, .abort = count_abort, .context = &h};
  tn_ranks_watch(h.ranks, &watch);
  tn_ranks_run(h.ranks, &m->env, wait_for_a_failure, &h);
  expect_failure(&h, TN_ECOMM, "rank 3 (process 1, id ");
  expect_failure(&h, TN_ECOMM, "the device is lost");
  EXPECT(h.aborts > 0);
  hall_close(&h, 0);
}

static void the_device_of_a_waiting_process_is_asked(void **state) {
  (void)state;
  chosen = 3;
  crew c = crew_of_pairs();
  crew_run(&c, lose_a_device);
}

/* ---- the rank that the others wait for ---- */

enum { WAITS = 8 }; /* the note of rank 0; those of the others follow */

static int differs;             /* it has begun another collective */
static char failure_path[4096]; /* of the recorders' files */

/* Rank `chosen` does not begin collective 6, in which the others wait. */
static tn_status wait_in_a_collective(void *context, int32_t local) {
  hall *h = context;
  int32_t rank = h->first + local;
  tn_flight *flight = tn_ranks_flight(h->ranks, rank);
  tn_flight_call call = tn_flight_call_of("step", "all_reduce of bucket 3", 0, TN_F32, 1000),
                 other = tn_flight_call_of("step", "all_reduce of bucket 4", 0, TN_F32, 1000);
  tn_flight_step(flight, 41);
  for (int i = 0; i < 5; i++) tn_flight_begin(flight, &call);
  tn_flight_end(flight, 5);
  if (rank != chosen || differs) {
    tn_flight_begin(flight, rank == chosen ? &other : &call);
    tn_flight_begin_wait(flight, TN_FLIGHT_COLLECTIVE, "a collective");
  } else {
    tn_flight_begin_wait(flight, TN_FLIGHT_HOST, "its next batch");
  }
  crew_note(h->m->crew, WAITS + rank, 1);
  AWAIT(tn_ranks_failure(h->ranks, &h->env[local]) != TN_OK);
  return conclude(h, local, TN_ECOMM);
}

/* The communicator of process 1 is the first that gives up, when all ranks wait. */
static tn_status give_up_late(void *context, tn_env *env, int32_t local) {
  hall *h = context;
  bool late = h->m->place.process == 1 && local == 0;
  for (int32_t r = 0; r < RANKS; r++) late = late && atomic_load(&h->m->crew->notes[WAITS + r]) == 1;
  return late ? tn_failf(env, TN_ECOMM, "a collective has waited") : TN_OK;
}

static void expect_the_late_rank(hall *h) {
  char text[256];
  const tn_member *of = tn_link_member(h->m->link, chosen / LOCALS);
  if (differs) {
    expect_failure(h, TN_ECOMM, "a collective has waited; collective 6 of rank 0 (process 0, id ");
    expect_failure(h, TN_ECOMM, " is all_reduce of bucket 3, f32, 1000 elements, step 41, that of rank ");
    expect_failure(h, TN_ECOMM, " is all_reduce of bucket 4, f32, 1000 elements, step 41: all ranks must");
    return;
  }
  snprintf(text, sizeof text,
           "a collective has waited; rank %d (process %d, id %lld on host %s) has not begun collective 6 ("
           "all_reduce of bucket 3, f32, 1000 elements, step 41), in which ranks ",
           (int)chosen, (int)chosen / LOCALS, (long long)of->pid, of->host);
  expect_failure(h, TN_ECOMM, text);
  expect_failure(h, TN_ECOMM, " s for its next batch");
}

static void wait_for_a_late_rank(member *m) {
  hall h;
  hall_open(&h, m);
  const tn_rank_watch watch = {
      .timeout_s = CREW_LIMIT_S, .status = give_up_late, .abort = count_abort, .context = &h};
  tn_ranks_watch(h.ranks, &watch);
  EXPECT(tn_ranks_set_failure_folder(h.ranks, &m->env, failure_path) == TN_OK);
  tn_ranks_run(h.ranks, &m->env, wait_in_a_collective, &h);
  expect_the_late_rank(&h);
  expect_failure(&h, TN_ECOMM, "; the last collectives of each rank are in ");
  crew_note(m->crew, m->place.process, (int64_t)(tn_hash_text(TN_HASH_START, tn_error_text(&m->env)) >> 1));
  hall_close(&h, 0);
}

static crew start_late_rank(const char *parent, int32_t rank, int other) {
  chosen = rank;
  differs = other;
  snprintf(failure_path, sizeof failure_path, "%s/failure", parent);
  crew c = crew_of_pairs();
  crew_start_all(&c, wait_for_a_late_rank);
  return c;
}

/* The processes have printed the same line. */
static void end_late_rank(crew *c, const char *parent, int expected) {
  char path[1100];
  for (int32_t i = 0; i < PROCESSES; i++) crew_expect_end(c, i);
  assert_true(c->notes[0] != 0);
  assert_int_equal(c->notes[0], c->notes[1]);
  crew_end(c);
  for (int r = 0; r < RANKS; r++) {
    snprintf(path, sizeof path, "%s/failure/rank%d.jsonl", parent, r);
    assert_int_equal(access(path, R_OK) == 0, expected);
  }
}

/* Without the parent of the folder nothing is written. */
static void all_processes_name_the_rank_that_others_wait_for(void **state) {
  (void)state;
  enum { CASES = 5 };
  static const int32_t late[CASES] = {0, 1, 3, 2, 3}, other[CASES] = {0, 0, 0, 1, 1};
  folder f[CASES];
  crew c[CASES];
  char missing[600];
  test_clock_hold(); /* the time for the reports of the other process does not end */
  for (int i = 0; i < CASES; i++) {
    folder_make(&f[i]);
    c[i] = start_late_rank(f[i].path, late[i], other[i]);
  }
  snprintf(missing, sizeof missing, "%s/missing", f[0].path);
  crew without = start_late_rank(missing, 3, 0);
  for (int i = 0; i < CASES; i++) {
    end_late_rank(&c[i], f[i].path, 1);
    folder_remove(&f[i]);
  }
  end_late_rank(&without, missing, 0);
  test_clock_run();
}

/* ---- stops ---- */

static atomic_int stop;

/* Process 1 can be asked to stop. Handles that are made later know the request. */
static void watch_for_stop(member *m) {
  if (m->place.process == 1) m->record.stop = &stop;
}

static void take_stop(void *context) { atomic_fetch_add(&((hall *)context)->stops, 1); }

static tn_status wait_for_a_stop(void *context, int32_t local) {
  hall *h = context;
  int32_t rank = h->first + local, decision = 0;
  tn_status status = TN_OK;
  tn_ranks_begin_steps(h->ranks);
  TN_TRY(tn_ranks_all_gather(h->ranks, &h->env[local], rank, "a test", NULL, 0, NULL)); /* all have begun */
  atomic_store(&stop, 1);
  AWAIT((decision = rank == 0 ? atomic_load(&h->stops) : 0,
         status = tn_ranks_decide(h->ranks, &h->env[local], rank, &decision)) != TN_OK ||
        decision != 0);
  return conclude(h, local, status);
}

static void stop_all(member *m) {
  hall h;
  watch_for_stop(m);
  hall_open(&h, m);
  const tn_rank_watch watch = {.timeout_s = CREW_LIMIT_S, .stop = take_stop, .context = &h};
  tn_ranks_watch(h.ranks, &watch);
  EXPECT(tn_ranks_run(h.ranks, &m->env, wait_for_a_stop, &h) == TN_OK);
  EXPECT(h.stops == (m->place.process == 0));
  hall_close(&h, 1);
}

static void a_stop_of_a_process_reaches_rank_0(void **state) {
  (void)state;
  crew c = crew_of_pairs();
  crew_run(&c, stop_all);
}

/* The first rank waits in an exchange; the others come to none, and make no step. */
static tn_status wait_before_the_steps(void *context, int32_t local) {
  hall *h = context;
  int64_t mine = 0, all[RANKS];
  if (h->first + local == 0) {
    tn_status status = tn_ranks_all_gather(h->ranks, &h->env[local], 0, "a test", &mine, sizeof mine, all);
    return conclude(h, local, status);
  }
  AWAIT(tn_ranks_have_failed(h->ranks));
  return TN_OK;
}

static void stop_before_the_steps(member *m) {
  hall h;
  watch_for_stop(m);
  atomic_store(&stop, 1);
  hall_open(&h, m);
  const tn_rank_watch watch = {.timeout_s = CREW_LIMIT_S, .context = &h};
  tn_ranks_watch(h.ranks, &watch);
  tn_ranks_run(h.ranks, &m->env, wait_before_the_steps, &h);
  expect_failure(&h, TN_ESTOPPED, "stopped; nothing was saved");
  hall_close(&h, 0);
}

static void a_stop_before_the_first_step_ends_all(void **state) {
  (void)state;
  crew c = crew_of_pairs();
  crew_run(&c, stop_before_the_steps);
}

/* Process 0 compiles for ever, for instance, and never tells its text. */
static void stop_without_a_text(member *m) {
  hall h;
  char *told = NULL;
  watch_for_stop(m);
  atomic_store(&stop, 1);
  hall_open(&h, m);
  if (m->place.process == 1)
    EXPECT(tn_ranks_tell_text(h.ranks, &m->env, "a test", &told) == TN_ECOMM);
  else
    AWAIT(tn_ranks_have_failed(h.ranks));
  expect_failure(&h, TN_ESTOPPED, "stopped; nothing was saved");
  hall_close(&h, 0);
}

static void a_stop_ends_the_wait_for_a_text(void **state) {
  (void)state;
  crew c = crew_of_pairs();
  crew_run(&c, stop_without_a_text);
}

/* ---- a process that is killed ---- */

static tn_status exchange_for_ever(void *context, int32_t local) {
  hall *h = context;
  tn_status status = TN_OK;
  for (int64_t i = 0; status == TN_OK; i++) {
    status = exchange_once(h, local, (int)(i % 10));
    if (i == 10) crew_note(h->m->crew, h->first + local, 1);
  }
  return conclude(h, local, status);
}

static void run_until_killed(member *m) {
  hall h;
  char text[96];
  hall_open(&h, m);
  const tn_rank_watch watch = {.timeout_s = CREW_LIMIT_S, .abort = count_abort, .context = &h};
  tn_ranks_watch(h.ranks, &watch);
  tn_ranks_run(h.ranks, &m->env, exchange_for_ever, &h);
  snprintf(text, sizeof text, "rank %d (process %d, id ", (int)chosen, (int)chosen / LOCALS);
  expect_failure(&h, TN_ECOMM, text);
  expect_failure(&h, TN_ECOMM, "): its process has ended without a word; see its own messages");
  if (m->place.process == 0) expect_failure(&h, TN_ECOMM, "messages; ranks 2 and 3 did not answer, ranks 0");
  EXPECT(h.aborts > 0);
  hall_close(&h, 0);
}

static void a_killed_process_ends_the_ranks_of_the_others(void **state) {
  (void)state;
  for (chosen = 0; chosen < RANKS; chosen += LOCALS) {
    crew c = crew_of_pairs();
    crew_start_all(&c, run_until_killed);
    for (int r = 0; r < RANKS; r++) crew_await_note(&c, r, 1);
    kill(c.pids[chosen / LOCALS], SIGKILL);
    crew_expect_killed(&c, chosen / LOCALS, SIGKILL);
    crew_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_of_processes_exchange_data),
      cmocka_unit_test(a_text_that_is_too_long_is_refused),
      cmocka_unit_test(decisions_reach_all_ranks),
      cmocka_unit_test(the_failure_of_a_rank_arrives_at_all),
      cmocka_unit_test(a_later_set_of_ranks_knows_the_failure),
      cmocka_unit_test(a_rank_that_stays_away_is_named),
      cmocka_unit_test(the_device_of_a_waiting_process_is_asked),
      cmocka_unit_test(all_processes_name_the_rank_that_others_wait_for),
      cmocka_unit_test(a_stop_of_a_process_reaches_rank_0),
      cmocka_unit_test(a_stop_before_the_first_step_ends_all),
      cmocka_unit_test(a_stop_ends_the_wait_for_a_text),
      cmocka_unit_test(a_killed_process_ends_the_ranks_of_the_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
