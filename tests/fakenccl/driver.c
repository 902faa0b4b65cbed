/* tests/fakenccl/driver.c: the functions of the double of the driver. */
#include "tests/fakenccl/fakenccl.h"
#include "tests/fakecuda/driver/find.h"

static fakenccl_driver driver;
static atomic_bool found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void driver_find(void) {
  bool all = true;
#define FIND(name)                                                                                           \
  *(void **)(void *)&driver.f_##name = fakecuda_find(#name);                                                 \
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

ncclResult_t fakenccl_cuda(CUresult code, const char *what) {
  if (code == CUDA_SUCCESS) return ncclSuccess;
  return fakenccl_refuse(ncclUnhandledCudaError, "%s: error %d of the driver", what, (int)code);
}
