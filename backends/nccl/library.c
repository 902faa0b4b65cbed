/* backends/nccl/library.c: see library.h. */
#include "backends/nccl/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char nccl_remedy[] =
    "install NCCL 2.18 or later (on Debian and Ubuntu: libnccl2, from NVIDIA's repository), or the PyPI "
    "package nvidia-nccl-cu13 or nvidia-nccl-cu12, or give its folder: [communicator.nccl] libraries = "
    "FOLDER";

/* ---- NCCL ---- */

/* NODELETE: threads of NCCL run on after its last communicator. */
static void nccl_library_stay(const char *path) { (void)dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

static tn_status nccl_library_fail_symbol(tn_env *env, const tn_nccl_library *l, const char *symbol) {
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "nccl: %s, version %s, has no function %s; %s", l->path,
                 l->version_text, symbol, nccl_remedy);
}

/* Versions up to 2.8 are coded with another factor, but are older in any case. */
static tn_status nccl_library_check_version(tn_env *env, void *handle, tn_nccl_library *l) {
  int version = 0;
  void *found = dlsym(handle, "ncclGetVersion");
  if (found == NULL) return nccl_library_fail_symbol(env, l, "ncclGetVersion");
  memcpy(&l->ncclGetVersion, &found, sizeof found);
  ncclResult_t code = l->ncclGetVersion(&version);
  if (code != ncclSuccess)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "nccl: %s: ncclGetVersion returns %d; %s", l->path, (int)code,
                   nccl_remedy);
  l->version = version;
  snprintf(l->version_text, sizeof l->version_text, "%d.%d.%d", version / 10000, version / 100 % 100,
           version % 100);
  if (version >= TN_NCCL_OLDEST) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, NULL,
                 "nccl: %s is of version %s (%d), expected 2.18.0 (21800) or later; %s", l->path,
                 l->version_text, version, nccl_remedy);
}

static tn_status nccl_library_fill(tn_env *env, void *handle, tn_nccl_library *l) {
  void *found;
#define NCCL_FIND(function)                                                                                  \
  if ((found = dlsym(handle, #function)) == NULL) return nccl_library_fail_symbol(env, l, #function);        \
  memcpy(&l->function, &found, sizeof found);
  TN_NCCL_POINTS(NCCL_FIND)
#undef NCCL_FIND
#define NCCL_FIND(function, parameters)                                                                      \
  found = dlsym(handle, #function);                                                                          \
  memcpy(&l->function, &found, sizeof found);
  TN_NCCL_LATER_POINTS(NCCL_FIND)
#undef NCCL_FIND
  return TN_OK;
}

tn_status tn_nccl_library_open(tn_env *env, const char *folders, tn_nccl_library *library) {
  static const tn_nvidia_wanted wanted = {
      "NCCL, which the communicator nccl uses,", {"libnccl.so.2"}, nccl_remedy};
  void *handle = NULL;
  memset(library, 0, sizeof *library);
  TN_TRY(tn_nvidia_find_library(env, folders, &wanted, &handle, library->path));
  tn_status status = nccl_library_check_version(env, handle, library);
  if (status == TN_OK) status = nccl_library_fill(env, handle, library);
  if (status == TN_OK) nccl_library_stay(library->path);
  dlclose(handle);
  return status;
}

/* ---- the driver ---- */

tn_status tn_nccl_driver_find(tn_env *env, const tn_cuda *native, tn_nccl_driver *driver) {
  void *found, *handle = TN_HAS(native, driver) ? native->driver : NULL;
  if (handle == NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "nccl: the device's interface " TN_CUDA_INTERFACE
                   " does not give the driver's handle; use the backend cuda of this version of Tenon");
#define DRIVER_FIND(function, symbol)                                                                        \
  if ((found = dlsym(handle, symbol)) == NULL)                                                               \
    return tn_fail(env, TN_EUNAVAILABLE, NULL,                                                               \
                   "nccl: the driver has no function " symbol "; install a driver of CUDA 12.0 or later");   \
  memcpy(&driver->function, &found, sizeof found);
  TN_NCCL_DRIVER_POINTS(DRIVER_FIND)
#undef DRIVER_FIND
  return TN_OK;
}

tn_status tn_nccl_check_driver(tn_env *env, const tn_nccl_driver *driver, CUresult code, const char *call) {
  const char *name = NULL;
  if (code == CUDA_SUCCESS) return TN_OK;
  (void)driver->cuGetErrorName(code, &name);
  return tn_fail(env, TN_EDEVICE, NULL, "nccl: %s: %s (%d)", call, name != NULL ? name : "unknown code",
                 (int)code);
}
