/* backends/cuda/cudnn/library.h: cuDNN 9, opened where it is found.
 *
 * cuDNN is optional: without it the kernels of ../kernels compute convolutions and attention. It is opened
 * once for each backend object. It stays loaded until the process ends: its threads and its copy of the CUDA
 * runtime outlive any handle. */
#pragma once

#include <cudnn_graph.h>
#include <pthread.h>

#include "backends/shared/nvidia_search.h"

/* Every function that the backend calls; all are exported under their own names. */
#define TN_CUDNN_POINTS(X)                                                                                   \
  X(cudnnGetVersion)                                                                                         \
  X(cudnnGetErrorString)                                                                                     \
  X(cudnnGetLastErrorString)                                                                                 \
  X(cudnnCreate)                                                                                             \
  X(cudnnDestroy)                                                                                            \
  X(cudnnSetStream)                                                                                          \
  X(cudnnBackendCreateDescriptor)                                                                            \
  X(cudnnBackendDestroyDescriptor)                                                                           \
  X(cudnnBackendFinalize)                                                                                    \
  X(cudnnBackendSetAttribute)                                                                                \
  X(cudnnBackendGetAttribute)                                                                                \
  X(cudnnBackendExecute)

#define TN_CUDNN_POINT(function) __typeof__(&function) function;
typedef struct tn_cudnn_functions {
  TN_CUDNN_POINTS(TN_CUDNN_POINT)
} tn_cudnn_functions;
#undef TN_CUDNN_POINT

typedef struct tn_cudnn_library {
  tn_cudnn_functions call;
  int64_t version; /* 91900 for 9.19.0 */
  char version_text[16];
  char path[TN_NVIDIA_PATH];  /* of the file */
  char absent[TN_NVIDIA_WHY]; /* why it is not used, and what to do; "": it is used */
  char
      driverless[TN_NVIDIA_WHY]; /* why engines that are compiled at run time are missing; "": they are not */
  pthread_mutex_t lock;          /* of the members behind it */
  struct tn_cudnn_answer *answers; /* engines.c: about every graph that was asked for */
  int32_t n_broken;                /* answers that a failure of cuDNN took the place of */
} tn_cudnn_library;

/* Never fails: `absent` says why cuDNN is not used. `folders`: as in tn_cuda_libraries_open. */
void tn_cudnn_library_open(const char *folders, tn_cudnn_library *library);
/* After tn_cudnn_forget_engines. */
void tn_cudnn_library_close(tn_cudnn_library *library);
