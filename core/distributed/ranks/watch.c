/* core/distributed/ranks/watch.c: looks every 10 ms for ranks that have failed, or that keep others waiting.
 */
#include "core/distributed/ranks/rank_set.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "core/base/system/system.h"

/* The time between two looks at the ranks. */
enum { WATCH_NS = 10000000 };

/* Threads that have not ended so long after a failure make the watch log it. */
enum { LOG_AFTER_S = 2 };

/* A process knows best which of its ranks is missing, so the others that wait for it report later by this
 * time, or half the limit: process 0 first, which sees all processes. */
static const double GRACE_S = 5;

/* After a failure the ranks have so long to end, and so long where the failure is one of them that hangs. One
 * that writes a checkpoint has the limit of the watch. */
static const double END_S = 15, HUNG_END_S = 5;

/* A longer time between two looks: the process was stopped, by a signal or a debugger. */
static const double AWAY_S = 1;

/* ---- the watch ---- */

/* The rank that `m` waits for; -1: it has come. The lock must be held. */
static int32_t watch_missing_rank(const tn_rank_set *ranks, const tn_rank_member *m) {
  int32_t awaited = atomic_load(&m->awaited);
  for (int32_t r = 0; awaited == AWAITS_ALL && r < ranks->n; r++)
    if (ranks->members[r].meetings < m->meetings) return ranks->members[r].rank;
  return awaited; /* AWAITS_ALL: it ends its wait */
}

/* TN_ECOMM if the member waits for another rank for longer than the limit. */
static tn_status watch_check_wait(tn_rank_set *ranks, tn_env *env, const tn_rank_member *m) {
  double since = atomic_load(&m->since_s), limit = ranks->watch.timeout_s;
  /* the others wait for the first member while that waits for another process */
  if (since == 0 || tn_clock_s() - fmax(since, atomic_load(&ranks->outside_s)) < limit) return TN_OK;
  pthread_mutex_lock(&ranks->lock);
  int32_t missing = watch_missing_rank(ranks, m);
  bool same_wait = atomic_load(&m->since_s) == since;
  pthread_mutex_unlock(&ranks->lock);
  if (missing < 0 || !same_wait) return TN_OK;
  return tn_failf(env, TN_ECOMM, "rank %d did not come to an exchange between the ranks within %g s (%s)",
                  (int)missing, limit, atomic_load(&m->what));
}

/* A failure changes it: the communicator is given up. */
static void watch_note_position(tn_rank_set *ranks, int32_t local) {
  tn_rank_member *m = &ranks->members[local];
  tn_rank_position position;
  const tn_rank_watch *watch = &ranks->watch;
  bool known = watch->position != NULL && watch->position(watch->context, local, &position);
  if (atomic_load(&ranks->failed)) return;
  m->has_position = known;
  if (!known) return;
  m->position = position;
  atomic_fetch_add(&m->flight.looks, 1);
  atomic_fetch_add(&m->flight.inside, position.inside);
}

static tn_own_look watch_look_at_own(const tn_rank_member *m) {
  tn_flight_wait wait = tn_flight_waits(&m->flight);
  tn_own_look look = {.wait = wait.kind,
                      .wait_since_s = wait.since_s,
                      .begun = tn_flight_begun(&m->flight),
                      .ended = atomic_load(&m->flight.ended),
                      .exchanges = atomic_load(&m->flight.exchanges),
                      .step = atomic_load(&m->flight.step)};
  if (!m->has_position) return look;
  look.device = m->position.inside ? TN_DEVICE_INSIDE : TN_DEVICE_OUTSIDE;
  look.inside = m->position.inside ? m->position.number : 0;
  return look;
}

static bool watch_has_ended(tn_rank_set *ranks, const tn_rank_member *m) {
  pthread_mutex_lock(&ranks->lock);
  bool ended = m->ended;
  pthread_mutex_unlock(&ranks->lock);
  return ended;
}

/* TN_ECOMM if the rank works for longer than it may. */
static tn_status watch_check_own(tn_rank_set *ranks, tn_env *env, tn_rank_member *m, double away_s) {
  const tn_rank_watch *watch = &ranks->watch;
  tn_own_look look = watch_look_at_own(m);
  double seconds = tn_own_time_look(&m->own, &look, tn_clock_s(), away_s),
         limit = tn_own_time_limit(&m->own, watch->hang_s, watch->timeout_s);
  if (seconds < limit || limit >= watch->timeout_s || !tn_flight_is_settled(&m->flight) ||
      watch_has_ended(ranks, m))
    return TN_OK;
  ranks->hangs = true;
  return tn_failf(
      env, TN_ECOMM,
      "its %s for %.3g s in step %lld, outside of collectives and without an end: it hangs, since "
      "the longest such time before was %.3g s ([distributed] hang)",
      look.wait == TN_FLIGHT_DEVICE ? "device works" : "thread computes, or launches work,", seconds,
      (long long)look.step, m->own.longest_s);
}

static void watch_check_hang(tn_rank_set *ranks, double away_s) {
  for (int32_t r = 0; r < ranks->n && !atomic_load(&ranks->failed) && ranks->watch.hang_s != 0; r++) {
    tn_error_record record;
    tn_env env;
    tn_error_record_init(&env, &record, &ranks->env);
    tn_rank_member *m = &ranks->members[r];
    tn_status status = watch_check_own(ranks, &env, m, away_s);
    if (status != TN_OK) tn_ranks_fail_first(ranks, m->rank, &env, status);
  }
}

static void watch_check_member(tn_rank_set *ranks, int32_t local) {
  const tn_rank_watch *watch = &ranks->watch;
  tn_error_record record;
  tn_env env;
  tn_error_record_init(&env, &record, &ranks->env);
  const tn_rank_member *m = &ranks->members[local];
  tn_status status = watch->status != NULL ? watch->status(watch->context, &env, local) : TN_OK;
  if (status == TN_OK) watch_note_position(ranks, local);
  if (status == TN_OK) status = watch_check_wait(ranks, &env, m);
  if (status != TN_OK) tn_ranks_fail(ranks, m->rank, &env, status);
}

/* The first rank whose thread runs; -1: all have ended. The lock must be held. */
static int32_t watch_running_rank(const tn_rank_set *ranks) {
  for (int32_t r = 0; r < ranks->n; r++)
    if (ranks->members[r].started && !ranks->members[r].ended) return r;
  return -1;
}

/* The lock must be held. */
static void watch_pause(tn_rank_set *ranks) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += WATCH_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&ranks->changed, &ranks->lock, &until);
}

/* The limit for another process, where `limit` is that for a rank of this one. */
static double watch_link_limit(const tn_rank_set *ranks, double limit) {
  double grace = limit / 2 < GRACE_S ? limit / 2 : GRACE_S;
  return ranks->first > 0 ? limit + 2 * grace : limit + grace;
}

/* TN_ECOMM if the first rank waits for another process for longer than the limit. */
static tn_status watch_check_link(tn_rank_set *ranks, tn_env *env, int32_t *process) {
  double since, limit = ranks->watch.timeout_s;
  const char *what;
  *process = ranks->link != NULL ? tn_link_awaited(ranks->link, &since, &what) : -1;
  if (*process < 0 || tn_clock_s() - since < watch_link_limit(ranks, limit)) return TN_OK;
  return tn_failf(env, TN_ECOMM, "did not come to an exchange between the processes within %g s (%s)", limit,
                  what);
}

static void watch_look_at_link(tn_rank_set *ranks) {
  tn_error_record record;
  tn_env env;
  int32_t process;
  tn_error_record_init(&env, &record, &ranks->env);
  tn_status status = watch_check_link(ranks, &env, &process);
  if (status != TN_OK) tn_ranks_fail(ranks, tn_link_member(ranks->link, process)->first_rank, &env, status);
}

/* Before the first step nothing can be lost, and a rank may wait for long: for others in the communicator, or
 * for one that reads its data. Later the process with rank 0 decides, between two steps. */
static void watch_take_stop(tn_rank_set *ranks) {
  tn_error_record record;
  tn_env env;
  if (ranks->link != NULL && ranks->first > 0) tn_link_stop(ranks->link);
  if (atomic_load(&ranks->begun) == ranks->n || atomic_load(&ranks->failed)) return;
  tn_error_record_init(&env, &record, &ranks->env);
  tn_ranks_fail_first(ranks, ranks->first, &env, tn_check_stop(&env));
}

static void watch_look(tn_rank_set *ranks) {
  if (tn_stop_asked(&ranks->env)) watch_take_stop(ranks);
  watch_look_at_link(ranks);
  for (int32_t r = 0; r < ranks->n && !atomic_load(&ranks->failed); r++) watch_check_member(ranks, r);
  double now = tn_clock_s(), away = ranks->looked_s > 0 ? now - ranks->looked_s : 0;
  ranks->looked_s = now;
  watch_check_hang(ranks, away > AWAY_S ? away : 0);
}

static bool watch_finds_save(const tn_rank_set *ranks) {
  return ranks->first == 0 && atomic_load(&ranks->members[0].flight.saves);
}

/* Seconds that threads have to end after a failure, or after a checkpoint that is written then. */
static double watch_limit(const tn_rank_set *ranks) {
  double limit = ranks->watch.timeout_s;
  return watch_finds_save(ranks) ? limit : fmin(limit, ranks->hangs ? HUNG_END_S : END_S);
}

/* Logs a failure while threads still run, since its return may take the whole limit. The lock must be held.
 */
static void watch_log_failure(tn_rank_set *ranks, int32_t running) {
  ranks->logged = true;
  tn_logf(&ranks->env, TN_LOG_WARN, "rank %d: %s; the thread of rank %d has %g s to end",
          (int)ranks->failed_rank, tn_error_text(&ranks->env), (int)ranks->members[running].rank,
          watch_limit(ranks));
}

/* Whether the time that the threads have after a failure is over. The lock must be held. */
static bool watch_gives_up(tn_rank_set *ranks, int32_t running) {
  if (!atomic_load(&ranks->failed)) return false;
  double now = tn_clock_s();
  bool saves = watch_finds_save(ranks);
  if (saves) ranks->saved_s = now;
  if (now - ranks->failed_s >= LOG_AFTER_S && !ranks->logged) watch_log_failure(ranks, running);
  return now - (saves ? ranks->failed_s : fmax(ranks->failed_s, ranks->saved_s)) >= watch_limit(ranks);
}

/* After the first failure. */
static void watch_examine(tn_rank_set *ranks, bool *examined) {
  if (*examined || !atomic_load(&ranks->failed)) return;
  *examined = true;
  tn_ranks_examine(ranks);
}

/* Returns when all threads have ended, or, after a failure, when the time for that is over. */
void tn_ranks_watch_until_end(tn_rank_set *ranks) {
  bool examined = false;
  pthread_mutex_lock(&ranks->lock);
  for (int32_t running; (running = watch_running_rank(ranks)) >= 0;) {
    if (watch_gives_up(ranks, running)) break;
    watch_pause(ranks);
    pthread_mutex_unlock(&ranks->lock);
    watch_look(ranks);
    watch_examine(ranks, &examined);
    pthread_mutex_lock(&ranks->lock);
  }
  pthread_mutex_unlock(&ranks->lock);
  watch_examine(ranks, &examined);
  pthread_mutex_lock(&ranks->lock);
  ranks->hung = watch_running_rank(ranks);
  if (ranks->hung >= 0)
    tn_failf(&ranks->env, ranks->status,
             "%s; the thread of rank %d has not ended %g s after that, and what the run uses is not freed",
             tn_error_text(&ranks->env), (int)ranks->members[ranks->hung].rank, watch_limit(ranks));
  pthread_mutex_unlock(&ranks->lock);
}

int32_t tn_ranks_hung(const tn_rank_set *ranks) { return ranks->hung; }
