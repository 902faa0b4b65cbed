/* Pointwise instructions between registers: one loop each, over a tile, for every lane type. */
#include "backends/cpu/kernels/pointwise/program.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/vmath.h"
#include "backends/shared/saturate.h"

#define EACH(value)                                                                                          \
  TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) d[k] = (value);                                              \
  break

/* ---- floats ---- */

/* Functions of C's library. */
/* clang-format off */
#define CASE_OF_ONE(op, function, ...)     case TN_PW_FN_##op: EACH(function(a[k]));
#define CASE_OF_TWO(op, function, ...)     case TN_PW_FN_##op: EACH(function(a[k], b[k]));
#define CASE_OF_ONE_F32(op, function, ...) case TN_PW_FN_##op: EACH(function##f(a[k]));
#define CASE_OF_TWO_F32(op, function, ...) case TN_PW_FN_##op: EACH(function##f(a[k], b[k]));
/* clang-format on */

/* The larger one, NaN if either is. */
#define LARGER(x, y)  ((x) > (y) || (x) != (x) ? (x) : (y))
#define SMALLER(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

static TN_CPU_CLONES void compute_f32(const tn_pw_insn *insn, float *d, void *const *in, int64_t n) {
  const float *a = in[0], *b = in[1];
  const float scale = (float)insn->a, shift = (float)insn->b;
  switch (insn->op) {
  case TN_PW_NEG: EACH(-a[k]);
  case TN_PW_ABS: EACH(vm_abs(a[k]));
  case TN_PW_SIGN: EACH(a[k] != a[k] ? a[k] : (float)((a[k] > 0) - (a[k] < 0)));
  case TN_PW_EXP: EACH(vm_exp(a[k]));
  case TN_PW_LOG: EACH(vm_log(a[k]));
  case TN_PW_SQRT: EACH(sqrtf(a[k]));
  case TN_PW_RSQRT: EACH(1.0f / sqrtf(a[k]));
  case TN_PW_RECIPROCAL: EACH(1.0f / a[k]);
  case TN_PW_TANH: EACH(vm_tanh(a[k]));
  case TN_PW_SIGMOID: EACH(vm_sigmoid(a[k]));
  case TN_PW_ERF: EACH(vm_erf(a[k]));
  case TN_PW_FLOOR: EACH(floorf(a[k]));
  case TN_PW_ADD: EACH(a[k] + b[k]);
  case TN_PW_SUB: EACH(a[k] - b[k]);
  case TN_PW_MUL: EACH(a[k] * b[k]);
  case TN_PW_DIV: EACH(a[k] / b[k]);
  case TN_PW_MAXIMUM: EACH(LARGER(a[k], b[k]));
  case TN_PW_MINIMUM: EACH(SMALLER(a[k], b[k]));
  case TN_PW_FMOD:
    EACH(fmodf(a[k], b[k]));
    TN_FUNCTIONS_OF_ONE(CASE_OF_ONE_F32)
    TN_FUNCTIONS_OF_TWO(CASE_OF_TWO_F32)
  default: EACH(a[k] * scale + shift); /* TN_PW_AFFINE */
  }
}

static TN_CPU_CLONES void compute_f64(const tn_pw_insn *insn, double *d, void *const *in, int64_t n) {
  const double *a = in[0], *b = in[1];
  const double scale = insn->a, shift = insn->b;
  switch (insn->op) {
  case TN_PW_NEG: EACH(-a[k]);
  case TN_PW_ABS: EACH(fabs(a[k]));
  case TN_PW_SIGN: EACH(a[k] != a[k] ? a[k] : (double)((a[k] > 0) - (a[k] < 0)));
  case TN_PW_EXP: EACH(exp(a[k]));
  case TN_PW_LOG: EACH(log(a[k]));
  case TN_PW_SQRT: EACH(sqrt(a[k]));
  case TN_PW_RSQRT: EACH(1.0 / sqrt(a[k]));
  case TN_PW_RECIPROCAL: EACH(1.0 / a[k]);
  case TN_PW_TANH: EACH(tanh(a[k]));
  case TN_PW_SIGMOID: EACH((a[k] >= 0 ? 1.0 : exp(a[k])) / (1.0 + exp(-fabs(a[k]))));
  case TN_PW_ERF: EACH(erf(a[k]));
  case TN_PW_FLOOR: EACH(floor(a[k]));
  case TN_PW_ADD: EACH(a[k] + b[k]);
  case TN_PW_SUB: EACH(a[k] - b[k]);
  case TN_PW_MUL: EACH(a[k] * b[k]);
  case TN_PW_DIV: EACH(a[k] / b[k]);
  case TN_PW_MAXIMUM: EACH(LARGER(a[k], b[k]));
  case TN_PW_MINIMUM: EACH(SMALLER(a[k], b[k]));
  case TN_PW_FMOD:
    EACH(fmod(a[k], b[k]));
    TN_FUNCTIONS_OF_ONE(CASE_OF_ONE)
    TN_FUNCTIONS_OF_TWO(CASE_OF_TWO)
  default: EACH(a[k] * scale + shift); /* TN_PW_AFFINE */
  }
}

/* ---- whole numbers: they wrap, so sums are formed without sign; division truncates and gives 0
 * where there is no quotient ---- */

#define COMPUTE_WHOLE(name, INT, UINT)                                                                       \
  static TN_CPU_CLONES void name(const tn_pw_insn *insn, INT *d, void *const *in, int64_t n) {               \
    const INT *a = in[0], *b = in[1];                                                                        \
    switch (insn->op) {                                                                                      \
    case TN_PW_NEG: EACH(TN_OPPOSITE(a[k], INT, UINT));                                                      \
    case TN_PW_ABS: EACH(TN_SIZE_OF(a[k], INT, UINT));                                                       \
    case TN_PW_SIGN: EACH(TN_SIGN_OF(a[k], INT));                                                            \
    case TN_PW_ADD: EACH((INT)((UINT)a[k] + (UINT)b[k]));                                                    \
    case TN_PW_SUB: EACH((INT)((UINT)a[k] - (UINT)b[k]));                                                    \
    case TN_PW_MUL: EACH((INT)((UINT)a[k] * (UINT)b[k]));                                                    \
    case TN_PW_DIV: EACH(TN_QUOTIENT(a[k], b[k], INT, UINT));                                                \
    case TN_PW_FMOD: EACH(TN_REST(a[k], b[k], INT));                                                         \
    case TN_PW_AND: EACH(a[k] & b[k]);                                                                       \
    case TN_PW_OR: EACH(a[k] | b[k]);                                                                        \
    case TN_PW_XOR: EACH(a[k] ^ b[k]);                                                                       \
    case TN_PW_NOT: EACH(a[k] ^ 1); /* of bool */                                                            \
    case TN_PW_SHIFT_LEFT: EACH(TN_SHIFT_LEFT(a[k], b[k], INT, UINT));                                       \
    case TN_PW_SHIFT_RIGHT: EACH(TN_SHIFT_RIGHT(a[k], b[k], INT, UINT));                                     \
    case TN_PW_MAXIMUM: EACH(a[k] > b[k] ? a[k] : b[k]);                                                     \
    default: EACH(a[k] < b[k] ? a[k] : b[k]); /* TN_PW_MINIMUM */                                            \
    }                                                                                                        \
  }
#define COMPUTE_LANE(code, lane, INT, UINT) COMPUTE_WHOLE(compute_##lane, INT, UINT)
TN_WHOLE_LANES(COMPUTE_LANE)

/* ---- comparison and selection ---- */

#define COMPARE(name, LANE)                                                                                  \
  static TN_CPU_CLONES void name(const tn_pw_insn *insn, uint8_t *d, void *const *in, int64_t n) {           \
    const LANE *a = in[0], *b = in[1];                                                                       \
    switch (insn->op) {                                                                                      \
    case TN_PW_EQ: EACH(a[k] == b[k]);                                                                       \
    case TN_PW_NE: EACH(a[k] != b[k]);                                                                       \
    case TN_PW_LT: EACH(a[k] < b[k]);                                                                        \
    case TN_PW_LE: EACH(a[k] <= b[k]);                                                                       \
    case TN_PW_GT: EACH(a[k] > b[k]);                                                                        \
    case TN_PW_GE: EACH(a[k] >= b[k]);                                                                       \
    default: EACH(a[k] - a[k] == 0); /* TN_PW_IS_FINITE */                                                   \
    }                                                                                                        \
  }
#define COMPARE_LANE(code, lane, LANE, whole) COMPARE(compare_##lane, LANE)
TN_EACH_LANE(COMPARE_LANE)

/* Lanes of any type as bits. */
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

#define WHERE(name, LANE)                                                                                    \
  static TN_CPU_CLONES void name(LANE *d, void *const *in, int64_t n) {                                      \
    const uint8_t *c = in[0];                                                                                \
    const LANE *a = in[1], *b = in[2];                                                                       \
    TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) d[k] = c[k] ? a[k] : b[k];                                 \
  }
WHERE(where_1, uint8_t)
WHERE(where_4, word32)
WHERE(where_8, word64)

/* ---- conversion ---- */

#define CONVERT(name, FROM, TO, value)                                                                       \
  static TN_CPU_CLONES void name(const FROM *a, TO *d, int64_t n) {                                          \
    TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) d[k] = (TO)(value);                                        \
  }
#define WRAPPED(to, from, x)   (x)
#define SATURATED(to, from, x) tn_##to##_of_##from(x)
#define CONVERT_ALL(from, FROM, OF)                                                                          \
  CONVERT(cast_##from##_bool, FROM, uint8_t, a[k] != 0)                                                      \
  CONVERT(cast_##from##_u8, FROM, uint8_t, OF(u8, from, a[k]))                                               \
  CONVERT(cast_##from##_i8, FROM, int8_t, OF(i8, from, a[k]))                                                \
  CONVERT(cast_##from##_i32, FROM, int32_t, OF(i32, from, a[k]))                                             \
  CONVERT(cast_##from##_i64, FROM, int64_t, OF(i64, from, a[k]))                                             \
  CONVERT(cast_##from##_f32, FROM, float, a[k])                                                              \
  CONVERT(cast_##from##_f64, FROM, double, a[k])                                                             \
  static void cast_##from(int32_t dtype, const FROM *a, void *d, int64_t n) {                                \
    switch (dtype) {                                                                                         \
    case TN_BOOL: cast_##from##_bool(a, d, n); break;                                                        \
    case TN_U8: cast_##from##_u8(a, d, n); break;                                                            \
    case TN_I8: cast_##from##_i8(a, d, n); break;                                                            \
    case TN_I32: cast_##from##_i32(a, d, n); break;                                                          \
    case TN_I64: cast_##from##_i64(a, d, n); break;                                                          \
    case TN_F64: cast_##from##_f64(a, d, n); break;                                                          \
    default: cast_##from##_f32(a, d, n); break;                                                              \
    }                                                                                                        \
  }
#define CONVERT_WHOLE(code, lane, INT, UINT) CONVERT_ALL(lane, INT, WRAPPED)
TN_WHOLE_LANES(CONVERT_WHOLE)
CONVERT_ALL(f32, float, SATURATED)
CONVERT_ALL(f64, double, SATURATED)

/* The function BY_LANE of a lane. */
#define CASE_OF_LANE(code, lane, type, whole)                                                                \
  case TN_LANE_##code: BY_LANE(lane); break;

static void compute_cast(const tn_pw_insn *insn, void *out, const void *in, int64_t n) {
#define BY_LANE(lane) cast_##lane(insn->dtype, in, out, n)
  switch (insn->lane) { TN_EACH_LANE(CASE_OF_LANE) }
#undef BY_LANE
}

/* ---- one constant ---- */

static void compute_fill(const tn_pw_insn *insn, void *out, int64_t n) {
  uint32_t word;
  memcpy(&word, &insn->bits, sizeof word);
  switch (tn_lane_size(insn->lane)) {
  case 1: memset(out, *(const uint8_t *)&insn->bits, (size_t)n); break;
  case 4:
    for (int64_t k = 0; k < n; k++) ((word32 *)out)[k] = word;
    break;
  default:
    for (int64_t k = 0; k < n; k++) ((word64 *)out)[k] = insn->bits;
  }
}

/* ---- which of the above ---- */

static void compute_arithmetic(const tn_pw_insn *insn, void *out, void *const *in, int64_t n) {
#define BY_LANE(lane) compute_##lane(insn, out, in, n)
  switch (insn->lane) { TN_EACH_LANE(CASE_OF_LANE) }
#undef BY_LANE
}

static void compute_compare(const tn_pw_insn *insn, void *out, void *const *in, int64_t n) {
#define BY_LANE(lane) compare_##lane(insn, out, in, n)
  switch (insn->lane) { TN_EACH_LANE(CASE_OF_LANE) }
#undef BY_LANE
}

static void compute_where(const tn_pw_insn *insn, void *out, void *const *in, int64_t n) {
  switch (tn_lane_size(insn->lane)) {
  case 1: where_1(out, in, n); break;
  case 4: where_4(out, in, n); break;
  default: where_8(out, in, n); break;
  }
}

void tn_cpu_pw_compute(const tn_pw_insn *insn, void *out, void *const *in, int64_t n) {
  switch (insn->op) {
  case TN_PW_EQ:
  case TN_PW_NE:
  case TN_PW_LT:
  case TN_PW_LE:
  case TN_PW_GT:
  case TN_PW_GE:
  case TN_PW_IS_FINITE: compute_compare(insn, out, in, n); break;
  case TN_PW_WHERE: compute_where(insn, out, in, n); break;
  case TN_PW_CAST: compute_cast(insn, out, in[0], n); break;
  case TN_PW_ROUND: tn_cpu_round(insn->dtype, in[0], out, n); break;
  case TN_PW_CONSTANT: compute_fill(insn, out, n); break;
  default: compute_arithmetic(insn, out, in, n); break;
  }
}
