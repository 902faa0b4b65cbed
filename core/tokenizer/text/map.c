#include "core/tokenizer/text/map.h"

#include <string.h>

static uint64_t map_mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t tn_map_hash(const char *text, size_t bytes) {
  uint64_t hash = bytes * 0x9e3779b97f4a7c15u, word;
  for (; bytes >= 8; text += 8, bytes -= 8) {
    memcpy(&word, text, 8);
    hash = map_mix(hash ^ word, 0xa0761d6478bd642fu);
  }
  word = 0;
  if (bytes > 0) memcpy(&word, text, bytes);
  return map_mix(hash ^ word, 0xe7037ed1a0b428dbu);
}

/* A power of two of slots, of which at most half are taken. */
static size_t map_slots(size_t most) {
  size_t slots = 16;
  while (slots < 2 * most) slots *= 2;
  return slots;
}

tn_status tn_text_map_open(tn_arena *arena, size_t most, tn_text_map *map) {
  size_t slots = map_slots(most);
  *map = (tn_text_map){.mask = (uint32_t)slots - 1,
                       .slots = tn_arena_alloc(arena, tn_size_mul(slots, sizeof *map->slots))};
  return map->slots != NULL ? TN_OK : TN_ENOMEM;
}

static tn_text_slot *map_find(const tn_text_map *map, const char *text, size_t bytes, uint32_t hash) {
  for (uint32_t at = hash;; at++) {
    tn_text_slot *slot = &map->slots[at & map->mask];
    if (slot->text == NULL) return slot;
    if (slot->hash == hash && slot->bytes == bytes && memcmp(slot->text, text, bytes) == 0) return slot;
  }
}

void tn_text_map_set(tn_text_map *map, const char *text, size_t bytes, int32_t id) {
  uint32_t hash = (uint32_t)tn_map_hash(text, bytes);
  *map_find(map, text, bytes, hash) = (tn_text_slot){text, (uint32_t)bytes, hash, id};
  if (bytes > map->longest) map->longest = (uint32_t)bytes;
}

int32_t tn_text_map_get(const tn_text_map *map, const char *text, size_t bytes) {
  if (bytes > map->longest) return -1;
  const tn_text_slot *slot = map_find(map, text, bytes, (uint32_t)tn_map_hash(text, bytes));
  return slot->text != NULL ? slot->id : -1;
}

tn_status tn_pair_map_open(tn_arena *arena, size_t most, tn_pair_map *map) {
  size_t slots = map_slots(most);
  *map = (tn_pair_map){.mask = slots - 1,
                       .slots = tn_arena_alloc(arena, tn_size_mul(slots, sizeof *map->slots))};
  return map->slots != NULL ? TN_OK : TN_ENOMEM;
}
