/* core/data/batch.h: a batch on its way: the memory that its owner gave, how much of it is still being
 * filled, and what went wrong. */
#ifndef TN_CORE_DATA_BATCH_H
#define TN_CORE_DATA_BATCH_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "core/data/transform_chain.h"

typedef struct tn_pending {
  tn_env env; /* holds the message of the first sample, by place, that failed */
  tn_error_record record;
  const tn_chain *chain; /* NULL: nothing to finish */
  int64_t batch;         /* places */
  void **fields;         /* where the batch goes in the end */
  void **targets;        /* where samples go: there, or to the operand of the first stage per batch */
  void **buffers;        /* two per field, for values between stages per batch; NULL where not needed */
  const void **in;
  void **out;
  tn_scratch *scratch; /* per stage: what the transforms keep */
  float *weights;
  int64_t *ids;
  int64_t block;        /* of the epoch */
  int64_t samples;      /* real ones */
  int64_t filled;       /* places that are read: the real ones, and one that padding repeats; 0: the epoch
                           was over already */
  atomic_int remaining; /* chunks */
  sem_t done;           /* posted when none remains */
  pthread_mutex_t lock; /* of the next two, taken on failure only */
  tn_status status;
  int64_t failed_place;
} tn_pending;

/* Must not move afterwards. On failure the text is in env, and the batch may be finished. */
tn_status tn_pending_init(tn_env *env, const tn_chain *chain, int64_t batch, tn_pending *pending);
void tn_pending_finish(tn_pending *pending);

/* Takes memory for a block with that many real samples; -1: the epoch is over. Allocates nothing. */
void tn_pending_aim(tn_pending *pending, const tn_batch *to, int64_t block, int64_t samples);
/* Keeps the failure of the lowest place, so that the message does not depend on who was faster. */
void tn_pending_fail(tn_pending *pending, int64_t place, tn_status status, const void *handle);
/* After the last sample: pads, and runs the stages per batch. `key` is the epoch's. */
void tn_pending_complete(tn_pending *pending, uint64_t key);

#endif
