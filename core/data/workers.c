/* core/data/workers.c: fills batches chunk by chunk, and runs the worker threads. */
#include "core/data/workers.h"

#include <errno.h>
#include <string.h>

#include "core/base/system/system.h"
#include "core/data/shuffle.h"

int64_t tn_workers_stream_position(const tn_loader *loader, int64_t k) {
  return loader->count < 0 && loader->options.training ? loader->epoch * loader->samples + k : k;
}

/* The index of sample k. An endless source has a new sample for every index, so each training epoch uses
 * the next range; validation uses the same range each time. */
static int64_t worker_sample_index(const tn_loader *loader, int64_t k) {
  if (loader->count < 0) return tn_workers_stream_position(loader, k);
  if (loader->options.shuffle) return tn_permute(loader->order_key, loader->count, k);
  bool all = loader->samples == loader->count || loader->source->next != NULL;
  return all ? k : tn_sample_spread(loader->choice_key, loader->count, loader->samples, k);
}

/* The sample of the epoch at a row of the batch. The row behind the last real sample holds the
 * sample that padding repeats: the first of the update, for every number of shards. */
static int64_t worker_sample_at(const tn_loader *loader, const tn_pending_batch *pending, int64_t row) {
  const tn_loader_options *o = &loader->options;
  int64_t blocks = (int64_t)o->shards * o->accumulate; /* of an update */
  if (row < pending->samples) return pending->block * o->batch + row;
  if (loader->last_update >= 0) return loader->last_update * o->shards * o->batch;
  return pending->block / blocks * blocks * o->batch;
}

/* The index and the random key of sample k of a balanced epoch. */
static int64_t worker_draw_balanced(const tn_loader *loader, int64_t k, uint64_t *key) {
  int64_t place = tn_permute(loader->order_key, loader->samples, k);
  tn_balanced drawn =
      tn_balance_draw(&loader->balance, loader->class_key, loader->epoch * loader->samples + place);
  *key = tn_hash_mix(tn_hash_mix(loader->epoch_key, (uint64_t)drawn.index), drawn.round);
  return drawn.index;
}

/* The same of an epoch that is drawn by weights: a sample that comes again has another key. */
static int64_t worker_draw_weighted(const tn_loader *loader, int64_t k, uint64_t *key) {
  int64_t index = tn_weighted_draw(&loader->weighted, loader->order_key, k);
  *key = tn_hash_mix(tn_hash_mix(loader->epoch_key, (uint64_t)index), (uint64_t)k);
  return index;
}

/* The index and the random key of sample k of an epoch. */
static int64_t worker_draw(const tn_loader *loader, int64_t k, uint64_t *key) {
  if (loader->options.balance) return worker_draw_balanced(loader, k, key);
  if (loader->weighted.n > 0) return worker_draw_weighted(loader, k, key);
  int64_t index = worker_sample_index(loader, k);
  *key = tn_hash_mix(loader->epoch_key, (uint64_t)index);
  return index;
}

static void worker_aim(const tn_loader *loader, tn_reader *reader, const tn_pending_batch *pending,
                       int64_t row) {
  uint64_t key;
  int64_t index = worker_draw(loader, worker_sample_at(loader, pending, row), &key);
  tn_reader_aim(reader, index, key, pending->targets, row);
}

/* Rows of a batch whose samples are drawn together: a shuffled order costs less for several samples, and the
 * source gets their numbers. */
enum { WORKER_ROWS = 32 };

typedef struct worker_draws {
  int64_t index[WORKER_ROWS];
  uint64_t key[WORKER_ROWS];
} worker_draws;

/* Draws the samples of n rows, of which the last may be the one that padding repeats. */
static void worker_draw_rows(const tn_loader *loader, const tn_pending_batch *pending, int64_t row, int32_t n,
                             worker_draws *d) {
  bool plain = loader->count >= 0 && loader->options.shuffle && !loader->options.balance &&
               loader->weighted.n == 0 && row + n <= pending->samples;
  if (plain)
    tn_permute_many(loader->order_key, loader->count, worker_sample_at(loader, pending, row), n, d->index);
  for (int32_t i = 0; i < n && plain; i++) d->key[i] = tn_hash_mix(loader->epoch_key, (uint64_t)d->index[i]);
  for (int32_t i = 0; i < n && !plain; i++)
    d->index[i] = worker_draw(loader, worker_sample_at(loader, pending, row + i), &d->key[i]);
  if (loader->source->ahead != NULL) loader->source->ahead(loader->self, d->index, n);
}

enum { WORKER_NAME = 1024 }; /* bytes of a sample's name in messages */

/* Puts the place of the sample in front of a failure: its number, and the name that its source has for it,
 * unless the text says that already. */
static tn_status worker_name_sample(const tn_loader *loader, tn_reader *reader, tn_status status) {
  const char *where = loader->options.where != NULL ? loader->options.where : "";
  const tn_source *source = loader->source;
  char name[WORKER_NAME] = "";
  tn_error_record record;
  tn_env env;
  if (status == TN_OK) return TN_OK;
  tn_error_record_init(&env, &record, tn_reader_env(reader));
  int64_t index = reader->host.pub.index;
  bool named = source->name != NULL && source->name(&env, loader->self, index, name, sizeof name) == TN_OK &&
               name[0] != '\0' && strstr(tn_error_text(reader), name) == NULL;
  return tn_wrap(reader, status, "%s%ssource '%s', sample %lld%s%s%s", where, where[0] != '\0' ? ": " : "",
                 source->item.name, (long long)index, named ? " (" : "", named ? name : "", named ? ")" : "");
}

static tn_status worker_read_sample(tn_loader *loader, tn_reader *reader) {
  const atomic_int *stop = loader->options.stop;
  bool waits = loader->options.patience_s > 0 && !atomic_load(&loader->gave_up);
  if (stop != NULL && atomic_load(stop) != 0 && !waits)
    return tn_failf(reader, TN_ESTOPPED, "stopped while samples were read");
  tn_error_clear(reader); /* of an earlier sample */
  tn_status status = tn_reader_read(reader, loader->source, loader->self);
  if (status == TN_ESTOPPED && !atomic_load(&loader->cancelled)) atomic_store(&loader->gave_up, true);
  if (status == TN_EOF)
    status = tn_failf(reader, TN_EINVAL, "the source ended here, but an epoch has %lld samples",
                      (long long)loader->samples);
  return worker_name_sample(loader, reader, status);
}

/* ---- corrupt samples ---- */

/* So many in a row are no accident. */
enum { WORKER_MOST_CORRUPT = 1000 };

/* Each sample is named once. A stream does not number its samples. */
static void worker_tell_corrupt(tn_loader *loader, tn_reader *reader) {
  int64_t index = reader->host.pub.index;
  if (loader->told != NULL && atomic_exchange(&loader->told[index], 1) != 0) return;
  tn_logf(reader, TN_LOG_WARN, "%s; the next sample takes its place (corrupt = skip)", tn_error_text(reader));
}

/* The first sample from this one on that can be read, with the key of this one. */
static tn_status worker_read_or_next(tn_loader *loader, tn_reader *reader) {
  tn_status status = worker_read_sample(loader, reader);
  for (int32_t tried = 0; status == TN_EINVAL && loader->options.skip_corrupt; tried++) {
    if (tried == WORKER_MOST_CORRUPT)
      return tn_wrap(reader, status, "%d samples in a row cannot be read, the last of them", tried);
    worker_tell_corrupt(loader, reader);
    int64_t next = reader->host.pub.index + 1;
    reader->host.pub.index = loader->count > 0 ? next % loader->count : next;
    status = worker_read_sample(loader, reader);
  }
  return status;
}

/* ---- the profile ---- */

/* A chunk that is being filled. */
typedef struct worker_chunk {
  tn_timeline *timeline; /* NULL: no profile is taken */
  tn_span span;
} worker_chunk;

/* Without threads, the thread that launches reads. */
static int32_t worker_track(const tn_loader *loader, const tn_reader *reader) {
  int32_t i = 0;
  if (loader->options.workers == 0) return TN_TRACK_HOST;
  while (&loader->workers[i].reader != reader) i++;
  return TN_TRACK_WORKER + i;
}

static worker_chunk worker_begin_chunk(tn_loader *loader, const tn_reader *reader, int64_t batch) {
  worker_chunk chunk = {.timeline = atomic_load(&loader->profile)};
  if (chunk.timeline == NULL) return chunk;
  chunk.span = (tn_span){
      .kind = TN_SPAN_READ, .track = worker_track(loader, reader), .number = batch, .start_s = tn_clock_s()};
  return chunk;
}

static void worker_end_chunk(worker_chunk *chunk) {
  if (chunk->timeline == NULL) return;
  chunk->span.end_s = tn_clock_s();
  tn_timeline_add(chunk->timeline, &chunk->span);
}

/* ---- chunks ---- */

static tn_status worker_read_timed(tn_loader *loader, tn_reader *reader, worker_chunk *chunk) {
  if (chunk->timeline == NULL) return worker_read_or_next(loader, reader);
  double start = tn_clock_s();
  tn_status status = worker_read_or_next(loader, reader);
  chunk->span.reading_s += tn_clock_s() - start;
  return status;
}

static void worker_fill_rows(tn_loader *loader, tn_reader *reader, tn_pending_batch *pending,
                             worker_chunk *chunk, int64_t from, int64_t to) {
  worker_draws draws;
  for (int64_t row = from; row < to && !atomic_load(&loader->cancelled); row++) {
    int32_t i = (int32_t)((row - from) % WORKER_ROWS);
    if (i == 0)
      worker_draw_rows(loader, pending, row, (int32_t)(to - row < WORKER_ROWS ? to - row : WORKER_ROWS),
                       &draws);
    tn_reader_aim(reader, draws.index[i], draws.key[i], pending->targets, row);
    tn_status status = worker_read_timed(loader, reader, chunk);
    if (pending->ids != NULL) pending->ids[row] = reader->host.pub.index;
    if (status == TN_OK) status = tn_reader_transform(reader);
    if (status != TN_OK) tn_pending_batch_fail(pending, row, status, reader);
  }
}

/* A stream continues at its current position, except to skip the blocks of other shards, and for the
 * sample that padding repeats. */
static tn_status worker_seek_position(tn_loader *loader, tn_reader *reader, const tn_pending_batch *pending,
                                      int64_t row) {
  bool jumps = row == pending->samples || (row == 0 && loader->options.shards > 1);
  if (!jumps) return TN_OK;
  int64_t position = tn_workers_stream_position(loader, worker_sample_at(loader, pending, row));
  tn_status status = loader->source->seek(tn_reader_env(reader), loader->self, position);
  return tn_wrap(reader, status, "source '%s', seek to sample %lld", loader->source->item.name,
                 (long long)position);
}

/* Reads one sample of a stream, which is one chunk. The caller holds the lock since before it drew the
 * ticket; it is released after reading, before transforming. */
static void worker_fill_from_stream(tn_loader *loader, tn_reader *reader, tn_pending_batch *pending,
                                    worker_chunk *chunk, int64_t row) {
  bool wanted = row < pending->filled && !atomic_load(&loader->cancelled);
  tn_status status = TN_OK;
  if (wanted) {
    worker_aim(loader, reader, pending, row);
    status = worker_seek_position(loader, reader, pending, row);
    if (status == TN_OK) status = worker_read_timed(loader, reader, chunk);
    if (pending->ids != NULL) pending->ids[row] = reader->host.pub.index;
  }
  pthread_mutex_unlock(&loader->stream_lock);
  if (wanted && status == TN_OK) status = tn_reader_transform(reader);
  if (status != TN_OK) tn_pending_batch_fail(pending, row, status, reader);
}

/* The transforms of a whole batch are a span of their own. */
static void worker_complete(tn_loader *loader, const tn_reader *reader, tn_pending_batch *pending,
                            int64_t number) {
  if (atomic_load(&loader->cancelled)) return;
  worker_chunk timed = {.timeline = NULL};
  if (loader->chain.n_sample_stages < loader->chain.n_stages)
    timed = worker_begin_chunk(loader, reader, number);
  tn_pending_batch_complete(pending, loader->epoch_key);
  worker_end_chunk(&timed);
}

void tn_workers_fill_chunk(tn_loader *loader, tn_reader *reader) {
  bool streaming = loader->source->next != NULL;
  if (streaming) pthread_mutex_lock(&loader->stream_lock);
  int64_t ticket = atomic_fetch_add(&loader->ticket, 1), chunks = loader->chunks;
  tn_pending_batch *pending = &loader->ring[ticket / chunks % loader->n_ring];
  int64_t chunk = ticket % chunks, batch = loader->options.batch;
  worker_chunk timed = worker_begin_chunk(loader, reader, loader->first + ticket / chunks);
  if (streaming) {
    worker_fill_from_stream(loader, reader, pending, &timed, chunk);
  } else {
    int64_t from = chunk * batch / chunks, to = (chunk + 1) * batch / chunks;
    worker_fill_rows(loader, reader, pending, &timed, from, to < pending->filled ? to : pending->filled);
  }
  worker_end_chunk(&timed); /* before the batch is done: then nothing more is added for it */
  if (atomic_fetch_sub(&pending->remaining, 1) != 1) return;
  worker_complete(loader, reader, pending, timed.span.number);
  sem_post(&pending->done);
}

static void *worker_run(void *arg) {
  tn_worker *worker = arg;
  tn_loader *loader = worker->loader;
  TN_THREAD_STATE;
  for (;;) {
    while (sem_wait(&loader->work) != 0 && errno == EINTR) continue;
    if (atomic_load(&loader->stopping)) return NULL;
    tn_workers_fill_chunk(loader, &worker->reader);
  }
}

tn_status tn_workers_start(tn_loader *loader) {
  int error = 0;
  for (int32_t i = 0; i < loader->options.workers && error == 0; i++) {
    error = tn_thread_start(&loader->workers[i].thread, worker_run, &loader->workers[i]);
    loader->workers[i].started = error == 0;
  }
  if (error == 0) return TN_OK;
  return tn_failf(loader->messages, TN_EUNAVAILABLE, "cannot start %d worker threads: %s; lower `workers`",
                  (int)loader->options.workers, strerror(error));
}

void tn_workers_stop(tn_loader *loader) {
  atomic_store(&loader->stopping, true);
  for (int32_t i = 0; i < loader->n_workers; i++) sem_post(&loader->work);
  for (int32_t i = 0; loader->workers != NULL && i < loader->n_workers; i++)
    if (loader->workers[i].started) pthread_join(loader->workers[i].thread, NULL);
}
