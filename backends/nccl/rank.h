/* backends/nccl/rank.h: one rank: its communicator of NCCL, and how it is given up. */
#pragma once

#include "backends/nccl/group.h"
#include "backends/shared/clock.h"

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
  ncclComm_t comm;              /* NULL: not begun */
  bool opened;                  /* its init has ended */
  pthread_mutex_t lock;     /* held while NCCL is called with `comm`; NCCL may wait for other ranks then */
  _Atomic double entered_s; /* when that call began, or 0 */
  atomic_bool given_up;     /* `comm` is being ended, and nothing else may be called with it */
  pthread_mutex_t end_lock; /* of the rest; not held in calls of NCCL */
  bool destroys;            /* the end is ncclCommDestroy, not ncclCommAbort */
  atomic_bool has_ender;    /* a thread that ends it */
  pthread_t ender;
  atomic_bool ended; /* that thread has done so */
} tn_nccl_rank;

/* Makes the device's context current, which NCCL takes as its device. */
tn_status tn_nccl_enter(tn_env *env, const tn_nccl_rank *rank);

/* Before and after each call of NCCL with `comm`; false: it is given up, and must not be used. */
bool tn_nccl_rank_begin(tn_nccl_rank *rank);
void tn_nccl_rank_end(tn_nccl_rank *rank);
/* Seconds since the call of NCCL that another thread is in began; 0: none. */
double tn_nccl_rank_busy_s(const tn_nccl_rank *rank);

/* Waits until an operation has ended that returned `code`, ncclSuccess or ncclInProgress, and completes it on
 * this thread, in whose memory NCCL may have its job. Looks at the group and the run, too: the failure of
 * another rank ends the wait with ncclInProgress, as the timeout does. After any result but ncclSuccess the
 * communicator must be given up before this thread ends. */
ncclResult_t tn_nccl_rank_await(tn_nccl_rank *rank, ncclResult_t code, double timeout_s);

/* TN_OK for ncclSuccess; else a failure with NCCL's own text: "nccl: rank 1 on device 0: ncclAllReduce:
 * invalid usage (...)", TN_EINVAL for wrong arguments and usage, TN_EDEVICE for CUDA, TN_ECOMM for all else.
 */
tn_status tn_nccl_check(tn_env *env, const tn_nccl_rank *rank, ncclResult_t code, const char *call);

/* Calls ncclCommAbort, once, on a thread of its own: with captured graphs it returns only when those have
 * been destroyed. A call of NCCL that is under way has a second to return before. */
void tn_nccl_rank_give_up(tn_nccl_rank *rank);
/* The same with ncclCommDestroy. */
void tn_nccl_rank_destroy(tn_nccl_rank *rank);
/* Waits until that has returned, so that NCCL does not use memory or streams any more; false: it has not
 * after so many seconds, or two more than the timeout. */
bool tn_nccl_rank_wait_end(const tn_nccl_rank *rank, double most_s);
/* The same, and lets go of the thread; false: it still uses the rank. */
bool tn_nccl_rank_join(tn_nccl_rank *rank, double most_s);

/* memory.c */

/* Frees what NCCL might still have written to. */
void tn_nccl_blocks_free(tn_env *env, tn_nccl_rank *rank);

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
