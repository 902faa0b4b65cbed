/* backends/onednn/kernels/gemm/sum_lines.h: sums of rows, for the gradients of biases. */
#pragma once

#include "backends/shared/integer_math.h"
#include "backends/onednn/simd/vector_load.h"

/* Sums of 32 rows are added up, so that rounding errors do not grow with the number of rows. */
V_INLINE vf gemm_sum_lines(int32_t dtype, const void *from, int64_t at, int64_t step, int64_t rows,
                           int64_t lanes) {
  vf total = {0};
  for (int64_t i = 0; i < rows; i += 32) {
    vf sum = {0};
    for (int64_t r = i; r < least(rows, i + 32); r++)
      sum += v_load_upto_as(dtype, from, at + r * step, lanes, 0);
    total += sum;
  }
  return total;
}
