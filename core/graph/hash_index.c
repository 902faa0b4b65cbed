/* core/graph/hash_index.c: open addressing with linear probing, at most half full. */
#include "core/graph/hash_index.h"

#include <stdbool.h>

struct tn_hash_index_slot {
  uint64_t hash;
  uint32_t item;
  bool taken;
};
typedef struct tn_hash_index_slot slot;

tn_hash_index tn_hash_index_new(const void *handle) { return (tn_hash_index){.handle = handle}; }

/* FNV-1a leaves its low bits the better ones, yet a last fold costs nothing. */
static size_t home(uint64_t hash) { return (size_t)(hash ^ (hash >> 32)); }

static void place(slot *slots, size_t cap, slot what) {
  size_t at = home(what.hash) & (cap - 1);
  while (slots[at].taken) at = (at + 1) & (cap - 1);
  slots[at] = what;
}

/* Growing goes through the old table from a gap on, so that items of one hash keep their order. */
static tn_status grow(tn_hash_index *index) {
  size_t cap = index->cap > 0 ? tn_size_mul(index->cap, 2) : 16;
  slot *slots = tn_alloc(index->handle, tn_size_mul(cap, sizeof *slots));
  if (slots == NULL) return TN_ENOMEM;
  size_t gap = 0;
  while (gap < index->cap && index->slots[gap].taken) gap++;
  for (size_t i = 0; i < index->cap; i++) {
    slot old = index->slots[(gap + i) & (index->cap - 1)];
    if (old.taken) place(slots, cap, old);
  }
  tn_release(index->handle, index->slots);
  index->slots = slots;
  index->cap = cap;
  return TN_OK;
}

tn_status tn_hash_index_add(tn_hash_index *index, uint64_t hash, uint32_t item) {
  if (index->n >= index->cap / 2) TN_TRY(grow(index));
  place(index->slots, index->cap, (slot){.hash = hash, .item = item, .taken = true});
  index->n++;
  return TN_OK;
}

int64_t tn_hash_index_next(const tn_hash_index *index, uint64_t hash, size_t *probe) {
  while (*probe < index->cap) {
    const slot *s = &index->slots[(home(hash) + *probe) & (index->cap - 1)];
    if (!s->taken) break;
    (*probe)++;
    if (s->hash == hash) return s->item;
  }
  return TN_HASH_INDEX_NONE;
}

void tn_hash_index_free(tn_hash_index *index) {
  tn_release(index->handle, index->slots);
  *index = tn_hash_index_new(index->handle);
}
