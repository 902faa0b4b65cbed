/* backends/cuda/cudnn/library.c: see library.h. */
#include "backends/cuda/cudnn/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The first version that takes a description of a device, and those with known wrong results (release notes
 * of 9.10.2). */
enum { OLDEST_CUDNN = 90800, FIRST_WRONG = 91000, LAST_WRONG = 91001 };

#define CUDNN_FIND(function)                                                                                 \
  if (missing == NULL && !library_find(handle, #function, &l->call.function)) missing = #function;

static bool library_find(void *handle, const char *symbol, void *function) {
  void *found = dlsym(handle, symbol);
  if (found != NULL) memcpy(function, &found, sizeof found);
  return found != NULL;
}

static bool library_fill(void *handle, tn_cudnn_library *l) {
  const char *missing = NULL;
  TN_CUDNN_POINTS(CUDNN_FIND)
  if (missing == NULL) return true;
  snprintf(l->absent, sizeof l->absent, "%s has no function %s; install cuDNN 9.10.2 or later", l->path,
           missing);
  return false;
}

/* Writes one line to `absent` where the version is not used. */
static void library_check_version(tn_cudnn_library *l) {
  l->version = (int64_t)l->call.cudnnGetVersion();
  int major = (int)(l->version / 10000), minor = (int)(l->version / 100 % 100),
      patch = (int)(l->version % 100);
  snprintf(l->version_text, sizeof l->version_text, "%d.%d.%d", major % 1000, minor, patch);
  if (l->version <= 0)
    snprintf(l->absent, sizeof l->absent, "%s: cudnnGetVersion gives no version", l->path);
  else if (l->version >= FIRST_WRONG && l->version <= LAST_WRONG)
    snprintf(l->absent, sizeof l->absent,
             "%s is cuDNN %s, which is known to compute some graphs wrongly; install 9.10.2 or later",
             l->path, l->version_text);
  else if (major != 9 || l->version < OLDEST_CUDNN)
    snprintf(l->absent, sizeof l->absent, "%s is cuDNN %s, expected 9.8.0 or a later 9", l->path,
             l->version_text);
}

/* cuDNN opens NVRTC for each plan that it compiles, and closes it again, which takes 10 ms and loses 70 KiB.
 * It stays open here, like cuDNN itself. Without NVRTC, cuDNN says what it lacks. */
static void library_hold_nvrtc(const char *folders) {
  static const tn_nvidia_wanted wanted = {"NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}, ""};
  void *handle = NULL;
  char path[TN_NVIDIA_PATH], why[TN_NVIDIA_WHY];
  (void)tn_nvidia_search_library(folders, &wanted, &handle, path, why);
}

/* cuDNN offers engines that are compiled at run time, attention's among them, where it can open libcuda.so.1.
 * A plan needs no function of it: on a machine without a driver the toolkit's stub, which has that name
 * inside, shows the same engines. */
static void library_hold_driver(const char *folders, tn_cudnn_library *l) {
  static const tn_nvidia_wanted driver = {"the NVIDIA driver", {"libcuda.so.1"}, ""};
  static const tn_nvidia_wanted stub = {"the NVIDIA driver, or the stub of CUDA's toolkit,",
                                        {"stubs/libcuda.so"},
                                        "install the driver of the GPU, or for plans CUDA's toolkit (on "
                                        "Debian: nvidia-cuda-toolkit), or give the "
                                        "folder of libcuda.so.1: [backend.cuda] libraries = FOLDER"};
  void *handle = NULL;
  char path[TN_NVIDIA_PATH];
  if (!tn_nvidia_search_library(folders, &driver, &handle, path, l->driverless) &&
      !tn_nvidia_search_library(folders, &stub, &handle, path, l->driverless))
    return;
  *l->driverless = '\0';
}

void tn_cudnn_library_open(const char *folders, tn_cudnn_library *library) {
  static const tn_nvidia_wanted wanted = {
      "cuDNN",
      {"libcudnn.so.9"},
      "install cuDNN 9, or the PyPI package nvidia-cudnn-cu13, or give its "
      "folder: [backend.cuda] libraries = FOLDER"};
  void *handle = NULL;
  memset(library, 0, sizeof *library);
  pthread_mutex_init(&library->lock, NULL);
  if (tn_nvidia_search_library(folders, &wanted, &handle, library->path, library->absent) &&
      library_fill(handle, library)) {
    library_check_version(library);
    library_hold_driver(folders, library);
    library_hold_nvrtc(folders);
  }
}

void tn_cudnn_library_close(tn_cudnn_library *library) { pthread_mutex_destroy(&library->lock); }
