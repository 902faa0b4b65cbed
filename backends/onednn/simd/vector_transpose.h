/* backends/onednn/simd/vector_transpose.h: transposes a square of V_LANES vectors in registers. Each of
 * log2(V_LANES) steps exchanges halves of blocks of 2 s lanes between vectors that are s apart. */
#pragma once

#include "backends/onednn/simd/vector.h"

/* The lanes of both vectors that go to the first and to the second one. */
#define V_TO_FIRST(l, s)  ((l) & (s) ? V_LANES + (l) - (s) : (l))
#define V_TO_SECOND(l, s) ((l) & (s) ? V_LANES + (l) : (l) + (s))

V_INLINE void v_exchange_blocks(vf *v, const int s, const vi first, const vi second) {
#pragma GCC unroll 16
  for (int i = 0; i < V_LANES; i++) {
    if (i & s) continue;
    vf x = v[i], y = v[i + s];
    v[i] = __builtin_shuffle(x, y, first);
    v[i + s] = __builtin_shuffle(x, y, second);
  }
}

V_INLINE void v_transpose(vf *v) {
#if V_BYTES == 64
  v_exchange_blocks(v, 8, V_CONSTANT(V_TO_FIRST, 8), V_CONSTANT(V_TO_SECOND, 8));
#endif
#if V_BYTES >= 32
  v_exchange_blocks(v, 4, V_CONSTANT(V_TO_FIRST, 4), V_CONSTANT(V_TO_SECOND, 4));
#endif
  v_exchange_blocks(v, 2, V_CONSTANT(V_TO_FIRST, 2), V_CONSTANT(V_TO_SECOND, 2));
  v_exchange_blocks(v, 1, V_CONSTANT(V_TO_FIRST, 1), V_CONSTANT(V_TO_SECOND, 1));
}
