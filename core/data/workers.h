/* core/data/workers.h: the loader's state, and the threads that fill its batches.
 *
 * A batch is split into chunks, and every chunk is a ticket. An atomic counter hands out tickets in order,
 * so all workers fill the oldest batch first. The thread that submits and waits takes no lock: it posts
 * one semaphore and waits for another. */
#pragma once

#include "core/base/timeline.h"
#include "core/data/balance.h"
#include "core/data/weighted.h"
#include "core/data/batch.h"
#include "core/data/loader.h"
#include "core/data/open_source.h"
#include "core/data/reader.h"

typedef struct tn_worker {
  tn_loader *loader;
  tn_reader reader;
  pthread_t thread;
  bool started;
} tn_worker;

struct tn_loader {
  tn_env env;
  tn_error_record record;
  tn_env *messages; /* the caller's env, for messages */
  tn_loader_options options;
  tn_open_source *open;
  const tn_source *source; /* its, */
  void *self;              /* and its self */
  tn_transform_chain chain;
  tn_sample_cache cache;
  bool keeps;                     /* samples are cached */
  atomic_uchar *told;             /* of each sample, whether a warning has named it as corrupt; NULL: none */
  _Atomic(tn_timeline *) profile; /* gets a span for each chunk; NULL: none is taken */

  /* the epoch */
  int64_t count;            /* samples of the source; -1: endless */
  int64_t samples, batches; /* of an epoch; batches of this shard */
  int64_t epoch, first;     /* as started */
  int64_t epoch_batches;    /* of this shard in the started epoch */
  int64_t last_update; /* the first batch of its last update, which padding repeats; -1: of `accumulate` */
  uint64_t epoch_key, order_key;
  uint64_t choice_key;  /* of the samples of a shortened epoch */
  tn_balance balance;   /* of options.balance */
  tn_weighted weighted; /* n = 0: samples are not drawn by weights */
  uint64_t class_key;   /* of the orders within the classes */

  /* the ring: batch n since tn_loader_start is ring[n % n_ring] */
  tn_pending_batch *ring;
  int32_t n_ring;
  int64_t submitted, waited; /* batches since tn_loader_start */
  double stall_s;
  int32_t length; /* of the batch that was waited for last */

  /* the workers; with `workers` = 0 the calling thread uses workers[0] */
  tn_worker *workers;
  int32_t n_workers;           /* entries of `workers`, at least 1 */
  int32_t chunks;              /* per batch */
  _Atomic int64_t ticket;      /* next chunk since tn_loader_start */
  sem_t work;                  /* posted once per chunk */
  pthread_mutex_t stream_lock; /* streaming sources: serializes reads, in the order of tickets */
  atomic_bool cancelled;       /* remaining chunks are skipped */
  atomic_bool stopping;
  atomic_bool gave_up; /* a sample did not come within options.patience_s: no other is read */
};

/* prepare_loader.c: opens the source, and makes all that depends on it; messages are in loader->env. */
tn_status tn_loader_prepare(tn_loader *loader);
/* The position of a stream before sample k of the epoch. */
int64_t tn_workers_stream_position(const tn_loader *loader, int64_t k);
/* Starts the workers' threads; messages go to loader->messages. */
tn_status tn_workers_start(tn_loader *loader);
/* Stops and joins the threads. No batch may be pending. */
void tn_workers_stop(tn_loader *loader);
/* Fills the next chunk in order. */
void tn_workers_fill_chunk(tn_loader *loader, tn_reader *reader);
