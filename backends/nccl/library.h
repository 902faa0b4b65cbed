/* backends/nccl/library.h: NCCL and the CUDA driver, whose functions are found at run time. */
#pragma once

#include <cuda.h>
#include <nccl.h>

#include "backends/shared/nvidia_search.h"
#include "tenon/plugin/communicator.h"
#include "tenon/plugin/cuda.h"

/* The versions from which on NCCL behaves otherwise, where the communicator has to know it. */
enum {
  TN_NCCL_OLDEST = 21800,
  /* Another thread than that of an init may abort it, and ncclCommCount completes a job in progress.
   * Before, a job in progress is known to its own thread only, whose next group completes it. */
  TN_NCCL_JOBS_OF_COMMUNICATORS = 21900,
  TN_NCCL_REGISTERS = 21900, /* ncclMemAlloc and ncclCommRegister */
  /* Kernels of symmetric windows, which came with 2.27, end when the communicator is aborted. */
  TN_NCCL_WINDOWS = 22907
};

/* Every function of libnccl.so.2 that the communicator calls: those of 2.18. */
#define TN_NCCL_POINTS(X)                                                                                    \
  X(ncclGetVersion)                                                                                          \
  X(ncclGetUniqueId)                                                                                         \
  X(ncclGetErrorString)                                                                                      \
  X(ncclGetLastError)                                                                                        \
  X(ncclCommInitRankConfig)                                                                                  \
  X(ncclCommCount)                                                                                           \
  X(ncclCommGetAsyncError)                                                                                   \
  X(ncclCommFinalize)                                                                                        \
  X(ncclCommDestroy)                                                                                         \
  X(ncclCommAbort)                                                                                           \
  X(ncclGroupStart)                                                                                          \
  X(ncclGroupEnd)                                                                                            \
  X(ncclAllReduce)                                                                                           \
  X(ncclBroadcast)                                                                                           \
  X(ncclReduceScatter)                                                                                       \
  X(ncclAllGather)

/* Later functions, with the version that brought them; NULL where the library lacks them. The types are
 * written out, since nccl.h may be older. */
#define TN_NCCL_LATER_POINTS(X)                                                                              \
  X(ncclMemAlloc, (void **address, size_t bytes))                                                            \
  X(ncclMemFree, (void *address))                                                                            \
  X(ncclCommRegister, (const ncclComm_t comm, void *address, size_t bytes, void **handle))                   \
  X(ncclCommDeregister, (const ncclComm_t comm, void *handle))                                               \
  X(ncclCommWindowRegister, (ncclComm_t comm, void *address, size_t bytes, void **window, int flags))        \
  X(ncclCommWindowDeregister, (ncclComm_t comm, void *window))

/* Every function of the driver, as X(function, symbol). The handle is that of the backend `cuda`. */
#define TN_NCCL_DRIVER_POINTS(X)                                                                             \
  X(cuGetErrorName, "cuGetErrorName")                                                                        \
  X(cuCtxSetCurrent, "cuCtxSetCurrent")                                                                      \
  X(cuMemHostAlloc, "cuMemHostAlloc")                                                                        \
  X(cuMemFreeHost, "cuMemFreeHost")                                                                          \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority")                                                \
  X(cuStreamDestroy, "cuStreamDestroy_v2")                                                                   \
  X(cuStreamSynchronize, "cuStreamSynchronize")                                                              \
  X(cuStreamWriteValue32, "cuStreamWriteValue32_v2")                                                         \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2")                                                         \
  X(cuStreamEndCapture, "cuStreamEndCapture")                                                                \
  X(cuStreamIsCapturing, "cuStreamIsCapturing")                                                              \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags")                                              \
  X(cuGraphLaunch, "cuGraphLaunch")                                                                          \
  X(cuGraphExecDestroy, "cuGraphExecDestroy")                                                                \
  X(cuGraphDestroy, "cuGraphDestroy")

typedef struct tn_nccl_library {
#define TN_NCCL_POINT(function) __typeof__(&function) function;
  TN_NCCL_POINTS(TN_NCCL_POINT)
#undef TN_NCCL_POINT
#define TN_NCCL_POINT(function, parameters) ncclResult_t(*function) parameters;
  TN_NCCL_LATER_POINTS(TN_NCCL_POINT)
#undef TN_NCCL_POINT
  int32_t version; /* 22809 for 2.28.9 */
  char version_text[32];
  char path[TN_NVIDIA_PATH]; /* of the file that was opened */
} tn_nccl_library;

typedef struct tn_nccl_driver {
#define TN_NCCL_POINT(function, symbol) __typeof__(&function) function;
  TN_NCCL_DRIVER_POINTS(TN_NCCL_POINT)
#undef TN_NCCL_POINT
} tn_nccl_driver;

/* Opens libnccl.so.2. `folders`: where to look first, separated by ':', or "". It stays open until the
 * process ends, since NCCL has threads of its own. TN_EUNAVAILABLE: it is missing, or older than 2.18. */
tn_status tn_nccl_library_open(tn_env *env, const char *folders, tn_nccl_library *library);

/* Fills in the functions of the driver that the backend has opened. */
tn_status tn_nccl_driver_find(tn_env *env, const tn_cuda *native, tn_nccl_driver *driver);

/* TN_OK for CUDA_SUCCESS; else TN_EDEVICE: "nccl: cuMemHostAlloc: CUDA_ERROR_INVALID_VALUE". */
tn_status tn_nccl_check_driver(tn_env *env, const tn_nccl_driver *driver, CUresult code, const char *call);

/* TN_NCCL_CU(env, driver, cuMemFreeHost, address): calls the driver and checks the code. */
#define TN_NCCL_CU(env, table, call, ...) tn_nccl_check_driver(env, table, (table)->call(__VA_ARGS__), #call)
