/* backends/cuda/event.c: events, with times. */
#include "backends/cuda/objects.h"

tn_status tn_cuda_event_new(tn_env *env, void *device, void **event) {
  tn_cuda_device *d = device;
  *event = NULL;
  TN_TRY(tn_cuda_enter(env, d));
  tn_cuda_event *e = tn_new(env, sizeof *e);
  if (e == NULL) return TN_ENOMEM;
  e->device = d;
  tn_status status = TN_CU(env, &d->backend->libraries, cuEventCreate, &e->event, CU_EVENT_DEFAULT);
  if (status == TN_OK)
    *event = e;
  else
    tn_delete(env, e);
  return status;
}

void tn_cuda_event_delete(tn_env *env, void *event) {
  tn_cuda_event *e = event;
  tn_cuda_make_current(e->device);
  (void)e->device->backend->libraries.driver.cuEventDestroy(e->event);
  tn_delete(env, e);
}

tn_status tn_cuda_event_record(tn_env *env, void *event, void *stream) {
  tn_cuda_event *e = event;
  const tn_cuda_stream *s = stream;
  TN_TRY(tn_cuda_enter(env, e->device));
  return TN_CU(env, &e->device->backend->libraries, cuEventRecord, e->event, s->stream);
}

tn_status tn_cuda_event_await(tn_env *env, void *event, void *stream) {
  const tn_cuda_event *e = event;
  const tn_cuda_stream *s = stream;
  TN_TRY(tn_cuda_enter(env, e->device));
  return TN_CU(env, &e->device->backend->libraries, cuStreamWaitEvent, s->stream, e->event,
               CU_EVENT_WAIT_DEFAULT);
}

tn_status tn_cuda_event_wait(tn_env *env, void *event) {
  const tn_cuda_event *e = event;
  tn_status status = tn_cuda_enter(env, e->device);
  return status == TN_OK ? TN_CU(env, &e->device->backend->libraries, cuEventSynchronize, e->event) : status;
}

tn_status tn_cuda_event_done(tn_env *env, void *event, int32_t *done) {
  const tn_cuda_event *e = event;
  const tn_cuda_libraries *l = &e->device->backend->libraries;
  *done = 0;
  TN_TRY(tn_cuda_enter(env, e->device));
  CUresult code = l->driver.cuEventQuery(e->event);
  if (code == CUDA_ERROR_NOT_READY) return TN_OK;
  *done = 1;
  return tn_cuda_check(env, l, code, "cuEventQuery");
}

tn_status tn_cuda_event_seconds(tn_env *env, void *from, void *to, double *seconds) {
  const tn_cuda_event *a = from, *b = to;
  float ms = 0;
  tn_status status = tn_cuda_enter(env, a->device);
  if (status == TN_OK)
    status = TN_CU(env, &a->device->backend->libraries, cuEventElapsedTime, &ms, a->event, b->event);
  *seconds = 1e-3 * (double)ms;
  return status;
}
