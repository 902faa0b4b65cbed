/* backends/onednn/kernels/rotary.h: the inner loop of rotary positions. */
#pragma once

#include "backends/onednn/simd/loops.h"

/* The heads of a token, each 2 * pairs elements: pairs i and i + pairs turn by the angle whose cosine is c[i]
 * and whose sine is s[i]. y may be x. */
typedef void (*tn_rotary_function)(const float *x, const float *c, const float *s, int64_t heads,
                                   int64_t pairs, float *y);
typedef struct tn_rotary_loops {
  tn_rotary_function turn;
} tn_rotary_loops;
TN_LOOPS_DECLARE(tn_rotary_loops, tn_loops_rotary);
