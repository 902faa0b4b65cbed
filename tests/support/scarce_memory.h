/* tests/support/scarce_memory.h: an allocator that counts blocks and refuses requests. */
#ifndef TN_TESTS_SUPPORT_SCARCE_MEMORY_H
#define TN_TESTS_SUPPORT_SCARCE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct scarce_memory {
  atomic_llong asked, live; /* requests so far; live blocks */
  long long refused;        /* number of the first request that is refused, from 1; 0: all are granted */
  bool once;                /* only that request is refused; false: all later ones, too */
} scarce_memory;

/* For tn_allocator.realloc and tn_context_options.realloc. context: a scarce_memory. */
static inline void *scarce_memory_realloc(void *context, void *block, size_t bytes) {
  scarce_memory *m = (scarce_memory *)context;
  if (bytes == 0) {
    if (block != NULL) atomic_fetch_sub(&m->live, 1);
    free(block);
    return NULL;
  }
  long long number = atomic_fetch_add(&m->asked, 1) + 1;
  if (m->refused > 0 && (m->once ? number == m->refused : number >= m->refused)) return NULL;
  void *grown = realloc(block, bytes);
  if (block == NULL && grown != NULL) atomic_fetch_add(&m->live, 1);
  return grown;
}

#endif
