/* backends/cuda/driver/libraries.c: opens the libraries of CUDA and fills the tables of their functions. */
#include "backends/cuda/driver/libraries.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backends/shared/nvidia_search.h"

enum { OLDEST_DRIVER = 12000, OLDEST_MAJOR = 12 };

typedef struct entry_point {
  const char *symbol;
  size_t offset; /* of the function in its table */
} entry_point;

#define DRIVER_POINT(function, symbol) {symbol, offsetof(tn_cuda_driver, function)},
#define NVRTC_POINT(function, symbol)  {symbol, offsetof(tn_cuda_nvrtc, function)},
#define LT_POINT(function, symbol)     {symbol, offsetof(tn_cuda_lt, function)},
static const entry_point driver_points[] = {TN_CUDA_DRIVER_POINTS(DRIVER_POINT){NULL, 0}};
static const entry_point nvrtc_points[] = {TN_CUDA_NVRTC_POINTS(NVRTC_POINT){NULL, 0}};
static const entry_point lt_points[] = {TN_CUDA_LT_POINTS(LT_POINT){NULL, 0}};

/* ---- failures ---- */

static tn_status cuda_code_of(CUresult code) {
  switch (code) {
  case CUDA_SUCCESS: return TN_OK;
  case CUDA_ERROR_OUT_OF_MEMORY: return TN_ENOMEM;
  case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
  case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
  case CUDA_ERROR_STREAM_CAPTURE_MERGE:
  case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
  case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
  case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: return TN_EUNSUPPORTED;
  default: return TN_EDEVICE;
  }
}

/* Codes of faults in kernels, which every later call of the process returns. */
static bool cuda_is_fault(CUresult code) {
  return code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_FAILED ||
         code == CUDA_ERROR_ASSERT ||
         (code >= CUDA_ERROR_HARDWARE_STACK_ERROR && code <= CUDA_ERROR_INVALID_PC) ||
         code == CUDA_ERROR_LAUNCH_TIMEOUT;
}

static const char cuda_fault_hint[] =
    "; an earlier launch may be the cause: --set backend.cuda.check=yes names it";

/* The other libraries report a fault by codes of their own, so the driver is asked. */
static bool cuda_has_faulted(const tn_cuda_libraries *l) {
  size_t unused = 0, all = 0;
  return cuda_is_fault(l->driver.cuMemGetInfo(&unused, &all));
}

const char *tn_cuda_fault_hint(const tn_cuda_libraries *libraries) {
  return cuda_has_faulted(libraries) ? cuda_fault_hint : "";
}

tn_status tn_cuda_check(tn_env *env, const tn_cuda_libraries *libraries, CUresult code, const char *call) {
  const char *name = NULL, *text = NULL;
  if (code == CUDA_SUCCESS) return TN_OK;
  (void)libraries->driver.cuGetErrorName(code, &name);
  (void)libraries->driver.cuGetErrorString(code, &text);
  return tn_fail(env, cuda_code_of(code), NULL, "%s: %s (%s)%s", call, name ? name : "unknown code",
                 text ? text : "?", cuda_is_fault(code) ? cuda_fault_hint : "");
}

tn_status tn_cuda_check_nvrtc(tn_env *env, const tn_cuda_libraries *libraries, nvrtcResult code,
                              const char *call) {
  if (code == NVRTC_SUCCESS) return TN_OK;
  return tn_fail(env, code == NVRTC_ERROR_OUT_OF_MEMORY ? TN_ENOMEM : TN_EDEVICE, NULL, "%s: %s", call,
                 libraries->nvrtc.nvrtcGetErrorString(code));
}

tn_status tn_cuda_check_lt(tn_env *env, const tn_cuda_libraries *libraries, cublasStatus_t code,
                           const char *call) {
  if (code == CUBLAS_STATUS_SUCCESS) return TN_OK;
  return tn_fail(env, code == CUBLAS_STATUS_ALLOC_FAILED ? TN_ENOMEM : TN_EDEVICE, NULL, "%s: %s%s", call,
                 libraries->lt.cublasLtGetStatusString(code), tn_cuda_fault_hint(libraries));
}

bool tn_cuda_is_refusal(const tn_cuda_libraries *libraries, tn_status status) {
  return status == TN_EUNSUPPORTED || (status == TN_EDEVICE && !cuda_has_faulted(libraries));
}

/* ---- opening ---- */

static tn_status libraries_fill(tn_env *env, const tn_cuda_libraries *l, int32_t which,
                                const entry_point *points, void *table) {
  for (const entry_point *p = points; p->symbol != NULL; p++) {
    void *found = dlsym(l->handle[which], p->symbol);
    if (found == NULL)
      return tn_fail(env, TN_EUNAVAILABLE, NULL, "%s has no function %s; install CUDA 12.0 or later",
                     l->path[which], p->symbol);
    memcpy((char *)table + p->offset, &found, sizeof found);
  }
  return TN_OK;
}

/* The backend cannot be used, so the next one of [backend] use is tried. */
static tn_status libraries_fail_start(tn_env *env, const tn_cuda_libraries *l, CUresult code,
                                      const char *call) {
  const char *name = NULL, *path = l->path[TN_CUDA_LIBRARY_DRIVER];
  if (code == CUDA_ERROR_NO_DEVICE)
    return tn_fail(env, TN_EUNAVAILABLE, NULL,
                   "the driver (%s) finds no NVIDIA GPU; see CUDA_VISIBLE_DEVICES", path);
  (void)l->driver.cuGetErrorName(code, &name);
  return tn_fail(
      env, TN_EUNAVAILABLE, NULL,
      "the driver (%s) does not start: %s: %s; see nvidia-smi, and whether the driver matches the kernel",
      path, call, name ? name : "unknown code");
}

static tn_status libraries_open_driver(tn_env *env, const char *folders, tn_cuda_libraries *l) {
  static const tn_nvidia_wanted driver = {
      "the NVIDIA driver",
      {"libcuda.so.1"},
      "install the driver of the GPU (on Debian: nvidia-driver), or leave cuda out of "
      "[backend] use"};
  int version = 0;
  TN_TRY(tn_nvidia_find_library(env, folders, &driver, &l->handle[TN_CUDA_LIBRARY_DRIVER],
                                l->path[TN_CUDA_LIBRARY_DRIVER]));
  TN_TRY(libraries_fill(env, l, TN_CUDA_LIBRARY_DRIVER, driver_points, &l->driver));
  CUresult code = l->driver.cuInit(0);
  if (code != CUDA_SUCCESS) return libraries_fail_start(env, l, code, "cuInit");
  code = l->driver.cuDriverGetVersion(&version);
  if (code != CUDA_SUCCESS) return libraries_fail_start(env, l, code, "cuDriverGetVersion");
  l->driver_version = version;
  if (version >= OLDEST_DRIVER) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, NULL,
                 "the driver (%s) is for CUDA %d.%d, expected 12.0 or later; install a newer driver",
                 l->path[TN_CUDA_LIBRARY_DRIVER], version / 1000, version % 1000 / 10);
}

/* A toolkit library of the driver's major version, or of an older one: a driver runs code that older
 * compilers made. */
static tn_status libraries_open_toolkit(tn_env *env, const char *folders, tn_cuda_libraries *l, int32_t which,
                                        const char *title, const char *stem, const char *package) {
  char names[TN_NVIDIA_NAMES][32], remedy[256];
  tn_nvidia_wanted wanted = {.title = title, .remedy = remedy};
  int32_t major = l->driver_version / 1000, n = 0;
  for (; major >= OLDEST_MAJOR && n < TN_NVIDIA_NAMES; major--, n++) {
    snprintf(names[n], sizeof names[n], "%s.so.%d", stem, (int)major);
    wanted.names[n] = names[n];
  }
  snprintf(remedy, sizeof remedy,
           "install CUDA %d, or the PyPI package %s, or give its folder: [backend.cuda] libraries = FOLDER",
           (int)(l->driver_version / 1000), package);
  return tn_nvidia_find_library(env, folders, &wanted, &l->handle[which], l->path[which]);
}

static tn_status libraries_open_nvrtc(tn_env *env, const char *folders, tn_cuda_libraries *l) {
  int major = 0, minor = 0;
  tn_status status =
      libraries_open_toolkit(env, folders, l, TN_CUDA_LIBRARY_NVRTC, "NVRTC, which compiles kernels,",
                             "libnvrtc", "nvidia-cuda-nvrtc");
  if (status == TN_OK) status = libraries_fill(env, l, TN_CUDA_LIBRARY_NVRTC, nvrtc_points, &l->nvrtc);
  if (status == TN_OK) status = TN_RTC(env, l, nvrtcVersion, &major, &minor);
  l->nvrtc_version = major * 1000 + minor * 10;
  return status;
}

static tn_status libraries_open_lt(tn_env *env, const char *folders, tn_cuda_libraries *l) {
  tn_status status =
      libraries_open_toolkit(env, folders, l, TN_CUDA_LIBRARY_LT, "cuBLASLt, which multiplies matrices,",
                             "libcublasLt", "nvidia-cublas");
  if (status == TN_OK) status = libraries_fill(env, l, TN_CUDA_LIBRARY_LT, lt_points, &l->lt);
  if (status == TN_OK) l->lt_version = (int64_t)l->lt.cublasLtGetVersion();
  return status;
}

tn_status tn_cuda_libraries_open(tn_env *env, const char *folders, tn_cuda_libraries *libraries) {
  memset(libraries, 0, sizeof *libraries);
  TN_TRY(libraries_open_driver(env, folders, libraries));
  TN_TRY(libraries_open_nvrtc(env, folders, libraries));
  return libraries_open_lt(env, folders, libraries);
}

void tn_cuda_libraries_close(tn_cuda_libraries *libraries) {
  for (int32_t i = TN_CUDA_LIBRARIES - 1; i >= 0; i--)
    if (libraries->handle[i] != NULL) dlclose(libraries->handle[i]);
  memset(libraries, 0, sizeof *libraries);
}
