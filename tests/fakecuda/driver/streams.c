/* tests/fakecuda/driver/streams.c: streams. */
#include <stdlib.h>

#include "tests/fakecuda/driver/driver.h"

static bool stream_is_default(CUstream handle) {
  return handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/* The legacy stream waits for all others, so no capture of the context survives its use. */
static CUresult stream_refuse_default(const fake_call *call) {
  CUresult code = fake_capture_forbids_wait(call, call->context, NULL);
  if (code != CUDA_SUCCESS) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE,
                     "the default stream: the double refuses it, since it orders all other streams");
}

CUresult fake_stream_find(const fake_call *call, CUstream handle, fake_stream **stream) {
  if (stream_is_default(handle)) return stream_refuse_default(call);
  *stream = fake_handle_find(FAKE_STREAM, handle);
  if (*stream != NULL) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is no live stream", (void *)handle);
}

CUresult fake_stream_find_here(const fake_call *call, CUstream handle, fake_stream **stream) {
  CUresult code = fake_stream_find(call, handle, stream);
  if (code != CUDA_SUCCESS || (*stream)->context == call->context) return code;
  return fake_refuse(
      call, CUDA_ERROR_INVALID_HANDLE, "stream %llu is of device %d, but the current context is of device %d",
      (unsigned long long)(*stream)->number, (*stream)->context->device, call->context->device);
}

CUresult fake_stream_for_work(const fake_call *call, CUstream handle, fake_stream **stream) {
  for (;;) {
    CUresult code = fake_stream_find_here(call, handle, stream);
    if (code != CUDA_SUCCESS || (*stream)->capture != NULL) return code;
    const tn_sim_queue *ring = &(*stream)->sim->ring;
    uint64_t tail = atomic_load(&ring->tail);
    if (tail - atomic_load(&ring->head) < ring->capacity) return CUDA_SUCCESS;
    fake_reach((*stream)->sim, tail - ring->capacity + 1);
  }
}

/* ---- new, delete ---- */

static void stream_free(fake_stream *s) {
  tn_env env = fake_env;
  if (s->sim != NULL) tn_sim_stream_delete(&env, s->sim);
  if (s->handle != NULL) fake_handle_drop(s->handle);
  fake_works_free(s->first);
  free(s);
}

static CUresult stream_new(const fake_call *call, CUstream *handle, unsigned flags) {
  if (handle == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "flags %#x, place %p", flags, (void *)handle);
  fake_stream *s = calloc(1, sizeof *s);
  if (s == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  s->context = call->context;
  s->number = ++call->context->streams;
  tn_env env = fake_env;
  void *sim = NULL;
  if (tn_sim_stream_new(&env, call->context->sim, TN_STREAM_COMPUTE, &sim) == TN_OK) {
    s->sim = sim;
    s->handle = fake_handle_new(FAKE_STREAM, s->context, s);
  }
  if (s->handle == NULL) {
    stream_free(s);
    return fake_refuse(call, CUDA_ERROR_OUT_OF_MEMORY, "the double has at most %d streams on a device",
                       TN_SIM_STREAMS);
  }
  *handle = s->handle;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  FAKE_CALL(FAKE_CURRENT, stream_new(&call, stream, flags));
}

FAKE_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  (void)priority; /* CUDA takes the nearest priority that there is */
  FAKE_CALL(FAKE_CURRENT, stream_new(&call, stream, flags));
}

static CUresult stream_delete(const fake_call *call, CUstream handle) {
  fake_stream *s;
  CUresult code = fake_stream_find(call, handle, &s);
  if (code != CUDA_SUCCESS) return code;
  code = fake_capture_forbids_wait(call, s->context, s);
  if (code != CUDA_SUCCESS) return code;
  fake_reach(s->sim, atomic_load(&s->sim->ring.tail));
  code = fake_stream_find(call, handle, &s);
  if (code == CUDA_SUCCESS) stream_free(s);
  return code;
}

FAKE_API CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_CALL(FAKE_CURRENT | FAKE_FREES, stream_delete(&call, stream));
}

void fake_streams_close(fake_context *context) {
  size_t at = 0;
  for (fake_stream *s; (s = fake_handle_next(FAKE_STREAM, context, &at)) != NULL;) {
    fake_leak(context, "stream %llu", (unsigned long long)s->number);
    stream_free(s);
  }
}

/* ---- waiting ---- */

static CUresult stream_wait(fake_call *call, CUstream handle) {
  fake_stream *s;
  CUresult code = fake_stream_find_here(call, handle, &s);
  if (code == CUDA_SUCCESS) code = fake_capture_forbids_wait(call, s->context, s);
  if (code != CUDA_SUCCESS) return code;
  return fake_wait(call, s->sim, atomic_load(&s->sim->ring.tail));
}

FAKE_API CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, stream_wait(&call, stream));
}

static CUresult stream_query(const fake_call *call, CUstream handle) {
  fake_stream *s;
  CUresult code = fake_stream_find_here(call, handle, &s);
  if (code == CUDA_SUCCESS) code = fake_capture_forbids_wait(call, s->context, s);
  if (code != CUDA_SUCCESS) return code;
  if (!tn_sim_reached(s->sim, atomic_load(&s->sim->ring.tail))) return CUDA_ERROR_NOT_READY;
  return (CUresult)atomic_load(&s->context->fault);
}

FAKE_API CUresult cuStreamQuery(CUstream stream) {
  FAKE_CALL(FAKE_CURRENT | FAKE_UNSAFE, stream_query(&call, stream));
}

static CUresult stream_context(const fake_call *call, CUstream handle, CUcontext *context) {
  fake_stream *s;
  if (context == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the context");
  CUresult code = fake_stream_find(call, handle, &s);
  if (code == CUDA_SUCCESS) *context = s->context->handle;
  return code;
}

FAKE_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  FAKE_CALL(FAKE_CURRENT, stream_context(&call, stream, context));
}
