/* backends/onednn/kernels/relu_grad_loops.c: see relu_grad.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/relu_grad.h"
#include "backends/onednn/simd/vector_load.h"

enum { TERMS = 64 /* of a sum in f32 */ };

V_INLINE vf relu_grad_round(int32_t dtype, vf x) {
  if (dtype == TN_F32) return x;
  return dtype == TN_BF16 ? v_round_bf16(x) : v_round_f16(x);
}

/* The gradients that a kernel has; the gate is r or the normalized operand of the ReLU. */
enum { RELU_PLAIN, RELU_ADDED, RELU_NORMALIZED };

V_INLINE void relu_grad_run(int32_t dtype, int32_t form, const tn_relu_grad *g, int64_t n) {
  vf zero = v_splat(0), mean = v_load(g->mean), scale = zero, below = zero;
  if (form == RELU_NORMALIZED) {
    scale = v_load(g->scale);
    below = zero - v_load(g->shift);
  }
  for (int64_t from = 0; from < n; from += TERMS) {
    int64_t end = n - from < TERMS ? n : from + TERMS;
    vf sum = {0}, dot = {0};
    for (int64_t i = from; i < end; i++) {
      int64_t at = i * V_LANES;
      vf d = v_load_as(dtype, g->dy, at);
      vf centred = v_load_as(dtype, g->x, at) - mean;
      vf gate = form == RELU_NORMALIZED ? centred * scale : v_load_as(dtype, g->r, at);
      if (form == RELU_ADDED) d = relu_grad_round(dtype, d + v_load_as(dtype, g->more, at));
      vf h = v_select(v_gt(gate, below), d, zero);
      v_store_as(dtype, g->h, at, h);
      sum += h;
      dot += h * centred;
    }
    v_accumulate(g->sums, sum);
    v_accumulate(g->sums + V_LANES, dot);
  }
}

#define RELU_GRAD_LOOP(dtype)                                                                                \
  static void relu_grad_##dtype(const tn_relu_grad *g, int64_t n) {                                          \
    if (g->r == NULL)                                                                                        \
      relu_grad_run(dtype, RELU_NORMALIZED, g, n);                                                           \
    else if (g->more != NULL)                                                                                \
      relu_grad_run(dtype, RELU_ADDED, g, n);                                                                \
    else                                                                                                     \
      relu_grad_run(dtype, RELU_PLAIN, g, n);                                                                \
  }
RELU_GRAD_LOOP(TN_F32)
RELU_GRAD_LOOP(TN_BF16)
RELU_GRAD_LOOP(TN_F16)

const tn_relu_grad_loops TN_LOOP(tn_loops_relu_grad) = {
    V_LANES, {[TN_F32] = relu_grad_TN_F32, [TN_BF16] = relu_grad_TN_BF16, [TN_F16] = relu_grad_TN_F16}};
