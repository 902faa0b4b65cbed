/* backends/cuda/kernels/index.h: indices of elements on the device: 32 bits where they suffice, 64 bits where
 * not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/divider.h"

enum { TN_CUDA_THREADS = 256, TN_CUDA_BLOCKS = 1 << 14 /* of kernels whose threads stride */ };

/* Whether indices below `count` need 64 bits: a number for the name of a function, "_long" or "". */
static inline bool tn_cuda_is_long(int64_t count) { return count > INT32_MAX; }
static inline const char *tn_cuda_long(int64_t count) { return tn_cuda_is_long(count) ? "_long" : ""; }
