/* backends/onednn/pointwise/loops.h: the shape of loops over floats, for the files of loops of regions.
 */
#pragma once

#include "backends/onednn/pointwise/program.h"
#include "backends/onednn/simd/vector_load.h"

/* n lanes at `from`, the last of them repeated behind: every operation has a result there that it has in a
 * lane that counts, so none divides by a zero of its own. A narrow register has its 16 lanes anyway. */
static inline const float *rest_of(float *rest, const float *from, uint8_t step, int64_t n) {
  if (!step) return from;
  memcpy(rest, from, (size_t)n * sizeof *rest);
  for (int64_t i = n; i < V_GROUP; i++) rest[i] = from[n - 1];
  return rest;
}

/* The loop of an instruction with `n_in` operands x, y, z, w. Groups of 16 lanes; the rest is done in a
 * group of its own, so that a lane's bits do not depend on where it lies. */
#define BODY(n_in, d, in, value)                                                                             \
  V_EACH(j) {                                                                                                \
    vf x = v_load(in[0] + j), y = n_in > 1 ? v_load(in[1] + j) : x;                                          \
    vf z = n_in > 2 ? v_load(in[2] + j) : x, w = n_in > 3 ? v_load(in[3] + j) : x;                           \
    (void)y, (void)z, (void)w;                                                                               \
    v_store(d + j, value);                                                                                   \
  }
#define LOOP(name, n_in, value)                                                                              \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    float *d = run->reg[insn->out], rest[n_in + 1][V_GROUP];                                                 \
    const float *in[n_in];                                                                                   \
    int64_t step[n_in];                                                                                      \
    for (int32_t k = 0; k < n_in; k++) in[k] = run->reg[insn->in[k]], step[k] = V_GROUP * insn->step[k];     \
    for (; n >= V_GROUP; n -= V_GROUP, d += V_GROUP) {                                                       \
      BODY(n_in, d, in, value)                                                                               \
      for (int32_t k = 0; k < n_in; k++) in[k] += step[k];                                                   \
    }                                                                                                        \
    if (n == 0) return;                                                                                      \
    for (int32_t k = 0; k < n_in; k++) in[k] = rest_of(rest[k], in[k], insn->step[k], n);                    \
    float *last = rest[n_in];                                                                                \
    BODY(n_in, last, in, value)                                                                              \
    memcpy(d, last, (size_t)n * sizeof *d);                                                                  \
  }
