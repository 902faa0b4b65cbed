/* core/base/arena.c: an arena allocator. Chunks double in size, are filled from the front and are freed
 * together. */
#include "core/base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_ALIGN = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

struct tn_arena_chunk {
  alignas(ARENA_ALIGN) tn_arena_chunk *next;
  size_t used, cap;
  alignas(ARENA_ALIGN) char bytes[];
};

tn_arena tn_arena_new(const void *handle) { return (tn_arena){.handle = handle, .chunks = NULL}; }

static tn_arena_chunk *arena_chunk_new(const tn_arena *arena, size_t cap) {
  tn_arena_chunk *chunk = tn_alloc(arena->handle, tn_size_add(sizeof(tn_arena_chunk), cap));
  if (chunk != NULL) chunk->cap = cap;
  return chunk;
}

/* Adds a chunk for a request that does not fit into the head. A request of half a chunk or more gets a
 * chunk of its own behind the head, so that the rest of the head stays in use. */
static tn_arena_chunk *arena_add_chunk(tn_arena *arena, size_t bytes) {
  tn_arena_chunk *head = arena->chunks;
  size_t cap = head == NULL ? FIRST_CHUNK : head->cap >= LARGEST_CHUNK ? LARGEST_CHUNK : 2 * head->cap;
  int alone = bytes >= cap / 2;
  tn_arena_chunk *chunk = arena_chunk_new(arena, alone ? bytes : cap);
  if (chunk == NULL) return NULL;
  arena->bytes += chunk->cap;
  if (alone && head != NULL) {
    chunk->next = head->next;
    head->next = chunk;
  } else {
    chunk->next = head;
    arena->chunks = chunk;
  }
  return chunk;
}

void *tn_arena_alloc(tn_arena *arena, size_t bytes) {
  size_t padded = tn_size_add(bytes > 0 ? bytes : 1, ARENA_ALIGN - 1);
  if (padded < SIZE_MAX) padded -= padded % ARENA_ALIGN;
  tn_arena_chunk *chunk = arena->chunks;
  if (chunk == NULL || padded > chunk->cap - chunk->used) chunk = arena_add_chunk(arena, padded);
  if (chunk == NULL) return NULL;
  void *block = chunk->bytes + chunk->used;
  chunk->used += padded;
  return block;
}

void *tn_arena_copy(tn_arena *arena, const void *bytes, size_t count) {
  void *copy = tn_arena_alloc(arena, count);
  if (copy != NULL && count > 0) memcpy(copy, bytes, count);
  return copy;
}

char *tn_arena_strdup(tn_arena *arena, const char *text) {
  return tn_arena_copy(arena, text, strlen(text) + 1);
}

char *tn_arena_printf(tn_arena *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  char *text = n < 0 ? NULL : tn_arena_alloc(arena, (size_t)n + 1);
  if (text != NULL) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  va_end(args);
  if (n < 0) tn_failf(arena->handle, TN_EINTERNAL, "the format \"%s\" cannot be printed", format);
  return text;
}

void *tn_arena_grow(tn_arena *arena, const void *v, size_t n, size_t item) {
  if (n > 0 && (n & (n - 1)) != 0) return (void *)(uintptr_t)v;
  void *grown = tn_arena_alloc(arena, tn_size_mul(n > 0 ? tn_size_mul(2, n) : 1, item));
  if (grown != NULL && n > 0) memcpy(grown, v, n * item);
  return grown;
}

void tn_arena_free(tn_arena *arena) {
  tn_arena_chunk *chunk = arena->chunks;
  while (chunk != NULL) {
    tn_arena_chunk *next = chunk->next;
    tn_release(arena->handle, chunk);
    chunk = next;
  }
  arena->chunks = NULL;
  arena->bytes = 0;
}
