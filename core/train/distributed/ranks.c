/* core/train/distributed/ranks.c: ranks as threads of one process. Gatherings use a mutex and a condition;
 * decisions of rank 0 use a ring of semaphores for each other rank. */
#include "core/train/distributed/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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
  rank_mailbox box;
  pthread_t thread;
  bool started;
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
  bool open; /* all threads have started, or one could not be started */

  atomic_bool failed;
  tn_status (*body)(void *context, int32_t rank);
  void *context;
  void (*abort)(void *context);
  void *abort_context;
};

/* ---- making ---- */

static void ranks_init_mailbox(rank_mailbox *box) {
  sem_init(&box->filled, 0, 0);
  sem_init(&box->vacant, 0, MAILBOX);
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
  pthread_mutex_init(&ranks->lock, NULL);
  pthread_cond_init(&ranks->changed, NULL);
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

void tn_ranks_on_failure(tn_rank_set *ranks, void (*abort)(void *context), void *context) {
  ranks->abort = abort;
  ranks->abort_context = context;
}

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
  atomic_store(&ranks->failed, true);
  ranks_wake_all(ranks);
  pthread_mutex_unlock(&ranks->lock);
  if (ranks->abort) ranks->abort(ranks->abort_context);
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

/* ---- gatherings ---- */

/* Returns when all ranks have arrived. The lock must be held. */
static void ranks_meet(tn_rank_set *ranks) {
  int64_t number = ranks->gatherings;
  if (++ranks->present == ranks->n) {
    ranks->present = 0;
    ranks->gatherings++;
    pthread_cond_broadcast(&ranks->changed);
  }
  while (ranks->gatherings == number && !atomic_load(&ranks->failed))
    pthread_cond_wait(&ranks->changed, &ranks->lock);
}

/* The first meeting publishes the data, the second one ends their use. */
tn_status tn_ranks_all_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const void *data, size_t bytes,
                              void *all) {
  pthread_mutex_lock(&ranks->lock);
  ranks->members[rank].data = data;
  ranks_meet(ranks);
  for (int32_t r = 0; r < ranks->n && bytes > 0 && !atomic_load(&ranks->failed); r++)
    memcpy((char *)all + (size_t)r * bytes, ranks->members[r].data, bytes);
  ranks_meet(ranks);
  pthread_mutex_unlock(&ranks->lock);
  return atomic_load(&ranks->failed) ? ranks_lost(ranks, env) : TN_OK;
}

tn_status tn_ranks_broadcast(tn_rank_set *ranks, tn_env *env, int32_t rank, void *data, size_t bytes) {
  pthread_mutex_lock(&ranks->lock);
  ranks->members[rank].data = data;
  ranks_meet(ranks);
  if (rank != 0 && bytes > 0 && !atomic_load(&ranks->failed)) memcpy(data, ranks->members[0].data, bytes);
  ranks_meet(ranks);
  pthread_mutex_unlock(&ranks->lock);
  return atomic_load(&ranks->failed) ? ranks_lost(ranks, env) : TN_OK;
}

/* ---- decisions ---- */

static void ranks_await(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

static void ranks_send_decision(rank_mailbox *box, int32_t decision) {
  ranks_await(&box->vacant);
  box->decisions[box->sent++ % MAILBOX] = decision;
  sem_post(&box->filled);
}

tn_status tn_ranks_decide(tn_rank_set *ranks, tn_env *env, int32_t rank, int32_t *decision) {
  if (rank == 0) {
    for (int32_t r = 1; r < ranks->n; r++) ranks_send_decision(&ranks->members[r].box, *decision);
  } else {
    rank_mailbox *box = &ranks->members[rank].box;
    ranks_await(&box->filled);
    /* a failure posts without a decision */
    if (!atomic_load(&ranks->failed)) *decision = box->decisions[box->received++ % MAILBOX];
    sem_post(&box->vacant);
  }
  return atomic_load(&ranks->failed) ? ranks_lost(ranks, env) : TN_OK;
}

/* ---- threads ---- */

static void *ranks_run_member(void *arg) {
  rank_member *m = arg;
  tn_rank_set *ranks = m->all;
  pthread_mutex_lock(&ranks->lock);
  while (!ranks->open) pthread_cond_wait(&ranks->changed, &ranks->lock);
  pthread_mutex_unlock(&ranks->lock);
  if (!atomic_load(&ranks->failed)) ranks->body(ranks->context, m->rank);
  return NULL;
}

/* Signals are delivered to the application's threads: the threads of ranks block all of them. */
static tn_status ranks_start_threads(tn_rank_set *ranks, tn_env *env) {
  sigset_t all, before;
  int error = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int32_t r = 1; r < ranks->n && error == 0; r++) {
    error = pthread_create(&ranks->members[r].thread, NULL, ranks_run_member, &ranks->members[r]);
    ranks->members[r].started = error == 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) return TN_OK;
  atomic_store(&ranks->failed, true);
  return tn_failf(env, TN_EUNAVAILABLE, "cannot start %d threads, one for each device beside the first: %s",
                  (int)ranks->n - 1, strerror(error));
}

tn_status tn_ranks_run(tn_rank_set *ranks, tn_env *env, tn_status (*body)(void *context, int32_t rank),
                       void *context) {
  ranks->body = body;
  ranks->context = context;
  tn_status status = ranks_start_threads(ranks, env);
  pthread_mutex_lock(&ranks->lock);
  ranks->open = true;
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
  if (status == TN_OK) status = body(context, 0);
  for (int32_t r = 1; r < ranks->n; r++)
    if (ranks->members[r].started) pthread_join(ranks->members[r].thread, NULL);
  return status;
}
