/* backends/cuda/driver/libraries.h: the libraries of CUDA, opened when the backend is. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/driver/entry_points.h"
#include "tenon/api.h"

enum { TN_CUDA_LIBRARY_DRIVER, TN_CUDA_LIBRARY_NVRTC, TN_CUDA_LIBRARY_LT, TN_CUDA_LIBRARIES };

typedef struct tn_cuda_libraries {
  tn_cuda_driver driver;
  tn_cuda_nvrtc nvrtc;
  tn_cuda_lt lt;
  void *handle[TN_CUDA_LIBRARIES];
  char path[TN_CUDA_LIBRARIES][512]; /* of the file that was opened */
  int32_t driver_version;            /* 12080 for 12.8 */
  int32_t nvrtc_version;             /* the same */
  int64_t lt_version;                /* 130101 for 13.1.1 */
} tn_cuda_libraries;

/* Opens the driver, then NVRTC and cuBLASLt of the newest major version that the driver runs, calls cuInit,
 * and reads the versions. `folders`: where to look first, separated by ':', or "". TN_EUNAVAILABLE: a library
 * is missing, too old or lacks a function; the text says which, where it was looked for, and what to do.
 * Close it in either case. */
tn_status tn_cuda_libraries_open(tn_env *env, const char *folders, tn_cuda_libraries *libraries);
void tn_cuda_libraries_close(tn_cuda_libraries *libraries);

/* TN_OK for CUDA_SUCCESS; else a failure: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". TN_ENOMEM
 * for too little memory, TN_EUNSUPPORTED for what a capture does not allow, TN_EDEVICE for all else. */
tn_status tn_cuda_check(tn_env *env, const tn_cuda_libraries *libraries, CUresult code, const char *call);
tn_status tn_cuda_check_nvrtc(tn_env *env, const tn_cuda_libraries *libraries, nvrtcResult code,
                              const char *call);
tn_status tn_cuda_check_lt(tn_env *env, const tn_cuda_libraries *libraries, cublasStatus_t code,
                           const char *call);
/* Whether a library that fails with this status while a kernel is prepared refuses what it was asked for, by
 * whichever code: another kernel may do. Not where memory is short or a launch has faulted. */
bool tn_cuda_is_refusal(const tn_cuda_libraries *libraries, tn_status status);
/* The end of a library's message where a launch has faulted, or "". */
const char *tn_cuda_fault_hint(const tn_cuda_libraries *libraries);

/* TN_CU(env, libraries, cuMemFree, address): calls the driver and checks the code. */
#define TN_CU(env, libraries, call, ...)                                                                     \
  tn_cuda_check(env, libraries, (libraries)->driver.call(__VA_ARGS__), #call)
#define TN_RTC(env, libraries, call, ...)                                                                    \
  tn_cuda_check_nvrtc(env, libraries, (libraries)->nvrtc.call(__VA_ARGS__), #call)
#define TN_LT(env, libraries, call, ...)                                                                     \
  tn_cuda_check_lt(env, libraries, (libraries)->lt.call(__VA_ARGS__), #call)
