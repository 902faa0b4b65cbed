/* core/data/batch.h: a batch that is being filled: the caller's memory, the progress, and the first error. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "core/data/transform_chain.h"

typedef struct tn_pending_batch {
  tn_env env; /* holds the message of the failed sample with the lowest row */
  tn_error_record record;
  const tn_transform_chain *chain; /* NULL: not initialized */
  int64_t batch;                   /* samples, padding included */
  void **fields;                   /* the caller's memory, one address per field */
  void **targets; /* destination of the samples: `fields`, or the operand of the first stage per batch */
  void **buffers; /* two per field, for values between stages per batch; NULL if not needed */
  const void **in;
  void **out;
  tn_scratch *scratch; /* per stage: memory of the transform */
  float *weights;
  int64_t *ids;
  int64_t block;   /* index of the block in the epoch */
  int64_t samples; /* samples that are not padding */
  int32_t length;  /* index of its length in chain->lengths */
  int64_t filled;  /* rows that are read: the real samples, and one more that padding repeats; 0: past the
                      end of the epoch */
  atomic_int remaining; /* chunks not yet finished */
  sem_t done;           /* posted when all chunks are finished */
  pthread_mutex_t lock; /* guards the next two; taken only on failure */
  tn_status status;
  int64_t failed_row;
} tn_pending_batch;

/* Initializes the batch, which must not move afterwards. On failure the message is in env, and the batch
 * may be finished. */
tn_status tn_pending_batch_init(tn_env *env, const tn_transform_chain *chain, int64_t batch,
                                tn_pending_batch *pending);
void tn_pending_batch_finish(tn_pending_batch *pending);

/* Assigns memory and a block with `samples` real samples; -1: the epoch is over. Allocates nothing. */
void tn_pending_batch_aim(tn_pending_batch *pending, const tn_batch *to, int64_t block, int64_t samples);
/* Records a failure. The failure at the lowest row is kept, so that the message does not depend on
 * timing. */
void tn_pending_batch_fail(tn_pending_batch *pending, int64_t row, tn_status status, const void *handle);
/* Completes the batch after its last sample: pads it and applies the stages per batch. `key` is the
 * epoch's random key. */
void tn_pending_batch_complete(tn_pending_batch *pending, uint64_t key);
