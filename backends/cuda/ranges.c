/* backends/cuda/ranges.c: ranges by NVTX 3. Its header is the whole library: at the first call it opens the
 * tool that NVTX_INJECTION64_PATH names, as profilers set it, and without one each call reads a pointer. */
#include "backends/cuda/objects.h"

#ifdef TN_CUDA_NVTX
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>

void tn_cuda_ranges_open(tn_cuda_backend_object *b) { b->ranges = nvtxDomainCreateA("Tenon"); }

void tn_cuda_ranges_close(const tn_cuda_backend_object *b) {
  if (b->ranges != NULL) nvtxDomainDestroy(b->ranges);
}

void tn_cuda_range_begin(void *device, const char *name) {
  const tn_cuda_device *d = device;
  nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                      .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                      .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                      .message.ascii = name};
  nvtxDomainRangePushEx(d->backend->ranges, &attributes);
}

void tn_cuda_range_end(void *device) {
  const tn_cuda_device *d = device;
  nvtxDomainRangePop(d->backend->ranges);
}

void tn_cuda_ranges_name(const tn_cuda_stream *stream, int32_t role) {
  static const char *const names[TN_STREAMS] = {"compute", "copy in", "copy out", "collectives"};
  nvtxNameCuStreamA(stream->stream, names[role]);
}
#else
void tn_cuda_ranges_open(tn_cuda_backend_object *b) { (void)b; }
void tn_cuda_ranges_close(const tn_cuda_backend_object *b) { (void)b; }
void tn_cuda_range_begin(void *device, const char *name) {
  (void)device;
  (void)name;
}
void tn_cuda_range_end(void *device) { (void)device; }
void tn_cuda_ranges_name(const tn_cuda_stream *stream, int32_t role) {
  (void)stream;
  (void)role;
}
#endif
