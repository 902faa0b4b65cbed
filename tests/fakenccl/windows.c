/* tests/fakenccl/windows.c: windows, which all ranks register together; of sizes that may differ. On a
 * communicator that does not block, a thread goes on with the call and writes the handle when all have come;
 * the call returns ncclInProgress, or from 2.28 on ncclSuccess. */
#include <stdlib.h>

#include "tests/fakenccl/fakenccl.h"

enum { FIRST_SILENT = 22800 };

static ncclResult_t window_run(fakenccl_job *job) {
  fakenccl_comm *comm = job->comm;
  pthread_mutex_lock(&comm->lock);
  ncclResult_t result = comm->state == FAKENCCL_READY ? fakenccl_comm_status(comm) : ncclInvalidUsage;
  for (int r = 0; r < comm->ranks && result == ncclSuccess; r++)
    if (atomic_load(&comm->clique->shared->members[r].windows) < job->number) result = ncclInProgress;
  pthread_mutex_unlock(&comm->lock);
  return result;
}

/* ---- without blocking ---- */

typedef struct window_task {
  fakenccl_job job;
  fakenccl_item item;
  ncclWindow_t *window;
} window_task;

static void *window_work(void *arg) {
  window_task *t = arg;
  fakenccl_comm *comm = t->job.comm;
  ncclResult_t result;
  do result = window_run(&t->job);
  while (result == ncclInProgress && fakenccl_async_rest(comm, 0.001));
  bool goes_on = fakenccl_async_rest(comm, 0.003 + 1e-6 * (double)comm->faults.late_us);
  if (goes_on && result == ncclSuccess) *t->window = (ncclWindow_t)(void *)fakenccl_item_add(comm, &t->item);
  fakenccl_async_end(comm, goes_on ? result : ncclSuccess);
  free(t);
  return NULL;
}

static ncclResult_t window_start(const fakenccl_job *job, const fakenccl_item *item, ncclWindow_t *window) {
  window_task *t = malloc(sizeof *t);
  if (t == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
  *t = (window_task){*job, *item, window};
  fakenccl_async_leave(job->comm);
  if (!fakenccl_async_work(job->comm, window_work, t))
    return free(t), fakenccl_refuse(ncclSystemError, "no thread");
  return fakenccl_version() < FIRST_SILENT ? ncclInProgress : ncclSuccess;
}

/* ---- calls ---- */

static ncclResult_t window_check(fakenccl_comm *comm, const void *at, size_t bytes,
                                 const ncclWindow_t *window, int flags) {
  FAKENCCL_TRY(fakenccl_comm_check_ready(comm));
  if (window == NULL || bytes == 0 || (flags != NCCL_WIN_DEFAULT && flags != NCCL_WIN_COLL_SYMMETRIC))
    return fakenccl_refuse(ncclInvalidArgument, "a window of %zu bytes with flags %#x at a place %p", bytes,
                           flags, (const void *)window);
  if ((uintptr_t)at % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    return fakenccl_refuse(ncclInvalidArgument, "rank %d: Window address must be suitably aligned.",
                           comm->rank);
  if (fakenccl_is_allocated(comm->device, at, bytes)) return ncclSuccess;
  return fakenccl_refuse(ncclInvalidArgument,
                         "rank %d: %zu bytes from %p are not inside of memory of ncclMemAlloc", comm->rank,
                         bytes, at);
}

static ncclResult_t window_new(fakenccl_comm *comm, const void *at, size_t bytes, ncclWindow_t *window,
                               int flags) {
  FAKENCCL_TRY(window_check(comm, at, bytes, window, flags));
  const fakenccl_item item = {.kind = FAKENCCL_WINDOW, .address = at, .bytes = bytes};
  pthread_mutex_lock(&comm->lock);
  fakenccl_job job = {.comm = comm, .poll = window_run, .number = ++comm->windows};
  atomic_store(&comm->me->windows, job.number);
  pthread_mutex_unlock(&comm->lock);
  if (!comm->blocking && !fakenccl_group_is_open()) return window_start(&job, &item, window);
  *window = (ncclWindow_t)(void *)fakenccl_item_add(comm, &item);
  return *window != NULL ? fakenccl_group_add_job(&job) : fakenccl_refuse(ncclSystemError, "no memory");
}

FAKENCCL_API ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at, size_t bytes,
                                                 ncclWindow_t *window, int flags) {
  ncclResult_t result = fakenccl_enter(__func__, comm);
  if (result == ncclSuccess) result = window_new(comm, at, bytes, window, flags);
  return result == ncclSuccess || result == ncclInProgress ? result : fakenccl_group_fail(result);
}

FAKENCCL_API ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  return fakenccl_item_give_back(comm, FAKENCCL_WINDOW, window, "window");
}
