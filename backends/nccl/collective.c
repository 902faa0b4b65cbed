/* backends/nccl/collective.c: collectives on a stream, captured or not. */
#include <stdio.h>

#include "backends/nccl/rank.h"

/* ---- the arguments of a call ---- */

typedef struct nccl_call {
  const tn_collective *collective;
  ncclDataType_t type;
  ncclRedOp_t op;
  CUstream stream;
} nccl_call;

static const char *const nccl_call_names[] = {[TN_ALL_REDUCE] = "ncclAllReduce",
                                              [TN_BROADCAST] = "ncclBroadcast",
                                              [TN_REDUCE_SCATTER] = "ncclReduceScatter",
                                              [TN_ALL_GATHER] = "ncclAllGather"};

static const char *nccl_call_name(const tn_collective *c) {
  return c->name != NULL ? c->name : nccl_call_names[c->kind];
}

/* The type + 1; 0: none. */
static const int nccl_call_types[TN_DTYPES] = {
    [TN_BOOL] = ncclUint8 + 1,    [TN_U8] = ncclUint8 + 1,    [TN_I8] = ncclInt8 + 1,
    [TN_I32] = ncclInt32 + 1,     [TN_I64] = ncclInt64 + 1,   [TN_F16] = ncclFloat16 + 1,
    [TN_BF16] = ncclBfloat16 + 1, [TN_F32] = ncclFloat32 + 1, [TN_F64] = ncclFloat64 + 1};

static const ncclRedOp_t nccl_call_ops[] = {[TN_REDUCTION_SUM] = ncclSum,
                                            [TN_REDUCTION_MIN] = ncclMin,
                                            [TN_REDUCTION_MAX] = ncclMax,
                                            [TN_REDUCTION_MEAN] = ncclAvg};

static tn_status nccl_call_refuse(tn_env *env, const tn_nccl_rank *r, const tn_collective *c,
                                  const char *why) {
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "nccl: %s of %lld %s, reduction %d, root %d, over %d ranks: %s",
                 nccl_call_names[c->kind], (long long)c->count, tn_dtype_name(c->dtype), (int)c->reduction,
                 (int)c->root, (int)r->ranks, why);
}

/* An extreme of floats is NaN where an operand is; NCCL's are fminf and fmaxf. A reduce_scatter passes: the
 * graph that makes initial values (core/step/graphs/init_graph.c) has the same operand on all ranks. */
static bool nccl_call_drops_nan(const tn_collective *c) {
  return c->kind == TN_ALL_REDUCE && tn_dtype_is_float(c->dtype) &&
         (c->reduction == TN_REDUCTION_MIN || c->reduction == TN_REDUCTION_MAX);
}

static tn_status nccl_call_resolve(tn_env *env, const tn_nccl_rank *r, const tn_collective *c,
                                   nccl_call *call) {
  bool reduces = c->kind == TN_ALL_REDUCE || c->kind == TN_REDUCE_SCATTER;
  int32_t n_ops = (int32_t)(sizeof nccl_call_ops / sizeof nccl_call_ops[0]);
  if (c->kind < TN_ALL_REDUCE || c->kind > TN_ALL_GATHER)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "nccl: there is no collective %d", (int)c->kind);
  if (c->dtype < 0 || c->dtype >= TN_DTYPES || nccl_call_types[c->dtype] == 0 ||
      (reduces && c->dtype == TN_BOOL))
    return nccl_call_refuse(env, r, c, "NCCL has no such type for it");
  if (reduces && (c->reduction < 0 || c->reduction >= n_ops))
    return nccl_call_refuse(env, r, c, "there is no such reduction, expected sum, min, max or mean");
  if (nccl_call_drops_nan(c))
    return nccl_call_refuse(
        env, r, c,
        "NCCL's min and max of floats leave NaN out, where it should win; reduce integers, or "
        "gather and reduce the result");
  if (c->count < 0 || (c->kind == TN_REDUCE_SCATTER && c->count % r->ranks != 0))
    return nccl_call_refuse(env, r, c, "expected a number of elements from 0 on that the ranks can divide");
  if (c->kind == TN_BROADCAST && (c->root < 0 || c->root >= r->ranks))
    return nccl_call_refuse(env, r, c, "expected a rank as root");
  call->type = (ncclDataType_t)(nccl_call_types[c->dtype] - 1);
  call->op = reduces ? nccl_call_ops[c->reduction] : ncclSum;
  return TN_OK;
}

/* ---- the call ---- */

static ncclResult_t nccl_call_make(const tn_nccl_library *l, ncclComm_t comm, const nccl_call *call,
                                   int32_t ranks) {
  const tn_collective *c = call->collective;
  size_t n = (size_t)c->count;
  switch (c->kind) {
  case TN_ALL_REDUCE: return l->ncclAllReduce(c->from, c->to, n, call->type, call->op, comm, call->stream);
  case TN_BROADCAST: return l->ncclBroadcast(c->from, c->to, n, call->type, c->root, comm, call->stream);
  case TN_REDUCE_SCATTER:
    return l->ncclReduceScatter(c->from, c->to, n / (size_t)ranks, call->type, call->op, comm, call->stream);
  default: return l->ncclAllGather(c->from, c->to, n, call->type, comm, call->stream);
  }
}

/* That a call which has failed waits for the end of NCCL's work on it. */
static const double abandon_s = 5;

static tn_status nccl_call_fail_wait(tn_env *env, const tn_nccl_rank *r, const nccl_call *call) {
  tn_status failed = tn_nccl_group_status(env, r->group);
  if (failed != TN_OK) return failed;
  return tn_fail(env, TN_ECOMM, NULL,
                 "nccl: rank %d on device %d: '%s' could not be enqueued within %g s: %s still connects the "
                 "ranks; the environment variable NCCL_DEBUG=INFO makes NCCL print more",
                 (int)r->rank, (int)r->device->index, nccl_call_name(call->collective), r->timeout_s,
                 nccl_call_names[call->collective->kind]);
}

/* NCCL works on a thread of its own where it has to connect ranks; later work of the stream must come behind
 * it. After a failure that thread must not enqueue anything more, on a stream that captures nothing any more
 * or with memory that is freed, so the communicator is given up. NCCL itself uses one no more whose call has
 * failed. */
static tn_status nccl_call_enqueue(tn_env *env, tn_nccl_rank *r, const nccl_call *call) {
  ncclResult_t code = ncclInProgress;
  if (tn_nccl_rank_begin(r)) {
    code = nccl_call_make(&r->library, r->comm, call, r->ranks);
    tn_nccl_rank_end(r);
    code = tn_nccl_rank_await(r, code, r->timeout_s);
  }
  if (code == ncclSuccess) return TN_OK;
  tn_status status = code == ncclInProgress
                         ? nccl_call_fail_wait(env, r, call)
                         : tn_nccl_check(env, r, code, nccl_call_names[call->collective->kind]);
  tn_nccl_rank_give_up(r);
  (void)tn_nccl_rank_wait_end(r, abandon_s);
  return status;
}

tn_status tn_nccl_run(tn_env *env, void *communicator, const tn_collective *collective, void *stream) {
  tn_nccl_rank *r = communicator;
  nccl_call call = {.collective = collective};
  tn_status status = nccl_call_resolve(env, r, collective, &call);
  if (status != TN_OK || collective->count == 0) return status;
  const tn_cuda *native = r->device->native(env, r->device, stream, TN_CUDA_INTERFACE);
  call.stream = native->stream;
  status = tn_nccl_enter(env, r);
  uint32_t number = tn_nccl_follow_number(&r->follow, nccl_call_name(collective));
  if (status == TN_OK) status = tn_nccl_follow_begin(env, &r->follow, call.stream, number);
  if (status == TN_OK) status = nccl_call_enqueue(env, r, &call);
  return status == TN_OK ? tn_nccl_follow_end(env, &r->follow, call.stream, number) : status;
}
