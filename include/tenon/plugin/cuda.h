/* tenon/plugin/cuda.h: the interface "cuda.1": what a kernel or communicator of another plugin gets from the
 * backend `cuda`. docs/plugins/kernel.md has an example.
 *
 * A kernel of the family "cuda" finds it in tn_prepare.native; a communicator asks for it by
 * tn_comm_device.native with the name "cuda.1". It is valid while the device is open.
 *
 * A kernel may compile a text of its own, in CUDA C, without headers or libraries of CUDA: compile in
 * `prepare`, launch in `launch`, release in `release`. Code is compiled on threads, kept on disk, and loaded
 * before the first launch. One that has compiled code by other means uses context and stream with the
 * driver's functions: the context is current in prepare and launch. */
#ifndef TENON_PLUGIN_CUDA_H
#define TENON_PLUGIN_CUDA_H

#include "tenon/plugin/kernel.h"

TN_BEGIN_C

#define TN_CUDA_INTERFACE "cuda.1"

/* A function of compiled code, requested by one prepared kernel. */
typedef struct tn_cuda_code tn_cuda_code;

/* The shape of a launch. */
typedef struct tn_cuda_grid {
  uint32_t blocks[3], threads[3];
  uint32_t shared_bytes; /* dynamic shared memory, at most what compile was told */
} tn_cuda_grid;

typedef struct tn_cuda {
  uint32_t struct_size;
  int32_t arch;  /* 90 for sm_90 */
  void *context; /* CUcontext */
  void *stream;  /* CUstream that native was asked for, the compute stream in prepare; NULL: of the device
                    alone */
  void *blas;    /* cublasLtHandle_t */
  void *device;  /* the backend's own */

  /* Requests the function `name` (extern "C") of `text`, which is copied and may include
   * "backends/cuda/device/prelude.cuh". The function has one parameter, a struct. `title` names the text in
   * messages; `shared_bytes`: the most dynamic shared memory of a launch. A text that does not compile
   * declines the match when the program is bound: a warning has the compiler's first error, and with
   * --verbose the log has all. *code is released by `release`. */
  tn_status (*compile)(tn_prepare *p, const char *title, const char *text, const char *name,
                       uint32_t shared_bytes, tn_cuda_code **code);
  void (*release)(tn_env *env, tn_cuda_code *code);
  /* Enqueues a launch on l->stream with a copy of the struct at `args`, `bytes` long. A grid of no blocks is
   * no launch. Allocates nothing and does not wait. */
  tn_status (*launch)(tn_launch *l, const tn_cuda_code *code, const tn_cuda_grid *grid, const void *args,
                      size_t bytes);
  /* The CUstream of a launch. */
  void *(*stream_of)(const tn_launch *l);

  void *driver; /* libcuda.so.1 as dlopen has given it, for dlsym: a process may have more than one driver */
} tn_cuda;

TN_END_C
#endif
