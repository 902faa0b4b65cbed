/* core/plugin/default_callbacks.c: devices without state, which do all work within the call, in memory of the
 * host. Their objects are those that they are made from: the device is the backend, a stream and an event are
 * the device. */
#include "core/plugin/default_callbacks.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, HUGE_FROM = 2 * HUGE_PAGE };

/* ---- objects ---- */

/* The object of a backend without `open` is its options struct, or this where it has no options. */
static const char default_object = 0;

static tn_status default_open(tn_env *env, const void *options, void **backend) {
  (void)env;
  *backend = (void *)(uintptr_t)(options != NULL ? options : &default_object);
  return TN_OK;
}

static void default_close(tn_env *env, void *object) { (void)env, (void)object; }

static tn_status default_count(tn_env *env, void *backend, int32_t *count) {
  (void)env, (void)backend;
  *count = 1;
  return TN_OK;
}

static tn_status default_properties(tn_env *env, void *backend, int32_t index,
                                    tn_device_properties *properties) {
  (void)env, (void)backend, (void)index;
  properties->host_addressable = 1;
  properties->threads = 1;
  snprintf(properties->name, sizeof properties->name, "host memory");
  return TN_OK;
}

static tn_status default_device_open(tn_env *env, void *backend, int32_t index, void **device) {
  (void)env, (void)index;
  *device = backend;
  return TN_OK;
}

static tn_status default_stream_new(tn_env *env, void *device, int32_t role, void **stream) {
  (void)env, (void)role;
  *stream = device;
  return TN_OK;
}

static tn_status default_event_new(tn_env *env, void *device, void **event) {
  (void)env;
  *event = device;
  return TN_OK;
}

/* ---- memory ---- */

/* Large blocks begin at a huge page, which needs one page table entry instead of 512. madvise is a hint; the
 * system may ignore it. */
static void default_advise_huge_pages(void *address, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  (void)madvise(address, (size_t)bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
  (void)address, (void)bytes;
#endif
}

/* The allocator aligns for any type only, so a block is longer by the alignment. The word before the address
 * is the address of the block. */
static tn_status default_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  uintptr_t alignment = bytes >= HUGE_FROM ? HUGE_PAGE : ALIGNMENT;
  size_t slack = alignment + sizeof(void *);
  (void)device, (void)kind;
  *address = NULL;
  char *block = bytes <= SIZE_MAX - slack ? tn_new(env, (size_t)bytes + slack) : NULL;
  if (block == NULL)
    return tn_fail(env, TN_ENOMEM, NULL, "no memory for a block of %llu bytes", (unsigned long long)bytes);
  char *first = block + sizeof(void *);
  first += (alignment - (uintptr_t)first % alignment) % alignment;
  memcpy(first - sizeof block, &block, sizeof block);
  if (bytes >= HUGE_FROM) default_advise_huge_pages(first, bytes);
  *address = first;
  return TN_OK;
}

static void default_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)device, (void)kind, (void)bytes;
  char *block;
  memcpy(&block, (char *)address - sizeof block, sizeof block);
  tn_delete(env, block);
}

/* ---- work, which is done when its call returns ---- */

static tn_status default_wait(tn_env *env, void *object) {
  (void)env, (void)object;
  return TN_OK;
}

static tn_status default_order(tn_env *env, void *event, void *stream) {
  (void)env, (void)event, (void)stream;
  return TN_OK;
}

static tn_status default_copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                              uint64_t bytes) {
  (void)env, (void)stream, (void)direction;
  if (bytes > 0) memmove(to, from, (size_t)bytes);
  return TN_OK;
}

static tn_status default_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  (void)env, (void)stream;
  if (bytes > 0) memset(address, 0, (size_t)bytes);
  return TN_OK;
}

/* ---- callbacks that every backend may leave out ---- */

static tn_status default_takes(tn_env *env, void *backend, const tn_kernel *kernel, const tn_match *match) {
  (void)env, (void)backend, (void)kernel, (void)match;
  return TN_OK;
}

static void *default_native(tn_env *env, void *device, void *stream, const char *name) {
  (void)env, (void)device, (void)stream, (void)name;
  return NULL;
}

static int32_t default_library(tn_env *env, void *backend, int32_t index, tn_backend_library *library) {
  (void)env, (void)backend, (void)index, (void)library;
  return 0;
}

/* ---- groups ---- */

static bool default_is_partial(int given, int all) { return given != 0 && given != all; }

/* A function that ends the life of objects, without the one that makes them. */
static bool default_ends_alone(const tn_backend *b) {
  return (b->close != NULL && b->open == NULL) || (b->device_close != NULL && b->device_open == NULL) ||
         (b->stream_delete != NULL && b->stream_new == NULL) ||
         (b->event_delete != NULL && b->event_new == NULL);
}

const char *tn_backend_check_callbacks(const tn_backend *b) {
  int memory = (b->memory_new != NULL) + (b->memory_delete != NULL);
  int bytes = (b->copy != NULL) + (b->fill_zero != NULL);
  int order = (b->stream_wait != NULL) + (b->event_new != NULL) + (b->event_record != NULL) +
              (b->event_await != NULL) + (b->event_wait != NULL);
  int captures = (b->capture != NULL) + (b->capture_launch != NULL) + (b->capture_delete != NULL);
  if (default_ends_alone(b))
    return "close, device_close, stream_delete and event_delete come with open, device_open, stream_new and "
           "event_new";
  if (default_is_partial(memory, 2)) return "memory_new and memory_delete come together or not at all";
  if (default_is_partial(bytes, 2)) return "copy and fill_zero come together or not at all";
  if (default_is_partial(order, 5))
    return "stream_wait, event_new, event_record, event_await and event_wait come together or not at all";
  if (default_is_partial(captures, 3))
    return "capture, capture_launch and capture_delete come together or not at all";
  if ((b->range_begin != NULL) != (b->range_end != NULL))
    return "range_begin and range_end come together or not at all";
  if (memory > 0 && (bytes == 0 || b->properties == NULL))
    return "memory_new needs copy, fill_zero and properties, since its memory is not the host's own";
  if (order > 0 && bytes == 0)
    return "stream_wait needs copy and fill_zero, since the host's own copies do not wait for a stream";
  return NULL;
}

#define FILL(backend, member, value)                                                                         \
  do {                                                                                                       \
    if ((backend)->member == NULL) (backend)->member = (value);                                              \
  } while (0)

void tn_backend_fill_callbacks(tn_backend *b) {
  FILL(b, open, default_open);
  FILL(b, close, default_close);
  FILL(b, library, default_library);
  if (b->extends != NULL) return;
  FILL(b, count, default_count);
  FILL(b, properties, default_properties);
  FILL(b, device_open, default_device_open);
  FILL(b, device_close, default_close);
  FILL(b, memory_new, default_memory_new);
  FILL(b, memory_delete, default_memory_delete);
  FILL(b, stream_new, default_stream_new);
  FILL(b, stream_delete, default_close);
  FILL(b, stream_wait, default_wait);
  FILL(b, event_new, default_event_new);
  FILL(b, event_delete, default_close);
  FILL(b, event_record, default_order);
  FILL(b, event_await, default_order);
  FILL(b, event_wait, default_wait);
  FILL(b, copy, default_copy);
  FILL(b, fill_zero, default_fill_zero);
  FILL(b, takes, default_takes);
  FILL(b, native, default_native);
}

bool tn_backend_has_host_memory(const tn_backend *backend) {
  return backend->memory_new == default_memory_new;
}

bool tn_backend_is_synchronous(const tn_backend *backend) { return backend->stream_wait == default_wait; }
