/* tests/fakenccl/calls.c: the entry points of collectives and messages: checks of their arguments. */
#include <stdio.h>
#include <string.h>

#include "tests/fakenccl/fakenccl.h"

/* ---- names ---- */

static const char *const kinds[] = {"ncclAllReduce",     "ncclBroadcast", "ncclReduce", "ncclAllGather",
                                    "ncclReduceScatter", "ncclSend",      "ncclRecv"};
static const char *const dtypes[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                     "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                     "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const ops[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg", "a PreMulSum"};

const char *fakenccl_kind_name(int kind) { return kinds[kind]; }

size_t fakenccl_dtype_size(int dtype) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[dtype];
}

static bool calls_reduces(int kind) {
  return kind == FAKENCCL_ALL_REDUCE || kind == FAKENCCL_REDUCE || kind == FAKENCCL_REDUCE_SCATTER;
}

void fakenccl_describe(const fakenccl_what *w, char *text, size_t size) {
  char peer[48] = "", group[48] = "";
  if (w->kind == FAKENCCL_BROADCAST || w->kind == FAKENCCL_REDUCE)
    snprintf(peer, sizeof peer, ", root %d", w->peer);
  if (w->kind == FAKENCCL_SEND || w->kind == FAKENCCL_RECV)
    snprintf(peer, sizeof peer, " %s rank %d", w->kind == FAKENCCL_SEND ? "to" : "from", w->peer);
  if (w->places > 1) snprintf(group, sizeof group, ", call %d of %d in its group", w->place + 1, w->places);
  snprintf(text, size, "%s of %llu %s%s%s%s%s", kinds[w->kind], (unsigned long long)w->count,
           dtypes[w->dtype], calls_reduces(w->kind) ? " with " : "", calls_reduces(w->kind) ? ops[w->op] : "",
           peer, group);
}

/* ---- checks ---- */

/* Outside of a group the current device must be that of the communicator; a group has the devices of all. */
static ncclResult_t calls_check_device(const fakenccl_comm *comm) {
  CUcontext current = NULL;
  if (fakenccl_group_is_open()) return ncclSuccess;
  FAKENCCL_TRY(fakenccl_cuda(fakenccl_driver_get()->f_cuCtxGetCurrent(&current), "the current context"));
  if (current == comm->context) return ncclSuccess;
  return fakenccl_refuse(ncclInvalidUsage, "rank %d: the current context is not that of its device %d",
                         comm->rank, comm->device);
}

static ncclResult_t calls_check_stream(const fakenccl_comm *comm, CUstream stream) {
  CUcontext context = NULL;
  const fakenccl_driver *d = fakenccl_driver_get();
  d->f_cuCtxPushCurrent_v2(comm->context);
  ncclResult_t result = fakenccl_cuda(d->f_cuStreamGetCtx(stream, &context), "the stream");
  d->f_cuCtxPopCurrent_v2(NULL);
  if (result != ncclSuccess || context == comm->context) return result;
  return fakenccl_refuse(ncclInvalidUsage, "rank %d: the stream is not one of its device %d", comm->rank,
                         comm->device);
}

static ncclResult_t calls_check_memory(const fakenccl_comm *comm, const void *at, size_t bytes,
                                       const char *what) {
  if (bytes == 0 || fakenccl_driver_get()->f_fakecuda_real(comm->device, at, bytes) != NULL)
    return ncclSuccess;
  return fakenccl_refuse(ncclInvalidArgument,
                         "rank %d: %s, %zu bytes from %p, is not inside of memory of its device %d",
                         comm->rank, what, bytes, at, comm->device);
}

/* Operand and result in multiples of count; whether this rank has them. */
static void calls_sizes(const fakenccl_comm *comm, const fakenccl_what *w, size_t *from, size_t *to) {
  size_t ranks = (size_t)comm->ranks;
  bool root = comm->rank == w->peer;
  *from = w->kind == FAKENCCL_RECV || (w->kind == FAKENCCL_BROADCAST && !root) ? 0
          : w->kind == FAKENCCL_REDUCE_SCATTER                                 ? ranks
                                                                               : 1;
  *to = w->kind == FAKENCCL_SEND || (w->kind == FAKENCCL_REDUCE && !root) ? 0
        : w->kind == FAKENCCL_ALL_GATHER                                  ? ranks
                                                                          : 1;
}

/* Operand and result may be the same memory in NCCL's way, and must not overlap otherwise. */
static ncclResult_t calls_check_overlap(const fakenccl_comm *comm, const fakenccl_op *op, size_t from_bytes,
                                        size_t to_bytes) {
  const char *from = op->from, *to = op->to;
  size_t part = (size_t)comm->rank * op->what.count * fakenccl_dtype_size(op->what.dtype);
  bool in_place = from == to;
  if (op->what.kind == FAKENCCL_ALL_GATHER) in_place = from == to + part;
  if (op->what.kind == FAKENCCL_REDUCE_SCATTER) in_place = to == from + part;
  if (in_place || from_bytes == 0 || to_bytes == 0 || from + from_bytes <= to || to + to_bytes <= from)
    return ncclSuccess;
  return fakenccl_refuse(ncclInvalidArgument, "rank %d: operand and result overlap, and not in place",
                         comm->rank);
}

static ncclResult_t calls_check_buffers(const fakenccl_comm *comm, const fakenccl_op *op) {
  size_t from, to, size = fakenccl_dtype_size(op->what.dtype);
  calls_sizes(comm, &op->what, &from, &to);
  if (op->what.count > SIZE_MAX / size / FAKENCCL_RANKS)
    return fakenccl_refuse(ncclInvalidArgument, "rank %d: %zu elements", comm->rank, (size_t)op->what.count);
  from *= op->what.count * size;
  to *= op->what.count * size;
  FAKENCCL_TRY(calls_check_memory(comm, op->from, from, "the operand"));
  FAKENCCL_TRY(calls_check_memory(comm, op->to, to, "the result"));
  return calls_check_overlap(comm, op, from, to);
}

/* ---- operators ---- */

static ncclResult_t calls_set_operator(fakenccl_comm *comm, fakenccl_op *op, int given) {
  if (given >= 0 && given < ncclAvg) return ncclSuccess;
  if (given == ncclAvg) {
    op->multiplies = fakenccl_one_nth(op->what.dtype, comm->ranks, op->factor);
    return ncclSuccess;
  }
  const fakenccl_item *o = fakenccl_operator_find(comm, given);
  if (o == NULL) return fakenccl_refuse(ncclInvalidArgument, "rank %d: no operator %d", comm->rank, given);
  if ((int)o->dtype != op->what.dtype)
    return fakenccl_refuse(ncclInvalidArgument, "rank %d: the operator is for %s, the call of %s", comm->rank,
                           dtypes[o->dtype], dtypes[op->what.dtype]);
  op->what.op = FAKENCCL_PREMULSUM;
  op->multiplies = true;
  op->factor_from = o->factor_from;
  memcpy(op->factor, o->factor, sizeof op->factor);
  return ncclSuccess;
}

static ncclResult_t calls_check(fakenccl_comm *comm, fakenccl_op *op, CUstream stream) {
  const fakenccl_what *w = &op->what;
  FAKENCCL_TRY(fakenccl_comm_check_ready(comm));
  if (w->dtype < 0 || w->dtype >= ncclNumTypes)
    return fakenccl_refuse(ncclInvalidArgument, "rank %d: no dtype %d", comm->rank, w->dtype);
  if (w->peer < 0 || w->peer >= comm->ranks)
    return fakenccl_refuse(ncclInvalidArgument, "rank %d: %d is no rank of %d", comm->rank, w->peer,
                           comm->ranks);
  FAKENCCL_TRY(calls_check_device(comm));
  FAKENCCL_TRY(calls_check_stream(comm, stream));
  if (calls_reduces(w->kind)) FAKENCCL_TRY(calls_set_operator(comm, op, w->op));
  return calls_check_buffers(comm, op);
}

/* A communicator that does not block keeps the failure of a call. */
static void calls_stick(fakenccl_comm *comm, ncclResult_t result) {
  if (!fakenccl_comm_find(comm) || comm->blocking) return;
  pthread_mutex_lock(&comm->lock);
  if (comm->state < FAKENCCL_ABORTED) fakenccl_comm_fail(comm, result, "%s", fakenccl_last_text());
  pthread_mutex_unlock(&comm->lock);
}

/* NCCL drops a call without elements. */
static ncclResult_t calls_do(const char *name, fakenccl_comm *comm, fakenccl_op op, CUstream stream) {
  ncclResult_t result = fakenccl_enter(name, comm);
  if (result == ncclSuccess) result = calls_check(comm, &op, stream);
  if (result == ncclSuccess && op.what.count > 0) result = fakenccl_group_add(comm, stream, &op);
  if (result == ncclSuccess || result == ncclInProgress) return result;
  calls_stick(comm, result);
  return fakenccl_group_fail(result);
}

/* ---- entry points ---- */

static fakenccl_op calls_op(int kind, const void *from, void *to, size_t count, int dtype, int op, int peer) {
  return (fakenccl_op){
      .what = {.kind = kind, .dtype = dtype, .op = op, .peer = peer, .count = count}, .from = from, .to = to};
}

FAKENCCL_API ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t dtype,
                                        ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_ALL_REDUCE, from, to, count, dtype, op, 0), stream);
}

FAKENCCL_API ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t dtype,
                                        int root, ncclComm_t comm, cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_BROADCAST, from, to, count, dtype, 0, root), stream);
}

FAKENCCL_API ncclResult_t ncclBcast(void *at, size_t count, ncclDataType_t dtype, int root, ncclComm_t comm,
                                    cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_BROADCAST, at, at, count, dtype, 0, root), stream);
}

FAKENCCL_API ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t dtype,
                                     ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_REDUCE, from, to, count, dtype, op, root), stream);
}

FAKENCCL_API ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t dtype,
                                        ncclComm_t comm, cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_ALL_GATHER, from, to, count, dtype, 0, 0), stream);
}

FAKENCCL_API ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t dtype,
                                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_REDUCE_SCATTER, from, to, count, dtype, op, 0), stream);
}

FAKENCCL_API ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t dtype, int peer,
                                   ncclComm_t comm, cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_SEND, from, NULL, count, dtype, 0, peer), stream);
}

FAKENCCL_API ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                                   cudaStream_t stream) {
  return calls_do(__func__, comm, calls_op(FAKENCCL_RECV, NULL, to, count, dtype, 0, peer), stream);
}

FAKENCCL_API const char *ncclGetErrorString(ncclResult_t result) {
  fakenccl_enter(__func__, NULL);
  switch (result) {
  case ncclSuccess: return "no error";
  case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
  case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclInProgress: return "NCCL operation in progress";
  default: return "unknown result code";
  }
}
