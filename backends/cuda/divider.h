/* backends/cuda/divider.h: fills the struct by which device code divides (device/divide.cuh). */
#pragma once

#include <stdint.h>

#include "backends/cuda/device/divide.cuh"

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
