/* tests/unit/backends/cuda/rig.c: see rig.h. */
#include "tests/unit/backends/cuda/rig.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/shared/nvidia_search.h"

char cuda_rig_text[4096];

static tn_status rig_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)handle, (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(cuda_rig_text, sizeof cuda_rig_text, format, args);
  va_end(args);
  return code;
}

static void rig_log(const void *handle, int32_t level, const char *format, ...) {
  (void)handle, (void)level;
  va_list args;
  va_start(args, format);
  vsnprintf(cuda_rig_text, sizeof cuda_rig_text, format, args);
  va_end(args);
}

static void *rig_alloc(const void *handle, size_t bytes) {
  (void)handle;
  return calloc(1, bytes);
}

static void rig_free(const void *handle, void *block) {
  (void)handle;
  free(block);
}

static const tn_api rig_table = {
    .struct_size = sizeof rig_table, .fail = rig_fail, .log = rig_log, .alloc = rig_alloc, .free = rig_free};

tn_env cuda_rig_env(void) {
  cuda_rig_text[0] = '\0';
  return (tn_env){.api = &rig_table};
}

bool cuda_rig_find_nvrtc(tn_cuda_libraries *l) {
  static const tn_nvidia_wanted wanted = {"NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}, "install CUDA"};
  tn_env env = cuda_rig_env();
  int major = 0, minor = 0;
  if (tn_nvidia_find_library(&env, "", &wanted, &l->handle[TN_CUDA_LIBRARY_NVRTC],
                             l->path[TN_CUDA_LIBRARY_NVRTC]) != TN_OK)
    return false;
#define FIND(function, symbol) l->nvrtc.function = dlsym(l->handle[TN_CUDA_LIBRARY_NVRTC], symbol);
  TN_CUDA_NVRTC_POINTS(FIND)
  l->nvrtc.nvrtcVersion(&major, &minor);
  l->nvrtc_version = 1000 * major + 10 * minor;
  return true;
}
