/* Instructions of a region over floats: arithmetic, comparisons, choices, conversions to and from halves, and
 * pairs of them, which save a trip through the first cache.
 *
 * Products and sums do not fuse here, so that a number does not depend on what shares a region with it: every
 * instruction set gives the bits of the reference. Memory takes the time. */
#pragma GCC optimize("fp-contract=off,signed-zeros")
#include "backends/onednn/pointwise/loops.h"

/* ---- arithmetic ---- */

static inline vf sign(vf x) {
  vf one = v_splat(1.0f), zero = v_splat(0.0f);
  vf y = v_select(v_gt(x, zero), one, v_select(v_lt(x, zero), v_neg(one), zero));
  return v_select(v_ne(x, x), x, y);
}

LOOP(neg, 1, v_neg(x))
LOOP(abs, 1, v_abs(x))
LOOP(sign, 1, sign(x))
LOOP(sqrt, 1, v_sqrt(x))
LOOP(rsqrt, 1, 1.0f / v_sqrt(x))
LOOP(reciprocal, 1, 1.0f / x)
LOOP(floor, 1, v_floor(x))
LOOP(add, 2, x + y)
LOOP(sub, 2, x - y)
LOOP(mul, 2, x *y)
LOOP(div, 2, x / y)
LOOP(maximum, 2, v_max(x, y))
LOOP(minimum, 2, v_min(x, y))

/* ---- pairs: (x op y) op2 z ---- */

#define OP_ADD(x, y)      ((x) + (y))
#define OP_SUB(x, y)      ((x) - (y))
#define OP_MUL(x, y)      ((x) * (y))
#define OP_MAXIMUM(x, y)  v_max(x, y)
#define OP_MINIMUM(x, y)  v_min(x, y)
#define OP_SUB_FROM(x, y) ((y) - (x))

/* clang-format off */
#define PAIRS(X)                                                                                             \
  X(ADD, ADD) X(ADD, SUB) X(ADD, MUL) X(ADD, MAXIMUM) X(ADD, MINIMUM) X(ADD, SUB_FROM)                       \
  X(SUB, ADD) X(SUB, SUB) X(SUB, MUL) X(SUB, MAXIMUM) X(SUB, MINIMUM) X(SUB, SUB_FROM)                       \
  X(MUL, ADD) X(MUL, SUB) X(MUL, MUL) X(MUL, MAXIMUM) X(MUL, MINIMUM) X(MUL, SUB_FROM)                       \
  X(MAXIMUM, ADD) X(MAXIMUM, SUB) X(MAXIMUM, MUL) X(MAXIMUM, MAXIMUM) X(MAXIMUM, MINIMUM) X(MAXIMUM, SUB_FROM) \
  X(MINIMUM, ADD) X(MINIMUM, SUB) X(MINIMUM, MUL) X(MINIMUM, MAXIMUM) X(MINIMUM, MINIMUM) X(MINIMUM, SUB_FROM)
/* clang-format on */
#define PAIR(first, second) LOOP(first##_##second, 3, OP_##second(OP_##first(x, y), z))
PAIRS(PAIR)

/* ---- choices: x op y ? z : w ---- */

LOOP(pick_eq, 4, v_select(v_eq(x, y), z, w))
LOOP(pick_ne, 4, v_select(v_ne(x, y), z, w))
LOOP(pick_lt, 4, v_select(v_lt(x, y), z, w))
LOOP(pick_le, 4, v_select(v_le(x, y), z, w))
LOOP(pick_gt, 4, v_select(v_gt(x, y), z, w))
LOOP(pick_ge, 4, v_select(v_ge(x, y), z, w))

/* ---- comparisons: floats in, bytes out ---- */

#define COMPARE(name, truth)                                                                                 \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    uint8_t *d = run->reg[insn->out], last[V_GROUP];                                                         \
    const float *a = run->reg[insn->in[0]], *b = run->reg[insn->in[1] < 0 ? insn->in[0] : insn->in[1]];      \
    float rest[2][V_GROUP];                                                                                  \
    for (; n >= V_GROUP; n -= V_GROUP, d += V_GROUP) {                                                       \
      V_EACH(j) {                                                                                            \
        vf x = v_load(a + j), y = v_load(b + j);                                                             \
        (void)y;                                                                                             \
        v_store_bool(d + j, truth);                                                                          \
      }                                                                                                      \
      a += V_GROUP * insn->step[0];                                                                          \
      b += V_GROUP * insn->step[1];                                                                          \
    }                                                                                                        \
    if (n == 0) return;                                                                                      \
    a = rest_of(rest[0], a, insn->step[0], n);                                                               \
    b = insn->in[1] < 0 ? a : rest_of(rest[1], b, insn->step[1], n);                                         \
    V_EACH(j) {                                                                                              \
      vf x = v_load(a + j), y = v_load(b + j);                                                               \
      (void)y;                                                                                               \
      v_store_bool(last + j, truth);                                                                         \
    }                                                                                                        \
    memcpy(d, last, (size_t)n);                                                                              \
  }
COMPARE(eq, v_eq(x, y))
COMPARE(ne, v_ne(x, y))
COMPARE(lt, v_lt(x, y))
COMPARE(le, v_le(x, y))
COMPARE(gt, v_gt(x, y))
COMPARE(ge, v_ge(x, y))
COMPARE(is_finite, v_lt(v_abs(x), v_splat(INFINITY)))

static void TN_LOOP(where)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  float *d = run->reg[insn->out], rest[3][V_GROUP];
  uint8_t truths[V_GROUP] = {0};
  const uint8_t *c = run->reg[insn->in[0]];
  const float *a = run->reg[insn->in[1]], *b = run->reg[insn->in[2]];
  for (; n >= V_GROUP; n -= V_GROUP, d += V_GROUP) {
    V_EACH(j) v_store(d + j, v_select(v_load_bool(c + j), v_load(a + j), v_load(b + j)));
    c += V_GROUP * insn->step[0];
    a += V_GROUP * insn->step[1];
    b += V_GROUP * insn->step[2];
  }
  if (n == 0) return;
  memcpy(truths, c, (size_t)n);
  a = rest_of(rest[0], a, insn->step[1], n);
  b = rest_of(rest[1], b, insn->step[2], n);
  V_EACH(j) v_store(rest[2] + j, v_select(v_load_bool(truths + j), v_load(a + j), v_load(b + j)));
  memcpy(d, rest[2], (size_t)n * sizeof *d);
}

/* ---- halves ---- */

LOOP(round_bf16, 1, v_round_bf16(x))
LOOP(round_f16, 1, v_round_f16(x))

#define HALF(name)                                                                                           \
  static void TN_LOOP(widen_##name)(const void *from, float *to, int64_t n) {                                \
    const uint8_t *a = from;                                                                                 \
    float last[V_GROUP];                                                                                     \
    uint16_t rest[V_GROUP] = {0};                                                                            \
    for (; n >= V_GROUP; n -= V_GROUP, a += 2 * V_GROUP, to += V_GROUP)                                      \
      V_EACH(j) v_store(to + j, v_from_##name(v_load_h(a + 2 * j)));                                         \
    if (n == 0) return;                                                                                      \
    memcpy(rest, a, 2 * (size_t)n);                                                                          \
    V_EACH(j) v_store(last + j, v_from_##name(v_load_h(rest + j)));                                          \
    memcpy(to, last, (size_t)n * sizeof *to);                                                                \
  }                                                                                                          \
  static void TN_LOOP(load_##name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {            \
    TN_LOOP(widen_##name)(run->reg[insn->in[0]], run->reg[insn->out], n);                                    \
  }                                                                                                          \
  static void TN_LOOP(narrow_##name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {          \
    const float *a = run->reg[insn->in[0]];                                                                  \
    uint8_t *d = (uint8_t *)run->launch->out[insn->view].data + 2 * run->at;                                 \
    float rest[V_GROUP];                                                                                     \
    uint16_t last[V_GROUP];                                                                                  \
    for (; n >= V_GROUP; n -= V_GROUP, d += 2 * V_GROUP, a += V_GROUP * insn->step[0])                       \
      V_EACH(j) v_store_h(d + 2 * j, v_to_##name(v_load(a + j)));                                            \
    if (n == 0) return;                                                                                      \
    a = rest_of(rest, a, insn->step[0], n);                                                                  \
    V_EACH(j) v_store_h(last + j, v_to_##name(v_load(a + j)));                                               \
    memcpy(d, last, 2 * (size_t)n);                                                                          \
  }
HALF(bf16)
HALF(f16)

#define PAIR_ENTRY(first, second) [TILE_PAIR_##first][TILE_PAIR_##second] = TN_LOOP(first##_##second),
#define ENTRY(op, name)           [TN_PW_##op] = TN_LOOP(name)

const tn_tile_loops TN_LOOP(tn_tile_f32) = {
    .f32 = {ENTRY(NEG, neg),         ENTRY(ABS, abs),
            ENTRY(SIGN, sign),       ENTRY(SQRT, sqrt),
            ENTRY(RSQRT, rsqrt),     ENTRY(RECIPROCAL, reciprocal),
            ENTRY(FLOOR, floor),     ENTRY(ADD, add),
            ENTRY(SUB, sub),         ENTRY(MUL, mul),
            ENTRY(MAXIMUM, maximum), ENTRY(MINIMUM, minimum),
            ENTRY(DIV, div),         ENTRY(EQ, eq),
            ENTRY(NE, ne),           ENTRY(LT, lt),
            ENTRY(LE, le),           ENTRY(GT, gt),
            ENTRY(GE, ge),           ENTRY(IS_FINITE, is_finite),
            ENTRY(WHERE, where)},
    .pair = {PAIRS(PAIR_ENTRY)},
    .pick = {TN_LOOP(pick_eq), TN_LOOP(pick_ne), TN_LOOP(pick_lt), TN_LOOP(pick_le), TN_LOOP(pick_gt),
             TN_LOOP(pick_ge)},
    .round = {TN_LOOP(round_bf16), TN_LOOP(round_f16)},
    .narrow = {TN_LOOP(narrow_bf16), TN_LOOP(narrow_f16)},
    .load = {TN_LOOP(load_bf16), TN_LOOP(load_f16)},
    .widen = {TN_LOOP(widen_bf16), TN_LOOP(widen_f16)},
};
