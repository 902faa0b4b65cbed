/* core/tensor/storage.c: memory that tensors share, and the end of copies between devices that use it. */
#include "core/tensor/tensor.h"

/* ---- pending copies ---- */

void tn_pending_copy_end(tn_pending_copy *p) {
  tn_device *other = p->other;
  if (p->staging != NULL) tn_device_memory_free(other, TN_MEMORY_STAGING, p->staging, p->bytes);
  if (p->event != NULL) other->backend->event_delete(&other->env, p->event);
  *p = (tn_pending_copy){0};
  tn_device_release(other);
}

/* The second half of a copy through the host. */
static tn_status storage_upload(tn_storage *s) {
  TN_TRY(tn_device_copy(s->device, TN_COPY_TO_DEVICE, s->pending.to, s->pending.staging, s->pending.bytes));
  return tn_device_wait(s->device);
}

tn_status tn_storage_wait(tn_storage *s) {
  tn_device *other = s->pending.other;
  if (other == NULL) return TN_OK;
  tn_status status = tn_device_check_process(other);
  if (status == TN_OK) status = other->backend->event_wait(&other->env, s->pending.event);
  if (status != TN_OK)
    tn_error_move(s->device, other);
  else if (s->pending.staging != NULL)
    status = storage_upload(s);
  tn_pending_copy_end(&s->pending);
  return status;
}

/* ---- memory ---- */

tn_status tn_storage_new(tn_device *device, int64_t bytes, void *data, tn_storage **out) {
  tn_storage *s = tn_alloc(&device->env, sizeof *s);
  *out = NULL;
  if (s == NULL) return TN_ENOMEM;
  *s = (tn_storage){.device = device, .address = data, .bytes = bytes, .owned = data == NULL};
  tn_status status = TN_OK;
  if (s->owned) {
    status = tn_device_memory(device, TN_MEMORY_DEVICE, bytes, &s->address);
    if (status == TN_ENOMEM && device->use->cache.calls.n > 0) {
      tn_call_cache_clear(device); /* the memory of compiled calls may suffice */
      status = tn_device_memory(device, TN_MEMORY_DEVICE, bytes, &s->address);
    }
  }
  if (status != TN_OK) {
    tn_release(&device->env, s);
    return tn_wrap(device, status, "%lld bytes for a tensor", (long long)bytes);
  }
  tn_device_retain(device);
  *out = s;
  return TN_OK;
}

void tn_storage_release(tn_storage *s) {
  tn_device *device = s->device;
  if (--s->users > 0) return;
  tn_storage_wait(s); /* a failure is ignored: the memory is freed */
  if (s->address != NULL && device->use->busy) tn_device_wait(device);
  if (s->owned) tn_device_memory_free(device, TN_MEMORY_DEVICE, s->address, s->bytes);
  tn_release(&device->env, s);
  tn_device_release(device);
}
