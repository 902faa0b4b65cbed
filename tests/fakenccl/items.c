/* tests/fakenccl/items.c: operators, registered buffers and windows of a communicator; memory of
 * ncclMemAlloc.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fakenccl/fakenccl.h"

/* ---- lists: of a communicator, whose lock guards it; and the memory of the process ---- */

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static fakenccl_item *memory;

static fakenccl_item *items_add(fakenccl_item **list, pthread_mutex_t *lock, const fakenccl_item *from) {
  fakenccl_item *i = malloc(sizeof *i);
  if (i == NULL) return NULL;
  *i = *from;
  pthread_mutex_lock(lock);
  i->next = *list;
  *list = i;
  pthread_mutex_unlock(lock);
  return i;
}

fakenccl_item *fakenccl_item_add(fakenccl_comm *comm, const fakenccl_item *item) {
  return items_add(&comm->items, &comm->lock, item);
}

/* Frees an item of a kind, by its handle, address or number. False: the list has no such item. */
static bool items_remove(fakenccl_item **list, pthread_mutex_t *lock, int kind, const void *handle,
                         int number) {
  pthread_mutex_lock(lock);
  fakenccl_item **link = list;
  for (; *link != NULL; link = &(*link)->next) {
    const fakenccl_item *i = *link;
    const void *own = kind == FAKENCCL_MEMORY ? i->address : i;
    if (i->kind == kind && (kind == FAKENCCL_OPERATOR ? i->number == number : own == handle)) break;
  }
  fakenccl_item *found = *link;
  if (found != NULL) *link = found->next;
  pthread_mutex_unlock(lock);
  free(found);
  return found != NULL;
}

__attribute__((destructor)) static void items_free_memory(void) {
  for (fakenccl_item *i = memory, *next; i != NULL; i = next) {
    next = i->next;
    fakenccl_log("leak: %zu bytes of ncclMemAlloc", i->bytes);
    free(i);
  }
}

/* ---- operators ---- */

const fakenccl_item *fakenccl_operator_find(const fakenccl_comm *comm, int op) {
  const fakenccl_item *i = comm->items;
  while (i != NULL && (i->kind != FAKENCCL_OPERATOR || i->number != op)) i = i->next;
  return i;
}

static ncclResult_t operator_new(fakenccl_comm *comm, ncclRedOp_t *op, const void *scalar,
                                 ncclDataType_t dtype, ncclScalarResidence_t where) {
  FAKENCCL_TRY(fakenccl_comm_check_ready(comm));
  if (op == NULL || scalar == NULL || (int)dtype < 0 || dtype >= ncclNumTypes ||
      (where != ncclScalarDevice && where != ncclScalarHostImmediate))
    return fakenccl_refuse(ncclInvalidArgument, "place %p, scalar %p, dtype %d, residence %d", (void *)op,
                           scalar, (int)dtype, (int)where);
  size_t size = fakenccl_dtype_size((int)dtype);
  fakenccl_item item = {.kind = FAKENCCL_OPERATOR, .number = ncclNumOps + comm->operators++, .dtype = dtype};
  if (where == ncclScalarHostImmediate)
    memcpy(item.factor, scalar, size);
  else
    item.factor_from = scalar;
  if (item.factor_from != NULL && fakenccl_driver_get()->f_fakecuda_real(comm->device, scalar, size) == NULL)
    return fakenccl_refuse(ncclInvalidArgument, "the scalar at %p is not in memory of device %d", scalar,
                           comm->device);
  if (fakenccl_item_add(comm, &item) == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
  *op = (ncclRedOp_t)item.number;
  return ncclSuccess;
}

FAKENCCL_API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t dtype,
                                                   ncclScalarResidence_t where, ncclComm_t comm) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  return operator_new(comm, op, scalar, dtype, where);
}

FAKENCCL_API ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  FAKENCCL_TRY(fakenccl_comm_check(comm));
  if (items_remove(&comm->items, &comm->lock, FAKENCCL_OPERATOR, NULL, (int)op)) return ncclSuccess;
  return fakenccl_refuse(ncclInvalidArgument, "rank %d has no operator %d", comm->rank, (int)op);
}

/* ---- memory ---- */

FAKENCCL_API ncclResult_t ncclMemAlloc(void **place, size_t bytes) {
  CUdeviceptr address = 0;
  FAKENCCL_TRY(fakenccl_enter(__func__, NULL));
  if (place == NULL || bytes == 0)
    return fakenccl_refuse(ncclInvalidArgument, "%zu bytes at a place %p", bytes, (void *)place);
  FAKENCCL_TRY(fakenccl_cuda(fakenccl_driver_get()->f_cuMemAlloc_v2(&address, bytes), "device memory"));
  *place = (void *)(uintptr_t)address;
  const fakenccl_item item = {.kind = FAKENCCL_MEMORY, .address = *place, .bytes = bytes};
  if (items_add(&memory, &memory_lock, &item) != NULL) return ncclSuccess;
  fakenccl_driver_get()->f_cuMemFree_v2(address);
  return fakenccl_refuse(ncclSystemError, "no memory");
}

FAKENCCL_API ncclResult_t ncclMemFree(void *address) {
  FAKENCCL_TRY(fakenccl_enter(__func__, NULL));
  if (address == NULL) return ncclSuccess;
  if (!items_remove(&memory, &memory_lock, FAKENCCL_MEMORY, address, 0))
    return fakenccl_refuse(ncclInvalidArgument, "%p is not memory of ncclMemAlloc", address);
  return fakenccl_cuda(fakenccl_driver_get()->f_cuMemFree_v2((CUdeviceptr)(uintptr_t)address),
                       "device memory");
}

bool fakenccl_is_allocated(int device, const void *from, size_t bytes) {
  pthread_mutex_lock(&memory_lock);
  const fakenccl_item *i = memory;
  while (i != NULL && ((const char *)from < (const char *)i->address ||
                       (const char *)from >= (const char *)i->address + i->bytes))
    i = i->next;
  pthread_mutex_unlock(&memory_lock);
  return i != NULL && fakenccl_driver_get()->f_fakecuda_real(device, from, bytes) != NULL;
}

bool fakenccl_is_in_window(fakenccl_comm *comm, const void *at) {
  bool found = at == NULL;
  pthread_mutex_lock(&comm->lock);
  for (const fakenccl_item *i = comm->items; i != NULL && !found; i = i->next)
    found = i->kind == FAKENCCL_WINDOW && (const char *)at >= (const char *)i->address &&
            (const char *)at < (const char *)i->address + i->bytes;
  pthread_mutex_unlock(&comm->lock);
  return found;
}

/* ---- registered buffers ---- */

static ncclResult_t buffer_check(const fakenccl_comm *comm, const void *at, size_t bytes) {
  if (bytes > 0 && fakenccl_driver_get()->f_fakecuda_real(comm->device, at, bytes) != NULL)
    return ncclSuccess;
  return fakenccl_refuse(ncclInvalidArgument,
                         "rank %d: %zu bytes from %p are not inside of memory of its device %d", comm->rank,
                         bytes, at, comm->device);
}

static ncclResult_t buffer_new(fakenccl_comm *comm, const void *at, size_t bytes, void **handle) {
  FAKENCCL_TRY(fakenccl_comm_check_ready(comm));
  if (handle == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the handle");
  FAKENCCL_TRY(buffer_check(comm, at, bytes));
  const fakenccl_item item = {.kind = FAKENCCL_BUFFER, .address = at, .bytes = bytes};
  *handle = fakenccl_item_add(comm, &item);
  return *handle != NULL ? ncclSuccess : fakenccl_refuse(ncclSystemError, "no memory");
}

FAKENCCL_API ncclResult_t ncclCommRegister(const ncclComm_t comm, void *at, size_t bytes, void **handle) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  return buffer_new(comm, at, bytes, handle);
}

ncclResult_t fakenccl_item_give_back(fakenccl_comm *comm, int kind, const void *handle, const char *what) {
  FAKENCCL_TRY(fakenccl_comm_check(comm));
  if (items_remove(&comm->items, &comm->lock, kind, handle, 0)) return ncclSuccess;
  return fakenccl_refuse(ncclInvalidArgument, "rank %d: %p is no %s", comm->rank, handle, what);
}

FAKENCCL_API ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  FAKENCCL_TRY(fakenccl_enter(__func__, comm));
  return fakenccl_item_give_back(comm, FAKENCCL_BUFFER, handle, "registered buffer");
}
