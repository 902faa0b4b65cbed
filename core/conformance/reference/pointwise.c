/* core/conformance/reference/pointwise.c: pointwise ops of the reference. */
#include <math.h>

#include "core/conformance/reference/reference.h"
#include "tenon/attributes.h"
#include "tenon/plugin/functions.h"
#include "tenon/random.h"

/* ---- arithmetic ---- */

static double reference_sign_of(double x) { return x != x ? x : (x > 0) - (x < 0); }
static double reference_larger(double x, double y) { return x != x || x > y ? x : y; }
static double reference_smaller(double x, double y) { return x != x || x < y ? x : y; }

/* Arithmetic of whole numbers wraps around; that of i64 is drawn from small ones. */
static double wrap_integer(int32_t dtype, double v) {
  switch (dtype) {
  case TN_U8: return (double)(uint8_t)(int64_t)v;
  case TN_I8: return (double)(int8_t)(int64_t)v;
  case TN_I32: return (double)(int32_t)(int64_t)v;
  default: return v;
  }
}

/* The bits of a whole number, and those by which y shifts it. */
static double reference_bits(const tn_reference_call *c) {
  return 8 * (double)tn_dtype_size(c->out[0]->dtype);
}
static double reference_shift(const tn_reference_call *c, double y) {
  double most = reference_bits(c);
  return y < 0 || y > most ? most : y;
}

#define REFERENCE_UNARY(name, value)                                                                         \
  static void reference_##name(const tn_reference_call *c) {                                                 \
    for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {                                                 \
      double x = c->x[0][i];                                                                                 \
      c->y[0][i] = wrap_integer(c->out[0]->dtype, value);                                                    \
    }                                                                                                        \
  }
REFERENCE_UNARY(neg, -x)
REFERENCE_UNARY(abs, fabs(x))
REFERENCE_UNARY(sign, reference_sign_of(x))
REFERENCE_UNARY(exp, exp(x))
REFERENCE_UNARY(log, log(x))
REFERENCE_UNARY(sqrt, sqrt(x))
REFERENCE_UNARY(rsqrt, 1 / sqrt(x))
REFERENCE_UNARY(reciprocal, 1 / x)
REFERENCE_UNARY(tanh, tanh(x))
REFERENCE_UNARY(sigmoid, 1 / (1 + exp(-x)))
REFERENCE_UNARY(erf, erf(x))
REFERENCE_UNARY(floor, floor(x))
REFERENCE_UNARY(not, x == 0)
REFERENCE_UNARY(is_finite, isfinite(x) != 0)

#define REFERENCE_BINARY(name, value)                                                                        \
  static void reference_##name(const tn_reference_call *c) {                                                 \
    int64_t index[TN_MAX_RANK];                                                                              \
    for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {                                                 \
      tn_reference_unflatten(c->out[0], i, index);                                                           \
      double x = c->x[0][tn_reference_broadcast(c->in[0], index, c->out[0]->rank)];                          \
      double y = c->x[1][tn_reference_broadcast(c->in[1], index, c->out[0]->rank)];                          \
      c->y[0][i] = wrap_integer(c->out[0]->dtype, value);                                                    \
    }                                                                                                        \
  }
REFERENCE_BINARY(add, x + y)
REFERENCE_BINARY(sub, x - y)
REFERENCE_BINARY(mul, x *y)
REFERENCE_BINARY(div, x / y)
REFERENCE_BINARY(maximum, reference_larger(x, y))
REFERENCE_BINARY(minimum, reference_smaller(x, y))
REFERENCE_BINARY(eq, x == y)
REFERENCE_BINARY(ne, x != y)
REFERENCE_BINARY(lt, x < y)
REFERENCE_BINARY(le, x <= y)
REFERENCE_BINARY(gt, x > y)
REFERENCE_BINARY(ge, x >= y)
REFERENCE_BINARY(and, x != 0 && y != 0)
REFERENCE_BINARY(or, x != 0 || y != 0)
REFERENCE_BINARY(bitwise_and, (double)((int64_t)x &(int64_t)y))
REFERENCE_BINARY(bitwise_or, (double)((int64_t)x | (int64_t)y))
REFERENCE_BINARY(bitwise_xor, (double)((int64_t)x ^ (int64_t)y))
REFERENCE_BINARY(shift_left,
                 y < 0 || y >= reference_bits(c) ? 0 : (double)(int64_t)((uint64_t)(int64_t)x << (int)y))
REFERENCE_BINARY(shift_right, floor(ldexp(x, -(int)reference_shift(c, y))))
REFERENCE_BINARY(quotient, y == 0 ? 0 : trunc(x / y))
REFERENCE_BINARY(fmod, y == 0 && !tn_dtype_is_float(c->out[0]->dtype) ? 0 : fmod(x, y))

/* Functions of C's library. */
#define REFERENCE_FUNCTION_OF_ONE(op, function, ...) REFERENCE_UNARY(op, function(x))
#define REFERENCE_FUNCTION_OF_TWO(op, function, ...) REFERENCE_BINARY(op, function(x, y))
TN_FUNCTIONS_OF_ONE(REFERENCE_FUNCTION_OF_ONE)
TN_FUNCTIONS_OF_TWO(REFERENCE_FUNCTION_OF_TWO)

static void reference_where(const tn_reference_call *c) {
  int64_t index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    tn_reference_unflatten(c->out[0], i, index);
    int32_t rank = c->out[0]->rank, k = c->x[0][tn_reference_broadcast(c->in[0], index, rank)] != 0 ? 1 : 2;
    c->y[0][i] = c->x[k][tn_reference_broadcast(c->in[k], index, rank)];
  }
}

static void reference_affine(const tn_reference_call *c) {
  const tn_affine_attributes *a = c->attributes;
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) c->y[0][i] = a->scale * c->x[0][i] + a->shift;
}

/* Whole numbers wrap to whole numbers; floats become the nearest one. */
static void reference_cast(const tn_reference_call *c) {
  int32_t to = c->out[0]->dtype;
  bool wraps = !tn_dtype_is_float(c->in[0]->dtype);
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++)
    c->y[0][i] = tn_reference_round(to, wraps ? wrap_integer(to, c->x[0][i]) : c->x[0][i]);
}

/* ---- fills ---- */

static void reference_full(const tn_reference_call *c) {
  const tn_full_attributes *a = c->attributes;
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) c->y[0][i] = tn_reference_round(a->dtype, a->value);
}

static void reference_iota(const tn_reference_call *c) {
  const tn_iota_attributes *a = c->attributes;
  int64_t index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    tn_reference_unflatten(c->out[0], i, index);
    c->y[0][i] = tn_reference_round(a->dtype, (double)index[tn_reference_axis(a->axis, c->out[0])]);
  }
}

static void reference_broadcast(const tn_reference_call *c) {
  int64_t index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    tn_reference_unflatten(c->out[0], i, index);
    c->y[0][i] = c->x[0][tn_reference_broadcast(c->in[0], index, c->out[0]->rank)];
  }
}

static void reference_spread(const tn_reference_call *c) {
  const tn_spread_attributes *a = c->attributes;
  for (int64_t i = 0; i < a->count; i++)
    for (int64_t r = 0; r < a->starts.n; r++)
      if (a->starts.v[r] <= i) c->y[0][i] = c->x[0][a->index.v[r]];
}

/* ---- random numbers ---- */

/* The index of element i in the global batch, after the elements of earlier blocks. */
static int64_t reference_global_index(const tn_reference_call *c, int64_t i) {
  int64_t block = c->n_in > 1 && c->x[1] != NULL ? (int64_t)c->x[1][0] : 0;
  return block * tn_type_count(c->out[0]) + i;
}

static float reference_uniform_at(const tn_reference_call *c, int64_t i) {
  const tn_random_attributes *a = c->attributes;
  tn_philox words = tn_philox_at((uint64_t)a->stream, (uint64_t)(int64_t)c->x[0][0], (uint64_t)i / 4);
  return tn_uniform_of(words.v[i % 4]);
}

static void reference_random_uniform(const tn_reference_call *c) {
  const tn_random_attributes *a = c->attributes;
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++)
    c->y[0][i] = tn_reference_round(
        a->dtype, a->a + (a->b - a->a) * (double)reference_uniform_at(c, reference_global_index(c, i)));
}

static void reference_random_normal(const tn_reference_call *c) {
  const tn_random_attributes *a = c->attributes;
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    int64_t at = reference_global_index(c, i);
    double u0 = reference_uniform_at(c, at / 2 * 2), u1 = reference_uniform_at(c, at / 2 * 2 + 1);
    double r = sqrt(-2 * log(1 - u0)), angle = 2 * M_PI * u1;
    c->y[0][i] = tn_reference_round(a->dtype, a->a + a->b * r * (at % 2 == 0 ? cos(angle) : sin(angle)));
  }
}

#define ENTRY(op, ...) TN_REFERENCE_OP(op),
const tn_reference_op tn_reference_pointwise_ops[] = {TN_FUNCTIONS_OF_ONE(ENTRY) TN_FUNCTIONS_OF_TWO(ENTRY)
                                                          TN_REFERENCE_OP(neg),
                                                      TN_REFERENCE_OP(abs),
                                                      TN_REFERENCE_OP(sign),
                                                      TN_REFERENCE_OP(exp),
                                                      TN_REFERENCE_OP(log),
                                                      TN_REFERENCE_OP(sqrt),
                                                      TN_REFERENCE_OP(rsqrt),
                                                      TN_REFERENCE_OP(reciprocal),
                                                      TN_REFERENCE_OP(tanh),
                                                      TN_REFERENCE_OP(sigmoid),
                                                      TN_REFERENCE_OP(erf),
                                                      TN_REFERENCE_OP(floor),
                                                      TN_REFERENCE_OP(not ),
                                                      TN_REFERENCE_OP(is_finite),
                                                      TN_REFERENCE_OP(add),
                                                      TN_REFERENCE_OP(sub),
                                                      TN_REFERENCE_OP(mul),
                                                      TN_REFERENCE_OP(div),
                                                      TN_REFERENCE_OP(maximum),
                                                      TN_REFERENCE_OP(minimum),
                                                      TN_REFERENCE_OP(eq),
                                                      TN_REFERENCE_OP(ne),
                                                      TN_REFERENCE_OP(lt),
                                                      TN_REFERENCE_OP(le),
                                                      TN_REFERENCE_OP(gt),
                                                      TN_REFERENCE_OP(ge),
                                                      TN_REFERENCE_OP(and),
                                                      TN_REFERENCE_OP(or),
                                                      TN_REFERENCE_OP(bitwise_and),
                                                      TN_REFERENCE_OP(bitwise_or),
                                                      TN_REFERENCE_OP(bitwise_xor),
                                                      TN_REFERENCE_OP(shift_left),
                                                      TN_REFERENCE_OP(shift_right),
                                                      TN_REFERENCE_OP(quotient),
                                                      TN_REFERENCE_OP(fmod),
                                                      TN_REFERENCE_OP(where),
                                                      TN_REFERENCE_OP(affine),
                                                      TN_REFERENCE_OP(cast),
                                                      TN_REFERENCE_OP(full),
                                                      TN_REFERENCE_OP(iota),
                                                      TN_REFERENCE_OP(broadcast),
                                                      TN_REFERENCE_OP(spread),
                                                      TN_REFERENCE_OP(random_uniform),
                                                      TN_REFERENCE_OP(random_normal),
                                                      {NULL, NULL}};
