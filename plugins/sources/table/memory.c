/* plugins/sources/table/memory.c: blocks that are filled from the front and freed together. */
#include <string.h>

#include "plugins/sources/table/table.h"

typedef struct table_block {
  struct table_block *before;
  char alignment[8]; /* the bytes behind it are aligned to 16 */
} table_block;

enum { MEMORY_ALIGNMENT = 16, MEMORY_BLOCK = 1 << 16 };

/* The rest of the block before is left where it is smaller than that of the new one. */
static void *memory_add_block(table_memory *m, size_t bytes) {
  size_t size = bytes < MEMORY_BLOCK ? MEMORY_BLOCK : bytes;
  table_block *block = tn_new(m->env, sizeof(*block) + size);
  if (block == NULL) return NULL;
  block->before = m->last;
  m->last = block;
  char *start = (char *)(block + 1);
  if (size - bytes >= m->left) {
    m->at = start + bytes;
    m->left = size - bytes;
  }
  return start;
}

void *table_memory_take(table_memory *m, size_t bytes) {
  if (bytes < SIZE_MAX / 2) bytes = (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
  if (bytes > m->left) return memory_add_block(m, bytes);
  void *taken = m->at;
  m->at += bytes;
  m->left -= bytes;
  return taken;
}

char *table_memory_copy(table_memory *m, const char *text, size_t n) {
  char *copy = table_memory_take(m, n + 1);
  if (copy == NULL) return NULL;
  if (n > 0) memcpy(copy, text, n);
  copy[n] = '\0';
  return copy;
}

void table_memory_free(table_memory *m) {
  while (m->last != NULL) {
    table_block *before = m->last->before;
    tn_delete(m->env, m->last);
    m->last = before;
  }
  m->left = 0;
}
