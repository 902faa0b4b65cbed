/* core/data/crew.c: fills batches, chunk by chunk. */
#include "core/data/crew.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* An endless source has a fresh sample behind every index, so each training epoch takes the next ones;
 * validation always sees the same. */
static int64_t sample_index(const tn_loader *loader, int64_t k) {
  if (loader->count < 0) return loader->options.training ? loader->epoch * loader->samples + k : k;
  return loader->options.shuffle ? tn_permute(loader->order_key, loader->count, k) : k;
}

static void aim(tn_loader *loader, tn_reader *reader, tn_pending *pending, int64_t place) {
  int64_t index = sample_index(loader, pending->number * loader->options.batch + place);
  tn_reader_aim(reader, index, tn_mix(loader->epoch_key, (uint64_t)index), pending->targets, place);
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

/* One sample of a stream, which is a chunk of its own. Reading is done under the lock that the caller
 * took before it drew the ticket; transforming is not. */
static void fill_from_stream(tn_loader *loader, tn_reader *reader, tn_pending *pending, int64_t place) {
  bool wanted = place < pending->samples && !atomic_load(&loader->cancelled);
  tn_status status = TN_OK;
  if (wanted) {
    aim(loader, reader, pending, place);
    status = read_sample(loader, reader);
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
    fill_chunk(loader, reader, pending, from, to < pending->samples ? to : pending->samples);
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
