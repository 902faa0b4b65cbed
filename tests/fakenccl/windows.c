/* tests/fakenccl/windows.c: windows, which all ranks register together. */
#include "tests/fakenccl/fakenccl.h"

/* All ranks have registered this window, with as many bytes. */
static ncclResult_t window_run(fakenccl_job *job) {
  fakenccl_comm *comm = job->comm;
  pthread_mutex_lock(&comm->lock);
  ncclResult_t result = comm->state == FAKENCCL_READY ? fakenccl_comm_status(comm) : ncclInvalidUsage;
  for (int r = 0; r < comm->ranks && result == ncclSuccess; r++) {
    const fakenccl_member *other = &comm->clique->shared->members[r];
    if (atomic_load(&other->windows) < job->number) {
      result = ncclInProgress;
    } else if (other->window_bytes[job->number % 2] != job->bytes) {
      fakenccl_comm_fail_all(comm, ncclInvalidUsage,
                             "window %llu does not match: rank %d registers %zu bytes, rank %d %zu bytes",
                             (unsigned long long)job->number, comm->rank, job->bytes, r,
                             (size_t)other->window_bytes[job->number % 2]);
      result = ncclInvalidUsage;
    }
  }
  pthread_mutex_unlock(&comm->lock);
  return result;
}

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
  *window = (ncclWindow_t)(void *)fakenccl_item_add(comm, &item);
  if (*window == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
  pthread_mutex_lock(&comm->lock);
  fakenccl_job job = {.comm = comm, .poll = window_run, .number = ++comm->windows, .bytes = bytes};
  comm->me->window_bytes[job.number % 2] = bytes;
  atomic_store(&comm->me->windows, job.number);
  pthread_mutex_unlock(&comm->lock);
  return fakenccl_group_add_job(&job);
}

FAKENCCL_API ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at, size_t bytes,
                                                 ncclWindow_t *window, int flags) {
  ncclResult_t result = fakenccl_enter(__func__, comm);
  if (result == ncclSuccess) result = window_new(comm, at, bytes, window, flags);
  return result == ncclSuccess ? result : fakenccl_group_fail(result);
}

FAKENCCL_API ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  return fakenccl_item_give_back(comm, FAKENCCL_WINDOW, window, "window");
}
