/* backends/onednn/simd/vector_math.h: the elementary functions of backends/shared/elementary.h for vectors,
 * and sine and cosine of a full turn, with errors of at most 1.6 units in the last place. */
#pragma once

#include "backends/onednn/simd/vector.h"
#include "backends/shared/elementary.h"

static inline vu v_bits(vf x) { return (vu)x; }
static inline vf v_float(vu u) { return (vf)u; }
static inline vf v_of_int(vi x) { return __builtin_convertvector(x, vf); }

TN_DEFINE_ELEMENTARY(vf, vu, vi, vm, v)

/* sine and cosine of 2 pi u for 0 <= u <= 1. The difference of u and the nearest quarter is exact. */
static inline void v_sine_cosine(vf u, vf *sine, vf *cosine) {
  vf t = u * 4.0f + TN_NEAREST;
  vu quarter = (vu)t;
  vf r = u - (t - TN_NEAREST) * 0.25f, z = r * r;
  vf s = v_sine_part(r, z), c = v_cosine_part(z);
  vu odd = 0u - (quarter & 1u);
  vu swap_s = (odd & (vu)c) | (~odd & (vu)s), swap_c = (odd & (vu)s) | (~odd & (vu)c);
  *sine = (vf)(swap_s ^ (quarter & 2u) << 30);
  *cosine = (vf)(swap_c ^ ((quarter + 1u) & 2u) << 30);
}
