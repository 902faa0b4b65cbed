/* tenon/plugin/communicator.h: collectives over ranks, enqueued on a stream.
 *
 * Life cycle: identify (rank 0 only; the host ships the bytes to all ranks, each of which opens with them
 * once) -> open on every rank at once -> collectives, on the thread that owns the stream, in the same order
 * on every rank -> status from any thread -> close, after abort when a rank has died.
 *
 * Failure. A rank that does not come in time, or whose part fails, makes the collective fail on every other
 * rank with TN_ECOMM naming it, through the stream as any failure of enqueued work; so does abort. Nobody
 * waits for longer than timeout_s. Sums are made in the same order every time, so that they have the same
 * bits. */
#ifndef TENON_PLUGIN_COMMUNICATOR_H
#define TENON_PLUGIN_COMMUNICATOR_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum { TN_ALL_REDUCE = 0, TN_BROADCAST = 1, TN_REDUCE_SCATTER = 2, TN_ALL_GATHER = 3 };

typedef struct tn_collective {
  uint32_t struct_size;
  int32_t kind, reduction, dtype; /* TN_ALL_REDUCE ..., TN_REDUCTION_..., TN_F32 ... */
  int32_t root;                   /* broadcast */
  int64_t count; /* elements of `from`; all_gather writes count * ranks, reduce_scatter count / ranks */
  /* Device addresses. In place where both are equal; all_gather where `from` is the rank's part of `to`,
   * reduce_scatter where `to` is the rank's part of `from`. */
  const void *from;
  void *to;
  const char *name; /* "all_reduce of bucket 2", for traces and messages; lives as long as the stream works */
} tn_collective;

typedef struct tn_communicator {
  tn_item item;
  const char *families; /* comma-separated families whose devices it can serve */
  uint32_t identity_bytes;
  tn_status (*identify)(tn_env *env, const void *options, void *identity);
  /* `device` is the backend's device. Blocks until all ranks are here or timeout_s has passed. */
  tn_status (*open)(tn_env *env, const void *options, void *device, int32_t rank, int32_t ranks,
                    const void *identity, double timeout_s, void **communicator);
  void (*close)(tn_env *env, void *communicator);
  /* Enqueues; does not wait. */
  tn_status (*run)(tn_env *env, void *communicator, const tn_collective *collective, void *stream);
  /* TN_OK while all is well; TN_ECOMM naming the rank. From any thread. */
  tn_status (*status)(tn_env *env, void *communicator);
  /* Makes pending and later collectives of all ranks fail soon. From any thread, until close. */
  void (*abort)(tn_env *env, void *communicator);
} tn_communicator;

TN_END_C
#endif
