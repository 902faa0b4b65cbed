/* core/data/prepare_loader.c: a loader before its first batch: its source, the size of an epoch, transforms
 * and cache. */
#include "core/data/byte_table.h"
#include "core/data/workers.h"

static tn_status loader_check_options(tn_env *env, const tn_loader_options *o) {
  if (o->batch < 1) return tn_failf(env, TN_EINVAL, "batch is %lld, expected >= 1", (long long)o->batch);
  if (o->workers < 0) return tn_failf(env, TN_EINVAL, "workers is %d, expected >= 0", (int)o->workers);
  if (o->shard < 0 || o->shard >= o->shards)
    return tn_failf(env, TN_EINVAL, "shard %d of %d, expected one of 0 .. shards - 1", (int)o->shard,
                    (int)o->shards);
  if (o->accumulate < 1)
    return tn_failf(env, TN_EINVAL, "%d batches an update, expected >= 1", (int)o->accumulate);
  if (o->epoch_samples < 0)
    return tn_failf(env, TN_EINVAL, "an epoch of %lld samples, expected >= 0", (long long)o->epoch_samples);
  const tn_source *s = o->source;
  if (s->open == NULL || s->close == NULL || s->describe == NULL || (s->read == NULL && s->next == NULL))
    return tn_failf(env, TN_EABI, "the source lacks one of open, close, describe, and read or next");
  if (s->next != NULL && s->seek == NULL) return tn_failf(env, TN_EABI, "the streaming source lacks seek");
  if (s->next != NULL && o->shuffle)
    return tn_failf(env, TN_EINVAL, "a streaming source cannot be shuffled; set shuffle = no");
  if (o->balance && !o->shuffle)
    return tn_failf(env, TN_EINVAL, "balance = yes draws samples at random, which shuffle = no excludes");
  return TN_OK;
}

/* Opens the source, or takes that of options.like. */
static tn_status loader_open_source(tn_loader *loader, tn_description *description) {
  tn_open_source *other = loader->options.like != NULL ? loader->options.like->open : NULL;
  tn_status status = tn_open_source_get(&loader->env, &loader->options, other, &loader->open);
  loader->options.learnt = NULL; /* the text is the caller's */
  loader->options.like = NULL;
  TN_TRY(status);
  loader->source = loader->open->source;
  loader->self = loader->open->self;
  *description = loader->open->description;
  return TN_OK;
}

/* The samples of one update over all shards; INT64_MAX on overflow. */
static int64_t loader_update_samples(const tn_loader_options *o) {
  int64_t blocks = (int64_t)o->shards * o->accumulate, samples;
  return __builtin_mul_overflow(blocks, o->batch, &samples) ? INT64_MAX : samples;
}

/* The updates of the shorter epoch. Products such as 100 * 0.29 are a little below the whole number. */
static int64_t loader_limit_updates(const tn_loader_options *o, int64_t updates) {
  const double rounding = 1e-9;
  int64_t limit = updates;
  if (o->limit.batches > 0) limit = o->limit.batches / o->accumulate;
  if (o->limit.part > 0) limit = (int64_t)((double)updates * o->limit.part + rounding);
  if (limit < 1) limit = 1;
  return limit < updates ? limit : updates;
}

/* Computes the samples and batches of an epoch. */
static tn_status loader_measure_epoch(tn_loader *loader, const tn_description *description) {
  const tn_loader_options *o = &loader->options;
  tn_env *env = &loader->env;
  int64_t count = description->count;
  const char *key = o->epoch_key != NULL ? o->epoch_key : "epoch";
  int64_t wanted = o->epoch_samples > 0 ? o->epoch_samples : count < 0 ? description->epoch : count;
  if (count < -1)
    return tn_failf(env, TN_EABI, "it describes %lld samples, expected -1 or more", (long long)count);
  if (count == 0) return tn_failf(env, TN_EINVAL, "it has no samples");
  if (count > 0 && wanted > count)
    return tn_failf(env, TN_EINVAL,
                    "it has %lld samples, fewer than the %lld of %s; leave %s out to take all of them",
                    (long long)count, (long long)wanted, key, key);
  if (wanted < 1)
    return tn_failf(env, TN_EINVAL, "it is endless; set epoch to the number of samples in an epoch");
  loader->count = count;
  loader->samples = wanted;
  int64_t update = loader_update_samples(o);
  int64_t updates = loader->samples / update + (o->pad_last && loader->samples % update != 0);
  if (updates == 0)
    return tn_failf(env, TN_EINVAL, "an epoch has %lld samples, which do not fill one batch of %lld",
                    (long long)loader->samples, (long long)update);
  int64_t kept = loader_limit_updates(o, updates);
  if (kept < updates) loader->samples = kept * update;
  updates = kept;
  if (!__builtin_mul_overflow(updates, o->accumulate, &loader->batches)) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%lld updates of %d batches are more than can be counted",
                  (long long)updates, (int)o->accumulate);
}

static tn_status loader_make_told(tn_loader *loader) {
  if (!loader->options.skip_corrupt || loader->count < 0 || loader->source->next != NULL) return TN_OK;
  loader->told = tn_alloc(&loader->env, (size_t)loader->count);
  return loader->told != NULL ? TN_OK : TN_ENOMEM;
}

/* Creates the cache of samples. A stream has no sample index to look up. */
static tn_status loader_make_cache(tn_loader *loader, const tn_description *description) {
  int64_t bytes = loader->options.cache_bytes;
  if (bytes <= 0 || !description->keep || loader->count < 0 || loader->source->next != NULL) return TN_OK;
  loader->keeps = true;
  return tn_sample_cache_init(&loader->env, &loader->chain, loader->count, bytes, &loader->cache);
}

/* The transforms: where they run, and the host's as tables. */
static tn_status loader_make_chain(tn_loader *loader, const tn_description *description) {
  TN_TRY(tn_transform_chain_create(&loader->env, &loader->options, description, &loader->chain));
  TN_TRY(tn_transform_chain_place(&loader->env, &loader->options, &loader->chain));
  return tn_byte_tables_make(&loader->env, &loader->chain);
}

/* Weights have a meaning for training alone: validation reads every sample once. */
static tn_status loader_take_weights(tn_loader *loader) {
  const tn_loader_options *o = &loader->options;
  TN_TRY(tn_weighted_make(&loader->env, loader->source, loader->self, loader->count, &loader->weighted));
  if (loader->weighted.n == 0 || (o->shuffle && !o->balance)) return TN_OK;
  return tn_failf(&loader->env, TN_EINVAL,
                  "its samples have weights and are drawn at random by them, which %s excludes; leave one of "
                  "the two out",
                  o->balance ? "balance = yes" : "shuffle = no");
}

tn_status tn_loader_prepare(tn_loader *loader) {
  const tn_loader_options *o = &loader->options;
  tn_description description;
  tn_status status = loader_check_options(&loader->env, o);
  if (status == TN_OK) status = loader_open_source(loader, &description);
  if (status == TN_OK) status = loader_measure_epoch(loader, &description);
  if (status == TN_OK && o->training) status = loader_take_weights(loader);
  if (status == TN_OK && o->balance)
    status = tn_balance_make(&loader->env, loader->source, loader->self, &description, &loader->balance);
  const char *where = o->where != NULL ? o->where : "";
  tn_wrap(&loader->env, status, "%s%ssource '%s'", where, where[0] != '\0' ? ": " : "", o->source->item.name);
  if (status == TN_OK) status = loader_make_told(loader);
  if (status == TN_OK) status = loader_make_chain(loader, &description);
  return status == TN_OK ? loader_make_cache(loader, &description) : status;
}
