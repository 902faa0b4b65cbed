/* backends/mpi/thread.c: the thread that makes all calls of MPI in this process, from its beginning to its
 * end, since MPI wants both on one thread. It serves one rank at a time. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backends/mpi/objects.h"

/* Seconds beyond the limits of the waits inside MPI, after which the thread is held in it. END_S: the most
 * for MPI_Finalize, at which all processes arrive together. */
enum { HELD_S = 1, LEAVE_S = 15, END_S = 10 };
static const double LOOK_S = 0.1; /* between two looks at the run while MPI begins */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t asked, ended;
  bool started, registered, ending, over;
  pid_t process;
  tn_mpi_rank *rank; /* that it serves, or is to serve */
  double timeout_s;  /* of the last rank */
} mpi_thread = {.lock = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER};

/* ---- on the thread ---- */

static tn_mpi_rank *thread_next_rank(void) {
  pthread_mutex_lock(&mpi_thread.lock);
  while (mpi_thread.rank == NULL && !mpi_thread.ending)
    pthread_cond_wait(&mpi_thread.asked, &mpi_thread.lock);
  tn_mpi_rank *r = mpi_thread.rank;
  pthread_mutex_unlock(&mpi_thread.lock);
  return r;
}

/* The host may free the rank from then on. */
static void thread_leave_rank(tn_mpi_rank *r, int32_t state, tn_status refusal) {
  pthread_mutex_lock(&mpi_thread.lock);
  mpi_thread.rank = NULL;
  pthread_mutex_unlock(&mpi_thread.lock);
  pthread_mutex_lock(&r->lock);
  r->state = state;
  r->refusal = refusal;
  pthread_cond_broadcast(&r->answered);
  pthread_mutex_unlock(&r->lock);
}

static void thread_serve_rank(tn_mpi_rank *r) {
  tn_status status = tn_mpi_world_join(r);
  if (status != TN_OK) return thread_leave_rank(r, TN_MPI_REFUSED, status);
  pthread_mutex_lock(&r->lock);
  r->seen_s = tn_monotonic_s();
  r->state = TN_MPI_OPEN;
  pthread_cond_broadcast(&r->answered);
  pthread_mutex_unlock(&r->lock);
  tn_mpi_serve(r);
  tn_mpi_world_leave(r);
  thread_leave_rank(r, TN_MPI_LEFT, TN_OK);
}

static void *thread_run(void *arg) {
  tn_mpi_rank *r;
  (void)arg;
  while ((r = thread_next_rank()) != NULL) thread_serve_rank(r);
  tn_mpi_world_end();
  pthread_mutex_lock(&mpi_thread.lock);
  mpi_thread.over = true;
  pthread_cond_broadcast(&mpi_thread.ended);
  pthread_mutex_unlock(&mpi_thread.lock);
  return NULL;
}

/* ---- waits of the host ---- */

/* Waits until the thread has come to `state` or past it. */
static int32_t thread_wait_state(tn_mpi_rank *r, int32_t state, double limit_s) {
  struct timespec until = tn_monotonic_in(limit_s);
  pthread_mutex_lock(&r->lock);
  while (r->state < state && pthread_cond_timedwait(&r->answered, &r->lock, &until) != ETIMEDOUT) {
  }
  int32_t now = r->state;
  pthread_mutex_unlock(&r->lock);
  return now;
}

/* ---- start and end ---- */

/* At the process's end: MPI_Finalize returns when all processes have come to it. A rank that still runs, or
 * that has failed, does not: mpirun then ends the others. */
static void thread_end(void) {
  if (getpid() != mpi_thread.process) return; /* a child */
  pthread_mutex_lock(&mpi_thread.lock);
  struct timespec until = tn_monotonic_in(mpi_thread.timeout_s < END_S ? mpi_thread.timeout_s : END_S);
  mpi_thread.ending = true;
  pthread_cond_signal(&mpi_thread.asked);
  while (mpi_thread.rank == NULL && !mpi_thread.over &&
         pthread_cond_timedwait(&mpi_thread.ended, &mpi_thread.lock, &until) != ETIMEDOUT) {
  }
  pthread_mutex_unlock(&mpi_thread.lock);
}

/* Signals are for the program's own threads. */
static int thread_create(void) {
  pthread_condattr_t monotonic;
  pthread_t made;
  sigset_t all, before;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&mpi_thread.ended, &monotonic);
  pthread_condattr_destroy(&monotonic);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&made, NULL, thread_run, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) pthread_detach(made);
  return error;
}

static tn_status thread_hand_over(tn_env *env, tn_mpi_rank *r) {
  if (mpi_thread.started && mpi_thread.process != getpid())
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "mpi: MPI was begun by another process, before a fork");
  if (mpi_thread.rank != NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "mpi: this process has a rank that uses MPI, expected one rank in each process at a time");
  if (!mpi_thread.started && thread_create() != 0)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "mpi: a thread for MPI could not be started");
  mpi_thread.started = true;
  mpi_thread.process = getpid();
  mpi_thread.timeout_s = r->timeout_s;
  mpi_thread.rank = r;
  pthread_cond_signal(&mpi_thread.asked);
  return TN_OK;
}

/* MPI may have registered functions for the process's end when it began; this one runs before them. */
static void thread_register_end(void) {
  pthread_mutex_lock(&mpi_thread.lock);
  if (!mpi_thread.registered) atexit(thread_end);
  mpi_thread.registered = true;
  pthread_mutex_unlock(&mpi_thread.lock);
}

static bool thread_run_has_failed(const tn_mpi_rank *r) {
  return r->place->has_failed != NULL && r->place->has_failed(r->place);
}

/* MPI itself waits without a limit for a process that does not come. */
static int32_t thread_wait_open(tn_mpi_rank *r) {
  double until = tn_monotonic_s() + r->timeout_s + HELD_S;
  int32_t state = TN_MPI_OPENING;
  while (state == TN_MPI_OPENING && !thread_run_has_failed(r) && tn_monotonic_s() < until)
    state = thread_wait_state(r, TN_MPI_OPEN, LOOK_S);
  return state;
}

tn_status tn_mpi_thread_open(tn_env *env, tn_mpi_rank *r) {
  pthread_mutex_lock(&mpi_thread.lock);
  tn_status status = thread_hand_over(env, r);
  pthread_mutex_unlock(&mpi_thread.lock);
  if (status != TN_OK) return status;
  int32_t state = thread_wait_open(r);
  thread_register_end();
  if (state == TN_MPI_REFUSED) return tn_fail(env, r->refusal, NULL, "mpi: %s", r->failure);
  if (state != TN_MPI_OPENING) return TN_OK;
  if (thread_run_has_failed(r))
    return tn_fail(env, TN_ECOMM, NULL, "mpi: the run has failed before MPI has begun on rank %d",
                   (int)r->rank);
  return tn_fail(
      env, TN_ECOMM, NULL,
      "mpi: MPI has not begun within %g s on rank %d: some of the %d ranks did not come (MPI does not "
      "say which)",
      r->timeout_s, (int)r->rank, (int)r->ranks);
}

bool tn_mpi_thread_close(tn_mpi_rank *r) {
  pthread_mutex_lock(&r->lock);
  r->closing = true;
  pthread_cond_broadcast(&r->asked);
  pthread_mutex_unlock(&r->lock);
  return thread_wait_state(r, TN_MPI_REFUSED, LEAVE_S) >= TN_MPI_REFUSED;
}
