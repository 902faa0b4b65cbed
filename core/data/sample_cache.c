/* core/data/sample_cache.c: samples one behind the other in blocks, each found through a table of addresses.
 */
#include "core/data/sample_cache.h"

#include <string.h>

/* A block has room for many samples, or for one that is larger. */
enum { BLOCK = 1 << 20, ALIGNMENT = 16 };

struct tn_cache_block {
  tn_cache_block *older;
  size_t size, used; /* with this head */
};

static size_t aligned(size_t bytes) {
  return bytes > SIZE_MAX - ALIGNMENT ? SIZE_MAX : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Takes a part of what was granted; false where less is left. */
static bool take(tn_cache *cache, size_t bytes) {
  int64_t wanted = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
  int64_t left = atomic_load(&cache->left);
  do
    if (left < wanted) return false;
  while (!atomic_compare_exchange_weak(&cache->left, &left, left - wanted));
  atomic_fetch_add(&cache->taken, wanted);
  return true;
}

tn_status tn_cache_init(tn_env *env, const tn_chain *chain, int64_t count, int64_t most_bytes,
                        tn_cache *cache) {
  *cache = (tn_cache){.chain = chain, .count = count};
  atomic_init(&cache->left, most_bytes);
  size_t table = tn_size_mul((size_t)count, sizeof(*cache->sample));
  if (!take(cache, table)) return TN_OK;
  cache->sample = tn_alloc(env, table);
  return cache->sample != NULL ? TN_OK : TN_ENOMEM;
}

void tn_cache_finish(tn_env *env, tn_cache *cache) {
  tn_release(env, (void *)cache->sample);
  cache->sample = NULL;
}

void tn_cache_hand_finish(const void *handle, tn_cache_hand *hand) {
  while (hand->newest != NULL) {
    tn_cache_block *older = hand->newest->older;
    tn_release(handle, hand->newest);
    hand->newest = older;
  }
}

/* A field of varying size has its dimensions in front of its value. */
static bool varies(const tn_type *described) {
  for (int32_t d = 0; d < described->rank; d++)
    if (described->dims[d] < 0) return true;
  return false;
}

static size_t dims_bytes(const tn_type *described) {
  return varies(described) ? aligned((size_t)described->rank * sizeof(int64_t)) : 0;
}

static size_t sample_bytes(const tn_cache *cache, const tn_kept *fields) {
  size_t bytes = 0;
  for (int32_t i = 0; i < cache->chain->n_fields; i++) {
    bytes = tn_size_add(bytes, dims_bytes(&cache->chain->source[i].type));
    bytes = tn_size_add(bytes, aligned(tn_chain_bytes(&fields[i].type)));
  }
  return bytes;
}

void tn_cache_look(const tn_cache *cache, const char *sample, tn_kept *fields) {
  for (int32_t i = 0; i < cache->chain->n_fields; i++) {
    const tn_type *described = &cache->chain->source[i].type;
    size_t dims = dims_bytes(described);
    fields[i].type = *described;
    if (dims > 0) memcpy(fields[i].type.dims, sample, (size_t)described->rank * sizeof(int64_t));
    fields[i].data = sample + dims;
    sample += dims + aligned(tn_chain_bytes(&fields[i].type));
  }
}

static void write_sample(const tn_cache *cache, const tn_kept *fields, char *to) {
  for (int32_t i = 0; i < cache->chain->n_fields; i++) {
    const tn_type *type = &fields[i].type;
    size_t dims = dims_bytes(&cache->chain->source[i].type), bytes = tn_chain_bytes(type);
    if (dims > 0) memcpy(to, type->dims, (size_t)type->rank * sizeof(int64_t));
    if (bytes > 0) memcpy(to + dims, fields[i].data, bytes);
    to += dims + aligned(bytes);
  }
}

/* A block with that much room becomes the newest. */
static bool add_block(tn_cache *cache, tn_cache_hand *hand, const void *handle, size_t bytes) {
  size_t head = aligned(sizeof(tn_cache_block));
  size_t size = bytes < BLOCK - head ? BLOCK : tn_size_add(head, bytes);
  if (!take(cache, size)) return false;
  tn_cache_block *block = tn_resize(handle, NULL, size);
  if (block == NULL) {
    tn_error_clear(handle); /* the sample itself was read: nothing is wrong with it */
    return false;
  }
  *block = (tn_cache_block){hand->newest, size, head};
  hand->newest = block;
  return true;
}

static bool has_room(const tn_cache_hand *hand, size_t bytes) {
  return hand->newest != NULL && hand->newest->size - hand->newest->used >= bytes;
}

void tn_cache_keep(tn_cache *cache, tn_cache_hand *hand, const void *handle, int64_t index,
                   const tn_kept *fields) {
  if (cache->sample == NULL || index < 0 || index >= cache->count) return;
  size_t bytes = sample_bytes(cache, fields);
  if (bytes == SIZE_MAX) return;
  if (!has_room(hand, bytes)) {
    if (atomic_load_explicit(&cache->full, memory_order_relaxed)) return;
    if (!add_block(cache, hand, handle, bytes)) {
      atomic_store_explicit(&cache->full, true, memory_order_relaxed);
      return;
    }
  }
  char *to = (char *)hand->newest + hand->newest->used;
  write_sample(cache, fields, to);
  const char *nothing = NULL;
  /* Another thread may have read the same sample meanwhile: the place stays free then. */
  if (!atomic_compare_exchange_strong(&cache->sample[index], &nothing, to)) return;
  hand->newest->used += bytes;
  atomic_fetch_add_explicit(&cache->kept, 1, memory_order_relaxed);
}
