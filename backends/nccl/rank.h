/* backends/nccl/rank.h: one rank: its communicator of NCCL, and how it is given up. */
#ifndef TN_BACKENDS_NCCL_RANK_H
#define TN_BACKENDS_NCCL_RANK_H

#include "backends/nccl/group.h"

typedef struct tn_nccl_options {
  const char *libraries; /* folders with libnccl.so.2 */
  int32_t follow;        /* note on the device which collective it is in */
  int32_t memory;        /* TN_NCCL_DEVICE ... */
} tn_nccl_options;

/* [communicator.nccl] memory */
enum { TN_NCCL_DEVICE, TN_NCCL_REGISTERED, TN_NCCL_SYMMETRIC };

typedef struct tn_nccl_rank {
  tn_nccl_library library;
  tn_nccl_driver driver;
  const tn_comm_device *device;
  int32_t rank, ranks;
  const tn_comm_place *place;
  double timeout_s;
  CUcontext context;
  tn_nccl_group *group;
  tn_nccl_follow follow;
  int32_t memory;               /* TN_NCCL_DEVICE ... */
  struct tn_nccl_block *blocks; /* of memory.c; on the rank's thread */
  pthread_mutex_t lock;         /* of `comm`, `given_up` and follow.since */
  ncclComm_t comm;              /* NULL: not begun */
  bool given_up;                /* ncclCommAbort has been or is called, and nothing else may be */
  bool has_aborter;             /* on a thread of its own */
  pthread_t aborter;
} tn_nccl_rank;

double tn_nccl_clock_s(void);

/* Makes the device's context current, which NCCL takes as its device. */
tn_status tn_nccl_enter(tn_env *env, const tn_nccl_rank *rank);

/* Waits until an operation that returned `code` has ended: a communicator that does not block returns
 * ncclInProgress. Looks at the group and the run, too: the failure of another rank ends the wait with
 * ncclInProgress, as the timeout does. */
ncclResult_t tn_nccl_rank_await(tn_nccl_rank *rank, ncclResult_t code, double timeout_s);

/* TN_OK for ncclSuccess; else a failure with NCCL's own text: "nccl: rank 1 on device 0: ncclAllReduce:
 * invalid usage (...)", TN_EINVAL for wrong arguments and usage, TN_EDEVICE for CUDA, TN_ECOMM for all else.
 */
tn_status tn_nccl_check(tn_env *env, const tn_nccl_rank *rank, ncclResult_t code, const char *call);

/* Calls ncclCommAbort, once, on a thread of its own: with captured graphs it returns only when those have
 * been destroyed. */
void tn_nccl_rank_give_up(tn_nccl_rank *rank);
/* Waits for that thread; false: it has not ended after so many seconds, and still uses the rank. */
bool tn_nccl_rank_join(tn_nccl_rank *rank, double timeout_s);

/* memory.c */

/* TN_EUNAVAILABLE where the library is too old for [communicator.nccl] memory. */
tn_status tn_nccl_memory_check(tn_env *env, const tn_nccl_library *library, int32_t memory);
tn_status tn_nccl_memory_new(tn_env *env, const void *options, const tn_comm_device *device, uint64_t bytes,
                             void **address);
void tn_nccl_memory_delete(tn_env *env, const void *options, const tn_comm_device *device, void *address,
                           uint64_t bytes);
tn_status tn_nccl_attach(tn_env *env, void *communicator, void *address, uint64_t bytes);
void tn_nccl_detach(tn_env *env, void *communicator, void *address, uint64_t bytes);

/* collective.c */
tn_status tn_nccl_run(tn_env *env, void *communicator, const tn_collective *collective, void *stream);

#endif
