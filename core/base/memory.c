/* core/base/memory.c: allocation through a handle's allocator, and growable arrays. */
#include <stdlib.h>
#include <string.h>

#include "core/base/env.h"
#include "core/base/vec.h"

size_t tn_size_mul(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t tn_size_add(size_t a, size_t b) {
  size_t sum;
  return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static void *memory_system_realloc(void *block, size_t bytes) {
  if (bytes > 0) return realloc(block, bytes);
  free(block);
  return NULL;
}

static void *memory_realloc(const void *handle, void *block, size_t bytes) {
  const tn_allocator *allocator = &((const tn_env *)handle)->record->allocator;
  if (bytes > PTRDIFF_MAX) return NULL;
  if (allocator->realloc != NULL) return allocator->realloc(allocator->context, block, bytes);
  return memory_system_realloc(block, bytes);
}

static void *memory_check(const void *handle, void *block, size_t bytes) {
  if (block != NULL) return block;
  if (bytes == SIZE_MAX)
    tn_failf(handle, TN_ENOMEM, "out of memory: the size asked for exceeds the address space");
  else
    tn_failf(handle, TN_ENOMEM, "out of memory: %zu bytes were refused", bytes);
  return NULL;
}

/* The allocator's realloc frees when it is called with 0 bytes, so an empty object takes one byte. */
static size_t memory_at_least_one(size_t bytes) { return bytes > 0 ? bytes : 1; }

void *tn_resize(const void *handle, void *block, size_t bytes) {
  return memory_check(handle, memory_realloc(handle, block, memory_at_least_one(bytes)), bytes);
}

/* calloc gets large blocks from the system zeroed, so unused pages cost neither time nor memory. */
static void *memory_calloc(const void *handle, size_t bytes) {
  if (((const tn_env *)handle)->record->allocator.realloc == NULL)
    return bytes <= PTRDIFF_MAX ? calloc(1, bytes) : NULL;
  void *block = memory_realloc(handle, NULL, bytes);
  return block != NULL ? memset(block, 0, bytes) : NULL;
}

void *tn_alloc(const void *handle, size_t bytes) {
  return memory_check(handle, memory_calloc(handle, memory_at_least_one(bytes)), bytes);
}

void tn_release(const void *handle, void *block) {
  if (block != NULL) memory_realloc(handle, block, 0);
}

char *tn_strndup(const void *handle, const char *text, size_t length) {
  char *copy = tn_resize(handle, NULL, tn_size_add(length, 1));
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

char *tn_strdup(const void *handle, const char *text) { return tn_strndup(handle, text, strlen(text)); }

tn_status tn_vec_reserve_(const void *handle, void **v, size_t *cap, size_t want, size_t item) {
  if (want <= *cap) return TN_OK;
  size_t grown = *cap < 8 ? 8 : tn_size_add(*cap, *cap / 2);
  if (grown < want) grown = want;
  void *block = tn_resize(handle, *v, tn_size_mul(grown, item));
  if (block == NULL) return TN_ENOMEM;
  *v = block;
  *cap = grown;
  return TN_OK;
}
