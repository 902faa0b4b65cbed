/* core/train/distributed/ranks.c: ranks as threads of one process. Gatherings use a mutex and a condition;
 * decisions of rank 0 use a ring of semaphores for each other rank. The caller's thread runs no rank if there
 * are several: it watches them. */
#include "core/train/distributed/ranks.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/system.h"

/* The time between two looks at the ranks. */
enum { WATCH_NS = 10000000 };

/* Threads that have not ended so long after a failure make the watch log it. */
enum { LOG_AFTER_S = 2 };

/* Whom a rank waits for: every other rank, or the rank of this number. */
enum { AWAITS_ALL = -1 };

/* The greatest number of decisions that rank 0 may be ahead of another rank. */
enum { MAILBOX = 64 };

/* Decisions that rank 0 has sent to one other rank. */
typedef struct rank_mailbox {
  sem_t filled, vacant;
  int32_t decisions[MAILBOX];
  size_t sent, received; /* counts so far; each is written by one thread */
} rank_mailbox;

typedef struct rank_member {
  tn_rank_set *all;
  int32_t rank;
  const void *data; /* the rank's data in a gathering */
  int64_t meetings; /* at which it has arrived; under the lock */
  rank_mailbox box;
  pthread_t thread;
  bool started, ended; /* `ended`: under the lock */
  tn_status outcome;
  _Atomic(int32_t) awaited; /* AWAITS_ALL or a rank, while since_s is not 0 */
  _Atomic(double) since_s;  /* since when it waits; 0: it does not */
} rank_member;

struct tn_rank_set {
  tn_env env; /* memory, and the message of the failure */
  tn_error_record record;
  rank_member *members;
  int32_t n;

  pthread_mutex_t lock; /* protects the members below */
  pthread_cond_t changed;
  int32_t present; /* ranks that have arrived at the gathering */
  int64_t gatherings;
  tn_status status; /* of the failure that is reported */
  int32_t failed_rank;
  bool open;       /* all threads have started, or one could not be started */
  double failed_s; /* when a rank failed first */
  bool logged;
  int32_t hung; /* the first rank whose thread was left; -1: none */

  atomic_bool failed;
  tn_status (*body)(void *context, int32_t rank);
  void *context;
  tn_rank_watch watch;
};

/* ---- making ---- */

static void ranks_init_mailbox(rank_mailbox *box) {
  sem_init(&box->filled, 0, 0);
  sem_init(&box->vacant, 0, MAILBOX);
}

/* Its times are those of tn_clock_s. */
static void ranks_init_condition(pthread_cond_t *changed) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

tn_status tn_ranks_create(tn_env *env, int32_t n, tn_rank_set **out) {
  *out = NULL;
  tn_rank_set *ranks = tn_alloc(env, sizeof *ranks);
  if (ranks == NULL) return TN_ENOMEM;
  tn_error_record_init(&ranks->env, &ranks->record, env);
  ranks->members = tn_alloc(env, tn_size_mul((size_t)n, sizeof *ranks->members));
  if (ranks->members == NULL) {
    tn_release(env, ranks);
    return TN_ENOMEM;
  }
  ranks->n = n;
  ranks->hung = -1;
  ranks->watch.timeout_s = HUGE_VAL;
  pthread_mutex_init(&ranks->lock, NULL);
  ranks_init_condition(&ranks->changed);
  for (int32_t r = 0; r < n; r++) {
    ranks->members[r].all = ranks;
    ranks->members[r].rank = r;
    ranks_init_mailbox(&ranks->members[r].box);
  }
  *out = ranks;
  return TN_OK;
}

void tn_ranks_destroy(tn_rank_set *ranks) {
  if (ranks == NULL) return;
  for (int32_t r = 0; r < ranks->n; r++) {
    sem_destroy(&ranks->members[r].box.filled);
    sem_destroy(&ranks->members[r].box.vacant);
  }
  pthread_mutex_destroy(&ranks->lock);
  pthread_cond_destroy(&ranks->changed);
  tn_release(&ranks->env, ranks->members);
  /* the env lies in the block that is released */
  tn_error_record record = ranks->record;
  tn_env env = {ranks->env.api, &record};
  tn_release(&env, ranks);
}

int32_t tn_ranks_count(const tn_rank_set *ranks) { return ranks->n; }

/* ---- failure ---- */

void tn_ranks_watch(tn_rank_set *ranks, const tn_rank_watch *watch) { ranks->watch = *watch; }

/* Wakes every waiting rank, so that it sees the failure. */
static void ranks_wake_all(tn_rank_set *ranks) {
  pthread_cond_broadcast(&ranks->changed);
  for (int32_t r = 0; r < ranks->n; r++) {
    sem_post(&ranks->members[r].box.filled);
    sem_post(&ranks->members[r].box.vacant);
  }
}

void tn_ranks_fail(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status) {
  pthread_mutex_lock(&ranks->lock);
  if (ranks->status == TN_OK || (ranks->status == TN_ECOMM && status != TN_ECOMM)) {
    ranks->status = status;
    ranks->failed_rank = rank;
    tn_failf(&ranks->env, status, "%s", tn_error_text(env));
  }
  if (!atomic_load(&ranks->failed)) ranks->failed_s = tn_clock_s();
  atomic_store(&ranks->failed, true);
  ranks_wake_all(ranks);
  pthread_mutex_unlock(&ranks->lock);
  if (ranks->watch.abort) ranks->watch.abort(ranks->watch.context);
}

/* The lock must be held. */
static tn_status ranks_report(tn_rank_set *ranks, tn_env *env, tn_status status) {
  if (ranks->n == 1) return tn_failf(env, status, "%s", tn_error_text(&ranks->env));
  return tn_failf(env, status, "rank %d: %s", (int)ranks->failed_rank, tn_error_text(&ranks->env));
}

static tn_status ranks_lost(tn_rank_set *ranks, tn_env *env) {
  pthread_mutex_lock(&ranks->lock);
  tn_status status = ranks_report(ranks, env, TN_ECOMM);
  pthread_mutex_unlock(&ranks->lock);
  return status;
}

tn_status tn_ranks_failure(tn_rank_set *ranks, tn_env *env) {
  pthread_mutex_lock(&ranks->lock);
  tn_status status = ranks->status;
  if (status != TN_OK) {
    if (status == TN_EDEVICE && ranks->n > 1) status = TN_ECOMM;
    ranks_report(ranks, env, status);
  }
  pthread_mutex_unlock(&ranks->lock);
  return status;
}

/* ---- waits that the watch sees ---- */

static void ranks_begin_wait(rank_member *m, int32_t awaited) {
  atomic_store(&m->awaited, awaited);
  atomic_store(&m->since_s, tn_clock_s());
}

static void ranks_end_wait(rank_member *m) { atomic_store(&m->since_s, 0); }

/* ---- gatherings ---- */

/* Returns when all ranks have arrived. The lock must be held. */
static void ranks_meet(tn_rank_set *ranks, rank_member *m) {
  int64_t number = ranks->gatherings;
  m->meetings++;
  if (++ranks->present == ranks->n) {
    ranks->present = 0;
    ranks->gatherings++;
    pthread_cond_broadcast(&ranks->changed);
  }
  ranks_begin_wait(m, AWAITS_ALL);
  while (ranks->gatherings == number && !atomic_load(&ranks->failed))
    pthread_cond_wait(&ranks->changed, &ranks->lock);
  ranks_end_wait(m);
}

/* The first meeting publishes the data, the second one ends their use. */
tn_status tn_ranks_all_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const void *data, size_t bytes,
                              void *all) {
  pthread_mutex_lock(&ranks->lock);
  rank_member *m = &ranks->members[rank];
  m->data = data;
  ranks_meet(ranks, m);
  for (int32_t r = 0; r < ranks->n && bytes > 0 && !atomic_load(&ranks->failed); r++)
    memcpy((char *)all + (size_t)r * bytes, ranks->members[r].data, bytes);
  ranks_meet(ranks, m);
  pthread_mutex_unlock(&ranks->lock);
  return atomic_load(&ranks->failed) ? ranks_lost(ranks, env) : TN_OK;
}

tn_status tn_ranks_broadcast(tn_rank_set *ranks, tn_env *env, int32_t rank, void *data, size_t bytes) {
  pthread_mutex_lock(&ranks->lock);
  rank_member *m = &ranks->members[rank];
  m->data = data;
  ranks_meet(ranks, m);
  if (rank != 0 && bytes > 0 && !atomic_load(&ranks->failed)) memcpy(data, ranks->members[0].data, bytes);
  ranks_meet(ranks, m);
  pthread_mutex_unlock(&ranks->lock);
  return atomic_load(&ranks->failed) ? ranks_lost(ranks, env) : TN_OK;
}

/* ---- decisions ---- */

static void ranks_await(rank_member *m, sem_t *semaphore, int32_t rank) {
  if (sem_trywait(semaphore) == 0) return;
  ranks_begin_wait(m, rank);
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
  ranks_end_wait(m);
}

static void ranks_send_decision(tn_rank_set *ranks, int32_t to, int32_t decision) {
  rank_mailbox *box = &ranks->members[to].box;
  ranks_await(&ranks->members[0], &box->vacant, to);
  box->decisions[box->sent++ % MAILBOX] = decision;
  sem_post(&box->filled);
}

tn_status tn_ranks_decide(tn_rank_set *ranks, tn_env *env, int32_t rank, int32_t *decision) {
  if (rank == 0) {
    for (int32_t r = 1; r < ranks->n; r++) ranks_send_decision(ranks, r, *decision);
  } else {
    rank_mailbox *box = &ranks->members[rank].box;
    ranks_await(&ranks->members[rank], &box->filled, 0);
    /* a failure posts without a decision */
    if (!atomic_load(&ranks->failed)) *decision = box->decisions[box->received++ % MAILBOX];
    sem_post(&box->vacant);
  }
  return atomic_load(&ranks->failed) ? ranks_lost(ranks, env) : TN_OK;
}

/* ---- the watch ---- */

/* The rank that `m` waits for; -1: it has come. The lock must be held. */
static int32_t watch_missing_rank(const tn_rank_set *ranks, const rank_member *m) {
  int32_t awaited = atomic_load(&m->awaited);
  for (int32_t r = 0; awaited == AWAITS_ALL && r < ranks->n; r++)
    if (ranks->members[r].meetings < m->meetings) return r;
  return awaited; /* AWAITS_ALL: it ends its wait */
}

/* TN_ECOMM if the member waits for another rank for longer than the limit. */
static tn_status watch_check_wait(tn_rank_set *ranks, tn_env *env, const rank_member *m) {
  double since = atomic_load(&m->since_s), limit = ranks->watch.timeout_s;
  if (since == 0 || tn_clock_s() - since < limit) return TN_OK;
  pthread_mutex_lock(&ranks->lock);
  int32_t missing = watch_missing_rank(ranks, m);
  bool same_wait = atomic_load(&m->since_s) == since;
  pthread_mutex_unlock(&ranks->lock);
  if (missing < 0 || !same_wait) return TN_OK;
  return tn_failf(env, TN_ECOMM, "rank %d did not come to an exchange between the ranks within %g s",
                  (int)missing, limit);
}

static void watch_check_member(tn_rank_set *ranks, int32_t rank) {
  const tn_rank_watch *watch = &ranks->watch;
  tn_error_record record;
  tn_env env;
  tn_error_record_init(&env, &record, &ranks->env);
  tn_status status = watch->status != NULL ? watch->status(watch->context, &env, rank) : TN_OK;
  if (status == TN_OK) status = watch_check_wait(ranks, &env, &ranks->members[rank]);
  if (status != TN_OK) tn_ranks_fail(ranks, rank, &env, status);
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

static void watch_look(tn_rank_set *ranks) {
  for (int32_t r = 0; r < ranks->n && !atomic_load(&ranks->failed); r++) watch_check_member(ranks, r);
}

/* Logs a failure while threads still run, since its return may take the whole limit. The lock must be held.
 */
static void watch_log_failure(tn_rank_set *ranks, int32_t running) {
  ranks->logged = true;
  tn_logf(&ranks->env, TN_LOG_WARN, "rank %d: %s; the thread of rank %d has %g s to end",
          (int)ranks->failed_rank, tn_error_text(&ranks->env), (int)running, ranks->watch.timeout_s);
}

/* Whether the time that the threads have after a failure is over. The lock must be held. */
static bool watch_gives_up(tn_rank_set *ranks, int32_t running) {
  if (!atomic_load(&ranks->failed)) return false;
  double seconds = tn_clock_s() - ranks->failed_s;
  if (seconds >= LOG_AFTER_S && !ranks->logged) watch_log_failure(ranks, running);
  return seconds >= ranks->watch.timeout_s;
}

/* Returns when all threads have ended, or, after a failure, when the time for that is over. */
static void watch_until_end(tn_rank_set *ranks) {
  pthread_mutex_lock(&ranks->lock);
  for (int32_t running; (running = watch_running_rank(ranks)) >= 0;) {
    if (watch_gives_up(ranks, running)) break;
    watch_pause(ranks);
    pthread_mutex_unlock(&ranks->lock);
    watch_look(ranks);
    pthread_mutex_lock(&ranks->lock);
  }
  ranks->hung = watch_running_rank(ranks);
  if (ranks->hung >= 0)
    tn_failf(&ranks->env, ranks->status,
             "%s; the thread of rank %d has not ended %g s after that, and what the run uses is not freed",
             tn_error_text(&ranks->env), (int)ranks->hung, ranks->watch.timeout_s);
  pthread_mutex_unlock(&ranks->lock);
}

int32_t tn_ranks_hung(const tn_rank_set *ranks) { return ranks->hung; }

/* ---- threads ---- */

static void ranks_end_member(rank_member *m, tn_status outcome) {
  tn_rank_set *ranks = m->all;
  pthread_mutex_lock(&ranks->lock);
  m->outcome = outcome;
  m->ended = true;
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
}

static void *ranks_run_member(void *arg) {
  rank_member *m = arg;
  tn_rank_set *ranks = m->all;
  pthread_mutex_lock(&ranks->lock);
  while (!ranks->open) pthread_cond_wait(&ranks->changed, &ranks->lock);
  pthread_mutex_unlock(&ranks->lock);
  ranks_end_member(m, atomic_load(&ranks->failed) ? TN_ECOMM : ranks->body(ranks->context, m->rank));
  return NULL;
}

/* Signals are delivered to the application's threads: the threads of ranks block all of them. */
static tn_status ranks_start_threads(tn_rank_set *ranks, tn_env *env) {
  sigset_t all, before;
  int error = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int32_t r = 0; r < ranks->n && error == 0; r++) {
    error = pthread_create(&ranks->members[r].thread, NULL, ranks_run_member, &ranks->members[r]);
    ranks->members[r].started = error == 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) return TN_OK;
  ranks->failed_s = tn_clock_s();
  atomic_store(&ranks->failed, true);
  return tn_failf(env, TN_EUNAVAILABLE, "cannot start %d threads, one for each device: %s", (int)ranks->n,
                  strerror(error));
}

/* A thread that has not ended is left: it may run on, in memory that nothing frees. */
static void ranks_join_threads(tn_rank_set *ranks) {
  for (int32_t r = 0; r < ranks->n; r++) {
    rank_member *m = &ranks->members[r];
    if (!m->started) continue;
    pthread_mutex_lock(&ranks->lock);
    bool ended = m->ended;
    pthread_mutex_unlock(&ranks->lock);
    if (ended)
      pthread_join(m->thread, NULL);
    else
      pthread_detach(m->thread);
  }
}

static tn_status ranks_run_threads(tn_rank_set *ranks, tn_env *env) {
  tn_status status = ranks_start_threads(ranks, env);
  pthread_mutex_lock(&ranks->lock);
  ranks->open = true;
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
  watch_until_end(ranks);
  ranks_join_threads(ranks);
  if (status != TN_OK) return status;
  return ranks->hung == 0 ? TN_ECOMM : ranks->members[0].outcome;
}

tn_status tn_ranks_run(tn_rank_set *ranks, tn_env *env, tn_status (*body)(void *context, int32_t rank),
                       void *context) {
  ranks->body = body;
  ranks->context = context;
  return ranks->n == 1 ? body(context, 0) : ranks_run_threads(ranks, env);
}
