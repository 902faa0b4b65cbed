/* backends/cpu/memory.c: device memory is host memory from the application's allocator. */
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/cpu.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, HUGE_FROM = 2 * HUGE_PAGE };

/* Large blocks begin at a huge page, which needs one page table entry instead of 512. madvise is a hint; the
 * system may ignore it. */
static void memory_advise_huge_pages(void *address, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  (void)madvise(address, (size_t)bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
  (void)address, (void)bytes;
#endif
}

/* The allocator aligns for any type only, so a block is longer by the alignment. The word before the address
 * is the address of the block. */
tn_status tn_cpu_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  uintptr_t alignment = bytes >= HUGE_FROM ? HUGE_PAGE : ALIGNMENT;
  size_t slack = alignment + sizeof(void *);
  (void)device, (void)kind;
  *address = NULL;
  char *block = bytes <= SIZE_MAX - slack ? tn_new(env, (size_t)bytes + slack) : NULL;
  if (block == NULL)
    return tn_fail(env, TN_ENOMEM, NULL, "cpu: no memory for a block of %llu bytes",
                   (unsigned long long)bytes);
  char *first = block + sizeof(void *);
  first += (alignment - (uintptr_t)first % alignment) % alignment;
  memcpy(first - sizeof block, &block, sizeof block);
  if (bytes >= HUGE_FROM) memory_advise_huge_pages(first, bytes);
  *address = first;
  return TN_OK;
}

void tn_cpu_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)device, (void)kind, (void)bytes;
  char *block;
  memcpy(&block, (char *)address - sizeof block, sizeof block);
  tn_delete(env, block);
}
