/* core/data/workers.c: fills batches, chunk by chunk. */
#include "core/data/workers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

int64_t tn_crew_position(const tn_loader *loader, int64_t k) {
  return loader->count < 0 && loader->options.training ? loader->epoch * loader->samples + k : k;
}

/* An endless source has a fresh sample behind every index, so each training epoch takes the next ones;
 * validation always sees the same. */
static int64_t sample_index(const tn_loader *loader, int64_t k) {
  if (loader->count < 0) return tn_crew_position(loader, k);
  return loader->options.shuffle ? tn_permute(loader->order_key, loader->count, k) : k;
}

/* Which sample of the epoch stands in a place. The one behind the last real one is what padding repeats:
 * the update's first, on every shard, so that how many shards there are makes no difference. */
static int64_t sample_at(const tn_loader *loader, const tn_pending *pending, int64_t place) {
  const tn_loader_options *o = &loader->options;
  int64_t blocks = (int64_t)o->shards * o->accumulate; /* of an update */
  if (place < pending->samples) return pending->block * o->batch + place;
  return pending->block / blocks * blocks * o->batch;
}

static void aim(tn_loader *loader, tn_reader *reader, tn_pending *pending, int64_t place) {
  int64_t index = sample_index(loader, sample_at(loader, pending, place));
  tn_reader_aim(reader, index, tn_hash_mix(loader->epoch_key, (uint64_t)index), pending->targets, place);
  if (pending->ids != NULL) pending->ids[place] = index;
}

static tn_status read_sample(tn_loader *loader, tn_reader *reader) {
  const char *where = loader->options.where != NULL ? loader->options.where : "";
  tn_status status = tn_reader_read(reader, loader->source, loader->self);
  if (status == TN_EOF)
    status = tn_failf(reader, TN_EINVAL, "the source ended here, but an epoch was to have %lld samples",
                      (long long)loader->samples);
  return tn_wrap(reader, status, "%s%ssource '%s', sample %lld", where, where[0] != '\0' ? ": " : "",
                 loader->source->item.name, (long long)reader->host.pub.index);
}

static void fill_chunk(tn_loader *loader, tn_reader *reader, tn_pending *pending, int64_t from, int64_t to) {
  for (int64_t place = from; place < to && !atomic_load(&loader->cancelled); place++) {
    aim(loader, reader, pending, place);
    tn_status status = read_sample(loader, reader);
    if (status == TN_OK) status = tn_reader_transform(reader);
    if (status != TN_OK) tn_pending_fail(pending, place, status, reader);
  }
}

/* A stream goes on from where it is, except to pass over the blocks of other shards, and for the sample
 * that padding repeats. */
static tn_status seek_place(tn_loader *loader, tn_reader *reader, const tn_pending *pending, int64_t place) {
  bool jumps = place == pending->samples || (place == 0 && loader->options.shards > 1);
  if (!jumps) return TN_OK;
  int64_t position = tn_crew_position(loader, sample_at(loader, pending, place));
  tn_status status = loader->source->seek(tn_reader_env(reader), loader->self, position);
  return tn_wrap(reader, status, "source '%s', going to sample %lld", loader->source->item.name,
                 (long long)position);
}

/* One sample of a stream, which is a chunk of its own. Reading is done under the lock that the caller
 * took before it drew the ticket; transforming is not. */
static void fill_from_stream(tn_loader *loader, tn_reader *reader, tn_pending *pending, int64_t place) {
  bool wanted = place < pending->filled && !atomic_load(&loader->cancelled);
  tn_status status = TN_OK;
  if (wanted) {
    aim(loader, reader, pending, place);
    status = seek_place(loader, reader, pending, place);
    if (status == TN_OK) status = read_sample(loader, reader);
  }
  pthread_mutex_unlock(&loader->turn);
  if (wanted && status == TN_OK) status = tn_reader_transform(reader);
  if (status != TN_OK) tn_pending_fail(pending, place, status, reader);
}

void tn_crew_take_chunk(tn_loader *loader, tn_reader *reader) {
  bool streaming = loader->source->next != NULL;
  if (streaming) pthread_mutex_lock(&loader->turn);
  int64_t ticket = atomic_fetch_add(&loader->ticket, 1), chunks = loader->chunks;
  tn_pending *pending = &loader->ring[ticket / chunks % loader->n_ring];
  int64_t chunk = ticket % chunks, batch = loader->options.batch;
  if (streaming) {
    fill_from_stream(loader, reader, pending, chunk);
  } else {
    int64_t from = chunk * batch / chunks, to = (chunk + 1) * batch / chunks;
    fill_chunk(loader, reader, pending, from, to < pending->filled ? to : pending->filled);
  }
  if (atomic_fetch_sub(&pending->remaining, 1) != 1) return;
  if (!atomic_load(&loader->cancelled)) tn_pending_complete(pending, loader->epoch_key);
  sem_post(&pending->done);
}

static void *work(void *arg) {
  tn_worker *worker = arg;
  tn_loader *loader = worker->loader;
  for (;;) {
    while (sem_wait(&loader->work) != 0 && errno == EINTR) continue;
    if (atomic_load(&loader->stopping)) return NULL;
    tn_crew_take_chunk(loader, &worker->reader);
  }
}

/* Signals are for the application's threads: a worker starts with all of them blocked. */
tn_status tn_crew_start(tn_loader *loader) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  for (int32_t i = 0; i < loader->options.workers && error == 0; i++) {
    error = pthread_create(&loader->workers[i].thread, NULL, work, &loader->workers[i]);
    loader->workers[i].started = error == 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) return TN_OK;
  return tn_failf(loader->messages, TN_EUNAVAILABLE, "cannot start %d worker threads: %s; lower `workers`",
                  (int)loader->options.workers, strerror(error));
}

void tn_crew_stop(tn_loader *loader) {
  atomic_store(&loader->stopping, true);
  for (int32_t i = 0; i < loader->n_workers; i++) sem_post(&loader->work);
  for (int32_t i = 0; loader->workers != NULL && i < loader->n_workers; i++)
    if (loader->workers[i].started) pthread_join(loader->workers[i].thread, NULL);
}
