/* backends/onednn/kernels/gemm/rows_loops.c: sums of rows, sums of the parts of a long k, and conversion of
 * bf16.
 */
#include "backends/onednn/kernels/gemm/strip.h"
#include "backends/onednn/kernels/gemm/sum_lines.h"

V_INLINE void gemm_sum_rows(int32_t dtype, const void *from, int64_t step, int64_t rows, int64_t n,
                            void *to) {
  for (int64_t j = 0; j < n; j += V_LANES) {
    int64_t lanes = least(V_LANES, n - j);
    v_store_upto_as(dtype, to, j, lanes, gemm_sum_lines(dtype, from, j, step, rows, lanes));
  }
}
void TN_LOOP(tn_gemm_sum_rows)(const void *from, int64_t step, int64_t rows, int64_t n, void *to) {
  gemm_sum_rows(TN_F32, from, step, rows, n, to);
}
void TN_LOOP(tn_gemm_sum_rows_bf16)(const void *from, int64_t step, int64_t rows, int64_t n, void *to) {
  gemm_sum_rows(TN_BF16, from, step, rows, n, to);
}

void TN_LOOP(tn_gemm_widen)(const uint16_t *from, float *to, int64_t n) {
  int64_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) v_store(to + i, v_from_bf16(v_load_h(from + i)));
  if (i < n) v_store_part(to + i, v_from_bf16(v_load_h_part(from + i, n - i)), n - i);
}

void TN_LOOP(tn_gemm_narrow)(const float *from, uint16_t *to, int64_t n) {
  int64_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) v_store_h(to + i, v_to_bf16(v_load(from + i)));
  if (i < n) v_store_h_part(to + i, v_to_bf16(v_load_part(from + i, n - i)), n - i);
}

void TN_LOOP(tn_gemm_add_parts)(const float *first, int64_t parts, int64_t step, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i += V_LANES) {
    int64_t lanes = least(V_LANES, n - i);
    vf sum = v_load_upto(first + i, lanes);
    for (int64_t p = 1; p < parts; p++) sum += v_load_upto(first + p * step + i, lanes);
    v_store_upto(to + i, sum, lanes);
  }
}
