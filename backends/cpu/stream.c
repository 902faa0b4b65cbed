/* backends/cpu/stream.c: synchronous streams: enqueued work is done when the call returns. Streams and events
 * have no state (their objects are the device), and waits return at once. */
#include <string.h>

#include "backends/cpu/cpu.h"

tn_status tn_cpu_stream_new(tn_env *env, void *device, int32_t role, void **stream) {
  (void)env, (void)role;
  *stream = device;
  return TN_OK;
}

void tn_cpu_stream_delete(tn_env *env, void *stream) { (void)stream, (void)env; }

tn_status tn_cpu_stream_wait(tn_env *env, void *stream) {
  (void)stream, (void)env;
  return TN_OK;
}

tn_status tn_cpu_event_new(tn_env *env, void *device, void **event) {
  (void)env;
  *event = device;
  return TN_OK;
}

void tn_cpu_event_delete(tn_env *env, void *event) { (void)event, (void)env; }

tn_status tn_cpu_event_record(tn_env *env, void *event, void *stream) {
  (void)event, (void)env, (void)stream;
  return TN_OK;
}

tn_status tn_cpu_event_await(tn_env *env, void *event, void *stream) {
  (void)event, (void)env, (void)stream;
  return TN_OK;
}

tn_status tn_cpu_event_wait(tn_env *env, void *event) {
  (void)event, (void)env;
  return TN_OK;
}

tn_status tn_cpu_stream_copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                             uint64_t bytes) {
  (void)stream, (void)env, (void)direction;
  if (bytes > 0) memmove(to, from, (size_t)bytes);
  return TN_OK;
}

tn_status tn_cpu_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  (void)stream, (void)env;
  if (bytes > 0) memset(address, 0, (size_t)bytes);
  return TN_OK;
}
