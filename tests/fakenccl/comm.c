/* tests/fakenccl/comm.c: the table of communicators, their status and their end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakenccl/fakenccl.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static fakenccl_comm *table; /* all that this process has made */
static uint64_t numbers;

void fakenccl_pause(void) {
  struct timespec pause = {0, 200000};
  nanosleep(&pause, NULL);
}

/* ---- the table ---- */

void fakenccl_comm_add(fakenccl_comm *comm) {
  uint64_t earlier = 0; /* of this rank, so that the chance does not depend on how threads run */
  pthread_mutex_lock(&table_lock);
  comm->number = ++numbers;
  for (const fakenccl_comm *c = table; c != NULL; c = c->next) earlier += c->rank == comm->rank;
  comm->chance = (comm->faults.seed * FAKENCCL_RANKS + (uint64_t)comm->rank) * 1000 + earlier;
  comm->next = table;
  table = comm;
  pthread_mutex_unlock(&table_lock);
}

bool fakenccl_comm_find(const fakenccl_comm *comm) {
  pthread_mutex_lock(&table_lock);
  const fakenccl_comm *c = table;
  while (c != NULL && c != comm) c = c->next;
  pthread_mutex_unlock(&table_lock);
  return c != NULL;
}

ncclResult_t fakenccl_comm_check(const fakenccl_comm *comm) {
  if (comm == NULL) return fakenccl_refuse(ncclInvalidArgument, "the communicator is NULL");
  if (!fakenccl_comm_find(comm))
    return fakenccl_refuse(ncclInvalidArgument, "%p is no communicator", (const void *)comm);
  if (comm->state == FAKENCCL_ABORTED || comm->state == FAKENCCL_DESTROYED)
    return fakenccl_refuse(ncclInvalidUsage, "communicator %llu of rank %d was %s",
                           (unsigned long long)comm->number, comm->rank,
                           comm->state == FAKENCCL_ABORTED ? "aborted" : "destroyed");
  return ncclSuccess;
}

/* As NCCL's ncclCommEnsureReady: not in progress, without an error; a job that has ended is completed. */
static ncclResult_t comm_ensure_ready(fakenccl_comm *comm) {
  FAKENCCL_TRY(fakenccl_comm_check(comm));
  pthread_mutex_lock(&comm->lock);
  bool busy = comm->state == FAKENCCL_INIT || comm->polls > 0 || atomic_load(&comm->busy);
  ncclResult_t status = busy ? ncclInProgress : fakenccl_comm_status(comm);
  pthread_mutex_unlock(&comm->lock);
  if (status == ncclInProgress)
    return fakenccl_refuse(ncclInvalidArgument,
                           "rank %d: attempt to use the communicator before the previous operation returned "
                           "ncclSuccess (ncclCommGetAsyncError)",
                           comm->rank);
  return status == ncclSuccess ? fakenccl_async_complete(comm) : status;
}

ncclResult_t fakenccl_comm_check_ready(fakenccl_comm *comm) {
  FAKENCCL_TRY(comm_ensure_ready(comm));
  if (comm->state != FAKENCCL_FINAL) return ncclSuccess;
  return fakenccl_refuse(ncclInvalidUsage, "rank %d: the communicator was finalized", comm->rank);
}

/* ---- errors ---- */

void fakenccl_comm_fail(fakenccl_comm *comm, ncclResult_t code, const char *format, ...) {
  if (comm->error != ncclSuccess) return;
  va_list args;
  va_start(args, format);
  vsnprintf(comm->text, sizeof comm->text, format, args);
  va_end(args);
  comm->error = code;
}

void fakenccl_comm_fail_all(fakenccl_comm *comm, ncclResult_t code, const char *format, ...) {
  fakenccl_shared *s = comm->clique->shared;
  if (atomic_exchange(&s->failing, 1) != 0) return;
  va_list args;
  va_start(args, format);
  vsnprintf(s->text, sizeof s->text, format, args);
  va_end(args);
  atomic_store(&s->error, (int)code);
  fakenccl_log("%s", s->text);
}

void fakenccl_comm_wake(const fakenccl_comm *comm) {
  for (int r = 0; r < comm->ranks; r++) {
    int device = atomic_load(&comm->clique->devices[r]);
    if (device > 0 && r != comm->rank) fakenccl_driver_get()->f_fakecuda_wake(device - 1);
  }
}

static bool comm_works(const fakenccl_comm *comm) {
  return comm->active != NULL || comm->issued > comm->ended;
}

void fakenccl_comm_look(fakenccl_comm *comm) {
  const fakenccl_member *members = comm->clique->shared->members;
  for (int r = 0; !comm->faults.silent && r < comm->ranks; r++) {
    if (atomic_load(&members[r].aborted))
      fakenccl_comm_fail(comm, ncclRemoteError, "rank %d has aborted", r);
    else if (!fakenccl_clique_lives(comm->clique, r))
      fakenccl_comm_fail(comm, ncclRemoteError, "rank %d, process %d, has ended", r, (int)members[r].process);
  }
}

ncclResult_t fakenccl_comm_status(fakenccl_comm *comm) {
  const fakenccl_shared *s = comm->clique != NULL ? comm->clique->shared : NULL;
  if (comm->state == FAKENCCL_INIT) fakenccl_init_poll(comm);
  int shared = s != NULL ? atomic_load(&s->error) : 0;
  if (comm->error == ncclSuccess && shared != 0)
    fakenccl_comm_fail(comm, (ncclResult_t)shared, "%s", s->text);
  if (s != NULL && comm_works(comm)) fakenccl_comm_look(comm);
  if (comm->error != ncclSuccess) return comm->error;
  if (comm->state == FAKENCCL_INIT) return ncclInProgress;
  return comm->state == FAKENCCL_FINAL && comm_works(comm) ? ncclInProgress : ncclSuccess;
}

FAKENCCL_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  FAKENCCL_TRY(fakenccl_comm_check(comm));
  if (status == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the status");
  pthread_mutex_lock(&comm->lock);
  *status = fakenccl_comm_status(comm);
  if (comm->polls > 0 && comm->polls-- > 0 && *status == ncclSuccess) *status = ncclInProgress;
  if (atomic_load(&comm->busy) && *status == ncclSuccess) *status = ncclInProgress;
  pthread_mutex_unlock(&comm->lock);
  return ncclSuccess;
}

FAKENCCL_API const char *ncclGetLastError(ncclComm_t comm) {
  if (fakenccl_enter(__func__, comm) != ncclSuccess) return "";
  if (!fakenccl_comm_find(comm)) return fakenccl_last_text();
  pthread_mutex_lock(&comm->lock);
  bool failed = comm->error != ncclSuccess; /* the text stays as it is */
  pthread_mutex_unlock(&comm->lock);
  return failed ? comm->text : fakenccl_last_text();
}

/* ---- what a communicator is ---- */

#define GET(name, member)                                                                                    \
  FAKENCCL_API ncclResult_t name(const ncclComm_t comm, int *value) {                                        \
    FAKENCCL_TRY(fakenccl_enter(__func__, comm));                                                            \
    FAKENCCL_TRY(comm_ensure_ready(comm));                                                                   \
    if (value == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the number");               \
    *value = comm->member;                                                                                   \
    return ncclSuccess;                                                                                      \
  }

GET(ncclCommCount, ranks)
GET(ncclCommUserRank, rank)
GET(ncclCommCuDevice, device)

/* ---- the end ---- */

static void comm_wait_for_work(fakenccl_comm *comm) {
  for (;;) {
    pthread_mutex_lock(&comm->lock);
    bool works = comm_works(comm) && comm->state == FAKENCCL_FINAL;
    pthread_mutex_unlock(&comm->lock);
    if (!works) return;
    fakenccl_pause();
  }
}

FAKENCCL_API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  FAKENCCL_TRY(fakenccl_comm_check_ready(comm));
  pthread_mutex_lock(&comm->lock);
  comm->state = FAKENCCL_FINAL;
  fakenccl_async_leave(comm);
  ncclResult_t status = fakenccl_comm_status(comm);
  pthread_mutex_unlock(&comm->lock);
  if (!comm->blocking) return status;
  comm_wait_for_work(comm);
  return ncclSuccess;
}

static void comm_free_items(fakenccl_comm *comm, bool reports) {
  static const char *const kinds[] = {"window", "registered buffer", "operator"};
  for (fakenccl_item *i = comm->items, *next; i != NULL; i = next) {
    next = i->next;
    if (reports)
      fakenccl_log("leak: a %s of communicator %llu, rank %d, was not given back", kinds[i->kind],
                   (unsigned long long)comm->number, comm->rank);
    free(i);
  }
  comm->items = NULL;
}

/* The lock must be held. The engines do not access shared memory after this. */
static void comm_close(fakenccl_comm *comm, int state) {
  bool knows = comm->clique != NULL;
  comm->state = state;
  comm_free_items(comm, state == FAKENCCL_DESTROYED);
  if (!knows) return;
  atomic_store(&comm->clique->devices[comm->rank], -1);
  fakenccl_clique_close(comm->clique);
  comm->clique = NULL;
  comm->me = NULL;
  fakenccl_driver_get()->f_fakecuda_wake(comm->device); /* what waits ends */
}

/* Without the lock, which work needs to end. */
static void comm_release_context(fakenccl_comm *comm) {
  const fakenccl_driver *d = fakenccl_driver_get();
  d->f_cuCtxPushCurrent_v2(comm->context);
  for (fakenccl_mark *m = comm->marks, *next; m != NULL; m = next) {
    next = m->next;
    if (m->event != NULL) d->f_cuEventDestroy_v2(m->event);
    free(m);
  }
  comm->marks = NULL;
  d->f_cuCtxPopCurrent_v2(NULL);
}

/* ---- the last end of a process, which frees what its ranks share ---- */

static bool comm_is_sibling(const fakenccl_comm *a, const fakenccl_comm *b) {
  return a->nonce == b->nonce && a->process == b->process;
}

/* Whether all of its siblings have ended. */
static bool comm_is_last(fakenccl_comm *comm) {
  bool last = true;
  pthread_mutex_lock(&table_lock);
  comm->over = true;
  for (const fakenccl_comm *c = table; c != NULL; c = c->next)
    last = last && (c->over || !comm_is_sibling(c, comm));
  pthread_mutex_unlock(&table_lock);
  return last;
}

/* NULL, or the next sibling behind one. */
static fakenccl_comm *comm_next(const fakenccl_comm *comm, const fakenccl_comm *before) {
  pthread_mutex_lock(&table_lock);
  fakenccl_comm *c = before != NULL ? before->next : table;
  while (c != NULL && !comm_is_sibling(c, comm)) c = c->next;
  pthread_mutex_unlock(&table_lock);
  return c;
}

static void comm_wait_for_graphs(fakenccl_comm *comm) {
  for (bool captured = true; captured;) {
    pthread_mutex_lock(&comm->lock);
    captured = comm->captured > 0;
    pthread_mutex_unlock(&comm->lock);
    if (captured) fakenccl_pause();
  }
}

static void comm_enter(const fakenccl_comm *comm) {
  const fakenccl_driver *d = fakenccl_driver_get();
  if (d->f_cuCtxPushCurrent_v2(comm->context) == CUDA_SUCCESS)
    d->f_cuCtxPopCurrent_v2(NULL);
  else
    fakenccl_log("rank %d: the context of its device %d was released before the last communicator of the "
                 "process ended",
                 comm->rank, comm->device);
}

/* From 2.22 on the device of another rank stays current. */
static void comm_finish(fakenccl_comm *comm, bool aborts) {
  const fakenccl_driver *d = fakenccl_driver_get();
  comm_release_context(comm);
  if (!comm_is_last(comm)) return;
  for (fakenccl_comm *c = NULL; aborts && (c = comm_next(comm, c)) != NULL;) comm_wait_for_graphs(c);
  for (fakenccl_comm *c = NULL; (c = comm_next(comm, c)) != NULL;) {
    comm_enter(c);
    if (fakenccl_version() >= 22200 && c != comm) d->f_cuCtxSetCurrent(c->context);
  }
  for (fakenccl_comm *c = NULL; (c = comm_next(comm, c)) != NULL;)
    if (c->retained) d->f_cuDevicePrimaryCtxRelease_v2(c->device);
}

/* A reason why it must not be destroyed now, or NULL. */
static const char *comm_find_use(const fakenccl_comm *comm) {
  if (comm->captured > 0) return "a graph with its collectives is alive, for whose end NCCL waits";
  return comm_works(comm) && comm->error == ncclSuccess ? "its collectives have not ended" : NULL;
}

FAKENCCL_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ncclResult_t asked = fakenccl_enter(__func__, comm);
  if (comm == NULL) return asked;
  FAKENCCL_TRY(fakenccl_comm_check(comm));
  (void)fakenccl_async_complete(comm);
  pthread_mutex_lock(&comm->lock);
  if (comm->state == FAKENCCL_INIT) fakenccl_init_poll(comm);
  const char *use = comm->state == FAKENCCL_INIT ? "its init is in progress" : comm_find_use(comm);
  comm_close(comm, FAKENCCL_DESTROYED);
  pthread_mutex_unlock(&comm->lock);
  comm_finish(comm, false);
  if (use == NULL) return asked;
  return fakenccl_refuse(ncclInvalidUsage, "communicator %llu of rank %d is destroyed, but %s",
                         (unsigned long long)comm->number, comm->rank, use);
}

FAKENCCL_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ncclResult_t asked = fakenccl_enter(__func__, comm);
  if (comm == NULL) return asked;
  FAKENCCL_TRY(fakenccl_comm_check(comm));
  if (!fakenccl_async_may_abort(comm))
    return fakenccl_refuse(
        ncclInternalError,
        "rank %d: its init is in progress, which before 2.19 another thread frees while it goes on",
        comm->rank);
  atomic_store(&comm->stops, true);
  (void)fakenccl_async_complete(comm);
  pthread_mutex_lock(&comm->lock);
  if (comm->me != NULL) atomic_store(&comm->me->aborted, 1);
  if (comm->clique != NULL) fakenccl_comm_wake(comm);
  comm_close(comm, FAKENCCL_ABORTED);
  pthread_mutex_unlock(&comm->lock);
  comm_finish(comm, true);
  return asked;
}

/* Reports what a process has left, but not a child of fork what its parent has. */
__attribute__((destructor)) static void comm_free_all(void) {
  for (fakenccl_comm *c = table, *next; c != NULL; c = next) {
    next = c->next;
    bool live = c->state < FAKENCCL_ABORTED;
    if (live && c->process == getpid())
      fakenccl_log("leak: communicator %llu, rank %d of %d, was never destroyed",
                   (unsigned long long)c->number, c->rank, c->ranks);
    comm_free_items(c, false);
    for (fakenccl_mark *m = c->marks, *after; m != NULL; m = after) {
      after = m->next;
      free(m);
    }
    for (fakenccl_batch *b = c->batches, *after; b != NULL; b = after) {
      after = b->next;
      free(b);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
  }
  table = NULL;
}
