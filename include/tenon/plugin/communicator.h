/* tenon/plugin/communicator.h: collectives over ranks, enqueued on a stream.
 *
 * Life cycle: identify (rank 0 only; the host sends its bytes to all ranks) -> open on every rank at once ->
 * run, on the thread of the stream, in the same order on every rank -> status and abort from any thread ->
 * close.
 *
 * Failure. A rank that does not arrive within timeout_s, or whose part fails, makes the collective fail on
 * every other rank, as failed work of the stream: TN_ECOMM, with the number of that rank. No call and no
 * collective waits longer than timeout_s. Order: sums are added in the same order every time, so results have
 * the same bits. */
#ifndef TENON_PLUGIN_COMMUNICATOR_H
#define TENON_PLUGIN_COMMUNICATOR_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Kinds of collectives, with the meaning of MPI 4.0, chapter 6, and NCCL. Reductions are TN_REDUCTION_...
 * (base.h). */
enum { TN_ALL_REDUCE = 0, TN_BROADCAST = 1, TN_REDUCE_SCATTER = 2, TN_ALL_GATHER = 3 };

typedef struct tn_collective {
  uint32_t struct_size;
  int32_t kind, reduction, dtype; /* TN_ALL_REDUCE ..., TN_REDUCTION_..., TN_F32 ... */
  int32_t root;                   /* of a broadcast: the rank whose data all ranks get */
  int64_t count; /* elements of `from`; all_gather writes count * ranks, reduce_scatter count / ranks */
  /* Device addresses. A collective is in place where both are equal; all_gather, where `from` is the rank's
   * part of `to`; reduce_scatter, where `to` is the rank's part of `from`. */
  const void *from;
  void *to;
  const char *name; /* "all_reduce of bucket 2", for messages; valid until the stream was waited for,
                        and of a captured collective until the capture is deleted */
} tn_collective;

typedef struct tn_communicator {
  tn_item item;
  const char *families;    /* families whose devices it serves, comma-separated */
  uint32_t identity_bytes; /* size of the identity, at least 1 */
  /* Writes identity_bytes bytes by which the ranks of one run find each other. */
  tn_status (*identify)(tn_env *env, const void *options, void *identity);
  /* `device` is the backend's device object. Blocks until all ranks have called open, or timeout_s has
   * passed. */
  tn_status (*open)(tn_env *env, const void *options, void *device, int32_t rank, int32_t ranks,
                    const void *identity, double timeout_s, void **communicator);
  void (*close)(tn_env *env, void *communicator);
  /* Enqueues a collective and returns. `collective` is valid during the call. */
  tn_status (*run)(tn_env *env, void *communicator, const tn_collective *collective, void *stream);
  /* TN_OK, or TN_ECOMM with the rank that failed. From any thread, with a handle of that thread. */
  tn_status (*status)(tn_env *env, void *communicator);
  /* Makes pending and later collectives of all ranks fail. From any thread, with a handle of that thread. */
  void (*abort)(tn_env *env, void *communicator);
  /* 1: `run` may be called while the device captures its streams (tn_backend.capture_begin). The collective
   * is then part of the capture, and every replay runs it once, at its place in the order of the rank's
   * collectives. 0: the host enqueues every collective in every run, between captured launches. */
  int32_t capturable;
} tn_communicator;

TN_END_C
#endif
