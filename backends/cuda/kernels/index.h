/* backends/cuda/kernels/index.h: indices of elements on the device: 32 bits where they suffice, 64 bits where
 * not. */
#ifndef TN_BACKENDS_CUDA_KERNELS_INDEX_H
#define TN_BACKENDS_CUDA_KERNELS_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/device/divide.cuh"

enum { TN_CUDA_THREADS = 256, TN_CUDA_BLOCKS = 1 << 14 /* of kernels whose threads stride */ };

/* Whether indices below `count` need 64 bits: a number for the name of a function, "_long" or "". */
static inline bool tn_cuda_is_long(int64_t count) { return count > INT32_MAX; }
static inline const char *tn_cuda_long(int64_t count) { return tn_cuda_is_long(count) ? "_long" : ""; }

/* Division by n >= 1. With 32 bits, multiplier = floor(2^32 (2^shift - n) / n) + 1 where 2^shift >= n; n
 * above 2^31 is for indices of 64 bits alone. With 64 bits, long_multiplier = ceil(2^(64 + long_shift) / n)
 * where 2^(long_shift + 1) >= n: its error times an index is less than the power of two. */
static inline struct divider tn_cuda_divider(int64_t n) {
  struct divider d = {.divisor = n};
  while (d.long_shift < 62 && (INT64_C(2) << d.long_shift) < n) d.long_shift++;
  unsigned __int128 power = (unsigned __int128)1 << (64 + d.long_shift);
  d.long_multiplier = (uint64_t)((power + (uint64_t)n - 1) / (uint64_t)n);
  if (n > INT32_MAX) return d;
  while ((INT64_C(1) << d.shift) < n) d.shift++;
  d.multiplier = (unsigned)((((UINT64_C(1) << d.shift) - (uint64_t)n) << 32) / (uint64_t)n + 1);
  return d;
}

#endif
