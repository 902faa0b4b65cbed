/* core/conformance/device/fixture.c: blocks of memory and events for the cases of a device. */
#include "core/conformance/device/fixture.h"

tn_status tn_device_fixture_open(tn_device_fixture *f) {
  for (int32_t i = 0; i < TN_FIXTURE_BLOCKS; i++) {
    void *on_device = NULL, *on_host = NULL;
    TN_TRY(tn_device_memory(f->device, TN_MEMORY_DEVICE, TN_FIXTURE_BLOCK, &on_device));
    f->device_block[i] = on_device;
    TN_TRY(tn_device_memory(f->device, TN_MEMORY_STAGING, TN_FIXTURE_BLOCK, &on_host));
    f->host_block[i] = on_host;
  }
  for (int32_t i = 0; i < TN_FIXTURE_EVENTS; i++)
    TN_TRY(f->backend->event_new(f->env, f->device->device, &f->events[i]));
  return TN_OK;
}

void tn_device_fixture_close(tn_device_fixture *f) {
  for (int32_t role = 0; role < TN_STREAMS; role++) f->backend->stream_wait(f->env, f->device->streams[role]);
  for (int32_t i = 0; i < TN_FIXTURE_EVENTS; i++)
    if (f->events[i] != NULL) f->backend->event_delete(f->env, f->events[i]);
  for (int32_t i = 0; i < TN_FIXTURE_BLOCKS; i++) {
    tn_device_memory_free(f->device, TN_MEMORY_STAGING, f->host_block[i], TN_FIXTURE_BLOCK);
    tn_device_memory_free(f->device, TN_MEMORY_DEVICE, f->device_block[i], TN_FIXTURE_BLOCK);
  }
}

tn_status tn_device_fixture_enqueue_copy(const tn_device_fixture *f, int32_t role, int32_t direction,
                                         void *to, const void *from, uint64_t bytes) {
  return f->backend->copy(f->env, f->device->streams[role], direction, to, from, bytes);
}

tn_status tn_device_fixture_copy(const tn_device_fixture *f, int32_t direction, void *to, const void *from,
                                 uint64_t bytes) {
  TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, direction, to, from, bytes));
  return f->backend->stream_wait(f->env, f->device->streams[TN_STREAM_COMPUTE]);
}

void tn_device_fixture_write(char *at, int64_t bytes, int seed) {
  for (int64_t i = 0; i < bytes; i++) at[i] = (char)(seed * 31 + (int)(i % 251));
}

bool tn_device_fixture_holds(const char *at, int64_t bytes, int seed) {
  for (int64_t i = 0; i < bytes; i++)
    if (at[i] != (char)(seed * 31 + (int)(i % 251))) return false;
  return true;
}

void tn_device_fixture_expect(tn_device_fixture *f, bool holds_true, const char *wrong) {
  if (!holds_true && f->wrong == NULL) f->wrong = wrong;
}
