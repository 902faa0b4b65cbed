/* A backend: synchronous devices on the host, without threads. Memory comes from malloc, work is done when
 * its call returns, and the kernels are those of the cpu. `[backend] use = plain`. */
#include <stdlib.h>
#include <string.h>

#include <tenon/plugin/backend.h>

static tn_status open_plain(tn_env *env, const void *options, void **self) {
  (void)options;
  *self = tn_new(env, 1); /* nothing to keep */
  return *self ? TN_OK : TN_ENOMEM;
}
static void close_plain(tn_env *env, void *self) { tn_delete(env, self); }

/* Devices have no state, so the number is arbitrary. */
static tn_status count(tn_env *env, void *self, int32_t *n) { return (void)self, (void)env, *n = 4, TN_OK; }

static tn_status properties(tn_env *env, void *self, int32_t index, tn_device_properties *p) {
  (void)self, (void)env, (void)index;
  *p = (tn_device_properties){.struct_size = sizeof *p, .host_addressable = 1, .threads = 1, .name = "plain"};
  return TN_OK;
}

/* Devices, streams and events have no state: each is the object that it is made from. */
static tn_status open_device(tn_env *env, void *self, int32_t index, void **device) {
  return (void)env, (void)index, *device = self, TN_OK;
}
static tn_status new_stream(tn_env *env, void *device, int32_t role, void **stream) {
  return (void)env, (void)role, *stream = device, TN_OK;
}
static tn_status new_event(tn_env *env, void *device, void **event) {
  return (void)env, *event = device, TN_OK;
}
static void drop(tn_env *env, void *object) { (void)object, (void)env; }

static tn_status new_memory(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  (void)device, (void)kind;
  if (bytes > SIZE_MAX - 63 || !(*address = aligned_alloc(64, (bytes + 63) / 64 * 64)))
    return tn_fail(env, TN_ENOMEM, NULL, "no memory for %llu bytes", (unsigned long long)bytes);
  return TN_OK;
}
static void delete_memory(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)device, (void)kind, (void)bytes, (void)env, free(address);
}

/* Work is never pending, so waits return at once. */
static tn_status wait(tn_env *env, void *object) { return (void)object, (void)env, TN_OK; }
static tn_status order(tn_env *env, void *event, void *stream) { return (void)stream, wait(env, event); }

static tn_status copy(tn_env *env, void *stream, int32_t way, void *to, const void *from, uint64_t bytes) {
  return (void)stream, (void)env, (void)way, memmove(to, from, bytes), TN_OK;
}
static tn_status fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  return (void)stream, (void)env, memset(address, 0, bytes), TN_OK;
}

static const tn_backend plain = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "plain", "one host thread"),
                                 .accepts = "cpu",
                                 .open = open_plain,
                                 .close = close_plain,
                                 .count = count,
                                 .properties = properties,
                                 .device_open = open_device,
                                 .device_close = drop,
                                 .memory_new = new_memory,
                                 .memory_delete = delete_memory,
                                 .stream_new = new_stream,
                                 .stream_delete = drop,
                                 .stream_wait = wait,
                                 .event_new = new_event,
                                 .event_delete = drop,
                                 .event_record = order,
                                 .event_await = order,
                                 .event_wait = wait,
                                 .copy = copy,
                                 .fill_zero = fill_zero};

TN_PLUGIN(plain_backend, "1.0", "MIT", &plain.item)
