/* core/distributed/ranks/failure.c: the failure of a run with several ranks. */
#include <stdio.h>
#include <time.h>

#include "core/base/system/system.h"
#include "core/base/text/text.h"
#include "core/distributed/ranks/rank_set.h"

/* A failed collective waits so long for news of a process that has died. */
enum { CAUSE_S = 2 };

/* Wakes every waiting rank, so that it sees the failure. */
void tn_ranks_wake(tn_rank_set *ranks) {
  pthread_cond_broadcast(&ranks->changed);
  for (int32_t r = 0; r < ranks->n; r++) {
    sem_post(&ranks->members[r].box.filled);
    sem_post(&ranks->members[r].box.vacant);
  }
}

static void ranks_stop_recorders(tn_rank_set *ranks) {
  for (int32_t r = 0; r < ranks->n; r++) tn_flight_stop(&ranks->members[r].flight);
}

bool tn_ranks_note(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status) {
  ranks_stop_recorders(ranks);
  pthread_mutex_lock(&ranks->lock);
  bool is_cause = ranks->status == TN_OK || (ranks->status == TN_ECOMM && status != TN_ECOMM);
  if (is_cause) {
    ranks->status = status;
    ranks->failed_rank = rank;
    tn_failf(&ranks->env, status, "%s", tn_error_text(env));
  }
  if (!atomic_load(&ranks->failed)) ranks->failed_s = tn_clock_s();
  atomic_store(&ranks->failed, true);
  tn_ranks_wake(ranks);
  tn_rank_watch watch = ranks->watch;
  pthread_mutex_unlock(&ranks->lock);
  if (watch.abort) watch.abort(watch.context);
  return is_cause;
}

/* A collective fails in all processes when one of them dies, and the link names that one. */
static void ranks_await_cause(tn_rank_set *ranks) {
  struct timespec until;
  int error = 0;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += CAUSE_S;
  pthread_mutex_lock(&ranks->lock);
  while (!atomic_load(&ranks->failed) && error == 0)
    error = pthread_cond_timedwait(&ranks->changed, &ranks->lock, &until);
  pthread_mutex_unlock(&ranks->lock);
}

void tn_ranks_fail_first(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status) {
  tn_wire_failure failure = {.rank = rank, .status = status};
  tn_failure_set_text(&failure, tn_error_text(env));
  bool is_cause = tn_ranks_note(ranks, rank, env, status);
  if (is_cause && ranks->link != NULL) tn_link_fail(ranks->link, &failure);
}

/* A failure that may be a consequence of another one is not sent to the other processes: it could arrive
 * there before its cause. */
void tn_ranks_fail(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status) {
  ranks_stop_recorders(ranks);
  if (ranks->link != NULL && status == TN_ECOMM) ranks_await_cause(ranks);
  tn_ranks_fail_first(ranks, rank, env, status);
}

void tn_ranks_add_name(const tn_rank_set *ranks, int32_t rank, tn_text *text) {
  tn_text_addf(text, "rank %d", (int)rank);
  if (ranks->link == NULL) return;
  int32_t process = tn_link_process_of(ranks->link, rank);
  const tn_member *member = tn_link_member(ranks->link, process);
  tn_text_addf(text, " (process %d, id %lld on host %s)", (int)process, (long long)member->pid, member->host);
}

/* The lock must be held. */
static tn_status ranks_report(tn_rank_set *ranks, tn_env *env, tn_status status) {
  const char *text = tn_error_text(&ranks->env), *more = ranks->findings != NULL ? ranks->findings : "";
  if (ranks->count == 1) return tn_failf(env, status, "%s", text);
  if (ranks->link == NULL) return tn_failf(env, status, "rank %d: %s%s", (int)ranks->failed_rank, text, more);
  int32_t process = tn_link_process_of(ranks->link, ranks->failed_rank);
  const tn_member *member = tn_link_member(ranks->link, process);
  return tn_failf(env, status, "rank %d (process %d, id %lld on host %s): %s%s", (int)ranks->failed_rank,
                  (int)process, (long long)member->pid, member->host, text, more);
}

tn_status tn_ranks_lost(tn_rank_set *ranks, tn_env *env) {
  pthread_mutex_lock(&ranks->lock);
  tn_status status = ranks_report(ranks, env, TN_ECOMM);
  pthread_mutex_unlock(&ranks->lock);
  return status;
}

bool tn_ranks_have_failed(const tn_rank_set *ranks) { return atomic_load(&ranks->failed); }

tn_status tn_ranks_failure(tn_rank_set *ranks, tn_env *env) {
  pthread_mutex_lock(&ranks->lock);
  tn_status status = ranks->status;
  if (status != TN_OK) {
    if (status == TN_EDEVICE && ranks->count > 1) status = TN_ECOMM;
    ranks_report(ranks, env, status);
  }
  pthread_mutex_unlock(&ranks->lock);
  return status;
}
