/* backends/onednn/kernels/shuffle.h: the inner loop of channel_shuffle with channels innermost. */
#pragma once

#include "backends/onednn/simd/loops.h"

/* The channels of one group: elements of 4 bytes, `pixel` of them from a pixel to the next. */
typedef struct tn_shuffle_group {
  const uint32_t *from;
  int64_t pixel;
} tn_shuffle_group;

/* to[pixel][j * groups + i] = channel j of group i, of n channels each. */
typedef void (*tn_shuffle_function)(const tn_shuffle_group *group, int64_t groups, int64_t n, int64_t pixels,
                                    uint32_t *to);
typedef struct tn_shuffle_loops {
  tn_shuffle_function interleave;
} tn_shuffle_loops;
TN_LOOPS_DECLARE(tn_shuffle_loops, tn_loops_shuffle);
