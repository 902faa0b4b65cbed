/* core/data/sample_cache.h: a cache of decoded samples, filled on the first read, so that later epochs do
 * not read them again. Samples are cached in the order of their first read until the granted memory is
 * used up. The contents of batches do not depend on the cache.
 *
 * The cache is lock-free: threads look up and add samples concurrently. A sample is published by one
 * atomic store of its address, and memory is reserved in blocks, each used by one thread. */
#pragma once

#include <stdatomic.h>

#include "core/data/transform_chain.h"

/* The memory to which one thread adds samples. */
typedef struct tn_sample_cache_block tn_sample_cache_block;
typedef struct tn_sample_cache_writer {
  tn_sample_cache_block *newest; /* head of the list of blocks */
} tn_sample_cache_writer;

typedef struct tn_sample_cache {
  const tn_transform_chain *chain;
  int64_t count;
  _Atomic(const char *) *sample;     /* [count]; NULL: not cached */
  _Atomic int64_t left, taken, kept; /* bytes left, bytes reserved, samples cached */
  atomic_bool full;
} tn_sample_cache;

/* Creates a cache for a source of `count` samples; most_bytes limits its memory, including the table of
 * addresses. If the table alone exceeds the limit, the cache stays empty. */
tn_status tn_sample_cache_init(tn_env *env, const tn_transform_chain *chain, int64_t count,
                               int64_t most_bytes, tn_sample_cache *cache);
void tn_sample_cache_finish(tn_env *env, tn_sample_cache *cache);
/* Frees the memory of one thread; no lookup may follow. */
void tn_sample_cache_writer_finish(const void *handle, tn_sample_cache_writer *writer);

/* The value of a field; its type has no varying dimensions. */
typedef struct tn_cached_field {
  tn_type type;
  const void *data;
} tn_cached_field;

/* The start of a cached sample, or NULL. */
static inline const char *tn_sample_cache_find(const tn_sample_cache *cache, int64_t index) {
  if (cache->sample == NULL || index < 0 || index >= cache->count) return NULL;
  return atomic_load_explicit(&cache->sample[index], memory_order_acquire);
}
/* Locates the fields of a cached sample, as many as the chain has. */
void tn_sample_cache_fields(const tn_sample_cache *cache, const char *sample, tn_cached_field *fields);
/* Copies a sample into the cache if there is room. `handle` is the thread's. */
void tn_sample_cache_add(tn_sample_cache *cache, tn_sample_cache_writer *writer, const void *handle,
                         int64_t index, const tn_cached_field *fields);
