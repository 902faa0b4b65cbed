/* backends/nccl/rank.c: see rank.h. */
#include "backends/nccl/rank.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double tn_nccl_clock_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

tn_status tn_nccl_enter(tn_env *env, const tn_nccl_rank *rank) {
  return TN_NCCL_CU(env, &rank->driver, cuCtxSetCurrent, rank->context);
}

/* ---- waiting ---- */

enum { PAUSE_SHORT_NS = 20000, PAUSE_LONG_NS = 1000000 };

static ncclResult_t nccl_rank_state(tn_nccl_rank *rank) {
  ncclResult_t state = ncclInProgress;
  pthread_mutex_lock(&rank->lock);
  if (!rank->given_up) {
    ncclResult_t code = rank->library.ncclCommGetAsyncError(rank->comm, &state);
    if (code != ncclSuccess) state = code;
  }
  pthread_mutex_unlock(&rank->lock);
  return state;
}

static bool nccl_run_has_failed(const tn_nccl_rank *rank) {
  return rank->place->has_failed != NULL && rank->place->has_failed(rank->place);
}

ncclResult_t tn_nccl_rank_await(tn_nccl_rank *rank, ncclResult_t code, double timeout_s) {
  struct timespec pause = {0, PAUSE_SHORT_NS};
  double until = tn_nccl_clock_s() + timeout_s;
  while (code == ncclInProgress && (code = nccl_rank_state(rank)) == ncclInProgress) {
    if (atomic_load(&rank->group->failed) || nccl_run_has_failed(rank) || tn_nccl_clock_s() > until) break;
    nanosleep(&pause, NULL);
    if (2 * pause.tv_nsec <= PAUSE_LONG_NS) pause.tv_nsec *= 2;
  }
  return code;
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

/* ---- giving up ---- */

static void *nccl_rank_abort(void *arg) {
  const tn_nccl_rank *rank = arg;
  (void)rank->driver.cuCtxSetCurrent(rank->context);
  (void)rank->library.ncclCommAbort(rank->comm);
  return NULL;
}

/* Signals are delivered to the application's threads. */
static bool nccl_rank_start_aborter(tn_nccl_rank *rank) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&rank->aborter, NULL, nccl_rank_abort, rank);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error == 0;
}

void tn_nccl_rank_give_up(tn_nccl_rank *rank) {
  pthread_mutex_lock(&rank->lock);
  bool first = !rank->given_up;
  rank->given_up = true;
  if (first && rank->comm != NULL) rank->has_aborter = nccl_rank_start_aborter(rank);
  bool alone = first && rank->comm != NULL && !rank->has_aborter;
  pthread_mutex_unlock(&rank->lock);
  if (alone) nccl_rank_abort(rank);
}

/* Polls: ThreadSanitizer knows no join with a timeout on the monotonic clock. */
bool tn_nccl_rank_join(tn_nccl_rank *rank, double timeout_s) {
  const struct timespec pause = {0, PAUSE_LONG_NS};
  double until = tn_nccl_clock_s() + timeout_s;
  if (!rank->has_aborter) return true;
  while (pthread_tryjoin_np(rank->aborter, NULL) != 0) {
    if (tn_nccl_clock_s() > until) {
      pthread_detach(rank->aborter);
      return false;
    }
    nanosleep(&pause, NULL);
  }
  return true;
}
