/* backends/onednn/kernels/gemm/epilogue.h: the epilogue of a product: bias, ReLU, a sum, GELU, and the
 * gradients of ReLU and GELU. */
#pragma once

#include "backends/shared/integer_math.h"
#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/simd/gelu.h"
#include "backends/onednn/simd/vector_load.h"

/* y, of which n lanes exist, lies at C + at and begins in column j. GELU is left to gemm_apply_gelu. */
V_INLINE vf gemm_apply_epilogue(const tn_gemm_epilogue *e, vf y, int64_t at, int64_t j, int64_t n) {
  if (e->bias != NULL) y += v_load_upto(e->bias + j, n);
  if (e->op == TN_EPILOGUE_RELU) return v_max(y, v_splat(0));
  if (e->op == TN_EPILOGUE_RELU_GRAD)
    return v_select(v_gt(v_load_upto(e->operand + at, n), v_splat(0)), y, v_splat(0));
  if (e->op == TN_EPILOGUE_ADD) return y + v_load_upto(e->operand + at, n);
  return y;
}

/* GELU and its gradient take many instructions, so they run over a finished tile, which is in the first-level
 * cache. */
static __attribute__((noinline)) void gemm_apply_gelu(const tn_sgemm *g, int64_t row, int64_t rows,
                                                      int64_t column, int64_t columns) {
  const tn_gemm_epilogue *e = &g->epilogue;
  for (int64_t i = row; i < row + rows; i++)
    for (int64_t j = 0; j < columns; j += V_LANES) {
      int64_t at = i * g->c_i + column + j, lanes = least(V_LANES, columns - j);
      vf y = v_load_upto(g->c + at, lanes);
      if (e->op == TN_EPILOGUE_GELU_GRAD) {
        y *= v_gelu_grad(v_load_upto(e->operand + at, lanes), e->approximate);
      } else {
        if (e->preactivation != NULL) v_store_upto(e->preactivation + at, y, lanes);
        y = v_gelu(y, e->approximate);
      }
      v_store_upto(g->c + at, y, lanes);
    }
}
