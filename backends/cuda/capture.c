/* backends/cuda/capture.c: captured work as CUDA graphs. */
#include "backends/cuda/objects.h"

typedef struct cuda_capture {
  tn_cuda_device *device;
  CUgraphExec executable;
} cuda_capture;

void tn_cuda_capture_delete(tn_env *env, void *capture) {
  cuda_capture *c = capture;
  tn_cuda_make_current(c->device);
  (void)c->device->backend->libraries.driver.cuGraphExecDestroy(c->executable);
  tn_delete(env, c);
}

/* Ends the capture also where the first attempt fails: a stream that captures refuses every wait. */
static CUresult capture_end_stream(const tn_cuda_driver *driver, CUstream stream, CUgraph *graph) {
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult code = driver->cuStreamEndCapture(stream, graph);
  if (code == CUDA_SUCCESS) return code;
  *graph = NULL;
  if (driver->cuStreamIsCapturing(stream, &capturing) == CUDA_SUCCESS &&
      capturing != CU_STREAM_CAPTURE_STATUS_NONE)
    (void)driver->cuStreamEndCapture(stream, graph);
  return code;
}

/* Ends the capture also after a failure of the work, whose code and text stay. */
static tn_status capture_end(tn_env *env, tn_cuda_device *d, CUstream stream, tn_status status,
                             CUgraph *graph) {
  const tn_cuda_libraries *l = &d->backend->libraries;
  CUresult code = capture_end_stream(&l->driver, stream, graph);
  d->capturing = false;
  if (status == TN_OK) status = tn_cuda_check(env, l, code, "cuStreamEndCapture");
  if (status == TN_OK || *graph == NULL) return status;
  (void)l->driver.cuGraphDestroy(*graph);
  *graph = NULL;
  return status;
}

static tn_status capture_instantiate(tn_env *env, tn_cuda_device *d, CUgraph graph, void **capture) {
  const tn_cuda_libraries *l = &d->backend->libraries;
  cuda_capture *c = tn_new(env, sizeof *c);
  tn_status status = c ? TN_CU(env, l, cuGraphInstantiateWithFlags, &c->executable, graph, 0) : TN_ENOMEM;
  (void)l->driver.cuGraphDestroy(graph);
  if (c == NULL) return status;
  c->device = d;
  if (status == TN_OK)
    *capture = c;
  else
    tn_delete(env, c);
  return status;
}

/* Libraries report a call that they refuse inside a capture by codes of their own. The host has run the work
 * without a capture before. So where the device answers, and the stream captures no more, the capture alone
 * has failed. */
static tn_status capture_refusal(const tn_cuda_device *d, CUstream stream, tn_status status) {
  const tn_cuda_driver *driver = &d->backend->libraries.driver;
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  size_t unused = 0, all = 0;
  bool answers = driver->cuStreamIsCapturing(stream, &capturing) == CUDA_SUCCESS &&
                 capturing == CU_STREAM_CAPTURE_STATUS_NONE &&
                 driver->cuMemGetInfo(&unused, &all) == CUDA_SUCCESS;
  return status == TN_EDEVICE && answers ? TN_EUNSUPPORTED : status;
}

tn_status tn_cuda_capture(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg), void *arg,
                          void **capture) {
  tn_cuda_device *d = device;
  const tn_cuda_stream *s = stream;
  CUgraph graph = NULL;
  *capture = NULL;
  if (d->backend->options->check)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "cuda: [backend.cuda] check = yes waits after each launch");
  tn_status status = tn_cuda_enter(env, d);
  if (status == TN_OK)
    status = TN_CU(env, &d->backend->libraries, cuStreamBeginCapture, s->stream,
                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (status != TN_OK) return status;
  d->capturing = true;
  status = capture_end(env, d, s->stream, work(arg), &graph);
  if (status == TN_OK) status = capture_instantiate(env, d, graph, capture);
  return status == TN_OK ? TN_OK : capture_refusal(d, s->stream, status);
}

tn_status tn_cuda_capture_launch(tn_env *env, void *capture, void *stream) {
  const cuda_capture *c = capture;
  const tn_cuda_stream *s = stream;
  tn_status status = tn_cuda_enter(env, c->device);
  return status == TN_OK ? TN_CU(env, &c->device->backend->libraries, cuGraphLaunch, c->executable, s->stream)
                         : status;
}
