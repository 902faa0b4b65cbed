/* core/data/sample_cache.h: samples as the source gave them, decoded, kept in memory from the first read on,
 * so that later epochs do not read them again. Kept are those that come first until the memory granted is
 * used up; the others are read each time. What a batch holds is the same either way.
 *
 * Any number of threads look up and add samples at once, and none waits: a sample is published by one atomic
 * store of its address, and memory is taken in blocks that belong to one thread. */
#ifndef TN_CORE_DATA_SAMPLE_CACHE_H
#define TN_CORE_DATA_SAMPLE_CACHE_H

#include <stdatomic.h>

#include "core/data/transform_chain.h"

/* Memory that one thread adds samples to. */
typedef struct tn_cache_block tn_cache_block;
typedef struct tn_cache_hand {
  tn_cache_block *newest; /* and through it all older ones */
} tn_cache_hand;

typedef struct tn_cache {
  const tn_chain *chain;
  int64_t count;
  _Atomic(const char *) *sample;     /* [count]; NULL: not kept */
  _Atomic int64_t left, taken, kept; /* bytes that may still be taken, and that were; samples */
  atomic_bool full;
} tn_cache;

/* For a source of `count` samples; most_bytes is all that may be taken, the table of addresses included. A
 * table that does not fit leaves a cache that keeps nothing. */
tn_status tn_cache_init(tn_env *env, const tn_chain *chain, int64_t count, int64_t most_bytes,
                        tn_cache *cache);
void tn_cache_finish(tn_env *env, tn_cache *cache);
/* Gives a thread's memory back; nobody may look up any more. */
void tn_cache_hand_finish(const void *handle, tn_cache_hand *hand);

/* A field's value; its type has every dimension known. */
typedef struct tn_kept {
  tn_type type;
  const void *data;
} tn_kept;

/* Where a kept sample begins, or NULL. */
static inline const char *tn_cache_find(const tn_cache *cache, int64_t index) {
  if (cache->sample == NULL || index < 0 || index >= cache->count) return NULL;
  return atomic_load_explicit(&cache->sample[index], memory_order_acquire);
}
/* The fields of a kept sample, as many as the chain has. */
void tn_cache_look(const tn_cache *cache, const char *sample, tn_kept *fields);
/* Copies a sample if there is room. `handle` is the thread's. */
void tn_cache_keep(tn_cache *cache, tn_cache_hand *hand, const void *handle, int64_t index,
                   const tn_kept *fields);

#endif
