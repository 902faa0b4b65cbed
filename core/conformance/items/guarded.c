/* core/conformance/items/guarded.c: memory of the host between canaries. */
#include <string.h>

#include "core/conformance/items/items.h"

enum { MARGIN = 256 };

void *tn_guarded_new(const void *handle, tn_guarded *g, size_t bytes, uint8_t pattern) {
  tn_guarded_free(handle, g);
  g->block = tn_alloc(handle, tn_size_add(bytes, 2 * MARGIN));
  if (g->block == NULL) return NULL;
  g->bytes = bytes;
  g->pattern = pattern;
  memset(g->block, pattern, bytes + 2 * MARGIN);
  return g->block + MARGIN;
}

uint8_t *tn_guarded_data(const tn_guarded *g) { return g->block + MARGIN; }

bool tn_guarded_intact(const tn_guarded *g, int64_t *offset) {
  for (size_t i = 0; i < g->bytes + 2 * MARGIN; i++) {
    if (i == MARGIN) i += g->bytes;
    if (i < g->bytes + 2 * MARGIN && g->block[i] != g->pattern) {
      *offset = (int64_t)i - MARGIN;
      return false;
    }
  }
  return true;
}

void tn_guarded_free(const void *handle, tn_guarded *g) {
  tn_release(handle, g->block);
  *g = (tn_guarded){.block = NULL};
}
