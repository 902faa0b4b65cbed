/* core/distributed/ranks/ranks.c: the ranks of this process, as threads, started and ended. The caller's
 * thread runs no rank if there are several: it watches them. */
#include "core/distributed/ranks/rank_set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/system/system.h"

/* ---- making ---- */

static void ranks_init_mailbox(tn_rank_mailbox *box) {
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

/* Counts a call by the thread of the link: +1 when it begins, -1 when it ends. tn_ranks_run returns when none
 * is in progress. */
static void ranks_count_call(tn_rank_set *ranks, int32_t calls) {
  pthread_mutex_lock(&ranks->lock);
  ranks->calling += calls;
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
}

/* A failure of a rank of another process, or of a process. */
static void ranks_take_failure(void *context, const tn_wire_failure *failure) {
  tn_rank_set *ranks = context;
  tn_error_record record;
  tn_env env;
  tn_error_record_init(&env, &record, &ranks->env);
  tn_status status = tn_failf(&env, (tn_status)failure->status, "%s", failure->text);
  ranks_count_call(ranks, 1);
  tn_ranks_note(ranks, failure->rank, &env, status);
  ranks_count_call(ranks, -1);
}

static void ranks_take_stop(void *context) {
  tn_rank_set *ranks = context;
  ranks_count_call(ranks, 1);
  pthread_mutex_lock(&ranks->lock);
  tn_rank_watch watch = ranks->watch;
  ranks->stop_asked = true;
  pthread_mutex_unlock(&ranks->lock);
  if (watch.stop != NULL) watch.stop(watch.context);
  ranks_count_call(ranks, -1);
}

static tn_status ranks_open_recorders(tn_rank_set *ranks, tn_env *env) {
  for (int32_t i = 0; i < ranks->n && ranks->count > 1; i++)
    TN_TRY(tn_flight_init(env, &ranks->members[i].flight));
  return TN_OK;
}

static void ranks_number(tn_rank_set *ranks) {
  ranks->first = ranks->link != NULL ? tn_link_first_rank(ranks->link) : 0;
  ranks->count = ranks->link != NULL ? tn_link_ranks(ranks->link) : ranks->n;
  for (int32_t i = 0; i < ranks->n; i++) {
    ranks->members[i].all = ranks;
    ranks->members[i].rank = ranks->first + i;
    ranks_init_mailbox(&ranks->members[i].box);
  }
}

tn_status tn_ranks_create(tn_env *env, int32_t n, tn_link *link, tn_rank_set **out) {
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
  ranks->link = link;
  ranks_number(ranks);
  const tn_link_listener listener = {
      .failed = ranks_take_failure, .stopped = ranks_take_stop, .context = ranks};
  if (ranks_open_recorders(ranks, env) != TN_OK) {
    ranks->link = NULL; /* it does not know of this set yet */
    tn_ranks_destroy(ranks);
    return TN_ENOMEM;
  }
  if (link != NULL) tn_link_listen(link, &listener);
  *out = ranks;
  return TN_OK;
}

void tn_ranks_destroy(tn_rank_set *ranks) {
  if (ranks == NULL) return;
  if (ranks->link != NULL) tn_link_listen(ranks->link, NULL);
  for (int32_t r = 0; r < ranks->n; r++) {
    sem_destroy(&ranks->members[r].box.filled);
    sem_destroy(&ranks->members[r].box.vacant);
  }
  pthread_mutex_destroy(&ranks->lock);
  pthread_cond_destroy(&ranks->changed);
  for (int32_t r = 0; r < ranks->n; r++) tn_flight_free(&ranks->env, &ranks->members[r].flight);
  tn_release(&ranks->env, ranks->failures);
  tn_release(&ranks->env, ranks->findings);
  tn_release(&ranks->env, ranks->members);
  /* the env lies in the block that is released */
  tn_error_record record = ranks->record;
  tn_env env = {ranks->env.api, &record};
  tn_release(&env, ranks);
}

int32_t tn_ranks_count(const tn_rank_set *ranks) { return ranks->count; }

tn_flight *tn_ranks_flight(tn_rank_set *ranks, int32_t rank) {
  return ranks->count > 1 ? &ranks->members[rank - ranks->first].flight : NULL;
}

tn_status tn_ranks_set_failure_folder(tn_rank_set *ranks, tn_env *env, const char *folder) {
  char *copy = *folder != '\0' ? tn_strdup(env, folder) : NULL;
  if (*folder != '\0' && copy == NULL) return TN_ENOMEM;
  pthread_mutex_lock(&ranks->lock);
  char *before = ranks->failures;
  ranks->failures = copy;
  pthread_mutex_unlock(&ranks->lock);
  tn_release(env, before);
  return TN_OK;
}

void tn_ranks_watch(tn_rank_set *ranks, const tn_rank_watch *watch) {
  pthread_mutex_lock(&ranks->lock);
  ranks->watch = *watch;
  bool stop = ranks->stop_asked && watch->stop != NULL;
  pthread_mutex_unlock(&ranks->lock);
  if (stop) watch->stop(watch->context);
}

void tn_ranks_begin_steps(tn_rank_set *ranks) {
  if (atomic_fetch_add(&ranks->begun, 1) + 1 == ranks->n && ranks->link != NULL)
    tn_link_begin_steps(ranks->link);
}

/* ---- threads ---- */

static void ranks_end_member(tn_rank_member *m, tn_status outcome) {
  tn_rank_set *ranks = m->all;
  pthread_mutex_lock(&ranks->lock);
  m->outcome = outcome;
  m->ended = true;
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
}

static void *ranks_run_member(void *arg) {
  tn_rank_member *m = arg;
  tn_rank_set *ranks = m->all;
  TN_THREAD_STATE;
  pthread_mutex_lock(&ranks->lock);
  while (!ranks->open) pthread_cond_wait(&ranks->changed, &ranks->lock);
  pthread_mutex_unlock(&ranks->lock);
  ranks_end_member(
      m, atomic_load(&ranks->failed) ? TN_ECOMM : ranks->body(ranks->context, (int32_t)(m - ranks->members)));
  return NULL;
}

static tn_status ranks_start_threads(tn_rank_set *ranks, tn_env *env) {
  int error = 0;
  for (int32_t r = 0; r < ranks->n && error == 0; r++) {
    error = tn_thread_start(&ranks->members[r].thread, ranks_run_member, &ranks->members[r]);
    ranks->members[r].started = error == 0;
  }
  if (error == 0) return TN_OK;
  ranks->failed_s = tn_clock_s();
  atomic_store(&ranks->failed, true);
  return tn_failf(env, TN_EUNAVAILABLE, "cannot start %d threads, one for each device: %s", (int)ranks->n,
                  strerror(error));
}

/* A thread that has not ended is left: it may run on, in memory that nothing frees. */
static void ranks_join_threads(tn_rank_set *ranks) {
  for (int32_t r = 0; r < ranks->n; r++) {
    tn_rank_member *m = &ranks->members[r];
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

/* The functions of the watch are not called any more, since the caller frees what they use. */
static void ranks_end_watch(tn_rank_set *ranks) {
  pthread_mutex_lock(&ranks->lock);
  ranks->watch.abort = NULL;
  ranks->watch.stop = NULL;
  while (ranks->calling > 0) pthread_cond_wait(&ranks->changed, &ranks->lock);
  pthread_mutex_unlock(&ranks->lock);
}

static tn_status ranks_run_threads(tn_rank_set *ranks, tn_env *env) {
  tn_status status = ranks_start_threads(ranks, env);
  pthread_mutex_lock(&ranks->lock);
  ranks->open = true;
  pthread_cond_broadcast(&ranks->changed);
  pthread_mutex_unlock(&ranks->lock);
  tn_ranks_watch_until_end(ranks);
  ranks_join_threads(ranks);
  ranks_end_watch(ranks);
  if (status != TN_OK) return status;
  return ranks->hung == 0 ? TN_ECOMM : ranks->members[0].outcome;
}

tn_status tn_ranks_run(tn_rank_set *ranks, tn_env *env, tn_status (*body)(void *context, int32_t local),
                       void *context) {
  ranks->body = body;
  ranks->context = context;
  return ranks->n == 1 && ranks->link == NULL ? body(context, 0) : ranks_run_threads(ranks, env);
}
