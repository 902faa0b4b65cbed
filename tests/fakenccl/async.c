/* tests/fakenccl/async.c: what a call on a communicator that does not block leaves behind. NCCL goes on with
 * it on a thread of its own: the worker. From 2.19 to 2.25 the job of that thread lies in the memory of the
 * thread that called, and the next call that needs the communicator completes it there; ncclCommGetAsyncError
 * does not. So the caller's thread must live until then. */
#include <stdlib.h>

#include "tests/fakenccl/entry.h"
#include "tests/fakenccl/fakenccl.h"
#include "backends/shared/clock.h"

enum { FIRST_LOCAL_JOB = 21900, LAST_LOCAL_JOB = 22599 };

/* ---- threads ---- */

struct fakenccl_thread {
  fakenccl_thread *next;
  atomic_bool ended;
  const char *pending; /* up to 2.18: the job of a group, which the next group of this thread completes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fakenccl_thread *threads;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void thread_end(void *thread) {
  fakenccl_thread *t = thread;
  if (t->pending != NULL)
    fakenccl_log(
        "use after free: %s is in progress on a thread of NCCL, which writes to the memory of a thread that "
        "has ended; a group on that thread completes it",
        t->pending);
  atomic_store(&t->ended, true);
}

static void thread_make_key(void) { pthread_key_create(&key, thread_end); }

static fakenccl_thread *thread_here(void) {
  pthread_once(&once, thread_make_key);
  fakenccl_thread *t = pthread_getspecific(key);
  if (t != NULL || (t = calloc(1, sizeof *t)) == NULL) return t;
  pthread_setspecific(key, t);
  pthread_mutex_lock(&lock);
  t->next = threads;
  threads = t;
  pthread_mutex_unlock(&lock);
  return t;
}

/* Threads that end after this library is closed must not call it. */
__attribute__((destructor)) static void threads_free(void) {
  pthread_once(&once, thread_make_key);
  pthread_key_delete(key);
  for (fakenccl_thread *t = threads, *next; t != NULL; t = next) {
    next = t->next;
    free(t);
  }
}

void fakenccl_async_make(fakenccl_comm *comm) { comm->maker = thread_here(); }

/* ---- the job ---- */

void fakenccl_async_leave(fakenccl_comm *comm) {
  int version = fakenccl_version();
  fakenccl_thread *t = thread_here();
  if (comm->blocking || t == NULL || version > LAST_LOCAL_JOB) return;
  if (version < FIRST_LOCAL_JOB)
    t->pending = fakenccl_entry();
  else
    atomic_store(&comm->job, t);
}

void fakenccl_async_start_group(void) {
  fakenccl_thread *t = thread_here();
  if (t != NULL) t->pending = NULL;
}

bool fakenccl_async_may_abort(const fakenccl_comm *comm) {
  bool own = comm->maker == thread_here();
  if (own) fakenccl_async_start_group();
  return own || comm->blocking || comm->state != FAKENCCL_INIT || fakenccl_version() >= FIRST_LOCAL_JOB;
}

ncclResult_t fakenccl_async_complete(fakenccl_comm *comm) {
  if (atomic_exchange(&comm->has_worker, false)) pthread_join(comm->worker, NULL);
  const fakenccl_thread *t = atomic_exchange(&comm->job, NULL);
  if (t == NULL || !atomic_load(&t->ended)) return ncclSuccess;
  return fakenccl_refuse(
      ncclInternalError,
      "rank %d: use after free: the job of the last call that was in progress lies in the memory "
      "of a thread that has ended; a call such as ncclCommCount on that thread completes it",
      comm->rank);
}

/* ---- the worker ---- */

bool fakenccl_async_work(fakenccl_comm *comm, void *(*body)(void *arg), void *arg) {
  if (atomic_exchange(&comm->has_worker, false)) pthread_join(comm->worker, NULL); /* has ended */
  atomic_store(&comm->busy, true);
  if (pthread_create(&comm->worker, NULL, body, arg) != 0) {
    atomic_store(&comm->busy, false);
    return false;
  }
  atomic_store(&comm->has_worker, true);
  return true;
}

bool fakenccl_async_rest(const fakenccl_comm *comm, double s) {
  double until = tn_monotonic_s() + s;
  while (!atomic_load(&comm->stops) && tn_monotonic_s() < until) fakenccl_pause();
  return !atomic_load(&comm->stops);
}

void fakenccl_async_end(fakenccl_comm *comm, ncclResult_t result) {
  pthread_mutex_lock(&comm->lock);
  if (result != ncclSuccess) fakenccl_comm_fail(comm, result, "%s", fakenccl_last_text());
  pthread_mutex_unlock(&comm->lock);
  atomic_store(&comm->busy, false);
}
