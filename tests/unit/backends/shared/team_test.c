/* tests/unit/backends/shared/team_test.c: the team runs every chunk once, for any caller and any number of
 * loops. */
#include "tests/unit/backends/cpu/rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backends/shared/team.h"
#include "tests/support/await.h"

enum { MOST_CHUNKS = 1000 };

static tn_status quiet_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)handle, (void)option, (void)format;
  return code;
}
static void *zeroed(const void *handle, size_t bytes) {
  (void)handle;
  return calloc(1, bytes);
}
static void release(const void *handle, void *block) {
  (void)handle;
  free(block);
}
static const tn_api table = {
    .struct_size = sizeof table, .fail = quiet_fail, .alloc = zeroed, .free = release};

static tn_team *team_of(int32_t threads) {
  tn_env env = {&table, NULL};
  tn_team *team = NULL;
  assert_int_equal(tn_team_create(&env, "cpu", threads, &(tn_ints){0, NULL}, &team), TN_OK);
  return team;
}

/* Plain integers: a chunk that runs twice, or a loop that returns early, is a race that the thread sanitizer
 * reports. */
typedef struct tally {
  int32_t count[MOST_CHUNKS];
} tally;

static void count_chunk(void *arg, int64_t chunk) { ((tally *)arg)->count[chunk]++; }

static void run_and_check(tn_team *team, int64_t chunks) {
  tally t = {{0}};
  tn_team_run(team, chunks, count_chunk, &t);
  for (int64_t i = 0; i < MOST_CHUNKS; i++) assert_int_equal(t.count[i], i < chunks ? 1 : 0);
}

static void every_chunk_runs_once(void **state) {
  (void)state;
  for (int32_t threads = 1; threads <= 4; threads++) {
    tn_team *team = team_of(threads);
    for (int64_t chunks = 0; chunks < 40; chunks++) run_and_check(team, chunks);
    run_and_check(team, MOST_CHUNKS);
    tn_team_destroy(team);
  }
}

static void loops_follow_each_other_without_mixing(void **state) {
  (void)state;
  tn_team *team = team_of(4);
  for (int32_t i = 0; i < 5000; i++) run_and_check(team, 2 + i % 7);
  tn_team_destroy(team);
}

/* Each of two chunks waits for the other, which requires two running threads. */
static void meet(void *arg, int64_t chunk) {
  atomic_int *arrived = arg;
  (void)chunk;
  atomic_fetch_add(arrived, 1);
  AWAIT(atomic_load(arrived) >= 2);
}

/* The two threads of a team, by the numbers that the system gives them. */
typedef struct pair {
  atomic_int arrived;
  pid_t caller, worker;
  atomic_bool caller_waits;
} pair;

static void meet_worker(void *arg, int64_t chunk) {
  pair *p = arg;
  meet(&p->arrived, chunk);
  if (gettid() != p->caller) p->worker = gettid();
}

static void threads_that_have_gone_to_sleep_wake_up(void **state) {
  (void)state;
  tn_team *team = team_of(2);
  for (int32_t i = 0; i < 10; i++) {
    pair p = {.caller = gettid()};
    tn_team_run(team, 2, meet_worker, &p);
    assert_int_equal(atomic_load(&p.arrived), 2);
    AWAIT(await_state_of(p.worker) == 'S');
  }
  tn_team_destroy(team);
}

/* The host binds the calling thread, so the team does not. */
typedef struct places {
  pthread_t caller;
  atomic_int arrived;
  cpu_set_t of_worker;
} places;

static void meet_and_look(void *arg, int64_t chunk) {
  places *p = arg;
  meet(&p->arrived, chunk);
  if (!pthread_equal(pthread_self(), p->caller))
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof p->of_worker, &p->of_worker), 0);
}

static void a_worker_is_bound_to_its_processor(void **state) {
  (void)state;
  tn_env env = {&table, NULL};
  tn_team *team = NULL;
  places p = {.caller = pthread_self()};
  cpu_set_t all, after;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  int64_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET((size_t)last, &all)) last--;
  const int64_t processors[] = {0, last};
  assert_int_equal(tn_team_create(&env, "cpu", 2, &(tn_ints){2, processors}, &team), TN_OK);
  tn_team_run(team, 2, meet_and_look, &p);
  assert_int_equal(CPU_COUNT(&p.of_worker), 1);
  assert_true(CPU_ISSET((size_t)last, &p.of_worker));
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_true(CPU_EQUAL(&all, &after));
  tn_team_destroy(team);
}

static void a_processor_that_is_not_there_is_a_failure(void **state) {
  (void)state;
  tn_env env = {&table, NULL};
  tn_team *team = NULL;
  const int64_t processors[] = {0, CPU_SETSIZE};
  assert_int_equal(tn_team_create(&env, "cpu", 2, &(tn_ints){2, processors}, &team), TN_EUNAVAILABLE);
  assert_null(team);
}

typedef struct nest {
  tn_team *team;
  tally inner[8];
} nest;

static void run_inner(void *arg, int64_t chunk) {
  nest *n = arg;
  tn_team_run(n->team, 30, count_chunk, &n->inner[chunk]);
}

static void a_loop_inside_a_loop_runs_inline(void **state) {
  (void)state;
  static nest n;
  n.team = team_of(3);
  tn_team_run(n.team, 8, run_inner, &n);
  for (int32_t i = 0; i < 8; i++)
    for (int32_t j = 0; j < 30; j++) assert_int_equal(n.inner[i].count[j], 1);
  tn_team_destroy(n.team);
}

static void *call_often(void *team) {
  for (int32_t i = 0; i < 500; i++) {
    tally t = {{0}};
    tn_team_run(team, 20, count_chunk, &t);
    for (int32_t j = 0; j < 20; j++)
      if (t.count[j] != 1) return team;
  }
  return NULL;
}

static void several_threads_may_call_at_once(void **state) {
  (void)state;
  pthread_t callers[3];
  tn_team *team = team_of(3);
  for (int32_t i = 0; i < 3; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_often, team), 0);
  for (int32_t i = 0; i < 3; i++) {
    void *failed = NULL;
    pthread_join(callers[i], &failed);
    assert_null(failed);
  }
  tn_team_destroy(team);
}

static void preemption_makes_waits_short_and_calm_makes_them_long_again(void **state) {
  (void)state;
  int32_t calm = 0, rounds = 0;
  while (tn_team_next_spins(calm, false) != calm) calm = tn_team_next_spins(calm, false);
  int32_t least = tn_team_next_spins(calm, true);
  assert_in_range(least, 1, calm / 4);
  assert_int_equal(tn_team_next_spins(least, true), least);
  for (int32_t spins = least; spins < calm; rounds++) {
    int32_t next = tn_team_next_spins(spins, false);
    assert_in_range(next, spins + 1, calm);
    spins = next;
  }
  assert_true(rounds > 20); /* a single calm moment does not undo it */
}

/* The worker ends its chunk when the caller sleeps, and must wake it. */
static void meet_and_end_last(void *arg, int64_t chunk) {
  pair *p = arg;
  meet_worker(p, chunk);
  if (gettid() == p->caller)
    atomic_store(&p->caller_waits, true);
  else
    AWAIT(atomic_load(&p->caller_waits) && await_state_of(p->caller) == 'S');
}

static void a_caller_that_sleeps_is_woken_by_the_last_chunk(void **state) {
  (void)state;
  tn_team *team = team_of(2);
  for (int32_t i = 0; i < 10; i++) {
    pair p = {.caller = gettid()};
    tn_team_run(team, 2, meet_and_end_last, &p);
    assert_int_equal(atomic_load(&p.arrived), 2);
  }
  tn_team_destroy(team);
}

static void teams_come_and_go(void **state) {
  (void)state;
  for (int32_t i = 0; i < 50; i++) {
    tn_team *team = team_of(1 + i % 4);
    if (i % 2) run_and_check(team, 5);
    tn_team_destroy(team);
  }
  tn_team_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_chunk_runs_once),
      cmocka_unit_test(loops_follow_each_other_without_mixing),
      cmocka_unit_test(a_worker_is_bound_to_its_processor),
      cmocka_unit_test(a_processor_that_is_not_there_is_a_failure),
      cmocka_unit_test(threads_that_have_gone_to_sleep_wake_up),
      cmocka_unit_test(a_loop_inside_a_loop_runs_inline),
      cmocka_unit_test(several_threads_may_call_at_once),
      cmocka_unit_test(preemption_makes_waits_short_and_calm_makes_them_long_again),
      cmocka_unit_test(a_caller_that_sleeps_is_woken_by_the_last_chunk),
      cmocka_unit_test(teams_come_and_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
