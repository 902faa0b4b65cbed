/* backends/nccl/rank.c: see rank.h. */
#include "backends/nccl/rank.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

tn_status tn_nccl_enter(tn_env *env, const tn_nccl_rank *rank) {
  return TN_NCCL_CU(env, &rank->driver, cuCtxSetCurrent, rank->context);
}

/* ---- waiting ---- */

enum { PAUSE_SHORT_NS = 20000, PAUSE_LONG_NS = 1000000 };

bool tn_nccl_rank_begin(tn_nccl_rank *rank) {
  pthread_mutex_lock(&rank->lock);
  if (atomic_load(&rank->given_up)) {
    pthread_mutex_unlock(&rank->lock);
    return false;
  }
  atomic_store(&rank->entered_s, tn_monotonic_s());
  return true;
}

void tn_nccl_rank_end(tn_nccl_rank *rank) {
  atomic_store(&rank->entered_s, 0);
  pthread_mutex_unlock(&rank->lock);
}

double tn_nccl_rank_busy_s(const tn_nccl_rank *rank) {
  double entered_s = atomic_load(&rank->entered_s);
  return entered_s > 0 ? tn_monotonic_s() - entered_s : 0;
}

static ncclResult_t nccl_rank_state(tn_nccl_rank *rank) {
  ncclResult_t state = ncclInProgress;
  if (!tn_nccl_rank_begin(rank)) return state;
  ncclResult_t code = rank->library.ncclCommGetAsyncError(rank->comm, &state);
  tn_nccl_rank_end(rank);
  return code != ncclSuccess ? code : state;
}

/* The status tells the end of an operation, but leaves its job, which NCCL has in the memory of this thread
 * up to 2.25. */
static ncclResult_t nccl_rank_complete(tn_nccl_rank *rank) {
  const tn_nccl_library *l = &rank->library;
  int ranks = 0;
  if (!tn_nccl_rank_begin(rank)) return ncclInProgress;
  ncclResult_t code = ncclSuccess;
  if (l->version >= TN_NCCL_JOBS_OF_COMMUNICATORS)
    code = l->ncclCommCount(rank->comm, &ranks);
  else if ((code = l->ncclGroupStart()) == ncclSuccess)
    code = l->ncclGroupEnd();
  tn_nccl_rank_end(rank);
  return code;
}

static bool nccl_run_has_failed(const tn_nccl_rank *rank) {
  return rank->place->has_failed != NULL && rank->place->has_failed(rank->place);
}

ncclResult_t tn_nccl_rank_await(tn_nccl_rank *rank, ncclResult_t code, double timeout_s) {
  struct timespec pause = {0, PAUSE_SHORT_NS};
  double until = tn_monotonic_s() + timeout_s;
  if (code != ncclSuccess && code != ncclInProgress) return code;
  while ((code = nccl_rank_state(rank)) == ncclInProgress) {
    if (atomic_load(&rank->given_up) || atomic_load(&rank->group->failed) || nccl_run_has_failed(rank) ||
        tn_monotonic_s() > until)
      return code;
    nanosleep(&pause, NULL);
    if (2 * pause.tv_nsec <= PAUSE_LONG_NS) pause.tv_nsec *= 2;
  }
  return code == ncclSuccess ? nccl_rank_complete(rank) : code;
}

/* ---- failures ---- */

static tn_status nccl_rank_code_of(ncclResult_t code) {
  switch (code) {
  case ncclUnhandledCudaError: return TN_EDEVICE;
  case ncclInvalidArgument:
  case ncclInvalidUsage: return TN_EINVAL;
  default: return TN_ECOMM;
  }
}

tn_status tn_nccl_check(tn_env *env, const tn_nccl_rank *rank, ncclResult_t code, const char *call) {
  if (code == ncclSuccess) return TN_OK;
  const char *last = rank->library.ncclGetLastError(rank->comm);
  size_t n = last != NULL ? strcspn(last, "\n") : 0;
  return tn_fail(env, nccl_rank_code_of(code), NULL,
                 "nccl: rank %d on device %d: %s: %s%s%.*s%s; the environment variable NCCL_DEBUG=INFO makes "
                 "NCCL %s print more",
                 (int)rank->rank, (int)rank->device->index, call, rank->library.ncclGetErrorString(code),
                 n > 0 ? " (" : "", (int)n, n > 0 ? last : "", n > 0 ? ")" : "", rank->library.version_text);
}

/* ---- the end ---- */

enum { LEAVE_S = 1 }; /* that a call under way has */

static void nccl_rank_let_others_leave(tn_nccl_rank *rank) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LEAVE_S;
  if (pthread_mutex_timedlock(&rank->lock, &until) == 0) pthread_mutex_unlock(&rank->lock);
}

static void *nccl_rank_finish(void *arg) {
  tn_nccl_rank *rank = arg;
  (void)rank->driver.cuCtxSetCurrent(rank->context);
  nccl_rank_let_others_leave(rank);
  (void)(rank->destroys ? rank->library.ncclCommDestroy(rank->comm)
                        : rank->library.ncclCommAbort(rank->comm));
  atomic_store(&rank->ended, true);
  return NULL;
}

/* Signals are delivered to the application's threads. */
static bool nccl_rank_start_ender(tn_nccl_rank *rank) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&rank->ender, NULL, nccl_rank_finish, rank);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error == 0;
}

static bool nccl_rank_must_end_here(const tn_nccl_rank *rank) {
  return !rank->opened && rank->library.version < TN_NCCL_JOBS_OF_COMMUNICATORS;
}

static void nccl_rank_finish_once(tn_nccl_rank *rank, bool destroys) {
  pthread_mutex_lock(&rank->end_lock);
  bool first = !atomic_exchange(&rank->given_up, true) && rank->comm != NULL;
  if (first) {
    rank->destroys = destroys;
    atomic_store(&rank->has_ender, !nccl_rank_must_end_here(rank) && nccl_rank_start_ender(rank));
  }
  bool alone = first && !atomic_load(&rank->has_ender);
  pthread_mutex_unlock(&rank->end_lock);
  if (alone) nccl_rank_finish(rank);
}

void tn_nccl_rank_give_up(tn_nccl_rank *rank) { nccl_rank_finish_once(rank, false); }
void tn_nccl_rank_destroy(tn_nccl_rank *rank) { nccl_rank_finish_once(rank, true); }

/* That the thread may take to start on a busy machine, however short the timeout. */
static const double start_s = 2;

/* Polls: ThreadSanitizer knows no join with a timeout on the monotonic clock. */
bool tn_nccl_rank_wait_end(const tn_nccl_rank *rank, double most_s) {
  const struct timespec pause = {0, PAUSE_LONG_NS};
  double limit_s = rank->timeout_s + start_s;
  double until = tn_monotonic_s() + (most_s < limit_s ? most_s : limit_s);
  if (!atomic_load(&rank->has_ender)) return true;
  while (!atomic_load(&rank->ended)) {
    if (tn_monotonic_s() > until) return false;
    nanosleep(&pause, NULL);
  }
  return true;
}

bool tn_nccl_rank_join(tn_nccl_rank *rank, double most_s) {
  bool ended = tn_nccl_rank_wait_end(rank, most_s);
  if (!atomic_load(&rank->has_ender)) return true;
  if (ended)
    pthread_join(rank->ender, NULL);
  else
    pthread_detach(rank->ender);
  return ended;
}
