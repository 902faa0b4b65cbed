/* tests/fakecuda/driver/launches.c: launches of kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/driver/modules.h"

typedef struct launch {
  fake_kernel *kernel;
  fake_launch how;
  bool hangs;
  _Alignas(16) unsigned char buffer[];
} launch;

/* FAKECUDA_FAIL=kernel:N: the N-th kernel that runs faults, as a kernel does that reads a wrong address;
 * kernel:N=hang: it never ends, and its stream does nothing any more. */
static int launch_run(void *arg, char *why) {
  launch *l = arg;
  if (l->hangs) return FAKE_PENDING;
  CUresult asked = fake_count("kernel");
  l->hangs = asked == (CUresult)FAKE_HANGS;
  if (l->hangs) return FAKE_PENDING;
  if (asked != CUDA_SUCCESS) return asked == CUDA_ERROR_UNKNOWN ? CUDA_ERROR_ILLEGAL_ADDRESS : (int)asked;
  if (atomic_load(&l->kernel->module->image) == NULL)
    return snprintf(why, FAKE_WHY, "its module has been unloaded"), -1;
  fake_launch how = l->how;
  how.seed = (uint64_t)fake_settings_get()->seed * UINT64_C(0x9E3779B97F4A7C15) +
             l->kernel->module->context->kernels++;
  return fake_function_run(l->kernel->function, &how, l->buffer, why);
}

/* ---- checks ---- */

static CUresult launch_check_shape(const fake_call *call, const fake_kernel *k, const fake_launch *l) {
  uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
  bool grid = l->grid.x > 0 && l->grid.y > 0 && l->grid.z > 0 && l->grid.x <= INT32_MAX &&
              l->grid.y <= 65535 && l->grid.z <= 65535;
  bool block = threads > 0 && l->block.x <= 1024 && l->block.y <= 1024 && l->block.z <= 64 && threads <= 1024;
  if (!grid || !block)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "'%s': a grid of %u %u %u with blocks of %u %u %u",
                       k->name, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z);
  uint32_t most = fake_function_max_threads(k->function);
  if (threads > most)
    return fake_refuse(call, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "'%s': %llu threads in a block, at most %u",
                       k->name, (unsigned long long)threads, most);
  if (l->shared_bytes <= k->most_dynamic) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_VALUE,
                     "'%s': %u bytes of dynamic shared memory; cuFuncSetAttribute allows %u", k->name,
                     l->shared_bytes, k->most_dynamic);
}

/* ---- parameters ---- */

static CUresult launch_read_pointers(const fake_call *call, launch *l, void *const *parameters) {
  const fake_function *f = l->kernel->function;
  for (int32_t i = 0; i < fake_function_parameters(f); i++) {
    if (parameters == NULL || parameters[i] == NULL)
      return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "'%s': parameter %d is missing", l->kernel->name, i);
    memcpy(l->buffer + fake_function_parameter_offset(f, i), parameters[i],
           fake_function_parameter_bytes(f, i));
  }
  return CUDA_SUCCESS;
}

static CUresult launch_read_buffer(const fake_call *call, launch *l, void *const *extra) {
  const void *from = NULL;
  const size_t *bytes = NULL;
  size_t wanted = fake_function_buffer_bytes(l->kernel->function);
  for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      from = extra[1];
    else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = extra[1];
    else
      return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "'%s': no such entry of extra: %p", l->kernel->name,
                         extra[0]);
  }
  size_t given = bytes != NULL ? *bytes : 0;
  if (given != wanted || (from == NULL && wanted > 0))
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE,
                       "'%s': a buffer of %zu bytes at %p, expected %zu bytes", l->kernel->name, given, from,
                       wanted);
  if (wanted > 0) memcpy(l->buffer, from, wanted);
  return CUDA_SUCCESS;
}

static CUresult launch_read(const fake_call *call, launch *l, void **parameters, void **extra) {
  if (parameters != NULL && extra != NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "'%s': both kernelParams and extra", l->kernel->name);
  return extra != NULL ? launch_read_buffer(call, l, extra) : launch_read_pointers(call, l, parameters);
}

static CUresult launch_push(const fake_call *call, fake_stream *s, fake_kernel *k, const fake_launch *how,
                            void **parameters, void **extra) {
  size_t bytes = sizeof(launch) + fake_function_buffer_bytes(k->function);
  launch *l = calloc(1, bytes);
  if (l == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  l->kernel = k;
  l->how = *how;
  CUresult code = launch_read(call, l, parameters, extra);
  fake_task task = {.name = k->name, .body = launch_run, .arg = l, .bytes = bytes, .computes = true};
  if (code == CUDA_SUCCESS) code = fake_push(call, s, &task);
  free(l);
  return code;
}

static CUresult launch_kernel(const fake_call *call, CUfunction function, const fake_launch *how,
                              CUstream handle, void **parameters, void **extra) {
  fake_kernel *k;
  fake_stream *s;
  CUresult code = fake_kernel_find(call, function, &k);
  if (code == CUDA_SUCCESS) code = fake_stream_for_work(call, handle, &s);
  if (code == CUDA_SUCCESS) code = launch_check_shape(call, k, how);
  if (code == CUDA_SUCCESS) fake_count_more("blocks", (uint64_t)how->grid.x * how->grid.y * how->grid.z);
  return code == CUDA_SUCCESS ? launch_push(call, s, k, how, parameters, extra) : code;
}

FAKE_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 CUstream stream, void **parameters, void **extra) {
  fake_launch how = {
      .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared_bytes = shared_bytes};
  FAKE_CALL(FAKE_CURRENT, launch_kernel(&call, function, &how, stream, parameters, extra));
}

/* ---- occupancy ---- */

static CUresult launch_occupancy(const fake_call *call, int *blocks, CUfunction function, int threads,
                                 size_t dynamic) {
  fake_kernel *k;
  if (blocks == NULL || threads < 1)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "blocks of %d threads", threads);
  CUresult code = fake_kernel_find(call, function, &k);
  if (code != CUDA_SUCCESS) return code;
  *blocks = 0;
  if ((uint32_t)threads > fake_function_max_threads(k->function) || dynamic > k->most_dynamic) return code;
  size_t shared = fake_function_shared_bytes(k->function) + dynamic + FAKE_SHARED_RESERVED;
  int by_threads = 2048 / ((threads + 31) / 32 * 32), by_shared = (int)(FAKE_SHARED_PROCESSOR / shared);
  *blocks = by_threads < by_shared ? by_threads : by_shared;
  int most = fake_settings_get()->blocks;
  if (*blocks > most) *blocks = most;
  return code;
}

FAKE_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                              size_t dynamic) {
  FAKE_CALL(FAKE_CURRENT, launch_occupancy(&call, blocks, function, threads, dynamic));
}
