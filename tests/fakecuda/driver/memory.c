/* tests/fakecuda/driver/memory.c: allocations.
 *
 * Device memory is a file in memory, mapped twice: at the device's address, without access except
 * while the engine runs a kernel or a task, and at another one for the engine's copies. Allocations of more
 * than MOST_PROTECTED bytes stay accessible after the first kernel: to change the access of all their pages
 * around each kernel takes longer than most kernels. A page without access
 * lies before and behind each allocation; the bytes from its end to the end of its last page have a pattern,
 * which is checked when the allocation is given back. The addresses of freed memory stay without access. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakecuda/driver/driver.h"

enum { PATTERN = 0xA5, MOST_FILLED = 256 << 20, MOST_PROTECTED = 16 << 20, MOST_FREED = 64 };

typedef struct fake_memory {
  fake_block *live, freed[MOST_FREED]; /* freed: the last ones, for messages */
  size_t n, capacity, n_freed;
  uint64_t used;
} fake_memory;

struct fake_memory *fake_memory_open(void) {
  return calloc(1, sizeof(fake_memory));
}

static const char *memory_allocator(const fake_block *b) {
  return b->device ? "cuMemAlloc_v2" : "cuMemHostAlloc";
}

static size_t memory_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* ---- mapping ---- */

/* Addresses without access, with a page before and behind. */
static char *memory_reserve(size_t whole) {
  size_t page = memory_page();
  char *at = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at + page;
}

static void memory_hide(const fake_block *b) {
  mmap(b->address, b->whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (b->device && b->real != NULL) munmap(b->real, b->whole);
}

static bool memory_map_device(fake_block *b) {
  int file = memfd_create("fakecuda", MFD_CLOEXEC);
  if (file < 0) return false;
  void *real = MAP_FAILED, *here = MAP_FAILED;
  if (ftruncate(file, (off_t)b->whole) == 0)
    real = mmap(NULL, b->whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (real != MAP_FAILED) {
    b->real = real;
    here = mmap(b->address, b->whole, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0);
  }
  close(file);
  return here != MAP_FAILED;
}

static bool memory_map(fake_block *b) {
  size_t page = memory_page();
  b->whole = (b->bytes + page - 1) / page * page;
  b->address = memory_reserve(b->whole);
  if (b->address == NULL) return false;
  b->real = b->device ? NULL : b->address;
  bool mapped =
      b->device ? memory_map_device(b) : mprotect(b->address, b->whole, PROT_READ | PROT_WRITE) == 0;
  if (!mapped) return memory_hide(b), false;
  memset(b->real, 0xFF, b->bytes < MOST_FILLED ? b->bytes : MOST_FILLED); /* NaN in every float type */
  memset(b->real + b->bytes, PATTERN, b->whole - b->bytes);
  return true;
}

static void memory_show(fake_block *b, bool accessible) {
  if (b->shown == accessible || (!accessible && b->whole > MOST_PROTECTED)) return;
  mprotect(b->address, b->whole, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
  b->shown = accessible;
}

void fake_memory_show(fake_context *context, bool accessible) {
  pthread_mutex_lock(&context->lock);
  const fake_memory *m = context->memory;
  for (size_t i = 0; i < m->n; i++)
    if (m->live[i].device) memory_show(&m->live[i], accessible);
  pthread_mutex_unlock(&context->lock);
}

/* ---- the table ---- */

static fake_block *memory_find(fake_block *blocks, size_t n, const char *address) {
  for (size_t i = 0; i < n; i++)
    if (address >= blocks[i].address && address < blocks[i].address + blocks[i].bytes) return &blocks[i];
  return NULL;
}

bool fake_memory_find(fake_context *context, const void *address, fake_block *block) {
  pthread_mutex_lock(&context->lock);
  const fake_block *b = memory_find(context->memory->live, context->memory->n, address);
  if (b != NULL) *block = *b;
  pthread_mutex_unlock(&context->lock);
  return b != NULL;
}

/* The block whose pages, with those around it, contain the address. */
static const fake_block *memory_near(const fake_block *blocks, size_t n, const char *address) {
  size_t page = memory_page();
  for (size_t i = 0; i < n; i++)
    if (address >= blocks[i].address - page && address < blocks[i].address + blocks[i].whole + page)
      return &blocks[i];
  return NULL;
}

void fake_memory_describe(fake_context *context, const void *address, char *text, size_t size) {
  pthread_mutex_lock(&context->lock);
  const fake_memory *m = context->memory;
  size_t n_freed = m->n_freed < MOST_FREED ? m->n_freed : MOST_FREED;
  const fake_block *b = memory_near(m->live, m->n, address);
  const char *freed = "";
  if (b == NULL) b = memory_near(m->freed, n_freed, address), freed = ", which is freed";
  if (b != NULL)
    snprintf(text, size, "%p, byte %lld of allocation %llu of %zu bytes (%s) on device %d%s", address,
             (long long)((const char *)address - b->address), (unsigned long long)b->number, b->bytes,
             memory_allocator(b), context->device, freed);
  else
    snprintf(text, size, "%p, in no allocation of device %d", address, context->device);
  pthread_mutex_unlock(&context->lock);
}

/* ---- allocating, freeing ---- */

static bool memory_add(fake_context *c, const fake_block *block) {
  fake_memory *m = c->memory;
  pthread_mutex_lock(&c->lock);
  bool room = m->n < m->capacity;
  if (!room) {
    size_t capacity = m->capacity > 0 ? 2 * m->capacity : 16;
    fake_block *larger = realloc(m->live, capacity * sizeof *larger);
    room = larger != NULL;
    if (room) m->live = larger, m->capacity = capacity;
  }
  if (room) m->live[m->n++] = *block;
  if (room && block->device) m->used += block->bytes;
  pthread_mutex_unlock(&c->lock);
  return room;
}

static CUresult memory_new(const fake_call *call, void **address, size_t bytes, bool device) {
  if (address == NULL || bytes == 0)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%zu bytes at a place %p", bytes, (void *)address);
  fake_context *c = call->context;
  uint64_t limit = fake_settings_get()->memory, used = c->memory->used + fake_settings_get()->others;
  if (device && (used > limit || bytes > limit - used)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes > SIZE_MAX / 4) return CUDA_ERROR_OUT_OF_MEMORY;
  fake_block block = {.bytes = bytes, .number = ++c->allocations, .device = device};
  if (!memory_map(&block)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!memory_add(c, &block)) return memory_hide(&block), CUDA_ERROR_OUT_OF_MEMORY;
  *address = block.address;
  return CUDA_SUCCESS;
}

/* Logs the first byte behind the end that has been overwritten. */
static void memory_check_guard(const fake_context *c, const fake_block *b) {
  for (size_t i = b->bytes; i < b->whole; i++)
    if ((unsigned char)b->real[i] != PATTERN) {
      fake_log("byte %zu was written, behind the end of allocation %llu of %zu bytes (%s) on device %d", i,
               (unsigned long long)b->number, b->bytes, memory_allocator(b), c->device);
      return;
    }
}

static void memory_remove(fake_context *c, const char *address) {
  fake_memory *m = c->memory;
  pthread_mutex_lock(&c->lock);
  fake_block *b = memory_find(m->live, m->n, address);
  memory_check_guard(c, b);
  memory_hide(b);
  if (b->device) m->used -= b->bytes;
  m->freed[m->n_freed++ % MOST_FREED] = *b;
  *b = m->live[--m->n];
  pthread_mutex_unlock(&c->lock);
}

/* As in CUDA, freeing waits for the work of the device. */
static CUresult memory_delete(const fake_call *call, fake_context *c, void *address, bool device) {
  fake_block block;
  char text[256];
  bool found = c != NULL && fake_memory_find(c, address, &block);
  if (!found || block.device != device || block.address != address) {
    fake_memory_describe(call->context, address, text, sizeof text);
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%s is not the beginning of a live allocation", text);
  }
  if (fake_finish(c) && fake_memory_find(c, address, &block)) memory_remove(c, address);
  return CUDA_SUCCESS;
}

void fake_memory_close(fake_context *context) {
  fake_memory *m = context->memory;
  if (m == NULL) return;
  for (size_t i = 0; i < m->n; i++) {
    const fake_block *b = &m->live[i];
    memory_check_guard(context, b);
    fake_leak(context, "allocation %llu of %zu bytes (%s)", (unsigned long long)b->number, b->bytes,
              memory_allocator(b));
    memory_hide(b);
  }
  free(m->live);
  free(m);
}

static CUresult memory_new_device(const fake_call *call, CUdeviceptr *address, size_t bytes) {
  void *place = NULL;
  CUresult code = memory_new(call, address != NULL ? &place : NULL, bytes, true);
  if (code == CUDA_SUCCESS) *address = (CUdeviceptr)(uintptr_t)place;
  return code;
}

FAKE_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, memory_new_device(&call, address, bytes));
}

FAKE_API CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE | FAKE_FREES,
            memory_delete(&call, call.context, (void *)(uintptr_t)address, true));
}

static CUresult memory_new_host(const fake_call *call, void **address, size_t bytes, unsigned flags) {
  unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~known) != 0) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no such flags: %#x", flags);
  return memory_new(call, address, bytes, false);
}

FAKE_API CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, memory_new_host(&call, address, bytes, flags));
}

/* The context that has the block; NULL: none. */
static fake_context *memory_owner(const void *address, fake_block *block) {
  for (int device = 0; device < fake_settings_get()->devices; device++) {
    fake_context *c = fake_context_of_device(device);
    if (c != NULL && fake_memory_find(c, address, block)) return c;
  }
  return NULL;
}

static CUresult memory_delete_host(const fake_call *call, void *address) {
  fake_block block;
  return memory_delete(call, memory_owner(address, &block), address, false);
}

FAKE_API CUresult cuMemFreeHost(void *address) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE | FAKE_FREES, memory_delete_host(&call, address));
}

static CUresult memory_info(const fake_call *call, size_t *available, size_t *total) {
  if (available == NULL || total == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for a result");
  *total = (size_t)fake_settings_get()->memory;
  uint64_t used = call->context->memory->used + fake_settings_get()->others;
  *available = used < *total ? *total - (size_t)used : 0;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  FAKE_CALL(FAKE_CURRENT, memory_info(&call, available, total));
}

/* ---- checks of ranges ---- */

CUresult fake_memory_check(const fake_call *call, CUdeviceptr address, size_t bytes, const char *what,
                           void **real) {
  fake_block b;
  char text[256];
  const char *from = (const char *)(uintptr_t)address;
  bool found = fake_memory_find(call->context, from, &b) && b.device;
  if (found && bytes <= (size_t)(b.address + b.bytes - from)) {
    *real = b.real + (from - b.address);
    return CUDA_SUCCESS;
  }
  fake_memory_describe(call->context, from, text, sizeof text);
  return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%s, %zu bytes from %s, is not inside of device memory",
                     what, bytes, text);
}

CUresult fake_memory_check_host(const fake_call *call, const void *address, size_t bytes, const char *what,
                                bool *pinned) {
  fake_block b;
  char text[256];
  if (address == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%s is NULL", what);
  fake_context *owner = memory_owner(address, &b);
  *pinned = owner != NULL;
  if (owner == NULL) return CUDA_SUCCESS;
  if (!b.device && bytes <= (size_t)(b.address + b.bytes - (const char *)address)) return CUDA_SUCCESS;
  fake_memory_describe(owner, address, text, sizeof text);
  return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%s, %zu bytes from %s, is not inside of host memory",
                     what, bytes, text);
}

/* ---- attributes of pointers ---- */

static CUresult memory_attribute(const fake_call *call, void *data, CUpointer_attribute which,
                                 CUdeviceptr pointer) {
  fake_block b;
  void *address = (void *)(uintptr_t)pointer;
  fake_context *owner = memory_owner(address, &b);
  if (data == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the attribute");
  if (owner == NULL) return CUDA_ERROR_INVALID_VALUE; /* pageable memory: a question, not a mistake */
  switch (which) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = owner->handle; break;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)data = b.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = pointer; break;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (b.device) return CUDA_ERROR_INVALID_VALUE;
    *(void **)data = address;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = owner->device; break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = (CUdeviceptr)(uintptr_t)b.address; break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = b.bytes; break;
  default: return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "the double has no attribute %d", (int)which);
  }
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr pointer) {
  FAKE_CALL(FAKE_CURRENT, memory_attribute(&call, data, which, pointer));
}
