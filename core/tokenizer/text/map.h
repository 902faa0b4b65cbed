/* core/tokenizer/text/map.h: two hash maps with open addressing and linear probing: from texts to ids, and
 * from pairs of 32-bit numbers to pairs. They are filled once, from the memory of an arena, and then only
 * read. */
#pragma once

#include "core/base/arena.h"

/* A mix of eight bytes at a time; not stable over versions, and so never written to a file. */
uint64_t tn_map_hash(const char *text, size_t bytes);

typedef struct tn_text_slot {
  const char *text; /* NULL: empty */
  uint32_t bytes, hash;
  int32_t id;
} tn_text_slot;
typedef struct tn_text_map {
  tn_text_slot *slots;
  uint32_t mask; /* slots - 1 */
  uint32_t longest;
} tn_text_map;

/* Room for `most` texts. */
tn_status tn_text_map_open(tn_arena *arena, size_t most, tn_text_map *map);
/* A text that is there gets the new id. The text itself is not copied. */
void tn_text_map_set(tn_text_map *map, const char *text, size_t bytes, int32_t id);
/* -1: not there. */
int32_t tn_text_map_get(const tn_text_map *map, const char *text, size_t bytes);

typedef struct tn_pair_slot {
  uint64_t key; /* 0: empty */
  uint32_t first, second;
} tn_pair_slot;
typedef struct tn_pair_map {
  tn_pair_slot *slots;
  uint64_t mask;
} tn_pair_map;

tn_status tn_pair_map_open(tn_arena *arena, size_t most, tn_pair_map *map);

static inline uint64_t tn_pair_key(uint32_t a, uint32_t b) { return (((uint64_t)a << 32) | b) + 1; }

/* The slot with this key, or the empty one where it belongs. */
static inline tn_pair_slot *tn_pair_map_find(const tn_pair_map *map, uint32_t a, uint32_t b) {
  uint64_t key = tn_pair_key(a, b), at = (key * 0x9e3779b97f4a7c15u) >> 24;
  for (;; at++) {
    tn_pair_slot *slot = &map->slots[at & map->mask];
    if (slot->key == key || slot->key == 0) return slot;
  }
}
