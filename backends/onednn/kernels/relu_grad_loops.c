#include "backends/onednn/kernels/relu_grad.h"
#include "backends/onednn/simd/lanes.h"

#include <stdbool.h>

enum { TERMS = 64 /* of a sum in f32 */ };

LANE_INLINE lane_f32 rounded(int32_t dtype, lane_f32 x) {
  if (dtype == TN_F32) return x;
  return dtype == TN_BF16 ? lane_of_bf16(lane_to_bf16(x)) : lane_of_f16(lane_to_f16(x));
}

LANE_INLINE void add(double *sums, lane_f32 x) {
  lane_f64 old;
  memcpy(&old, sums, sizeof old);
  old += __builtin_convertvector(x, lane_f64);
  memcpy(sums, &old, sizeof old);
}

LANE_INLINE lane_f32 one(int32_t dtype, const void *x) {
  return lane_all(lane_load_part(dtype, x, 0, 1, 0)[0]);
}

LANE_INLINE void gate(int32_t dtype, bool more, const tn_gate *g, int64_t n) {
  lane_f32 bound = one(dtype, g->bound), otherwise = one(dtype, g->otherwise),
           mean = lane_load(TN_F32, g->mean, 0);
  for (int64_t from = 0; from < n; from += TERMS) {
    int64_t end = n - from < TERMS ? n : from + TERMS;
    lane_f32 sum = {0}, dot = {0};
    for (int64_t i = from; i < end; i++) {
      int64_t at = i * LANES;
      lane_f32 d = lane_load(dtype, g->dy, at);
      if (more) d = rounded(dtype, d + lane_load(dtype, g->more, at));
      lane_f32 h = lane_pick(lane_load(dtype, g->r, at) > bound, d, otherwise);
      lane_store(dtype, g->h, at, h);
      sum += h;
      dot += h * (lane_load(dtype, g->x, at) - mean);
    }
    add(g->sums, sum);
    add(g->sums + LANES, dot);
  }
}

#define GATE(dtype)                                                                                          \
  static void TN_LOOP(gate_##dtype)(const tn_gate *g, int64_t n) {                                           \
    if (g->more != NULL)                                                                                     \
      gate(dtype, true, g, n);                                                                               \
    else                                                                                                     \
      gate(dtype, false, g, n);                                                                              \
  }
GATE(TN_F32)
GATE(TN_BF16)
GATE(TN_F16)

const tn_gate_loops TN_LOOP(tn_loops_gate) = {
    LANES,
    {[TN_F32] = TN_LOOP(gate_TN_F32), [TN_BF16] = TN_LOOP(gate_TN_BF16), [TN_F16] = TN_LOOP(gate_TN_F16)}};
