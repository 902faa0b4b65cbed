/* backends/cpu/stream.c: synchronous streams: enqueued work is done when the call returns. A stream has no
 * state (its object is the device), an event has the time of its last record, and waits return at once. */
#include <string.h>
#include <time.h>

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

typedef struct cpu_event {
  struct timespec at; /* the time of the last record */
} cpu_event;

tn_status tn_cpu_event_new(tn_env *env, void *device, void **event) {
  (void)device;
  *event = tn_new(env, sizeof(cpu_event));
  return *event != NULL ? TN_OK : TN_ENOMEM;
}

void tn_cpu_event_delete(tn_env *env, void *event) { tn_delete(env, event); }

tn_status tn_cpu_event_record(tn_env *env, void *event, void *stream) {
  (void)env, (void)stream;
  clock_gettime(CLOCK_MONOTONIC, &((cpu_event *)event)->at);
  return TN_OK;
}

tn_status tn_cpu_event_seconds(tn_env *env, void *from, void *to, double *seconds) {
  const struct timespec *a = &((const cpu_event *)from)->at, *b = &((const cpu_event *)to)->at;
  (void)env;
  *seconds = (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
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
