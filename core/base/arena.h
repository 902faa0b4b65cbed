/* core/base/arena.h: memory that is freed all at once: graphs, parsed models, match tables. */
#pragma once

#include "core/base/env.h"

typedef struct tn_arena_chunk tn_arena_chunk;
typedef struct tn_arena {
  const void *handle;
  tn_arena_chunk *chunks;
  size_t bytes; /* of all chunks */
} tn_arena;

tn_arena tn_arena_new(const void *handle);
/* Zeroed, aligned to 16; NULL with TN_ENOMEM recorded on the arena's handle. */
void *tn_arena_alloc(tn_arena *arena, size_t bytes);
void *tn_arena_copy(tn_arena *arena, const void *bytes, size_t count);
char *tn_arena_strdup(tn_arena *arena, const char *text);
char *tn_arena_printf(tn_arena *arena, const char *format, ...) TN_PRINTF(2, 3);
/* Makes room for one more item in an array of n items that only this function allocates (NULL at first).
 * The capacity is the next power of two, so the array is copied only when n is a power of two. NULL: out
 * of memory. */
void *tn_arena_grow(tn_arena *arena, const void *v, size_t n, size_t item);
void tn_arena_free(tn_arena *arena);
