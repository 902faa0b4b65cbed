/* backends/cuda/stream.c: streams, copies and zeros. */
#include "backends/cuda/padded_rows.h"
#include "backends/cuda/objects.h"

/* Small launches of the collectives and copies should not wait behind the blocks of large kernels, so
 * computing has the lowest priority, which is 0. */
static int stream_priority(int32_t role) { return role == TN_STREAM_COMPUTE ? 0 : -1; }

tn_status tn_cuda_stream_new(tn_env *env, void *device, int32_t role, void **stream) {
  tn_cuda_device *d = device;
  *stream = NULL;
  TN_TRY(tn_cuda_enter(env, d));
  tn_cuda_stream *s = tn_new(env, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  s->device = d;
  tn_status status = TN_CU(env, &d->backend->libraries, cuStreamCreateWithPriority, &s->stream,
                           CU_STREAM_NON_BLOCKING, stream_priority(role));
  if (status != TN_OK) {
    tn_delete(env, s);
    return status;
  }
  tn_cuda_native_init(&s->native, d, s->stream);
  tn_cuda_ranges_name(s, role);
  *stream = s;
  return TN_OK;
}

void tn_cuda_stream_delete(tn_env *env, void *stream) {
  tn_cuda_stream *s = stream;
  tn_cuda_make_current(s->device);
  (void)s->device->backend->libraries.driver.cuStreamDestroy(s->stream);
  tn_delete(env, s);
}

tn_status tn_cuda_stream_wait(tn_env *env, void *stream) {
  const tn_cuda_stream *s = stream;
  if (s->device->capturing)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "cuda: a stream cannot be waited for while work is captured");
  tn_status status = tn_cuda_enter(env, s->device);
  return status == TN_OK ? TN_CU(env, &s->device->backend->libraries, cuStreamSynchronize, s->stream)
                         : status;
}

tn_status tn_cuda_copy_bytes(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                             uint64_t bytes) {
  const tn_cuda_stream *s = stream;
  const tn_cuda_libraries *l = &s->device->backend->libraries;
  CUdeviceptr there = (CUdeviceptr)(uintptr_t)to, here = (CUdeviceptr)(uintptr_t)from;
  tn_status status = bytes > 0 ? tn_cuda_enter(env, s->device) : TN_OK;
  if (status != TN_OK || bytes == 0) return status;
  if (direction == TN_COPY_TO_DEVICE) return TN_CU(env, l, cuMemcpyHtoDAsync, there, from, bytes, s->stream);
  if (direction == TN_COPY_TO_HOST) return TN_CU(env, l, cuMemcpyDtoHAsync, to, here, bytes, s->stream);
  return TN_CU(env, l, cuMemcpyDtoDAsync, there, here, bytes, s->stream);
}

tn_status tn_cuda_clear_padding(tn_env *env, void *stream, const tn_view *view) {
  const tn_cuda_stream *s = stream;
  int64_t size = (int64_t)tn_dtype_size(view->type.dtype), columns = tn_cuda_columns(&view->type);
  int64_t row = tn_cuda_padded_columns(&view->type), count = tn_type_count(&view->type);
  if (!tn_cuda_is_padded_rows(&view->type, &view->layout) || row == columns || count == 0) return TN_OK;
  TN_TRY(tn_cuda_enter(env, s->device));
  CUdeviceptr first = (CUdeviceptr)((uintptr_t)view->data + (uintptr_t)(columns * size));
  return TN_CU(env, &s->device->backend->libraries, cuMemsetD2D8Async, first, (size_t)(row * size), 0,
               (size_t)((row - columns) * size), (size_t)(count / columns), s->stream);
}

tn_status tn_cuda_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  const tn_cuda_stream *s = stream;
  tn_status status = bytes > 0 ? tn_cuda_enter(env, s->device) : TN_OK;
  if (status != TN_OK || bytes == 0) return status;
  return TN_CU(env, &s->device->backend->libraries, cuMemsetD8Async, (CUdeviceptr)(uintptr_t)address, 0,
               bytes, s->stream);
}
