/* tests/fakecuda/driver/capture.c: captures of streams, with CUDA's rules. The simulated device captures all
 * of its streams or none; the double makes one of its captures the current one for the time of a call, so
 * that several go on beside streams that do not capture. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/sim/capture.h"
#include "tests/fakecuda/driver/driver.h"

static fake_capture *captures;  /* that have not ended */
static _Atomic(int) n_captures; /* of them; read without the lock */
static _Thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void fake_capture_aim(const fake_stream *stream) {
  stream->context->sim->capturing = stream->capture != NULL ? stream->capture->sim : NULL;
}

void fake_capture_leave(const fake_stream *stream) { stream->context->sim->capturing = NULL; }

bool fake_captures_active(void) { return atomic_load(&n_captures) > 0; }

/* ---- what a capture forbids ---- */

CUresult fake_capture_spoil(const fake_call *call, fake_capture *capture, CUresult result, const char *format,
                            ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  capture->invalid = true;
  return fake_refuse(call, result, "%s; the capture is invalid now", text);
}

static bool capture_forbids_unsafe(const fake_capture *c) {
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (pthread_equal(c->thread, pthread_self())) return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult fake_capture_forbids(const fake_call *call) {
  CUresult code = CUDA_SUCCESS;
  for (fake_capture *c = captures; c != NULL; c = c->next)
    if (capture_forbids_unsafe(c))
      code = fake_capture_spoil(call, c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                "not permitted while stream %llu captures",
                                (unsigned long long)c->origin->number);
  return code;
}

CUresult fake_capture_forbids_wait(const fake_call *call, const fake_context *context,
                                   const fake_stream *stream) {
  CUresult code = CUDA_SUCCESS;
  /* after a fault no call ends a capture, and objects are deleted as they are */
  if (atomic_load(&context->fault) != CUDA_SUCCESS) return code;
  for (fake_capture *c = captures; c != NULL; c = c->next)
    if (c->context == context && (stream == NULL || stream->capture == c))
      code = fake_capture_spoil(call, c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                "not permitted on a stream that captures (stream %llu began it)",
                                (unsigned long long)c->origin->number);
  return code;
}

CUresult fake_capture_check(const fake_call *call, const fake_stream *stream) {
  if (stream->capture == NULL || !stream->capture->invalid) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture of stream %llu is invalid",
                     (unsigned long long)stream->capture->origin->number);
}

/* ---- captured events ---- */

fake_capture *fake_capture_of_event(const fake_event *event) {
  for (fake_capture *c = captures; c != NULL && event->sim->captured != 0; c = c->next)
    if (c->context == event->context && c->sim->id == event->sim->captured) return c;
  return NULL;
}

CUresult fake_capture_refuse_event(const fake_call *call, const fake_event *event) {
  fake_capture *c = fake_capture_of_event(event);
  unsigned long long number = event->number;
  if (event->sim->captured == 0) return CUDA_SUCCESS;
  if (c == NULL)
    return fake_refuse(call, CUDA_ERROR_CAPTURED_EVENT, "the last record of event %llu is in a capture",
                       number);
  return fake_capture_spoil(call, c, CUDA_ERROR_CAPTURED_EVENT,
                            "the last record of event %llu is in a capture", number);
}

/* ---- begin ---- */

static CUresult capture_begin(const fake_call *call, CUstream handle, CUstreamCaptureMode wanted) {
  fake_stream *s;
  CUresult code = fake_stream_find_here(call, handle, &s);
  if (code != CUDA_SUCCESS) return code;
  if (wanted < CU_STREAM_CAPTURE_MODE_GLOBAL || wanted > CU_STREAM_CAPTURE_MODE_RELAXED)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no such mode: %d", (int)wanted);
  if (s->capture != NULL)
    return fake_refuse(call, CUDA_ERROR_ILLEGAL_STATE, "stream %llu captures already",
                       (unsigned long long)s->number);
  fake_capture *c = calloc(1, sizeof *c);
  tn_env env = fake_env;
  if (c == NULL || tn_sim_capture_begin(&env, s->context->sim, s->sim) != TN_OK)
    return free(c), CUDA_ERROR_OUT_OF_MEMORY;
  *c = (fake_capture){.next = captures,
                      .context = s->context,
                      .origin = s,
                      .mode = wanted,
                      .thread = pthread_self(),
                      .sim = s->context->sim->capturing};
  s->context->sim->capturing = NULL;
  s->capture = c;
  captures = c;
  atomic_fetch_add(&n_captures, 1);
  return CUDA_SUCCESS;
}

#undef cuStreamBeginCapture
CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode wanted);

FAKE_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode wanted) {
  FAKE_CALL(FAKE_CURRENT, capture_begin(&call, stream, wanted));
}

/* ---- end ---- */

static void capture_unlink(const fake_capture *capture) {
  size_t at = 0;
  for (fake_stream *s; (s = fake_handle_next(FAKE_STREAM, capture->context, &at)) != NULL;)
    if (s->capture == capture) s->capture = NULL;
  fake_capture **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  atomic_fetch_sub(&n_captures, 1);
}

static void capture_drop(fake_capture *c) {
  tn_env env = fake_env;
  capture_unlink(c);
  tn_sim_capture_delete(&env, c->sim);
  fake_works_free(c->works);
  free(c);
}

void fake_captures_close(fake_context *context) {
  for (fake_capture *c = captures, *next; c != NULL; c = next) {
    next = c->next;
    if (c->context != context) continue;
    if (atomic_load(&context->fault) == CUDA_SUCCESS) /* after a fault the stream may have been deleted */
      fake_leak(context, "a capture of stream %llu that has not ended",
                (unsigned long long)c->origin->number);
    capture_drop(c);
  }
}

/* The simulated device checks that the origin has waited for all others, and deletes its capture if not. */
static CUresult capture_finish(const fake_call *call, fake_capture *c, CUgraph *graph) {
  tn_env env = fake_env;
  void *sim;
  c->context->sim->capturing = c->sim;
  tn_status status = tn_sim_capture_end(&env, c->context->sim, c->origin->sim, &sim);
  c->sim = sim;
  if (status != TN_OK) {
    unsigned long long number = c->origin->number;
    capture_drop(c);
    return fake_refuse(call, CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                       "stream %llu has not waited for the last work of another stream of its capture",
                       number);
  }
  CUresult code = fake_graph_new(call, c, graph);
  if (code != CUDA_SUCCESS) return capture_drop(c), code;
  capture_unlink(c);
  free(c);
  return CUDA_SUCCESS;
}

static CUresult capture_check_end(const fake_call *call, const fake_stream *s) {
  unsigned long long number = s->number;
  fake_capture *c = s->capture;
  if (c == NULL) return fake_refuse(call, CUDA_ERROR_ILLEGAL_STATE, "stream %llu does not capture", number);
  if (c->origin != s)
    return fake_capture_spoil(call, c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                              "the capture did not begin on stream %llu", number);
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
    return fake_refuse(call, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                       "the capture of stream %llu was begun by another thread", number);
  return CUDA_SUCCESS;
}

static CUresult capture_end(const fake_call *call, CUstream handle, CUgraph *graph) {
  fake_stream *s;
  if (graph == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the graph");
  *graph = NULL;
  CUresult code = fake_stream_find_here(call, handle, &s);
  if (code == CUDA_SUCCESS) code = capture_check_end(call, s);
  if (code != CUDA_SUCCESS) return code;
  if (!s->capture->invalid) return capture_finish(call, s->capture, graph);
  if (fake_finish(s->context) && fake_handle_find(FAKE_STREAM, handle) == s) capture_drop(s->capture);
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

FAKE_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  FAKE_CALL(FAKE_CURRENT, capture_end(&call, stream, graph));
}

/* ---- state ---- */

static CUresult capture_state(const fake_call *call, CUstream handle, CUstreamCaptureStatus *status) {
  fake_stream *s;
  if (status == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the status");
  CUresult code = fake_stream_find(call, handle, &s);
  if (code != CUDA_SUCCESS) return code;
  *status = s->capture == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
            : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  FAKE_CALL(FAKE_CURRENT, capture_state(&call, stream, status));
}

static CUresult capture_exchange(const fake_call *call, CUstreamCaptureMode *wanted) {
  if (wanted == NULL || *wanted < CU_STREAM_CAPTURE_MODE_GLOBAL || *wanted > CU_STREAM_CAPTURE_MODE_RELAXED)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no mode");
  CUstreamCaptureMode before = mode;
  mode = *wanted;
  *wanted = before;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *wanted) {
  FAKE_CALL(FAKE_INITIALIZED, capture_exchange(&call, wanted));
}
