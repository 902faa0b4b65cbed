/* backends/cuda/native.c: the interface for kernels and communicators of other plugins (tenon/plugin/cuda.h).
 */
#include <string.h>

#include "backends/cuda/modules/modules.h"

struct tn_cuda_code {
  tn_cuda_function function;
};

static void native_release(tn_env *env, tn_cuda_code *code) {
  if (code != NULL) tn_cuda_withdraw(&code->function);
  tn_delete(env, code);
}

static tn_status native_compile(tn_prepare *p, const char *title, const char *text, const char *name,
                                uint32_t shared_bytes, tn_cuda_code **code) {
  *code = NULL;
  tn_cuda_code *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  tn_status status = tn_cuda_request_text(p, &made->function, title, text, name);
  made->function.shared_bytes = shared_bytes;
  if (status == TN_OK)
    *code = made;
  else
    native_release(&p->env, made);
  return status;
}

static tn_status native_launch(tn_launch *l, const tn_cuda_code *code, const tn_cuda_grid *grid,
                               const void *args, size_t bytes) {
  return tn_cuda_launch(l, &code->function, grid, args, bytes);
}

static void *native_stream_of(const tn_launch *l) { return ((const tn_cuda_stream *)l->stream)->stream; }

void tn_cuda_native_init(tn_cuda *native, tn_cuda_device *device, CUstream stream) {
  *native = (tn_cuda){.struct_size = sizeof *native,
                      .arch = device->limits.arch,
                      .context = device->context,
                      .stream = stream,
                      .blas = device->lt,
                      .device = device,
                      .compile = native_compile,
                      .release = native_release,
                      .launch = native_launch,
                      .stream_of = native_stream_of,
                      .driver = device->backend->libraries.handle[TN_CUDA_LIBRARY_DRIVER]};
}

void *tn_cuda_native(tn_env *env, void *device, void *stream, const char *name) {
  tn_cuda_device *d = device;
  tn_cuda_stream *s = stream;
  (void)env;
  if (strcmp(name, "cuda") != 0 && strcmp(name, TN_CUDA_INTERFACE) != 0) return NULL;
  return s != NULL ? &s->native : &d->native;
}
