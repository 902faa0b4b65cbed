/* backends/onednn/kernels/transpose_loops.c: see transpose.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/transpose.h"
#include "backends/onednn/simd/vector_load.h"
#include "backends/onednn/simd/vector_transpose.h"

V_INLINE void transpose_square(int32_t bytes, const uint8_t *from, int64_t from_stride, uint8_t *to,
                               int64_t to_stride) {
  vf row[V_LANES];
#pragma GCC unroll 16
  for (int32_t i = 0; i < V_LANES; i++) {
    const uint8_t *at = from + i * from_stride * bytes;
    row[i] = bytes == 4 ? v_load(at) : (vf) __builtin_convertvector(v_load_h(at), vu);
  }
  v_transpose(row);
#pragma GCC unroll 16
  for (int32_t i = 0; i < V_LANES; i++) {
    uint8_t *at = to + i * to_stride * bytes;
    if (bytes == 4)
      v_store(at, row[i]);
    else
      v_store_h(at, __builtin_convertvector((vu)row[i], vh));
  }
}

/* Rows and columns that do not fill a square. */
V_INLINE void transpose_rest(int32_t bytes, const uint8_t *from, int64_t from_stride, uint8_t *to,
                             int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++)
      memcpy(to + (c * to_stride + r) * bytes, from + (r * from_stride + c) * bytes, (size_t)bytes);
}

V_INLINE void transpose_matrix(int32_t bytes, const void *from, int64_t from_stride, void *to,
                               int64_t to_stride, int64_t rows, int64_t columns) {
  const uint8_t *x = from;
  uint8_t *y = to;
  int64_t r = 0, c = 0;
  for (; r + V_LANES <= rows; r += V_LANES) {
    for (c = 0; c + V_LANES <= columns; c += V_LANES)
      transpose_square(bytes, x + (r * from_stride + c) * bytes, from_stride, y + (c * to_stride + r) * bytes,
                       to_stride);
    transpose_rest(bytes, x + (r * from_stride + c) * bytes, from_stride, y + (c * to_stride + r) * bytes,
                   to_stride, V_LANES, columns - c);
  }
  transpose_rest(bytes, x + r * from_stride * bytes, from_stride, y + r * bytes, to_stride, rows - r,
                 columns);
}

static void transpose_2(const void *from, int64_t from_stride, void *to, int64_t to_stride, int64_t rows,
                        int64_t columns) {
  transpose_matrix(2, from, from_stride, to, to_stride, rows, columns);
}
static void transpose_4(const void *from, int64_t from_stride, void *to, int64_t to_stride, int64_t rows,
                        int64_t columns) {
  transpose_matrix(4, from, from_stride, to, to_stride, rows, columns);
}

const tn_transpose_loops TN_LOOP(tn_loops_transpose) = {V_LANES, transpose_2, transpose_4};
