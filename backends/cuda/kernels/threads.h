/* backends/cuda/kernels/threads.h: how many threads and blocks share the rows of a tensor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/modules/modules.h"
#include "backends/shared/integer_math.h"

enum { TN_CUDA_WARP = 32, TN_CUDA_MOST_BLOCKS = 1 << 20 /* of kernels whose blocks stride */ };

/* The smallest power of two from n on, at most `most`, a power of two. */
static inline int32_t tn_cuda_power(int64_t n, int32_t most) {
  int32_t power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

/* Threads for a row of so many units: part of a warp for a short row, a block of `threads` for a long one, or
 * where there are few rows. A thread of a warp has some units. */
static inline int32_t tn_cuda_row_lanes(int64_t rows, int64_t units, int32_t threads) {
  enum { UNITS = 4, LONG = 512, FEW = 1024 };
  if (units >= LONG || (units >= 2 * TN_CUDA_WARP && rows < FEW)) return threads;
  return tn_cuda_power(divide_up(units, UNITS), TN_CUDA_WARP);
}

/* Shared memory of a block, at most, as the description of the device says; where it does not, what every
 * device has. */
static inline int32_t tn_cuda_shared_bytes(const tn_device_properties *d) {
  static const char key[] = "\"maxSharedMemoryPerBlockOptin\":";
  enum { EVERY_DEVICE = 48 << 10, MOST = 1 << 20 };
  const char *at = d->details != NULL ? strstr(d->details, key) : NULL;
  long bytes = at != NULL ? strtol(at + sizeof key - 1, NULL, 10) : 0;
  return bytes > EVERY_DEVICE && bytes < MOST ? (int32_t)bytes : EVERY_DEVICE;
}

/* Whether vectors of 16 bytes may begin at an address. Operands are aligned to their elements, no more: they
 * may be views of an application. */
static inline bool tn_cuda_is_aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

/* A tensor as rows along an axis: their number, their elements, and the distance between neighbours of a row.
 */
static inline void tn_cuda_rows_along(const tn_type *x, int64_t axis, long long *rows, long long *n,
                                      long long *inner) {
  if (axis < 0) axis += x->rank;
  *rows = *inner = 1;
  *n = x->dims[axis];
  for (int32_t i = 0; i < x->rank; i++) {
    if (i != axis) *rows *= x->dims[i];
    if (i > axis) *inner *= x->dims[i];
  }
}

/* Blocks for tasks of which a block has `of_block` at a time. */
static inline tn_cuda_grid tn_cuda_task_grid(int64_t tasks, int64_t of_block, uint32_t threads) {
  int64_t blocks = least(divide_up(tasks, of_block), TN_CUDA_MOST_BLOCKS);
  return (tn_cuda_grid){.blocks = {(uint32_t)blocks, 1, 1}, .threads = {threads, 1, 1}};
}
