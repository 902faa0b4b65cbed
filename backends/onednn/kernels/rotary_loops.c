/* backends/onednn/kernels/rotary_loops.c: see rotary.h. */
#include "backends/onednn/kernels/rotary.h"
#include "backends/onednn/simd/vector_load.h"

static void rotary_turn(const float *x, const float *c, const float *s, int64_t heads, int64_t pairs,
                        float *y) {
  for (int64_t h = 0; h < heads; h++, x += 2 * pairs, y += 2 * pairs)
    for (int64_t i = 0; i < pairs; i += V_LANES) {
      int64_t n = pairs - i;
      vf first = v_load_upto(x + i, n), second = v_load_upto(x + pairs + i, n);
      vf cosine = v_load_upto(c + i, n), sine = v_load_upto(s + i, n);
      v_store_upto(y + i, first * cosine - second * sine, n);
      v_store_upto(y + pairs + i, second * cosine + first * sine, n);
    }
}

const tn_rotary_loops TN_LOOP(tn_loops_rotary) = {rotary_turn};
