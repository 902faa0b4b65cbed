/* tests/fakecuda/driver/events.c: events. */
#include <stdlib.h>

#include "tests/fakecuda/driver/driver.h"

CUresult fake_event_find(const fake_call *call, CUevent handle, fake_event **event) {
  *event = fake_handle_find(FAKE_EVENT, handle);
  if (*event != NULL) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is no live event", (void *)handle);
}

/* ---- new, delete ---- */

static void event_free(fake_event *e) {
  tn_env env = fake_env;
  if (e->sim != NULL) tn_sim_event_delete(&env, e->sim);
  if (e->handle != NULL) fake_handle_drop(e->handle);
  free(e);
}

static CUresult event_new(const fake_call *call, CUevent *handle, unsigned flags) {
  unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  if (handle == NULL || (flags & ~known) != 0)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "flags %#x, place %p", flags, (void *)handle);
  fake_event *e = calloc(1, sizeof *e);
  if (e == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  e->context = call->context;
  e->number = ++call->context->events;
  e->flags = flags;
  tn_env env = fake_env;
  void *sim = NULL;
  if (tn_sim_event_new(&env, call->context->sim, &sim) == TN_OK) {
    e->sim = sim;
    e->handle = fake_handle_new(FAKE_EVENT, e->context, e);
  }
  if (e->handle == NULL) return event_free(e), CUDA_ERROR_OUT_OF_MEMORY;
  *handle = e->handle;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuEventCreate(CUevent *event, unsigned flags) {
  FAKE_CALL(FAKE_CURRENT, event_new(&call, event, flags));
}

static CUresult event_delete(const fake_call *call, CUevent handle) {
  fake_event *e;
  CUresult code = fake_event_find(call, handle, &e);
  if (code == CUDA_SUCCESS && fake_finish(e->context)) code = fake_event_find(call, handle, &e);
  if (code == CUDA_SUCCESS) event_free(e);
  return code;
}

FAKE_API CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_CALL(FAKE_CURRENT | FAKE_FREES, event_delete(&call, event));
}

void fake_events_close(fake_context *context) {
  size_t at = 0;
  for (fake_event *e; (e = fake_handle_next(FAKE_EVENT, context, &at)) != NULL;) {
    fake_leak(context, "event %llu", (unsigned long long)e->number);
    event_free(e);
  }
}

/* ---- record, await ---- */

static CUresult event_record(const fake_call *call, CUevent handle, CUstream stream) {
  fake_event *e;
  fake_stream *s;
  CUresult code = fake_event_find(call, handle, &e);
  if (code == CUDA_SUCCESS) code = fake_stream_for_work(call, stream, &s);
  if (code == CUDA_SUCCESS) code = fake_capture_check(call, s);
  if (code != CUDA_SUCCESS) return code;
  if (e->context != s->context)
    return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "event %llu is of device %d, the stream of device %d",
                       (unsigned long long)e->number, e->context->device, s->context->device);
  tn_env env = fake_env;
  fake_capture_aim(s);
  tn_status status = tn_sim_event_record(&env, e->sim, s->sim);
  fake_capture_leave(s);
  int fault = atomic_load(&s->context->fault);
  if (status == TN_OK) return CUDA_SUCCESS;
  return fault != CUDA_SUCCESS ? (CUresult)fault : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_CALL(FAKE_CURRENT, event_record(&call, event, stream));
}

/* A stream that waits for an event of a capture joins that capture. */
static CUresult event_join_capture(const fake_call *call, const fake_event *e, fake_stream *s) {
  fake_capture *c = fake_capture_of_event(e);
  if (s->capture == NULL && e->sim->captured == 0) return CUDA_SUCCESS;
  if (c == NULL && s->capture == NULL)
    return fake_refuse(call, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                       "the last record of event %llu is in a capture that has ended",
                       (unsigned long long)e->number);
  if (c == NULL)
    return fake_capture_spoil(call, s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                              "event %llu was not recorded in this capture", (unsigned long long)e->number);
  if (s->capture != NULL && s->capture != c) {
    s->capture->invalid = true;
    return fake_capture_spoil(call, c, CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would become one");
  }
  if (c->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  s->capture = c;
  return CUDA_SUCCESS;
}

static CUresult event_await(const fake_call *call, CUstream stream, CUevent handle, unsigned flags) {
  fake_event *e;
  fake_stream *s;
  CUresult code = fake_event_find(call, handle, &e);
  if (code == CUDA_SUCCESS) code = fake_stream_for_work(call, stream, &s);
  if (code != CUDA_SUCCESS) return code;
  if (flags != 0) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "flags are %#x, expected 0", flags);
  if (e->context != s->context)
    return fake_refuse(call, CUDA_ERROR_NOT_SUPPORTED,
                       "the double lets no stream of device %d wait for an event of device %d",
                       s->context->device, e->context->device);
  code = fake_capture_check(call, s);
  if (code == CUDA_SUCCESS) code = event_join_capture(call, e, s);
  if (code != CUDA_SUCCESS) return code;
  tn_env env = fake_env;
  fake_capture_aim(s);
  tn_status status = tn_sim_event_await(&env, e->sim, s->sim);
  fake_capture_leave(s);
  int fault = atomic_load(&s->context->fault);
  if (status == TN_OK) return CUDA_SUCCESS;
  return fault != CUDA_SUCCESS ? (CUresult)fault : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  FAKE_CALL(FAKE_CURRENT, event_await(&call, stream, event, flags));
}

/* ---- the host ---- */

static CUresult event_wait(fake_call *call, CUevent handle) {
  fake_event *e;
  CUresult code = fake_event_find(call, handle, &e);
  if (code == CUDA_SUCCESS) code = fake_capture_refuse_event(call, e);
  if (code != CUDA_SUCCESS || e->sim->recorded == 0) return code;
  call->context = e->context;
  return fake_wait(call, e->sim->from, e->sim->position);
}

FAKE_API CUresult cuEventSynchronize(CUevent event) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, event_wait(&call, event));
}

static CUresult event_query(const fake_call *call, CUevent handle) {
  fake_event *e;
  CUresult code = fake_event_find(call, handle, &e);
  if (code == CUDA_SUCCESS) code = fake_capture_refuse_event(call, e);
  if (code != CUDA_SUCCESS || e->sim->recorded == 0) return code;
  if (!tn_sim_reached(e->sim->from, e->sim->position)) return CUDA_ERROR_NOT_READY;
  return (CUresult)atomic_load(&e->context->fault);
}

FAKE_API CUresult cuEventQuery(CUevent event) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, event_query(&call, event));
}

/* ---- time ---- */

static CUresult event_check_timed(const fake_call *call, CUevent handle, fake_event **event) {
  CUresult code = fake_event_find(call, handle, event);
  if (code == CUDA_SUCCESS) code = fake_capture_refuse_event(call, *event);
  if (code != CUDA_SUCCESS) return code;
  const char *lacks = ((*event)->flags & CU_EVENT_DISABLE_TIMING) != 0 ? "measures no time"
                      : (*event)->sim->recorded == 0                   ? "was never recorded"
                                                                       : NULL;
  if (lacks == NULL) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "event %llu %s", (unsigned long long)(*event)->number,
                     lacks);
}

static CUresult event_elapsed(const fake_call *call, float *ms, CUevent from, CUevent to) {
  fake_event *a, *b;
  if (ms == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the time");
  CUresult code = event_check_timed(call, from, &a);
  if (code == CUDA_SUCCESS) code = event_check_timed(call, to, &b);
  if (code != CUDA_SUCCESS) return code;
  if (a->context != b->context)
    return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "the events are of devices %d and %d",
                       a->context->device, b->context->device);
  tn_env env = fake_env;
  double seconds;
  if (tn_sim_event_seconds(&env, a->sim, b->sim, &seconds) != TN_OK) return CUDA_ERROR_NOT_READY;
  *ms = (float)(1e3 * seconds);
  return CUDA_SUCCESS;
}

/* Both names: CUDA 13 calls the second one, CUDA 12 the first. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent from, CUevent to);
CUresult CUDAAPI cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to);

FAKE_API CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  FAKE_CALL(FAKE_CURRENT, event_elapsed(&call, ms, from, to));
}

FAKE_API CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to) {
  FAKE_CALL(FAKE_CURRENT, event_elapsed(&call, ms, from, to));
}
