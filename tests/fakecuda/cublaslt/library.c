/* tests/fakecuda/cublaslt/library.c: see library.h; handles, versions, names of statuses. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cublaslt/double.h"
#include "tests/fakecuda/cublaslt/library.h"
#include "tests/fakecuda/driver/find.h"

enum { HANDLE_MAGIC = 0x6c744831, NAME_ROOM = 64, WHY_ROOM = 384 };

struct cublasLtContext {
  uint32_t magic;
};

static _Thread_local char entry_name[NAME_ROOM];
static _Thread_local char why[WHY_ROOM + NAME_ROOM + 2];
static atomic_int_least64_t live;

const char *fakecublaslt_why(void) { return why; }
int64_t fakecublaslt_live(void) { return atomic_load(&live); }
void fakelt_count_live(int change) { atomic_fetch_add(&live, change); }

cublasStatus_t fakelt_refuse(cublasStatus_t status, const char *format, ...) {
  char text[WHY_ROOM];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(why, sizeof why, "%s: %s", entry_name, text);
  return status;
}

fakelt_driver fakelt_find_driver(void) {
  return (fakelt_driver){(__typeof__(&fakecuda_enqueue))fakecuda_find("fakecuda_enqueue"),
                         (__typeof__(&fakecuda_is_device_memory))fakecuda_find("fakecuda_is_device_memory"),
                         (__typeof__(&fakecuda_call))fakecuda_find("fakecuda_call")};
}

cublasStatus_t fakelt_enter(const char *name) {
  snprintf(entry_name, sizeof entry_name, "%s", name);
  fakelt_driver driver = fakelt_find_driver();
  if (!driver.enqueue || !driver.is_device_memory || !driver.call) {
    return fakelt_refuse(CUBLAS_STATUS_NOT_INITIALIZED, "the double of libcuda.so.1 is not loaded");
  }
  if (driver.call(name)) return fakelt_refuse(CUBLAS_STATUS_INTERNAL_ERROR, "a test asked for this failure");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t fakelt_check_handle(cublasLtHandle_t handle) {
  FAKELT_REQUIRE(handle && handle->magic == HANDLE_MAGIC, CUBLAS_STATUS_NOT_INITIALIZED,
                 "the handle is NULL or was destroyed");
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  FAKELT_TRY(fakelt_enter("cublasLtCreate"));
  FAKELT_REQUIRE(handle, CUBLAS_STATUS_INVALID_VALUE, "the place for the handle is NULL");
  *handle = malloc(sizeof **handle);
  FAKELT_REQUIRE(*handle, CUBLAS_STATUS_ALLOC_FAILED, "out of host memory");
  (*handle)->magic = HANDLE_MAGIC;
  fakelt_count_live(1);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  cublasStatus_t asked = fakelt_enter("cublasLtDestroy");
  FAKELT_TRY(fakelt_check_handle(handle));
  handle->magic = 0;
  free(handle);
  fakelt_count_live(-1);
  return asked;
}

FAKELT_EXPORT size_t cublasLtGetVersion(void) {
  return fakelt_enter("cublasLtGetVersion") == CUBLAS_STATUS_SUCCESS ? CUBLAS_VERSION : 0;
}

FAKELT_EXPORT size_t cublasLtGetCudartVersion(void) {
  return fakelt_enter("cublasLtGetCudartVersion") == CUBLAS_STATUS_SUCCESS ? CUDA_VERSION : 0;
}

typedef struct status_name {
  cublasStatus_t status;
  const char *name, *text;
} status_name;

static const status_name *find_status(cublasStatus_t status) {
  static const status_name names[] = {
      {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "fine"},
      {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "no usable handle"},
      {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "out of memory"},
      {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an argument is invalid"},
      {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "not for this device"},
      {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "device memory could not be mapped"},
      {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the launch failed"},
      {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an inner operation failed"},
      {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "not supported"},
      {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "no license"},
  };
  static const status_name unknown = {CUBLAS_STATUS_SUCCESS, "unrecognized status", "unrecognized status"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].status == status) return &names[i];
  }
  return &unknown;
}

FAKELT_EXPORT const char *cublasLtGetStatusName(cublasStatus_t status) {
  fakelt_enter("cublasLtGetStatusName");
  return find_status(status)->name;
}

FAKELT_EXPORT const char *cublasLtGetStatusString(cublasStatus_t status) {
  fakelt_enter("cublasLtGetStatusString");
  return find_status(status)->text;
}
