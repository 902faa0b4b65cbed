/* backends/onednn/kernels/shuffle_loops.c: see shuffle.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/shuffle.h"
#include "backends/onednn/simd/vector_load.h"

/* a[0] b[0] a[1] b[1] ... */
V_INLINE void shuffle_two(const uint32_t *a, const uint32_t *b, int64_t n, uint32_t *to) {
  const vi order = V_INDEX / 2 + (V_INDEX & 1) * V_LANES;
  int64_t i = 0;
  for (; i + V_LANES <= n; i += V_LANES) {
    vu x = v_load_u(a + i), y = v_load_u(b + i);
    v_store_u(to + 2 * i, __builtin_shuffle(x, y, (vu)order));
    v_store_u(to + 2 * i + V_LANES, __builtin_shuffle(x, y, (vu)(order + V_LANES / 2)));
  }
  for (; i < n; i++) {
    to[2 * i] = a[i];
    to[2 * i + 1] = b[i];
  }
}

static void shuffle_interleave(const tn_shuffle_group *group, int64_t groups, int64_t n, int64_t pixels,
                               uint32_t *to) {
  for (int64_t p = 0; p < pixels; p++, to += groups * n) {
    if (groups == 2) {
      shuffle_two(group[0].from + p * group[0].pixel, group[1].from + p * group[1].pixel, n, to);
      continue;
    }
    for (int64_t i = 0; i < groups; i++)
      for (int64_t j = 0; j < n; j++) to[j * groups + i] = group[i].from[p * group[i].pixel + j];
  }
}

const tn_shuffle_loops TN_LOOP(tn_loops_shuffle) = {shuffle_interleave};
