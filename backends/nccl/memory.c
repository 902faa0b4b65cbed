/* backends/nccl/memory.c: device memory that NCCL allocates, so that other devices can read it directly, and
 * that it knows: registered buffers, since 2.19, and symmetric windows, from 2.29.7 on, where an abort ends
 * their kernels. A captured collective finds the memory registered by itself, unless NCCL_GRAPH_REGISTER=0.
 */
#include "backends/nccl/rank.h"

/* NCCL_WIN_COLL_SYMMETRIC of 2.27; nccl.h may be older. */
enum { SYMMETRIC_WINDOW = 1 };

typedef struct tn_nccl_block {
  struct tn_nccl_block *next;
  void *address;
  void *handle; /* the registration, or the window; NULL: NCCL has declined */
} tn_nccl_block;

tn_status tn_nccl_memory_check(tn_env *env, const tn_nccl_library *library, int32_t memory) {
  bool registers = library->version >= TN_NCCL_REGISTERS && library->ncclMemAlloc != NULL &&
                   library->ncclMemFree != NULL && library->ncclCommRegister != NULL &&
                   library->ncclCommDeregister != NULL;
  bool windows = library->version >= TN_NCCL_WINDOWS && library->ncclCommWindowRegister != NULL &&
                 library->ncclCommWindowDeregister != NULL;
  if (memory == TN_NCCL_DEVICE || (registers && (memory == TN_NCCL_REGISTERED || windows))) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, "memory",
                 "nccl: memory = %s needs NCCL %s or later, but %s is of version %s; install a newer one, or "
                 "leave memory out",
                 memory == TN_NCCL_SYMMETRIC ? "symmetric" : "registered",
                 memory == TN_NCCL_SYMMETRIC ? "2.29.7" : "2.19", library->path, library->version_text);
}

/* ---- allocation, for which no communicator is needed ---- */

static tn_status nccl_memory_find(tn_env *env, const tn_nccl_options *o, const tn_comm_device *device,
                                  tn_nccl_library *library) {
  const tn_cuda *native = device->native(env, device, NULL, TN_CUDA_INTERFACE);
  tn_nccl_driver driver;
  if (native == NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "nccl: the device has no interface " TN_CUDA_INTERFACE);
  tn_status status = tn_nccl_library_open(env, o->libraries, library);
  if (status == TN_OK) status = tn_nccl_memory_check(env, library, o->memory);
  if (status == TN_OK) status = tn_nccl_driver_find(env, native, &driver);
  return status == TN_OK ? TN_NCCL_CU(env, &driver, cuCtxSetCurrent, native->context) : status;
}

tn_status tn_nccl_memory_new(tn_env *env, const void *options, const tn_comm_device *device, uint64_t bytes,
                             void **address) {
  const tn_nccl_options *o = options;
  tn_nccl_library library;
  *address = NULL;
  if (o->memory == TN_NCCL_DEVICE) return TN_OK;
  TN_TRY(nccl_memory_find(env, o, device, &library));
  ncclResult_t code = library.ncclMemAlloc(address, bytes);
  if (code == ncclSuccess) return TN_OK;
  *address = NULL;
  return tn_fail(env, TN_ENOMEM, NULL, "nccl: ncclMemAlloc of %llu bytes on device %d: %s",
                 (unsigned long long)bytes, (int)device->index, library.ncclGetErrorString(code));
}

void tn_nccl_memory_delete(tn_env *env, const void *options, const tn_comm_device *device, void *address,
                           uint64_t bytes) {
  tn_nccl_library library;
  (void)bytes;
  if (nccl_memory_find(env, options, device, &library) == TN_OK) (void)library.ncclMemFree(address);
}

/* ---- registration ---- */

/* Windows are made by all ranks together, so NCCL waits for the others, and writes the handle on a thread of
 * its own: up to 2.27 it returns ncclInProgress meanwhile, later ncclSuccess. */
static tn_status nccl_memory_register(tn_env *env, tn_nccl_rank *r, tn_nccl_block *b, uint64_t bytes) {
  const tn_nccl_library *l = &r->library;
  bool window = r->memory == TN_NCCL_SYMMETRIC;
  ncclResult_t code = ncclInProgress;
  if (tn_nccl_rank_begin(r)) {
    code = window ? l->ncclCommWindowRegister(r->comm, b->address, bytes, &b->handle, SYMMETRIC_WINDOW)
                  : l->ncclCommRegister(r->comm, b->address, bytes, &b->handle);
    tn_nccl_rank_end(r);
    code = tn_nccl_rank_await(r, code, r->timeout_s);
  }
  if (code == ncclSuccess) return TN_OK;
  tn_status failed = tn_nccl_group_status(env, r->group);
  if (failed != TN_OK) return failed;
  if (code == ncclInProgress)
    return tn_fail(
        env, TN_ECOMM, NULL,
        "nccl: rank %d on device %d: ncclCommWindowRegister has waited for the other ranks for %g s",
        (int)r->rank, (int)r->device->index, r->timeout_s);
  return tn_nccl_check(env, r, code, window ? "ncclCommWindowRegister" : "ncclCommRegister");
}

/* That NCCL has to let go of memory after a failure. */
static const double release_s = 5;

/* After a failure NCCL may still write the handle, so the block stays until the communicator has ended. */
tn_status tn_nccl_attach(tn_env *env, void *communicator, void *address, uint64_t bytes) {
  tn_nccl_rank *r = communicator;
  tn_nccl_block *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->address = address;
  b->next = r->blocks;
  r->blocks = b;
  tn_status status = tn_nccl_enter(env, r);
  if (status == TN_OK) status = nccl_memory_register(env, r, b, bytes);
  if (status == TN_OK) return TN_OK;
  b->address = NULL;
  tn_nccl_rank_give_up(r);
  (void)tn_nccl_rank_wait_end(r, release_s);
  return status;
}

void tn_nccl_detach(tn_env *env, void *communicator, void *address, uint64_t bytes) {
  tn_nccl_rank *r = communicator;
  tn_nccl_block **link = &r->blocks, *b;
  (void)bytes;
  while ((b = *link) != NULL && b->address != address) link = &b->next;
  if (b == NULL) return;
  *link = b->next;
  (void)r->driver.cuCtxSetCurrent(r->context);
  if (b->handle != NULL && tn_nccl_rank_begin(r)) {
    (void)(r->memory == TN_NCCL_SYMMETRIC ? r->library.ncclCommWindowDeregister(r->comm, b->handle)
                                          : r->library.ncclCommDeregister(r->comm, b->handle));
    tn_nccl_rank_end(r);
  }
  tn_delete(env, b);
}

void tn_nccl_blocks_free(tn_env *env, tn_nccl_rank *rank) {
  for (tn_nccl_block *b = rank->blocks, *next; b != NULL; b = next) {
    next = b->next;
    tn_delete(env, b);
  }
  rank->blocks = NULL;
}
