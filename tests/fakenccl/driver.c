/* tests/fakenccl/driver.c: the functions of the double of the driver. A plugin opens libcuda.so.1 with
 * RTLD_LOCAL, which keeps its symbols out of the global scope. */
#include <dlfcn.h>

#include "tests/fakenccl/fakenccl.h"

static fakenccl_driver driver;
static void *library;
static atomic_bool found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *driver_symbol(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  return symbol != NULL || library == NULL ? symbol : dlsym(library, name);
}

/* The library stays open while this one is. */
static void driver_find(void) {
  bool all = true;
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
#define FIND(name)                                                                                           \
  *(void **)(void *)&driver.f_##name = driver_symbol(#name);                                                 \
  all = all && driver.f_##name != NULL;
  FAKENCCL_DRIVER(FIND)
#undef FIND
  atomic_store(&found, all);
}

const fakenccl_driver *fakenccl_driver_get(void) {
  if (!atomic_load(&found)) {
    pthread_mutex_lock(&lock);
    if (!atomic_load(&found)) driver_find();
    pthread_mutex_unlock(&lock);
  }
  return atomic_load(&found) ? &driver : NULL;
}

__attribute__((destructor)) static void driver_close(void) {
  if (library != NULL) dlclose(library);
}

ncclResult_t fakenccl_cuda(CUresult code, const char *what) {
  if (code == CUDA_SUCCESS) return ncclSuccess;
  return fakenccl_refuse(ncclUnhandledCudaError, "%s: error %d of the driver", what, (int)code);
}
