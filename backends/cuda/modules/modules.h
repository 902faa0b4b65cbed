/* backends/cuda/modules/modules.h: kernels in CUDA C: compiled ahead by nvcc or by NVRTC on threads, kept on
 * disk, loaded into a device.
 *
 * A kernel of Tenon (kernels/NAME.c) requests its functions in `prepare`; a thread reads the image that nvcc
 * made, or compiles. When all kernels of a program are prepared, tn_cuda_finish_functions waits for the
 * compilations, loads the modules and looks the functions up, so that a launch does neither. Modules are
 * found again by their text, and live until the device is closed.
 *
 * A function has one parameter, a struct, whose members have the same offsets in C and in CUDA C. */
#pragma once

#include "backends/cuda/objects.h"
#include "tenon/plugin/kernel.h"

enum { TN_CUDA_FUNCTION_NAME = 64 };

typedef struct tn_cuda_module tn_cuda_module;

/* A function of a module; part of a prepared kernel, which must not move. */
typedef struct tn_cuda_function {
  tn_cuda_device *device;
  tn_cuda_module *module;
  char name[TN_CUDA_FUNCTION_NAME];
  uint32_t shared_bytes;    /* of dynamic shared memory, at most; set it after the request */
  uint32_t counted_threads; /* of a block; set it after the request where blocks_at_once is wanted */
  int32_t blocks_at_once; /* that a multiprocessor has room for: by registers and shared memory; 0: unknown */
  int32_t use;            /* tn_prepare.use of its kernel */
  CUfunction function;    /* NULL before tn_cuda_finish_functions */
  struct tn_cuda_function *next; /* of the requests that are not finished */
} tn_cuda_function;

tn_status tn_cuda_modules_create(tn_env *env, tn_cuda_device *device, tn_cuda_modules **modules);
void tn_cuda_modules_destroy(tn_env *env, tn_cuda_modules *modules);

/* Requests the function `name`, as of printf, of a file of device/, such as "softmax.cu". TN_EINTERNAL: there
 * is no such file. */
TN_PRINTF(4, 5)
tn_status tn_cuda_request(tn_prepare *p, tn_cuda_function *function, const char *file, const char *name, ...);
/* Requests the function `name` of a text, which is copied. `title` names it in messages: "region of 3 ops".
 */
tn_status tn_cuda_request_text(tn_prepare *p, tn_cuda_function *function, const char *title, const char *text,
                               const char *name);
/* For release: the function is wanted no longer. */
void tn_cuda_withdraw(tn_cuda_function *function);
/* Releases a prepared kernel that has one function, in front of its other members. */
void tn_cuda_release_function(tn_env *env, void *made);
/* Waits for the requests of a device, loads their modules and looks the functions up. TN_EUNSUPPORTED: the
 * code of a function does not compile, and its request is dropped; *declined is its kernel's tn_prepare.use.
 */
tn_status tn_cuda_finish_functions(tn_env *env, tn_cuda_device *device, int32_t *declined);
/* The threads that compile, for jobs of others. */
struct tn_cuda_pool *tn_cuda_modules_pool(tn_env *env, tn_cuda_modules *modules);

/* Enqueues a launch with the struct at `args`, `bytes` long. */
tn_status tn_cuda_launch(tn_launch *l, const tn_cuda_function *function, const tn_cuda_grid *grid,
                         const void *args, size_t bytes);
/* With [backend.cuda] check = yes, waits for what a launch has enqueued: a fault is reported by a later call,
 * and names the op only here. tn_cuda_launch calls it; kernels that call a library's functions do. */
tn_status tn_cuda_launched(tn_launch *l);
/* Blocks of `threads` threads, one thread an item, along x; at most `most_blocks`, for kernels whose threads
 * stride. */
tn_cuda_grid tn_cuda_grid_of(int64_t items, uint32_t threads, int64_t most_blocks);
