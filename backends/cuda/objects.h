/* backends/cuda/objects.h: the objects of the backend.
 *
 * Threads. The host calls from one thread at a time about a device; another thread may use another device.
 * The threads of modules/compile_pool.c compile kernels and call NVRTC alone. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/driver/libraries.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/cuda.h"

extern const tn_backend tn_cuda_backend;

typedef struct tn_cuda_options {
  const char *libraries; /* folders with the libraries of CUDA */
  const char *cache;     /* set by the host: a folder for compiled kernels, or "" */
  const char *images;    /* a folder with kernels that nvcc compiled; "": the plugin's */
  int32_t check;         /* wait after each launch */
  int32_t cudnn;         /* use cuDNN where it is found */
  double link;           /* bytes a second between host and device; 0: those of the PCI Express slot */
} tn_cuda_options;

/* Properties of a device that kernels need in every prepare. */
typedef struct tn_cuda_limits {
  int32_t arch;         /* 90 for sm_90 */
  int32_t processors;   /* streaming multiprocessors */
  int32_t shared_bytes; /* of a block, at most, after asking for it */
} tn_cuda_limits;

typedef struct tn_cuda_backend_object {
  tn_env env; /* of open */
  const tn_cuda_options *options;
  tn_cuda_libraries libraries;
  struct tn_cudnn_library *cudnn;       /* cudnn/library.h; NULL: built or run without cuDNN */
  char versions[TN_CUDA_LIBRARIES][16]; /* "13.0" */
  char details[2048];                   /* of the device whose properties were read last */
  void *ranges;                         /* ranges.c: NVTX's domain; NULL: built without NVTX */
} tn_cuda_backend_object;

typedef struct tn_cuda_modules tn_cuda_modules; /* modules/modules.h */

typedef struct tn_cuda_device {
  tn_env env; /* of device_open */
  tn_cuda_backend_object *backend;
  int32_t index;
  CUdevice device;
  CUcontext context; /* the primary context */
  tn_cuda_limits limits;
  tn_cuda_modules *modules;
  cublasLtHandle_t lt;
  struct tn_cudnn_device *cudnn; /* cudnn/plan.c; NULL: not used yet */
  bool capturing;
  tn_cuda native;
} tn_cuda_device;

typedef struct tn_cuda_stream {
  tn_cuda_device *device;
  CUstream stream;
  tn_cuda native;
} tn_cuda_stream;

typedef struct tn_cuda_event {
  tn_cuda_device *device;
  CUevent event;
} tn_cuda_event;

/* Makes the device's context current on this thread. */
static inline tn_status tn_cuda_enter(tn_env *env, const tn_cuda_device *device) {
  return TN_CU(env, &device->backend->libraries, cuCtxSetCurrent, device->context);
}

/* The same without an error, which the next call that needs the context has: before something is freed, which
 * is tried in any case, and on threads that have no handle for errors. */
static inline void tn_cuda_make_current(const tn_cuda_device *device) {
  (void)device->backend->libraries.driver.cuCtxSetCurrent(device->context);
}

/* The device that a kernel is prepared for. */
static inline tn_cuda_device *tn_cuda_device_of(const tn_prepare *p) {
  return ((const tn_cuda *)p->native)->device;
}

/* properties.c */
tn_status tn_cuda_read_limits(tn_env *env, const tn_cuda_libraries *libraries, CUdevice device,
                              tn_cuda_limits *limits);
tn_status tn_cuda_properties(tn_env *env, void *backend, int32_t index, tn_device_properties *properties);

/* device.c */
tn_status tn_cuda_device_open(tn_env *env, void *backend, int32_t index, void **device);
void tn_cuda_device_close(tn_env *env, void *device);
tn_status tn_cuda_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address);
void tn_cuda_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes);
tn_status tn_cuda_memory_info(tn_env *env, void *device, int64_t *free_bytes, int64_t *all_bytes);

/* stream.c */
tn_status tn_cuda_stream_new(tn_env *env, void *device, int32_t role, void **stream);
void tn_cuda_stream_delete(tn_env *env, void *stream);
tn_status tn_cuda_stream_wait(tn_env *env, void *stream);
tn_status tn_cuda_copy_bytes(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                             uint64_t bytes);
tn_status tn_cuda_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes);
/* Zeros behind the rows of a tensor whose rows are padded (padded_rows.h); other tensors stay as they are. */
tn_status tn_cuda_clear_padding(tn_env *env, void *stream, const tn_view *view);

/* device.c */
tn_status tn_cuda_finish_prepare(tn_env *env, void *device, int32_t *declined);

/* event.c */
tn_status tn_cuda_event_new(tn_env *env, void *device, void **event);
void tn_cuda_event_delete(tn_env *env, void *event);
tn_status tn_cuda_event_record(tn_env *env, void *event, void *stream);
tn_status tn_cuda_event_await(tn_env *env, void *event, void *stream);
tn_status tn_cuda_event_wait(tn_env *env, void *event);
tn_status tn_cuda_event_done(tn_env *env, void *event, int32_t *done);
tn_status tn_cuda_event_seconds(tn_env *env, void *from, void *to, double *seconds);

/* native.c */
void tn_cuda_native_init(tn_cuda *native, tn_cuda_device *device, CUstream stream);
void *tn_cuda_native(tn_env *env, void *device, void *stream, const char *name);

/* ranges.c: ranges for Nsight Systems and other tools of NVTX, in the domain "Tenon". Without NVTX's header
 * they do nothing. */
void tn_cuda_ranges_open(tn_cuda_backend_object *backend);
void tn_cuda_ranges_close(const tn_cuda_backend_object *backend);
void tn_cuda_ranges_name(const tn_cuda_stream *stream, int32_t role);
void tn_cuda_range_begin(void *device, const char *name);
void tn_cuda_range_end(void *device);

/* capture.c */
tn_status tn_cuda_capture(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg), void *arg,
                          void **capture);
tn_status tn_cuda_capture_launch(tn_env *env, void *capture, void *stream);
void tn_cuda_capture_delete(tn_env *env, void *capture);
