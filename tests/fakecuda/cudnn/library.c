/* tests/fakecuda/cudnn/library.c: see library.h; handles, versions, names of statuses. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/double.h"
#include "tests/fakecuda/cudnn/library.h"
#include "tests/fakecuda/driver/find.h"

enum { NAME_ROOM = 64, WHY_ROOM = 384, MOST_HANDLES = 256 };

static _Thread_local char entry_name[NAME_ROOM];
static _Thread_local char why[WHY_ROOM + NAME_ROOM + 2];
static atomic_int_least64_t live;

const char *fakecudnn_why(void) { return why; }
int64_t fakecudnn_live(void) { return atomic_load(&live); }
void fakednn_count_live(int change) { atomic_fetch_add(&live, change); }

fakednn_driver fakednn_find_driver(void) {
  fakednn_driver d;
  d.enqueue = (__typeof__(d.enqueue))fakecuda_find("fakecuda_enqueue");
  d.is_device_memory = (__typeof__(d.is_device_memory))fakecuda_find("fakecuda_is_device_memory");
  d.log = (__typeof__(d.log))fakecuda_find("fakecuda_log");
  d.current = (__typeof__(d.current))fakecuda_find("cuCtxGetCurrent");
  d.device = (__typeof__(d.device))fakecuda_find("cuCtxGetDevice");
  d.attribute = (__typeof__(d.attribute))fakecuda_find("cuDeviceGetAttribute");
  return d;
}

/* ---- refusals ---- */

static void keep_reason(bool logged, const char *prefix, const char *format, va_list arguments) {
  char text[WHY_ROOM];
  size_t n = (size_t)snprintf(text, sizeof text, "%s", prefix);
  vsnprintf(text + n, sizeof text - n, format, arguments);
  snprintf(why, sizeof why, "%s: %s", entry_name, text);
  __typeof__(&fakecuda_log) log = logged ? fakednn_find_driver().log : NULL;
  if (log) log(why);
}

cudnnStatus_t fakednn_refuse(cudnnStatus_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  keep_reason(status < CUDNN_STATUS_NOT_SUPPORTED, "", format, arguments);
  va_end(arguments);
  return status;
}

cudnnStatus_t fakednn_lacks(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  keep_reason(true, "the double lacks ", format, arguments);
  va_end(arguments);
  return CUDNN_STATUS_NOT_SUPPORTED;
}

static void keep_request(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  keep_reason(false, "", format, arguments);
  va_end(arguments);
}

/* A failure on request is no violation, and is not logged. Its code is cuDNN's where the request has one. */
cudnnStatus_t fakednn_enter(const char *name) {
  snprintf(entry_name, sizeof entry_name, "%s", name);
  __typeof__(&fakecuda_call) call = (__typeof__(call))fakecuda_find("fakecuda_call");
  int code = call ? call(name) : 0;
  if (code == 0) return CUDNN_STATUS_SUCCESS;
  keep_request("a test asked for this failure");
  return code < CUDNN_STATUS_NOT_INITIALIZED ? CUDNN_STATUS_INTERNAL_ERROR : (cudnnStatus_t)code;
}

/* ---- handles ---- */

static cudnnHandle_t handles[MOST_HANDLES];
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

/* Puts `now` into the place of `before`. */
static bool exchange_handle(cudnnHandle_t before, cudnnHandle_t now) {
  pthread_mutex_lock(&handles_lock);
  int i = 0;
  while (i < MOST_HANDLES && handles[i] != before) i++;
  if (i < MOST_HANDLES) handles[i] = now;
  pthread_mutex_unlock(&handles_lock);
  return i < MOST_HANDLES;
}

cudnnStatus_t fakednn_check_handle(cudnnHandle_t handle) {
  FAKEDNN_REQUIRE(handle, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the handle is NULL");
  FAKEDNN_REQUIRE(exchange_handle(handle, handle), CUDNN_STATUS_BAD_PARAM, "%p is no live handle",
                  (void *)handle);
  return CUDNN_STATUS_SUCCESS;
}

static int read_arch(const fakednn_driver *driver) {
  CUdevice device = 0;
  int major = 0, minor = 0;
  driver->device(&device);
  driver->attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver->attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return major * 10 + minor;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  FAKEDNN_TRY(fakednn_enter("cudnnCreate"));
  FAKEDNN_REQUIRE(handle, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the place for the handle is NULL");
  fakednn_driver driver = fakednn_find_driver();
  FAKEDNN_REQUIRE(driver.enqueue && driver.log && driver.current, CUDNN_STATUS_NOT_INITIALIZED,
                  "the double of libcuda.so.1 is not loaded");
  CUcontext context = NULL;
  CUresult code = driver.current(&context);
  FAKEDNN_REQUIRE(code == CUDA_SUCCESS && context, CUDNN_STATUS_NOT_INITIALIZED,
                  "the thread has no current context");
  cudnnHandle_t created = calloc(1, sizeof *created);
  FAKEDNN_REQUIRE(created && exchange_handle(NULL, created), CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  created->context = context;
  created->arch = read_arch(&driver);
  fakednn_count_live(1);
  *handle = created;
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  cudnnStatus_t asked = fakednn_enter("cudnnDestroy");
  FAKEDNN_TRY(fakednn_check_handle(handle));
  exchange_handle(handle, NULL);
  free(handle);
  fakednn_count_live(-1);
  return asked;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  FAKEDNN_TRY(fakednn_enter("cudnnSetStream"));
  FAKEDNN_TRY(fakednn_check_handle(handle));
  handle->stream = (CUstream)stream;
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  FAKEDNN_TRY(fakednn_enter("cudnnGetStream"));
  FAKEDNN_TRY(fakednn_check_handle(handle));
  FAKEDNN_REQUIRE(stream, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the place for the stream is NULL");
  *stream = (cudaStream_t)handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- versions ---- */

FAKEDNN_EXPORT size_t cudnnGetVersion(void) {
  if (fakednn_enter("cudnnGetVersion") != CUDNN_STATUS_SUCCESS) return 0;
  const char *text = getenv("FAKECUDA_CUDNN_VERSION");
  return text && *text ? (size_t)strtoull(text, NULL, 10) : CUDNN_VERSION;
}

FAKEDNN_EXPORT size_t cudnnGetCudartVersion(void) {
  return fakednn_enter("cudnnGetCudartVersion") == CUDNN_STATUS_SUCCESS ? CUDA_VERSION : 0;
}

FAKEDNN_EXPORT size_t cudnnGetMaxDeviceVersion(void) {
  return fakednn_enter("cudnnGetMaxDeviceVersion") == CUDNN_STATUS_SUCCESS ? CUDNN_MAX_DEVICE_VERSION : 0;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value) {
  FAKEDNN_TRY(fakednn_enter("cudnnGetProperty"));
  FAKEDNN_REQUIRE(value, CUDNN_STATUS_BAD_PARAM, "the place for the property is NULL");
  size_t version = cudnnGetVersion();
  switch (type) {
  case MAJOR_VERSION: *value = (int)(version / 10000); break;
  case MINOR_VERSION: *value = (int)(version / 100 % 100); break;
  case PATCH_LEVEL: *value = (int)(version % 100); break;
  default: return fakednn_refuse(CUDNN_STATUS_BAD_PARAM, "there is no property %d", (int)type);
  }
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnGraphVersionCheck(void) { return fakednn_enter("cudnnGraphVersionCheck"); }

/* ---- names of statuses ---- */

FAKEDNN_EXPORT const char *cudnnGetErrorString(cudnnStatus_t status) {
  if (fakednn_enter("cudnnGetErrorString") != CUDNN_STATUS_SUCCESS) return "CUDNN_UNKNOWN_STATUS";
#define NAME(x)                                                                                              \
  case CUDNN_STATUS_##x: return "CUDNN_STATUS_" #x
  switch (status) {
    NAME(SUCCESS);
    NAME(NOT_INITIALIZED);
    NAME(SUBLIBRARY_VERSION_MISMATCH);
    NAME(SERIALIZATION_VERSION_MISMATCH);
    NAME(DEPRECATED);
    NAME(LICENSE_ERROR);
    NAME(SUBLIBRARY_LOADING_FAILED);
    NAME(BAD_PARAM);
    NAME(BAD_PARAM_NULL_POINTER);
    NAME(BAD_PARAM_MISALIGNED_POINTER);
    NAME(BAD_PARAM_NOT_FINALIZED);
    NAME(BAD_PARAM_OUT_OF_BOUND);
    NAME(BAD_PARAM_SIZE_INSUFFICIENT);
    NAME(BAD_PARAM_STREAM_MISMATCH);
    NAME(BAD_PARAM_SHAPE_MISMATCH);
    NAME(BAD_PARAM_DUPLICATED_ENTRIES);
    NAME(BAD_PARAM_ATTRIBUTE_TYPE);
    NAME(BAD_PARAM_DESCRIPTOR_TYPE);
    NAME(NOT_SUPPORTED);
    NAME(NOT_SUPPORTED_GRAPH_PATTERN);
    NAME(NOT_SUPPORTED_SHAPE);
    NAME(NOT_SUPPORTED_DATA_TYPE);
    NAME(NOT_SUPPORTED_LAYOUT);
    NAME(NOT_SUPPORTED_ARCH_MISMATCH);
    NAME(INTERNAL_ERROR);
    NAME(INTERNAL_ERROR_COMPILATION_FAILED);
    NAME(INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    NAME(EXECUTION_FAILED);
    NAME(EXECUTION_FAILED_CUDA_DRIVER);
#undef NAME
  default: return "CUDNN_UNKNOWN_STATUS";
  }
}

FAKEDNN_EXPORT void cudnnGetLastErrorString(char *message, size_t size) {
  if (fakednn_enter("cudnnGetLastErrorString") != CUDNN_STATUS_SUCCESS) return;
  if (message && size) snprintf(message, size, "%s", why);
}

/* ---- entry points of the library that the double lacks ---- */

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                                           cudnnBackendDescriptor_t plan,
                                                           cudnnBackendDescriptor_t pack, cudaGraph_t graph) {
  (void)handle, (void)plan, (void)pack, (void)graph;
  FAKEDNN_TRY(fakednn_enter("cudnnBackendPopulateCudaGraph"));
  return fakednn_lacks("this entry point");
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                                         cudnnBackendDescriptor_t pack, cudaGraph_t graph) {
  (void)handle, (void)plan, (void)pack, (void)graph;
  FAKEDNN_TRY(fakednn_enter("cudnnBackendUpdateCudaGraph"));
  return fakednn_lacks("this entry point");
}

FAKEDNN_EXPORT cudnnStatus_t cudnnSetCallback(unsigned mask, void *data, cudnnCallback_t callback) {
  (void)mask, (void)data, (void)callback;
  FAKEDNN_TRY(fakednn_enter("cudnnSetCallback"));
  return fakednn_lacks("this entry point");
}
