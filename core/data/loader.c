/* core/data/loader.c: manages the ring of batches, and returns batches in order. */
#include "core/data/loader.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "core/base/system/system.h"
#include "core/data/workers.h"

/* Distinguishes the key of the shuffle from the keys of samples, which are derived from indices. */
static const uint64_t ORDER = UINT64_MAX;
/* The same for the samples of a shortened epoch. */
static const uint64_t CHOICE = UINT64_MAX - 1;
/* And for the orders of a balanced loader. */
static const uint64_t CLASSES = UINT64_MAX - 2;

static tn_status loader_make_ring(tn_loader *loader) {
  tn_env *env = &loader->env;
  loader->n_ring = loader->options.prefetch > 1 ? loader->options.prefetch : 1;
  loader->ring = tn_alloc(env, tn_size_mul((size_t)loader->n_ring, sizeof(tn_pending_batch)));
  if (loader->ring == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < loader->n_ring; i++)
    TN_TRY(tn_pending_batch_init(env, &loader->chain, loader->options.batch, &loader->ring[i]));
  return TN_OK;
}

/* Several chunks per worker balance the load if samples differ in cost. */
static int32_t loader_count_chunks(const tn_loader *loader) {
  int64_t chunks = loader->source->next != NULL ? loader->options.batch : 4 * (int64_t)loader->n_workers;
  if (chunks > loader->options.batch) chunks = loader->options.batch;
  return chunks < INT32_MAX ? (int32_t)chunks : INT32_MAX;
}

static tn_status loader_make_workers(tn_loader *loader) {
  tn_env *env = &loader->env;
  int32_t n = loader->options.workers > 1 ? loader->options.workers : 1;
  loader->workers = tn_alloc(env, tn_size_mul((size_t)n, sizeof(tn_worker)));
  if (loader->workers == NULL) return TN_ENOMEM;
  loader->n_workers = n;
  loader->chunks = loader_count_chunks(loader);
  for (int32_t i = 0; i < n; i++) {
    tn_reader *reader = &loader->workers[i].reader;
    loader->workers[i].loader = loader;
    TN_TRY(tn_reader_init(env, &loader->chain, loader->keeps ? &loader->cache : NULL, reader));
    reader->cancelled = &loader->cancelled;
    reader->stop = loader->options.stop;
    reader->patience_s = loader->options.patience_s;
  }
  return TN_OK;
}

static tn_loader *loader_new(tn_env *env, const tn_loader_options *options) {
  tn_loader *loader = tn_alloc(env, sizeof(*loader));
  if (loader == NULL) return NULL;
  tn_error_record_init(&loader->env, &loader->record, env);
  loader->messages = env;
  loader->options = *options;
  if (loader->options.shards == 0) loader->options.shards = 1;
  if (loader->options.accumulate == 0) loader->options.accumulate = 1;
  loader->source = options->source;
  loader->choice_key = tn_hash_mix(tn_hash_mix(options->seed, 0), CHOICE);
  loader->class_key = tn_hash_mix(tn_hash_mix(options->seed, 0), CLASSES);
  sem_init(&loader->work, 0, 0);
  pthread_mutex_init(&loader->stream_lock, NULL);
  atomic_init(&loader->ticket, 0);
  atomic_init(&loader->cancelled, false);
  atomic_init(&loader->stopping, false);
  atomic_init(&loader->profile, NULL);
  return loader;
}

tn_status tn_loader_create(tn_env *env, const tn_loader_options *options, tn_loader **out) {
  *out = NULL;
  tn_loader *loader = loader_new(env, options);
  if (loader == NULL) return TN_ENOMEM;
  tn_status status = tn_loader_prepare(loader);
  if (status == TN_OK) status = loader_make_ring(loader);
  if (status == TN_OK) status = loader_make_workers(loader);
  if (status != TN_OK) tn_error_move(env, &loader->env);
  if (status == TN_OK) status = tn_workers_start(loader);
  if (status == TN_OK) status = tn_loader_start(loader, 0, 0);
  if (status == TN_OK)
    *out = loader;
  else
    tn_loader_destroy(loader);
  return status;
}

static void loader_wait_semaphore(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

/* Looks at `stop` twenty times a second, since a signal handler may set it but cannot wake a thread. */
static tn_status loader_wait_unless_stopped(tn_loader *loader, sem_t *semaphore) {
  const long pause_ns = 50000000;
  double from = tn_clock_s();
  if (loader->options.stop == NULL) loader_wait_semaphore(semaphore);
  while (loader->options.stop != NULL) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += pause_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (sem_timedwait(semaphore, &until) == 0) break;
    if (atomic_load(loader->options.stop) && tn_clock_s() - from >= loader->options.patience_s)
      return tn_failf(loader->messages, TN_ESTOPPED, "stopped while waiting for a batch");
  }
  return TN_OK;
}

/* Without workers the calling thread fills the batch. */
static void loader_read_inline(tn_loader *loader) {
  if (loader->options.workers > 0) return;
  for (int32_t chunk = 0; chunk < loader->chunks; chunk++)
    tn_workers_fill_chunk(loader, &loader->workers[0].reader);
}

/* Cancels all submitted batches. Workers finish their current sample first. */
static void loader_drain(tn_loader *loader) {
  atomic_store(&loader->cancelled, true);
  for (; loader->waited < loader->submitted; loader->waited++) {
    tn_pending_batch *pending = &loader->ring[loader->waited % loader->n_ring];
    if (pending->filled == 0) continue;
    loader_read_inline(loader);
    loader_wait_semaphore(&pending->done);
  }
  atomic_store(&loader->cancelled, false);
}

void tn_loader_destroy(tn_loader *loader) {
  if (loader == NULL) return;
  if (loader->ring != NULL) loader_drain(loader);
  tn_workers_stop(loader);
  for (int32_t i = 0; loader->workers != NULL && i < loader->n_workers; i++)
    tn_reader_finish(&loader->workers[i].reader);
  for (int32_t i = 0; loader->ring != NULL && i < loader->n_ring; i++)
    tn_pending_batch_finish(&loader->ring[i]);
  tn_sample_cache_finish(&loader->env, &loader->cache);
  tn_balance_free(&loader->env, &loader->balance);
  tn_weighted_free(&loader->env, &loader->weighted);
  tn_open_source_drop(loader->open);
  tn_transform_chain_free(&loader->chain);
  tn_release(&loader->env, loader->told);
  tn_release(&loader->env, loader->workers);
  tn_release(&loader->env, loader->ring);
  sem_destroy(&loader->work);
  pthread_mutex_destroy(&loader->stream_lock);
  tn_release(loader->messages, loader);
}

int32_t tn_loader_field_count(const tn_loader *loader) { return loader->chain.n_outputs; }
const tn_field *tn_loader_field(const tn_loader *loader, int32_t i) { return &loader->chain.fields[i]; }
const tn_transform_chain *tn_loader_chain(const tn_loader *loader) { return &loader->chain; }
tn_status tn_loader_sample_name(tn_loader *loader, int64_t index, char *text, size_t size) {
  const tn_source *s = loader->source;
  if (s->name != NULL) return s->name(&loader->env, loader->self, index, text, size);
  snprintf(text, size, "sample %lld", (long long)index);
  return TN_OK;
}

tn_status tn_loader_class_of(tn_loader *loader, int64_t index, int64_t *number) {
  const tn_source *s = loader->source;
  if (s->class_of == NULL || loader->count < 0) return TN_EUNSUPPORTED;
  tn_status status = s->class_of(&loader->env, loader->self, index, number);
  if (status != TN_OK) tn_error_move(loader->messages, &loader->env);
  return status;
}

tn_status tn_loader_learnt(tn_loader *loader, const char **text) {
  const tn_source *s = loader->source;
  *text = NULL;
  if (s->learnt == NULL) return TN_OK;
  tn_status status = s->learnt(&loader->env, loader->self, text);
  if (status == TN_OK) return TN_OK;
  tn_wrap(&loader->env, status, "source '%s'", s->item.name);
  return tn_error_move(loader->messages, &loader->env);
}

bool tn_loader_is_weighted(const tn_loader *loader) { return loader->weighted.n > 0; }

const tn_balance *tn_loader_balance(const tn_loader *loader) {
  return loader->options.balance ? &loader->balance : NULL;
}
int64_t tn_loader_samples(const tn_loader *loader) { return loader->samples; }
int64_t tn_loader_batches(const tn_loader *loader) { return loader->batches; }

tn_loader_cache_info tn_loader_cache(const tn_loader *loader) {
  const tn_sample_cache *cache = &loader->cache;
  return (tn_loader_cache_info){.count = loader->count,
                                .kept = atomic_load_explicit(&cache->kept, memory_order_relaxed),
                                .bytes = atomic_load_explicit(&cache->taken, memory_order_relaxed),
                                .keeps = loader->keeps,
                                .full = atomic_load_explicit(&cache->full, memory_order_relaxed)};
}

double tn_loader_stall_s(const tn_loader *loader) { return loader->stall_s; }

void tn_loader_profile(tn_loader *loader, tn_timeline *timeline) { atomic_store(&loader->profile, timeline); }

/* Seeks a stream to the start of the first batch. A position is a number of samples. The epochs of an
 * endless stream are consecutive; the epochs of a finite stream all begin at 0. With several shards each
 * batch seeks to its own block. */
static tn_status loader_seek_stream(tn_loader *loader) {
  if (loader->source->next == NULL || loader->options.shards > 1) return TN_OK;
  int64_t position = tn_workers_stream_position(loader, loader->first * loader->options.batch);
  tn_status status = loader->source->seek(&loader->env, loader->self, position);
  tn_wrap(&loader->env, status, "source '%s', seek to sample %lld", loader->source->item.name,
          (long long)position);
  if (status != TN_OK) tn_error_move(loader->messages, &loader->env);
  return status;
}

tn_status tn_loader_start_updates(tn_loader *loader, int64_t epoch, const tn_epoch_updates *updates) {
  int64_t end, first = updates->first;
  if (epoch < 0 || first < 0 || first > updates->batches ||
      __builtin_mul_overflow(epoch + 1, loader->samples, &end))
    return tn_failf(loader->messages, TN_EINVAL,
                    "there is no batch %lld in epoch %lld: an epoch has %lld batches", (long long)first,
                    (long long)epoch, (long long)updates->batches);
  loader_drain(loader);
  loader->submitted = loader->waited = 0;
  loader->stall_s = 0;
  loader->epoch = epoch;
  loader->first = first;
  loader->epoch_batches = updates->batches;
  loader->last_update = updates->last;
  loader->epoch_key = tn_hash_mix(loader->options.seed, loader->options.training ? (uint64_t)epoch : 0);
  loader->order_key = tn_hash_mix(loader->epoch_key, ORDER);
  atomic_store(&loader->ticket, 0);
  return loader_seek_stream(loader);
}

tn_status tn_loader_start(tn_loader *loader, int64_t epoch, int64_t first) {
  const tn_epoch_updates equal = {first, loader->batches, -1};
  return tn_loader_start_updates(loader, epoch, &equal);
}

static int64_t loader_real_samples(const tn_loader *loader, int64_t block) {
  int64_t size = loader->options.batch, left = loader->samples - block * size;
  return left < 0 ? 0 : left < size ? left : size;
}

tn_status tn_loader_new_batch(const tn_loader *loader, tn_arena *arena, int64_t samples, tn_batch *batch) {
  int32_t n = tn_loader_field_count(loader);
  void **fields = tn_arena_alloc(arena, tn_size_mul((size_t)n, sizeof *fields));
  batch->weights = tn_arena_alloc(arena, tn_size_mul((size_t)samples, sizeof(float)));
  if (fields == NULL || batch->weights == NULL) return TN_ENOMEM;
  batch->fields = fields;
  for (int32_t i = 0; i < n; i++) {
    size_t bytes = tn_type_bytes(&tn_loader_field(loader, i)->type);
    fields[i] = tn_arena_alloc(arena, tn_size_mul(bytes, (size_t)samples));
    if (fields[i] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

tn_status tn_loader_submit(tn_loader *loader, const tn_batch *batch) {
  if (loader->submitted - loader->waited == loader->n_ring)
    return tn_failf(loader->messages, TN_EINTERNAL,
                    "a batch was submitted while %d are pending, which is the limit", (int)loader->n_ring);
  tn_pending_batch *pending = &loader->ring[loader->submitted % loader->n_ring];
  int64_t number = loader->first + loader->submitted++;
  bool inside = number < loader->epoch_batches;
  int64_t block = inside ? number * loader->options.shards + loader->options.shard : 0;
  tn_pending_batch_aim(pending, batch, block, inside ? loader_real_samples(loader, block) : -1);
  atomic_store(&pending->remaining, loader->chunks);
  if (pending->filled > 0 && loader->options.workers > 0)
    for (int32_t chunk = 0; chunk < loader->chunks; chunk++) sem_post(&loader->work);
  return TN_OK;
}

tn_status tn_loader_wait(tn_loader *loader, int64_t *samples) {
  *samples = 0;
  if (loader->waited == loader->submitted)
    return tn_failf(loader->messages, TN_EINTERNAL, "tn_loader_wait was called without a submitted batch");
  tn_pending_batch *pending = &loader->ring[loader->waited % loader->n_ring];
  if (pending->filled > 0 && sem_trywait(&pending->done) != 0) {
    double start = tn_clock_s();
    loader_read_inline(loader);
    TN_TRY(loader_wait_unless_stopped(loader, &pending->done));
    loader->stall_s += tn_clock_s() - start;
  }
  loader->waited++;
  if (pending->filled == 0) return TN_EOF;
  if (pending->status != TN_OK) return tn_error_move(loader->messages, pending);
  *samples = pending->samples;
  loader->length = pending->length;
  return TN_OK;
}

int32_t tn_loader_length(const tn_loader *loader) { return loader->length; }
