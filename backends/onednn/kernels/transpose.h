/* backends/onednn/kernels/transpose.h: the inner loops of transposed copies, to[column][row] =
 * from[row][column], in squares that are transposed in registers. Strides are in elements. */
#pragma once

#include "backends/onednn/simd/loops.h"

typedef void (*tn_transpose_function)(const void *from, int64_t from_stride, void *to, int64_t to_stride,
                                      int64_t rows, int64_t columns);
typedef struct tn_transpose_loops {
  int32_t lanes;
  tn_transpose_function of_2, of_4; /* elements of 2 and of 4 bytes */
} tn_transpose_loops;
TN_LOOPS_DECLARE(tn_transpose_loops, tn_loops_transpose);
