/* backends/cpu/memory.c: memory of the device is memory of the host, from the application's allocator. */
#include <string.h>

#include "cpu.h"

enum { ALIGNMENT = 64, SLACK = ALIGNMENT + sizeof(void *) };

/* The allocator aligns for any type only, so a block is longer by what aligning takes. The word in front of
 * the address says where the block begins. */
tn_status tn_cpu_memory_new(void *device, tn_env *env, int32_t kind, uint64_t bytes, void **address) {
  (void)device, (void)kind;
  *address = NULL;
  char *block = bytes <= SIZE_MAX - SLACK ? tn_new(env, (size_t)bytes + SLACK) : NULL;
  if (block == NULL)
    return tn_fail(env, TN_ENOMEM, NULL, "cpu: no memory for a block of %llu bytes",
                   (unsigned long long)bytes);
  char *first = block + sizeof(void *);
  first += (ALIGNMENT - (uintptr_t)first % ALIGNMENT) % ALIGNMENT;
  memcpy(first - sizeof block, &block, sizeof block);
  *address = first;
  return TN_OK;
}

void tn_cpu_memory_delete(void *device, int32_t kind, void *address, uint64_t bytes, tn_env *env) {
  (void)device, (void)kind, (void)bytes;
  char *block;
  memcpy(&block, (char *)address - sizeof block, sizeof block);
  tn_delete(env, block);
}
