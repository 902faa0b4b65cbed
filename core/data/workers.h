/* core/data/workers.h: the loader's inside, and the threads that fill its batches.
 *
 * A batch is cut into chunks, and every chunk is a ticket. Tickets are handed out in order by one
 * atomic counter, so all workers help with the oldest batch first. The thread that submits and
 * waits takes no lock: it posts one semaphore and waits for another. */
#ifndef TN_CORE_DATA_WORKERS_H
#define TN_CORE_DATA_WORKERS_H

#include "core/data/batch.h"
#include "core/data/reader.h"

typedef struct tn_worker {
  tn_loader *loader;
  tn_reader reader;
  pthread_t thread;
  bool started;
} tn_worker;

struct tn_loader {
  tn_env env; /* of the source: lives as long as it does */
  tn_error_record record;
  tn_env *messages; /* the caller's */
  tn_loader_options options;
  const tn_source *source;
  void *self; /* the open source; NULL until then */
  bool opened;
  tn_chain chain;
  tn_cache cache;
  bool keeps; /* samples, in the cache */

  /* what an epoch is */
  int64_t count;            /* samples that shuffling chooses from; -1: endless */
  int64_t samples, batches; /* of the epoch; batches of this shard */
  int64_t epoch, first;     /* as started */
  uint64_t epoch_key, order_key;

  /* the ring: batch number n of this start lies in ring[n % n_ring] */
  tn_pending *ring;
  int32_t n_ring;
  int64_t submitted, waited; /* since start */
  double stall_s;

  /* the crew; without workers the caller's thread is the first of it */
  tn_worker *workers;
  int32_t n_workers;      /* structs: at least 1 */
  int32_t chunks;         /* per batch */
  _Atomic int64_t ticket; /* next chunk since start */
  sem_t work;             /* posted once per chunk */
  pthread_mutex_t turn;   /* streaming sources: one reads at a time, in the order of tickets */
  atomic_bool cancelled;  /* chunks are to be dropped */
  atomic_bool stopping;
};

/* Where a stream stands that gives sample k of the epoch next. */
int64_t tn_crew_position(const tn_loader *loader, int64_t k);
/* Starts the workers' threads; messages go to loader->messages. */
tn_status tn_crew_start(tn_loader *loader);
/* Ends and joins whichever run. Nothing may be pending. */
void tn_crew_stop(tn_loader *loader);
/* Fills one chunk, the next in order. */
void tn_crew_take_chunk(tn_loader *loader, tn_reader *reader);

#endif
