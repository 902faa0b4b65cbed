/* backends/cpu/memory.c: memory of the device is memory of the host. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

enum { ALIGNMENT = 64 };

tn_status tn_cpu_memory_new(void *device, tn_env *env, int32_t kind, uint64_t bytes, void **address) {
  (void)device, (void)kind;
  *address = NULL;
  if (bytes <= SIZE_MAX - (ALIGNMENT - 1)) {
    size_t rounded = ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *address = aligned_alloc(ALIGNMENT, rounded);
  }
  if (*address == NULL)
    return tn_fail(env, TN_ENOMEM, NULL, "cpu: no memory for a block of %llu bytes",
                   (unsigned long long)bytes);
  return TN_OK;
}

void tn_cpu_memory_delete(void *device, int32_t kind, void *address, uint64_t bytes, tn_env *env) {
  (void)device, (void)kind, (void)bytes, (void)env;
  free(address);
}
