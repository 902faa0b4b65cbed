/* core/graph/hash_index.c: open addressing with linear probing, at most half full. */
#include "core/graph/hash_index.h"

#include <stdbool.h>

struct tn_hash_index_entry {
  uint64_t hash;
  uint32_t item;
  bool taken;
};
typedef struct tn_hash_index_entry entry;

tn_hash_index tn_hash_index_new(const void *handle) { return (tn_hash_index){.handle = handle}; }

/* The low bits of FNV-1a are the better mixed ones; the high bits are folded into them. */
static size_t hash_index_home(uint64_t hash) { return (size_t)(hash ^ (hash >> 32)); }

static void hash_index_place(entry *entries, size_t cap, entry item) {
  size_t at = hash_index_home(item.hash) & (cap - 1);
  while (entries[at].taken) at = (at + 1) & (cap - 1);
  entries[at] = item;
}

/* Copies the old table from a gap on, so that items of equal hash keep their order. */
static tn_status hash_index_grow(tn_hash_index *index) {
  size_t cap = index->cap > 0 ? tn_size_mul(index->cap, 2) : 16;
  entry *entries = tn_alloc(index->handle, tn_size_mul(cap, sizeof *entries));
  if (entries == NULL) return TN_ENOMEM;
  size_t gap = 0;
  while (gap < index->cap && index->entries[gap].taken) gap++;
  for (size_t i = 0; i < index->cap; i++) {
    entry old = index->entries[(gap + i) & (index->cap - 1)];
    if (old.taken) hash_index_place(entries, cap, old);
  }
  tn_release(index->handle, index->entries);
  index->entries = entries;
  index->cap = cap;
  return TN_OK;
}

tn_status tn_hash_index_add(tn_hash_index *index, uint64_t hash, uint32_t item) {
  if (index->n >= index->cap / 2) TN_TRY(hash_index_grow(index));
  hash_index_place(index->entries, index->cap, (entry){.hash = hash, .item = item, .taken = true});
  index->n++;
  return TN_OK;
}

int64_t tn_hash_index_next(const tn_hash_index *index, uint64_t hash, size_t *probe) {
  while (*probe < index->cap) {
    const entry *s = &index->entries[(hash_index_home(hash) + *probe) & (index->cap - 1)];
    if (!s->taken) break;
    (*probe)++;
    if (s->hash == hash) return s->item;
  }
  return TN_HASH_INDEX_NONE;
}

void tn_hash_index_free(tn_hash_index *index) {
  tn_release(index->handle, index->entries);
  *index = tn_hash_index_new(index->handle);
}
