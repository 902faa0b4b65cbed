/* Instructions of a region over lanes other than floats, conversions between lanes, constants and copies.
 * Plain loops: they stand at the edges of regions, not in their middle. */
#pragma GCC optimize("fp-contract=off,signed-zeros")
#include <math.h>
#include <string.h>

#include "backends/onednn/simd/loops.h"
#include "backends/onednn/pointwise/program.h"
#include "backends/shared/saturate.h"

enum { GROUP = 16 };

/* A loop of n elements of type TO from operands of types A and B, whose groups of 16 are shared where a
 * register is narrow. */
#define LOOP(name, TO, A, B, value)                                                                          \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    TO *d = run->reg[insn->out];                                                                             \
    const A *a = run->reg[insn->in[0]];                                                                      \
    const B *b = run->reg[insn->in[1] < 0 ? insn->in[0] : insn->in[1]];                                      \
    for (int64_t left = n; left > 0; left -= GROUP, d += GROUP) {                                            \
      int64_t m = left < GROUP ? left : GROUP;                                                               \
      _Pragma("GCC ivdep") for (int64_t k = 0; k < m; k++) {                                                 \
        const A x = a[k];                                                                                    \
        const B y = b[k];                                                                                    \
        (void)y;                                                                                             \
        d[k] = (TO)(value);                                                                                  \
      }                                                                                                      \
      a += GROUP * insn->step[0];                                                                            \
      b += GROUP * insn->step[1];                                                                            \
    }                                                                                                        \
  }
#define UNARY(name, T, value)   LOOP(name, T, T, uint8_t, value)
#define BINARY(name, T, value)  LOOP(name, T, T, T, value)
#define COMPARE(name, T, value) LOOP(name, uint8_t, T, T, value)

/* ---- f64 ---- */

UNARY(neg_f64, double, -x)
UNARY(abs_f64, double, fabs(x))
UNARY(sign_f64, double, x != x ? x : (double)((x > 0) - (x < 0)))
UNARY(sqrt_f64, double, sqrt(x))
UNARY(rsqrt_f64, double, 1 / sqrt(x))
UNARY(reciprocal_f64, double, 1 / x)
UNARY(floor_f64, double, floor(x))
UNARY(exp_f64, double, exp(x))
UNARY(log_f64, double, log(x))
UNARY(tanh_f64, double, tanh(x))
UNARY(sigmoid_f64, double, (x >= 0 ? 1.0 : exp(x)) / (1.0 + exp(-fabs(x))))
UNARY(erf_f64, double, erf(x))
BINARY(fmod_f64, double, fmod(x, y))
#define OF_ONE(op, function, ...) UNARY(fn_##op, double, function(x))
#define OF_TWO(op, function, ...) BINARY(fn_##op, double, function(x, y))
TN_FUNCTIONS_OF_ONE(OF_ONE)
TN_FUNCTIONS_OF_TWO(OF_TWO)
BINARY(add_f64, double, x + y)
BINARY(sub_f64, double, x - y)
BINARY(mul_f64, double, x *y)
BINARY(div_f64, double, x / y)
BINARY(maximum_f64, double, x > y || x != x ? x : y)
BINARY(minimum_f64, double, x < y || x != x ? x : y)
COMPARE(is_finite_f64, double, x - x == 0)

/* ---- whole numbers: they wrap, so sums are formed without sign; division truncates and gives 0 where there
 * is no quotient ---- */

#define WHOLE(lane, INT, UINT)                                                                               \
  UNARY(neg_##lane, INT, TN_OPPOSITE(x, INT, UINT))                                                          \
  UNARY(abs_##lane, INT, TN_SIZE_OF(x, INT, UINT))                                                           \
  UNARY(sign_##lane, INT, TN_SIGN_OF(x, INT))                                                                \
  BINARY(add_##lane, INT, (UINT)x + (UINT)y)                                                                 \
  BINARY(sub_##lane, INT, (UINT)x - (UINT)y)                                                                 \
  BINARY(mul_##lane, INT, (UINT)x *(UINT)y)                                                                  \
  BINARY(div_##lane, INT, TN_QUOTIENT(x, y, INT, UINT))                                                      \
  BINARY(fmod_##lane, INT, TN_REST(x, y, INT))                                                               \
  BINARY(and_##lane, INT, x &y)                                                                              \
  BINARY(or_##lane, INT, x | y)                                                                              \
  BINARY(xor_##lane, INT, x ^ y)                                                                             \
  UNARY(not_##lane, INT, x ^ 1) /* of bool */                                                                \
  BINARY(shift_left_##lane, INT, TN_SHIFT_LEFT(x, y, INT, UINT))                                             \
  BINARY(shift_right_##lane, INT, TN_SHIFT_RIGHT(x, y, INT, UINT))                                           \
  BINARY(maximum_##lane, INT, x > y ? x : y)                                                                 \
  BINARY(minimum_##lane, INT, x < y ? x : y)                                                                 \
  COMPARE(is_finite_##lane, INT, x == x)
#define WHOLE_LANE(code, lane, INT, UINT) WHOLE(lane, INT, UINT)
TN_WHOLE_LANES(WHOLE_LANE)

/* ---- comparison, choice, constants, copies ---- */

#define COMPARISONS(lane, T)                                                                                 \
  COMPARE(eq_##lane, T, x == y)                                                                              \
  COMPARE(ne_##lane, T, x != y)                                                                              \
  COMPARE(lt_##lane, T, x < y)                                                                               \
  COMPARE(le_##lane, T, x <= y)                                                                              \
  COMPARE(gt_##lane, T, x > y)                                                                               \
  COMPARE(ge_##lane, T, x >= y)
#define COMPARISONS_OF_WHOLE(code, lane, INT, UINT) COMPARISONS(lane, INT)
TN_WHOLE_LANES(COMPARISONS_OF_WHOLE)
COMPARISONS(f64, double)

/* Lanes of any type as bits. */
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

#define WHERE(name, WORD)                                                                                    \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    WORD *d = run->reg[insn->out];                                                                           \
    const uint8_t *c = run->reg[insn->in[0]];                                                                \
    const WORD *a = run->reg[insn->in[1]], *b = run->reg[insn->in[2]];                                       \
    for (; n > 0; n -= GROUP, d += GROUP) {                                                                  \
      int64_t m = n < GROUP ? n : GROUP;                                                                     \
      _Pragma("GCC ivdep") for (int64_t k = 0; k < m; k++) d[k] = c[k] ? a[k] : b[k];                        \
      c += GROUP * insn->step[0];                                                                            \
      a += GROUP * insn->step[1];                                                                            \
      b += GROUP * insn->step[2];                                                                            \
    }                                                                                                        \
  }
WHERE(where_1, uint8_t)
WHERE(where_4, word32)
WHERE(where_8, word64)

#define FILL(name, WORD)                                                                                     \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    WORD *d = run->reg[insn->out];                                                                           \
    const WORD value = (WORD)insn->bits;                                                                     \
    for (int64_t k = 0; k < n; k++) d[k] = value;                                                            \
  }
FILL(fill_1, uint8_t)
FILL(fill_4, word32)
FILL(fill_8, word64)

/* To a result's memory. */
#define COPY(name, WORD)                                                                                     \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    WORD *d = (WORD *)run->launch->out[insn->view].data + run->at;                                           \
    const WORD *a = run->reg[insn->in[0]];                                                                   \
    if (insn->step[0]) {                                                                                     \
      if (d != a) memcpy(d, a, (size_t)n * sizeof *d);                                                       \
      return;                                                                                                \
    }                                                                                                        \
    for (; n > 0; n -= GROUP, d += GROUP) memcpy(d, a, (size_t)(n < GROUP ? n : GROUP) * sizeof *d);         \
  }
COPY(copy_1, uint8_t)
COPY(copy_4, word32)
COPY(copy_8, word64)

/* ---- conversion ---- */

#define WRAPPED(to, from, x)   (x)
#define SATURATED(to, from, x) tn_##to##_of_##from(x)
#define CASTS(lane, T, OF)                                                                                   \
  LOOP(bool_of_##lane, uint8_t, T, uint8_t, x != 0)                                                          \
  LOOP(u8_of_##lane, uint8_t, T, uint8_t, OF(u8, lane, x))                                                   \
  LOOP(i8_of_##lane, int8_t, T, uint8_t, OF(i8, lane, x))                                                    \
  LOOP(i32_of_##lane, int32_t, T, uint8_t, OF(i32, lane, x))                                                 \
  LOOP(i64_of_##lane, int64_t, T, uint8_t, OF(i64, lane, x))                                                 \
  LOOP(f32_of_##lane, float, T, uint8_t, x)                                                                  \
  LOOP(f64_of_##lane, double, T, uint8_t, x)
#define CASTS_OF_WHOLE(code, lane, INT, UINT) CASTS(lane, INT, WRAPPED)
TN_WHOLE_LANES(CASTS_OF_WHOLE)
CASTS(f32, float, SATURATED)
CASTS(f64, double, SATURATED)

/* ---- the table ---- */

#define ENTRY(op, name)   [TN_PW_##op] = TN_LOOP(name)
#define FUNCTION(op, ...) ENTRY(FN_##op, fn_##op),
#define FUNCTIONS         TN_FUNCTIONS_OF_ONE(FUNCTION) TN_FUNCTIONS_OF_TWO(FUNCTION)
#define COMPARISON_ENTRIES(lane)                                                                             \
  ENTRY(EQ, eq_##lane), ENTRY(NE, ne_##lane), ENTRY(LT, lt_##lane), ENTRY(LE, le_##lane),                    \
      ENTRY(GT, gt_##lane), ENTRY(GE, ge_##lane), ENTRY(IS_FINITE, is_finite_##lane)
#define WHOLE_ENTRIES(lane, size)                                                                            \
  {                                                                                                          \
    COMPARISON_ENTRIES(lane), ENTRY(NEG, neg_##lane), ENTRY(ABS, abs_##lane), ENTRY(SIGN, sign_##lane),      \
        ENTRY(ADD, add_##lane), ENTRY(SUB, sub_##lane), ENTRY(MUL, mul_##lane), ENTRY(DIV, div_##lane),      \
        ENTRY(MAXIMUM, maximum_##lane), ENTRY(MINIMUM, minimum_##lane), ENTRY(FMOD, fmod_##lane),            \
        ENTRY(AND, and_##lane), ENTRY(OR, or_##lane), ENTRY(XOR, xor_##lane), ENTRY(NOT, not_##lane),        \
        ENTRY(SHIFT_LEFT, shift_left_##lane), ENTRY(SHIFT_RIGHT, shift_right_##lane),                        \
        ENTRY(WHERE, where_##size), ENTRY(CONSTANT, fill_##size)                                             \
  }
#define CAST_ENTRIES(code, lane, type, whole)                                                                \
  [TN_LANE_##code] = {[TN_BOOL] = TN_LOOP(bool_of_##lane), [TN_U8] = TN_LOOP(u8_of_##lane),                  \
                      [TN_I8] = TN_LOOP(i8_of_##lane),     [TN_I32] = TN_LOOP(i32_of_##lane),                \
                      [TN_I64] = TN_LOOP(i64_of_##lane),   [TN_F16] = TN_LOOP(f32_of_##lane),                \
                      [TN_BF16] = TN_LOOP(f32_of_##lane),  [TN_F32] = TN_LOOP(f32_of_##lane),                \
                      [TN_F64] = TN_LOOP(f64_of_##lane)},

const tn_tile_lane_loops TN_LOOP(tn_tile_lanes) = {
    .op = {[TN_LANE_U8] = WHOLE_ENTRIES(u8, 1),
           [TN_LANE_I8] = WHOLE_ENTRIES(i8, 1),
           [TN_LANE_I32] = WHOLE_ENTRIES(i32, 4),
           [TN_LANE_I64] = WHOLE_ENTRIES(i64, 8),
           [TN_LANE_F32] = {ENTRY(CONSTANT, fill_4)},
           [TN_LANE_F64] = {COMPARISON_ENTRIES(f64),
                            ENTRY(NEG, neg_f64),
                            ENTRY(ABS, abs_f64),
                            ENTRY(SIGN, sign_f64),
                            ENTRY(SQRT, sqrt_f64),
                            ENTRY(RSQRT, rsqrt_f64),
                            ENTRY(RECIPROCAL, reciprocal_f64),
                            ENTRY(FLOOR, floor_f64),
                            ENTRY(EXP, exp_f64),
                            ENTRY(LOG, log_f64),
                            ENTRY(TANH, tanh_f64),
                            ENTRY(SIGMOID, sigmoid_f64),
                            ENTRY(ERF, erf_f64),
                            FUNCTIONS ENTRY(FMOD, fmod_f64),
                            ENTRY(ADD, add_f64),
                            ENTRY(SUB, sub_f64),
                            ENTRY(MUL, mul_f64),
                            ENTRY(MAXIMUM, maximum_f64),
                            ENTRY(MINIMUM, minimum_f64),
                            ENTRY(DIV, div_f64),
                            ENTRY(WHERE, where_8),
                            ENTRY(CONSTANT, fill_8)}},
    .cast = {TN_EACH_LANE(CAST_ENTRIES)},
    .copy = {[TN_LANE_U8] = TN_LOOP(copy_1),
             [TN_LANE_I8] = TN_LOOP(copy_1),
             [TN_LANE_I32] = TN_LOOP(copy_4),
             [TN_LANE_I64] = TN_LOOP(copy_8),
             [TN_LANE_F32] = TN_LOOP(copy_4),
             [TN_LANE_F64] = TN_LOOP(copy_8)},
};
