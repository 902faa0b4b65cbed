/* backends/cuda/backend.c: options, the backend object, and the table of callbacks. */
#include <stdio.h>

#include "backends/cuda/objects.h"
#include "backends/cuda/cudnn/backend.h"

static void cuda_backend_close(tn_env *env, void *backend) {
  tn_cuda_backend_object *b = backend;
  tn_cudnn_backend_close(env, b);
  tn_cuda_ranges_close(b);
  tn_cuda_libraries_close(&b->libraries);
  tn_delete(env, b);
}

static void cuda_backend_write_versions(tn_cuda_backend_object *b) {
  const tn_cuda_libraries *l = &b->libraries;
  enum { ROOM = sizeof b->versions[0] };
  snprintf(b->versions[TN_CUDA_LIBRARY_DRIVER], ROOM, "%d.%d", l->driver_version / 1000,
           l->driver_version % 1000 / 10);
  snprintf(b->versions[TN_CUDA_LIBRARY_NVRTC], ROOM, "%d.%d", l->nvrtc_version / 1000,
           l->nvrtc_version % 1000 / 10);
  snprintf(b->versions[TN_CUDA_LIBRARY_LT], ROOM, "%d.%d.%d", (int)(l->lt_version / 10000),
           (int)(l->lt_version / 100 % 100), (int)(l->lt_version % 100));
}

/* The libraries of CUDA are for a device; cuDNN answers without one. */
static tn_status cuda_backend_start(tn_env *env, const void *options, bool has_device,
                                    tn_cuda_backend_object **backend) {
  *backend = NULL;
  tn_cuda_backend_object *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->env = *env;
  b->options = options;
  tn_status status = has_device ? tn_cuda_libraries_open(env, b->options->libraries, &b->libraries) : TN_OK;
  if (status == TN_OK) status = tn_cudnn_backend_open(env, b);
  if (status != TN_OK) {
    cuda_backend_close(env, b);
    return status;
  }
  *backend = b;
  return TN_OK;
}

static tn_status cuda_backend_open(tn_env *env, const void *options, void **backend) {
  tn_cuda_backend_object *b;
  tn_status status = cuda_backend_start(env, options, true, &b);
  *backend = b;
  if (status != TN_OK) return status;
  cuda_backend_write_versions(b);
  tn_cuda_ranges_open(b);
  return TN_OK;
}

static tn_status cuda_backend_open_described(tn_env *env, const void *options, void **backend) {
  tn_cuda_backend_object *b;
  tn_status status = cuda_backend_start(env, options, false, &b);
  *backend = b;
  return status;
}

static tn_status cuda_backend_count(tn_env *env, void *backend, int32_t *count) {
  const tn_cuda_libraries *l = &((const tn_cuda_backend_object *)backend)->libraries;
  int n = 0;
  *count = 0;
  TN_TRY(TN_CU(env, l, cuDeviceGetCount, &n));
  *count = n;
  if (n > 0) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "the driver (%s) finds no NVIDIA GPU; see CUDA_VISIBLE_DEVICES",
                 l->path[TN_CUDA_LIBRARY_DRIVER]);
}

static int32_t cuda_backend_library(tn_env *env, void *backend, int32_t index, tn_backend_library *library) {
  static const char *const names[TN_CUDA_LIBRARIES] = {[TN_CUDA_LIBRARY_DRIVER] = "CUDA driver",
                                                       [TN_CUDA_LIBRARY_NVRTC] = "NVRTC",
                                                       [TN_CUDA_LIBRARY_LT] = "cuBLASLt"};
  const tn_cuda_backend_object *b = backend;
  (void)env;
  if (index == TN_CUDA_LIBRARIES) return tn_cudnn_describe_library(b, library);
  if (index > TN_CUDA_LIBRARIES) return 0;
  library->name = names[index];
  library->version = b->versions[index];
  library->path = b->libraries.path[index];
  return 1;
}

static const char *cuda_backend_better_policy(tn_env *env, void *backend, const tn_device_properties *device,
                                              const char *policy, const char *op) {
  (void)env;
  return tn_cudnn_better_policy(backend, device, policy, op);
}

static const tn_option options[] = {
    TN_OPT(tn_cuda_options, libraries, TN_OPT_CODE, "", NULL,
           "folders, separated by ':', where the libraries of CUDA are looked for first"),
    TN_OPT(tn_cuda_options, cudnn, TN_OPT_FLAG, "yes", NULL,
           "compute convolutions and attention with cuDNN where it is found"),
    TN_OPT(tn_cuda_options, check, TN_OPT_FLAG, "no", NULL,
           "wait after each launch, so that a failure names its op; nothing is captured"),
    TN_OPT(
        tn_cuda_options, link, TN_OPT_FLOAT, "0", ">= 0",
        "bytes a second of copies between host and device, such as 2.5e10, by which a run under memory_limit "
        "offloads values; 0: what the system says of the PCI Express slot"),
    TN_OPT(tn_cuda_options, images, TN_OPT_CODE, "", NULL,
           "folder with kernels that nvcc compiled when the backend was built; empty: beside the plugin"),
    TN_OPT(tn_cuda_options, cache, TN_OPT_CODE, "", NULL, "folder for compiled kernels; set by the host"),
    TN_OPT_END};

const tn_backend tn_cuda_backend = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "cuda", "NVIDIA GPUs", tn_cuda_options, options),
    .preference = 100,
    .open = cuda_backend_open,
    .close = cuda_backend_close,
    .count = cuda_backend_count,
    .properties = tn_cuda_properties,
    .device_open = tn_cuda_device_open,
    .device_close = tn_cuda_device_close,
    .memory_new = tn_cuda_memory_new,
    .memory_delete = tn_cuda_memory_delete,
    .stream_new = tn_cuda_stream_new,
    .stream_delete = tn_cuda_stream_delete,
    .stream_wait = tn_cuda_stream_wait,
    .event_new = tn_cuda_event_new,
    .event_delete = tn_cuda_event_delete,
    .event_record = tn_cuda_event_record,
    .event_await = tn_cuda_event_await,
    .event_wait = tn_cuda_event_wait,
    .event_done = tn_cuda_event_done,
    .event_seconds = tn_cuda_event_seconds,
    .copy = tn_cuda_copy_bytes,
    .fill_zero = tn_cuda_fill_zero,
    .capture = tn_cuda_capture,
    .capture_launch = tn_cuda_capture_launch,
    .capture_delete = tn_cuda_capture_delete,
    .native = tn_cuda_native,
    .library = cuda_backend_library,
    .finish_prepare = tn_cuda_finish_prepare,
    .memory_info = tn_cuda_memory_info,
    .open_described = cuda_backend_open_described,
    .better_policy = cuda_backend_better_policy,
    .range_begin = tn_cuda_range_begin,
    .range_end = tn_cuda_range_end,
};
