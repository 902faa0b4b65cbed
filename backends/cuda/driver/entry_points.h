/* backends/cuda/driver/entry_points.h: every function of CUDA's libraries that the backend calls, as
 * X(function, symbol). The function gives the type. The symbol is what the library exports: cuda.h renames
 * functions whose parameters have changed, and some renamed ones are missing in older drivers of the same
 * ABI. */
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

/* The driver, of CUDA 12.0 or later. */
#define TN_CUDA_DRIVER_POINTS(X)                                                                             \
  X(cuInit, "cuInit")                                                                                        \
  X(cuDriverGetVersion, "cuDriverGetVersion")                                                                \
  X(cuGetErrorName, "cuGetErrorName")                                                                        \
  X(cuGetErrorString, "cuGetErrorString")                                                                    \
  X(cuDeviceGetCount, "cuDeviceGetCount")                                                                    \
  X(cuDeviceGet, "cuDeviceGet")                                                                              \
  X(cuDeviceGetName, "cuDeviceGetName")                                                                      \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute")                                                            \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2")                                                                 \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                                    \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2")                                               \
  X(cuCtxSetCurrent, "cuCtxSetCurrent")                                                                      \
  X(cuMemGetInfo, "cuMemGetInfo_v2")                                                                         \
  X(cuMemAlloc, "cuMemAlloc_v2")                                                                             \
  X(cuMemFree, "cuMemFree_v2")                                                                               \
  X(cuMemHostAlloc, "cuMemHostAlloc")                                                                        \
  X(cuMemFreeHost, "cuMemFreeHost")                                                                          \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority")                                                \
  X(cuStreamDestroy, "cuStreamDestroy_v2")                                                                   \
  X(cuStreamSynchronize, "cuStreamSynchronize")                                                              \
  X(cuStreamWaitEvent, "cuStreamWaitEvent")                                                                  \
  X(cuEventCreate, "cuEventCreate")                                                                          \
  X(cuEventDestroy, "cuEventDestroy_v2")                                                                     \
  X(cuEventRecord, "cuEventRecord")                                                                          \
  X(cuEventQuery, "cuEventQuery")                                                                            \
  X(cuEventSynchronize, "cuEventSynchronize")                                                                \
  X(cuEventElapsedTime, "cuEventElapsedTime")                                                                \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")                                                               \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2")                                                               \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2")                                                               \
  X(cuMemsetD8Async, "cuMemsetD8Async")                                                                      \
  X(cuMemsetD2D8Async, "cuMemsetD2D8Async")                                                                  \
  X(cuModuleLoadData, "cuModuleLoadData")                                                                    \
  X(cuModuleUnload, "cuModuleUnload")                                                                        \
  X(cuModuleGetFunction, "cuModuleGetFunction")                                                              \
  X(cuFuncSetAttribute, "cuFuncSetAttribute")                                                                \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor")              \
  X(cuLaunchKernel, "cuLaunchKernel")                                                                        \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2")                                                         \
  X(cuStreamEndCapture, "cuStreamEndCapture")                                                                \
  X(cuStreamIsCapturing, "cuStreamIsCapturing")                                                              \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags")                                              \
  X(cuGraphLaunch, "cuGraphLaunch")                                                                          \
  X(cuGraphExecDestroy, "cuGraphExecDestroy")                                                                \
  X(cuGraphDestroy, "cuGraphDestroy")

#define TN_CUDA_NVRTC_POINTS(X)                                                                              \
  X(nvrtcVersion, "nvrtcVersion")                                                                            \
  X(nvrtcGetErrorString, "nvrtcGetErrorString")                                                              \
  X(nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs")                                                  \
  X(nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs")                                                        \
  X(nvrtcCreateProgram, "nvrtcCreateProgram")                                                                \
  X(nvrtcDestroyProgram, "nvrtcDestroyProgram")                                                              \
  X(nvrtcCompileProgram, "nvrtcCompileProgram")                                                              \
  X(nvrtcGetPTXSize, "nvrtcGetPTXSize")                                                                      \
  X(nvrtcGetPTX, "nvrtcGetPTX")                                                                              \
  X(nvrtcGetCUBINSize, "nvrtcGetCUBINSize")                                                                  \
  X(nvrtcGetCUBIN, "nvrtcGetCUBIN")                                                                          \
  X(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize")                                                        \
  X(nvrtcGetProgramLog, "nvrtcGetProgramLog")

#define TN_CUDA_LT_POINTS(X)                                                                                 \
  X(cublasLtCreate, "cublasLtCreate")                                                                        \
  X(cublasLtDestroy, "cublasLtDestroy")                                                                      \
  X(cublasLtGetVersion, "cublasLtGetVersion")                                                                \
  X(cublasLtGetStatusString, "cublasLtGetStatusString")                                                      \
  X(cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate")                                                    \
  X(cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy")                                                  \
  X(cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute")                                        \
  X(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate")                                                \
  X(cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy")                                              \
  X(cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute")                                    \
  X(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate")                                        \
  X(cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy")                                      \
  X(cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute")                            \
  X(cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic")                                        \
  X(cublasLtMatmul, "cublasLtMatmul")

#define TN_CUDA_POINT(function, symbol) __typeof__(&function) function;
typedef struct tn_cuda_driver {
  TN_CUDA_DRIVER_POINTS(TN_CUDA_POINT)
} tn_cuda_driver;
typedef struct tn_cuda_nvrtc {
  TN_CUDA_NVRTC_POINTS(TN_CUDA_POINT)
} tn_cuda_nvrtc;
typedef struct tn_cuda_lt {
  TN_CUDA_LT_POINTS(TN_CUDA_POINT)
} tn_cuda_lt;
#undef TN_CUDA_POINT
