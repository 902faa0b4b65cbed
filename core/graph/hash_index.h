/* core/graph/hash_index.h: finds the items of an array by hash. The index holds pairs of a hash and an item
 * number; the caller compares the items themselves. Open addressing, linear probing. */
#pragma once

#include "core/base/env.h"

enum { TN_HASH_INDEX_NONE = -1 };

typedef struct tn_hash_index {
  const void *handle;
  struct tn_hash_index_entry *entries;
  size_t n, cap; /* cap: a power of two, or 0 */
} tn_hash_index;

tn_hash_index tn_hash_index_new(const void *handle);
tn_status tn_hash_index_add(tn_hash_index *index, uint64_t hash, uint32_t item);
/* The next item with this hash, in insertion order, or TN_HASH_INDEX_NONE. Start with *probe = 0. */
int64_t tn_hash_index_next(const tn_hash_index *index, uint64_t hash, size_t *probe);
void tn_hash_index_free(tn_hash_index *index);
