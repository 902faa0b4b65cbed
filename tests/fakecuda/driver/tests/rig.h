/* tests/fakecuda/driver/tests/rig.h: opens the double by dlopen, as the backend does. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>

#define RIG_ENTRIES(X)                                                                                       \
  X(cuInit)                                                                                                  \
  X(cuDriverGetVersion)                                                                                      \
  X(cuDeviceGetCount)                                                                                        \
  X(cuDeviceGet)                                                                                             \
  X(cuDeviceGetName)                                                                                         \
  X(cuDeviceGetUuid)                                                                                         \
  X(cuDeviceGetAttribute)                                                                                    \
  X(cuDeviceTotalMem)                                                                                        \
  X(cuDevicePrimaryCtxRetain)                                                                                \
  X(cuDevicePrimaryCtxRelease)                                                                               \
  X(cuDevicePrimaryCtxSetFlags)                                                                              \
  X(cuCtxSetCurrent)                                                                                         \
  X(cuCtxGetCurrent)                                                                                         \
  X(cuCtxPushCurrent)                                                                                        \
  X(cuCtxPopCurrent)                                                                                         \
  X(cuCtxGetDevice)                                                                                          \
  X(cuCtxSynchronize)                                                                                        \
  X(cuMemGetInfo)                                                                                            \
  X(cuMemAlloc)                                                                                              \
  X(cuMemFree)                                                                                               \
  X(cuMemHostAlloc)                                                                                          \
  X(cuMemFreeHost)                                                                                           \
  X(cuPointerGetAttribute)                                                                                   \
  X(cuStreamCreate)                                                                                          \
  X(cuStreamCreateWithPriority)                                                                              \
  X(cuStreamDestroy)                                                                                         \
  X(cuStreamSynchronize)                                                                                     \
  X(cuStreamQuery)                                                                                           \
  X(cuStreamWaitEvent)                                                                                       \
  X(cuStreamGetCtx)                                                                                          \
  X(cuEventCreate)                                                                                           \
  X(cuEventDestroy)                                                                                          \
  X(cuEventRecord)                                                                                           \
  X(cuEventSynchronize)                                                                                      \
  X(cuEventQuery)                                                                                            \
  X(cuEventElapsedTime)                                                                                      \
  X(cuMemcpyHtoDAsync)                                                                                       \
  X(cuMemcpyDtoHAsync)                                                                                       \
  X(cuMemcpyDtoDAsync)                                                                                       \
  X(cuMemsetD8Async)                                                                                         \
  X(cuMemsetD2D8Async)                                                                                       \
  X(cuMemsetD32Async)                                                                                        \
  X(cuStreamWriteValue32)                                                                                    \
  X(cuModuleLoadData)                                                                                        \
  X(cuModuleLoadDataEx)                                                                                      \
  X(cuModuleUnload)                                                                                          \
  X(cuModuleGetFunction)                                                                                     \
  X(cuFuncGetAttribute)                                                                                      \
  X(cuFuncSetAttribute)                                                                                      \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                             \
  X(cuLaunchKernel)                                                                                          \
  X(cuStreamBeginCapture)                                                                                    \
  X(cuStreamEndCapture)                                                                                      \
  X(cuStreamIsCapturing)                                                                                     \
  X(cuThreadExchangeStreamCaptureMode)                                                                       \
  X(cuGraphInstantiateWithFlags)                                                                             \
  X(cuGraphExecDestroy)                                                                                      \
  X(cuGraphDestroy)                                                                                          \
  X(cuGraphLaunch)                                                                                           \
  X(cuGraphGetNodes)                                                                                         \
  X(cuGetErrorName)                                                                                          \
  X(cuGetErrorString)

typedef struct rig_driver {
#define RIG_MEMBER(name) __typeof__(&name) f_##name;
  RIG_ENTRIES(RIG_MEMBER)
#undef RIG_MEMBER
  CUresult (*enqueue)(CUstream stream, const char *name, int (*body)(void *arg), const void *arg,
                      size_t bytes);
  int (*is_device_memory)(const void *from, size_t bytes);
  int (*call)(const char *name);
} rig_driver;

extern rig_driver D;
extern void *rig_library;

/* The double is loaded, and device 0 has a current context and two streams. */
typedef struct rig {
  CUcontext context;
  CUstream a, b;
  CUmodule module; /* of image.cu */
  CUfunction add;
} rig;

/* Before rig_open: sets an environment variable until rig_close. */
void rig_set(const char *name, const char *value);
/* Loads the library, without a context. */
void rig_load(void);
void rig_unload(void);
void rig_open(rig *r);
/* Frees the objects of rig_open and unloads the library. */
void rig_close(rig *r);
/* Frees them without unloading: the log then names the objects that are left. */
void rig_release(rig *r);
/* The image of image.cu, compiled once. */
const void *rig_image(void);

/* The lines of the log since the last call. */
const char *rig_log(void);
#define QUIET()        assert_string_equal(rig_log(), "")
#define LOGGED(part)   rig_logged(part, __FILE__, __LINE__)
#define OK(work)       assert_int_equal(work, CUDA_SUCCESS)
#define IS(work, code) assert_int_equal(work, code)
/* The call fails with the code, and the log has a line about it. */
#define REFUSED(work, code, part) (IS(work, code), LOGGED(part))
void rig_logged(const char *part, const char *file, int line);

CUdeviceptr rig_device(size_t floats); /* of zeros */
float *rig_pinned(size_t floats);
CUresult rig_add(const rig *r, CUstream stream, CUdeviceptr x, int n, float value);
/* x[0], after waiting for everything. */
float rig_first(const rig *r, CUdeviceptr x);
int rig_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
#define RIG_MAIN(tests)                                                                                      \
  int main(int argc, char **argv) { return rig_main(argc, argv, tests, sizeof tests / sizeof *tests); }
