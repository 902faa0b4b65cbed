/* backends/cuda/device.c: devices and their memory. */
#include <string.h>

#include "backends/cuda/objects.h"
#include "backends/cuda/cudnn/backend.h"
#include "backends/cuda/modules/modules.h"

enum { OLDEST_ARCH = 75 };

/* ---- devices ---- */

void tn_cuda_device_close(tn_env *env, void *device) {
  tn_cuda_device *d = device;
  const tn_cuda_libraries *l = &d->backend->libraries;
  if (d->context != NULL) tn_cuda_make_current(d);
  tn_cudnn_device_close(env, d);
  tn_cuda_modules_destroy(env, d->modules);
  if (d->lt != NULL) (void)l->lt.cublasLtDestroy(d->lt);
  if (d->context != NULL) {
    (void)l->driver.cuCtxSetCurrent(NULL);
    (void)l->driver.cuDevicePrimaryCtxRelease(d->device);
  }
  tn_delete(env, d);
}

static tn_status device_fill(tn_env *env, tn_cuda_device *d) {
  const tn_cuda_libraries *l = &d->backend->libraries;
  tn_status status = TN_CU(env, l, cuDeviceGet, &d->device, d->index);
  if (status == TN_OK) status = tn_cuda_read_limits(env, l, d->device, &d->limits);
  if (status == TN_OK && d->limits.arch < OLDEST_ARCH)
    return tn_fail(
        env, TN_EUNAVAILABLE, NULL,
        "device %d has compute capability %d.%d, expected 7.5 or later; give another by [run] device",
        d->index, d->limits.arch / 10, d->limits.arch % 10);
  if (status == TN_OK) status = TN_CU(env, l, cuDevicePrimaryCtxRetain, &d->context, d->device);
  if (status == TN_OK) status = tn_cuda_enter(env, d);
  if (status == TN_OK) status = TN_LT(env, l, cublasLtCreate, &d->lt);
  if (status == TN_OK) tn_cuda_native_init(&d->native, d, NULL);
  return status == TN_OK ? tn_cuda_modules_create(env, d, &d->modules) : status;
}

tn_status tn_cuda_device_open(tn_env *env, void *backend, int32_t index, void **device) {
  *device = NULL;
  tn_cuda_device *d = tn_new(env, sizeof *d);
  if (d == NULL) return TN_ENOMEM;
  d->env = *env;
  d->backend = backend;
  d->index = index;
  tn_status status = device_fill(env, d);
  if (status == TN_OK)
    *device = d;
  else
    tn_cuda_device_close(env, d);
  return status;
}

tn_status tn_cuda_finish_prepare(tn_env *env, void *device, int32_t *declined) {
  tn_status status = tn_cuda_finish_functions(env, device, declined);
  return status == TN_OK ? tn_cudnn_finish_prepare(env, device, declined) : status;
}

/* ---- memory ---- */

static tn_status memory_fail(tn_env *env, const tn_cuda_device *d, uint64_t bytes) {
  size_t free_bytes = 0, all = 0;
  (void)d->backend->libraries.driver.cuMemGetInfo(&free_bytes, &all);
  return tn_fail(env, TN_ENOMEM, NULL, "device %d has %.1f of %.1f MiB free, %.1f MiB are asked for",
                 d->index, (double)free_bytes / 1048576, (double)all / 1048576, (double)bytes / 1048576);
}

static tn_status memory_new_device(tn_env *env, const tn_cuda_device *d, uint64_t bytes, void **address) {
  CUdeviceptr block = 0;
  tn_status status = TN_CU(env, &d->backend->libraries, cuMemAlloc, &block, bytes);
  *address = (void *)(uintptr_t)block;
  return status == TN_ENOMEM ? memory_fail(env, d, bytes) : status;
}

tn_status tn_cuda_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  const tn_cuda_device *d = device;
  *address = NULL;
  TN_TRY(tn_cuda_enter(env, d));
  if (kind == TN_MEMORY_DEVICE) return memory_new_device(env, d, bytes, address);
  return TN_CU(env, &d->backend->libraries, cuMemHostAlloc, address, bytes, CU_MEMHOSTALLOC_PORTABLE);
}

void tn_cuda_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  const tn_cuda_device *d = device;
  (void)env, (void)bytes;
  tn_cuda_make_current(d);
  if (kind == TN_MEMORY_DEVICE)
    (void)d->backend->libraries.driver.cuMemFree((CUdeviceptr)(uintptr_t)address);
  else
    (void)d->backend->libraries.driver.cuMemFreeHost(address);
}

tn_status tn_cuda_memory_info(tn_env *env, void *device, int64_t *free_bytes, int64_t *all_bytes) {
  const tn_cuda_device *d = device;
  size_t unused = 0, all = 0;
  tn_status status = tn_cuda_enter(env, d);
  if (status == TN_OK) status = TN_CU(env, &d->backend->libraries, cuMemGetInfo, &unused, &all);
  *free_bytes = (int64_t)unused;
  *all_bytes = (int64_t)all;
  return status;
}
