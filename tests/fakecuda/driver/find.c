/* tests/fakecuda/driver/find.c: a part of the doubles of NVRTC, cuBLASLt, cuDNN and NCCL. A plugin opens
 * libcuda.so.1 with RTLD_LOCAL, which keeps its symbols out of the global scope. The library is opened once:
 * under ThreadSanitizer each dlopen reads the list of all libraries. */
#include "tests/fakecuda/driver/find.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#define FIND_DRIVER "libcuda.so.1"

static pthread_mutex_t find_lock = PTHREAD_MUTEX_INITIALIZER;
static void *find_library;

static void *find_open(void) {
  pthread_mutex_lock(&find_lock);
  if (find_library == NULL) find_library = dlopen(FIND_DRIVER, RTLD_LAZY | RTLD_NOLOAD);
  void *library = find_library;
  pthread_mutex_unlock(&find_lock);
  return library;
}

static void *find_in(void *library, const char *name) {
  return library != NULL ? dlsym(library, name) : NULL;
}

void *fakecuda_find(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  return symbol != NULL ? symbol : find_in(find_open(), name);
}

void *fakecuda_find_unkept(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol != NULL) return symbol;
  void *library = dlopen(FIND_DRIVER, RTLD_LAZY | RTLD_NOLOAD);
  symbol = find_in(library, name);
  if (library != NULL) dlclose(library);
  return symbol;
}

bool fakecuda_is_loaded(void) { return fakecuda_find("cuInit") != NULL; }

__attribute__((destructor)) static void find_close(void) {
  if (find_library != NULL) dlclose(find_library);
}
