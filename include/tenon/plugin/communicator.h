/* tenon/plugin/communicator.h: collectives over ranks, enqueued on a stream.
 *
 * Life cycle: identify (rank 0 only; the host ships the bytes to all ranks) -> open on every rank
 * at once -> collectives, on the thread that owns the stream, in the same order on every rank
 * -> status from any thread -> close, or abort when a peer has died. */
#ifndef TENON_PLUGIN_COMMUNICATOR_H
#define TENON_PLUGIN_COMMUNICATOR_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum { TN_SUM = 0, TN_MIN = 1, TN_MAX = 2 };
enum { TN_ALL_REDUCE = 0, TN_BROADCAST = 1, TN_REDUCE_SCATTER = 2, TN_ALL_GATHER = 3 };

typedef struct tn_collective {
  uint32_t struct_size;
  int32_t what, reduction, dtype;
  int32_t root;     /* broadcast */
  int64_t count;    /* elements of `from`; all_gather writes count * ranks, reduce_scatter count / ranks */
  const void *from; /* device addresses; in place where both are equal */
  void *to;
} tn_collective;

typedef struct tn_communicator {
  tn_item item;
  const char *families; /* comma-separated families whose devices it can serve */
  uint32_t identity_bytes;
  tn_status (*identify)(tn_env *env, const void *options, void *identity);
  /* `device` is the backend's device. Blocks until all ranks are here or timeout_s has passed. */
  tn_status (*open)(tn_env *env, const void *options, void *device, int32_t rank, int32_t ranks,
                    const void *identity, double timeout_s, void **communicator);
  void (*close)(void *communicator, tn_env *env);
  /* Enqueues; does not wait. */
  tn_status (*run)(void *communicator, tn_env *env, const tn_collective *what, void *stream);
  /* TN_OK while all is well; TN_ECOMM naming the rank. */
  tn_status (*status)(void *communicator, tn_env *env);
  /* Makes pending collectives fail soon. */
  void (*abort)(void *communicator);
} tn_communicator;

TN_END_C
#endif
