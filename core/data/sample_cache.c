/* core/data/sample_cache.c: samples packed into blocks, with a table of their addresses. */
#include "core/data/sample_cache.h"

#include <string.h>

/* A block holds many samples, or one large sample. */
enum { BLOCK = 1 << 20, ALIGNMENT = 16 };

struct tn_sample_cache_block {
  tn_sample_cache_block *older;
  size_t size, used; /* including this header */
};

static size_t sample_cache_align(size_t bytes) {
  return bytes > SIZE_MAX - ALIGNMENT ? SIZE_MAX : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Reserves a part of the granted memory; false if less is left. */
static bool sample_cache_take_bytes(tn_sample_cache *cache, size_t bytes) {
  int64_t wanted = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
  int64_t left = atomic_load(&cache->left);
  do
    if (left < wanted) return false;
  while (!atomic_compare_exchange_weak(&cache->left, &left, left - wanted));
  atomic_fetch_add(&cache->taken, wanted);
  return true;
}

tn_status tn_sample_cache_init(tn_env *env, const tn_transform_chain *chain, int64_t count,
                               int64_t most_bytes, tn_sample_cache *cache) {
  *cache = (tn_sample_cache){.chain = chain, .count = count};
  atomic_init(&cache->left, most_bytes);
  size_t table = tn_size_mul((size_t)count, sizeof(*cache->sample));
  if (!sample_cache_take_bytes(cache, table)) return TN_OK;
  cache->sample = tn_alloc(env, table);
  return cache->sample != NULL ? TN_OK : TN_ENOMEM;
}

void tn_sample_cache_finish(tn_env *env, tn_sample_cache *cache) {
  tn_release(env, (void *)cache->sample);
  cache->sample = NULL;
}

void tn_sample_cache_writer_finish(const void *handle, tn_sample_cache_writer *writer) {
  while (writer->newest != NULL) {
    tn_sample_cache_block *older = writer->newest->older;
    tn_release(handle, writer->newest);
    writer->newest = older;
  }
}

/* Fields of varying size are stored with their dimensions in front. */
static bool sample_cache_varies(const tn_type *described) {
  for (int32_t d = 0; d < described->rank; d++)
    if (described->dims[d] < 0) return true;
  return false;
}

static size_t sample_cache_dims_bytes(const tn_type *described) {
  return sample_cache_varies(described) ? sample_cache_align((size_t)described->rank * sizeof(int64_t)) : 0;
}

static size_t sample_cache_sample_bytes(const tn_sample_cache *cache, const tn_cached_field *fields) {
  size_t bytes = 0;
  for (int32_t i = 0; i < cache->chain->n_fields; i++) {
    bytes = tn_size_add(bytes, sample_cache_dims_bytes(&cache->chain->source[i].type));
    bytes = tn_size_add(bytes, sample_cache_align(tn_transform_chain_bytes(&fields[i].type)));
  }
  return bytes;
}

void tn_sample_cache_fields(const tn_sample_cache *cache, const char *sample, tn_cached_field *fields) {
  for (int32_t i = 0; i < cache->chain->n_fields; i++) {
    const tn_type *described = &cache->chain->source[i].type;
    size_t dims = sample_cache_dims_bytes(described);
    fields[i].type = *described;
    if (dims > 0) memcpy(fields[i].type.dims, sample, (size_t)described->rank * sizeof(int64_t));
    fields[i].data = sample + dims;
    sample += dims + sample_cache_align(tn_transform_chain_bytes(&fields[i].type));
  }
}

static void sample_cache_write(const tn_sample_cache *cache, const tn_cached_field *fields, char *to) {
  for (int32_t i = 0; i < cache->chain->n_fields; i++) {
    const tn_type *type = &fields[i].type;
    size_t dims = sample_cache_dims_bytes(&cache->chain->source[i].type),
           bytes = tn_transform_chain_bytes(type);
    if (dims > 0) memcpy(to, type->dims, (size_t)type->rank * sizeof(int64_t));
    if (bytes > 0) memcpy(to + dims, fields[i].data, bytes);
    to += dims + sample_cache_align(bytes);
  }
}

/* Adds a block with room for `bytes` as the newest. */
static bool sample_cache_add_block(tn_sample_cache *cache, tn_sample_cache_writer *writer, const void *handle,
                                   size_t bytes) {
  size_t head = sample_cache_align(sizeof(tn_sample_cache_block));
  size_t size = bytes < BLOCK - head ? BLOCK : tn_size_add(head, bytes);
  if (!sample_cache_take_bytes(cache, size)) return false;
  tn_sample_cache_block *block = tn_resize(handle, NULL, size);
  if (block == NULL) {
    tn_error_clear(handle); /* failing to cache a sample is not an error */
    return false;
  }
  *block = (tn_sample_cache_block){writer->newest, size, head};
  writer->newest = block;
  return true;
}

static bool sample_cache_has_room(const tn_sample_cache_writer *writer, size_t bytes) {
  return writer->newest != NULL && writer->newest->size - writer->newest->used >= bytes;
}

void tn_sample_cache_add(tn_sample_cache *cache, tn_sample_cache_writer *writer, const void *handle,
                         int64_t index, const tn_cached_field *fields) {
  if (cache->sample == NULL || index < 0 || index >= cache->count) return;
  size_t bytes = sample_cache_sample_bytes(cache, fields);
  if (bytes == SIZE_MAX) return;
  if (!sample_cache_has_room(writer, bytes)) {
    if (atomic_load_explicit(&cache->full, memory_order_relaxed)) return;
    if (!sample_cache_add_block(cache, writer, handle, bytes)) {
      atomic_store_explicit(&cache->full, true, memory_order_relaxed);
      return;
    }
  }
  char *to = (char *)writer->newest + writer->newest->used;
  sample_cache_write(cache, fields, to);
  const char *nothing = NULL;
  /* If another thread has published the same sample meanwhile, the space is reused. */
  if (!atomic_compare_exchange_strong(&cache->sample[index], &nothing, to)) return;
  writer->newest->used += bytes;
  atomic_fetch_add_explicit(&cache->kept, 1, memory_order_relaxed);
}
