/* core/graph/build/term.c: arithmetic on terms. */
#include "core/graph/build/term.h"

#include <math.h>
#include <string.h>

#include "tenon/ops.h"

tn_term tn_term_of_number(double number) {
  return (tn_term){.is_number = true, .number = number, .scale = 1};
}

tn_term tn_term_of_value(tn_val value) { return (tn_term){.scale = 1, .value = value}; }

static int32_t term_dtype(const tn_terms *e, tn_val v) { return tn_val_type(e->b, v)->dtype; }

static tn_val term_scalar(const tn_terms *e, int32_t dtype, double number) {
  tn_term_scalars *s = e->scalars;
  for (int32_t i = 0; s != NULL && i < s->n; i++)
    if (s->v[i].dtype == dtype && s->v[i].number == number && signbit(s->v[i].number) == signbit(number))
      return s->v[i].value;
  tn_val v = tn_scalar(e->b, dtype, number);
  if (s != NULL && s->n < TN_TERM_SCALARS) {
    s->v[s->n].dtype = dtype;
    s->v[s->n].number = number;
    s->v[s->n++].value = v;
  }
  return v;
}

tn_val tn_term_tensor(const tn_terms *e, tn_term t, int32_t dtype) {
  if (t.is_number) return term_scalar(e, dtype, t.number);
  if (t.scale == 1) return t.value;
  return t.scale == -1 ? tn_neg(e->b, t.value) : tn_affine(e->b, t.value, t.scale, 0);
}

static bool term_is_float(const tn_terms *e, tn_term t) {
  return !t.is_number && tn_dtype_is_float(term_dtype(e, t.value));
}

static int32_t term_common_dtype(const tn_terms *e, tn_term x, tn_term y) {
  return !x.is_number ? term_dtype(e, x.value) : !y.is_number ? term_dtype(e, y.value) : e->dtype;
}

bool tn_term_rounds(const tn_terms *e, tn_term t) {
  if (!e->rounds_scalars || t.is_number) return false;
  return tn_val_type(e->b, t.value)->dtype == TN_F64 && tn_val_type(e->b, t.value)->rank == 0;
}

tn_term tn_term_round(const tn_terms *e, tn_term t, int32_t dtype) {
  if (dtype == TN_F64 || dtype == TN_BOOL || !tn_term_rounds(e, t)) return t;
  return tn_term_of_value(tn_to_dtype(e->b, tn_term_tensor(e, t, TN_F64), dtype));
}

static tn_term term_round_beside(const tn_terms *e, tn_term x, tn_term y) {
  return y.is_number ? x : tn_term_round(e, x, term_dtype(e, y.value));
}

tn_term tn_term_binary(const tn_terms *e, const char *op, tn_term x, tn_term y) {
  x = term_round_beside(e, x, y);
  y = term_round_beside(e, y, x);
  int32_t dtype = term_common_dtype(e, x, y);
  tn_val left = tn_term_tensor(e, x, dtype), right = tn_term_tensor(e, y, dtype);
  return tn_term_of_value(tn_op2(e->b, op, left, right));
}

/* value + shift, in one affine with the pending scale. */
static tn_term term_add_number(const tn_terms *e, tn_term t, double shift) {
  if (!term_is_float(e, t)) return tn_term_binary(e, "add", t, tn_term_of_number(shift));
  return tn_term_of_value(tn_affine(e->b, t.value, t.scale, shift));
}

tn_term tn_term_negate(const tn_terms *e, tn_term t) {
  if (t.is_number) return tn_term_of_number(-t.number);
  if (!term_is_float(e, t)) return tn_term_of_value(tn_neg(e->b, t.value));
  t.scale = -t.scale;
  return t;
}

tn_term tn_term_add(const tn_terms *e, tn_term x, tn_term y) {
  if (x.is_number && y.is_number) return tn_term_of_number(x.number + y.number);
  if (y.is_number) return term_add_number(e, x, y.number);
  if (x.is_number) return term_add_number(e, y, x.number);
  return tn_term_binary(e, "add", x, y);
}

/* A number of u8 has no opposite. */
tn_term tn_term_subtract(const tn_terms *e, tn_term x, tn_term y) {
  if (!x.is_number && y.is_number && term_dtype(e, x.value) == TN_U8) return tn_term_binary(e, "sub", x, y);
  if (x.is_number || y.is_number) return tn_term_add(e, x, tn_term_negate(e, y));
  return tn_term_binary(e, "sub", x, y);
}

tn_term tn_term_multiply(const tn_terms *e, tn_term x, tn_term y) {
  if (x.is_number && y.is_number) return tn_term_of_number(x.number * y.number);
  if (x.is_number) return tn_term_multiply(e, y, x);
  if (!y.is_number || !term_is_float(e, x)) return tn_term_binary(e, "mul", x, y);
  if (x.scale != 1) x = tn_term_of_value(tn_term_tensor(e, x, e->dtype));
  x.scale = y.number;
  return x;
}

/* Dividing by a power of two is multiplying by its inverse, exactly; other divisors keep the
 * rounding of a division. */
tn_term tn_term_divide(const tn_terms *e, tn_term x, tn_term y) {
  int exponent;
  if (x.is_number && y.is_number) return tn_term_of_number(x.number / y.number);
  if (y.is_number && y.number != 0 && term_is_float(e, x) && fabs(frexp(y.number, &exponent)) == 0.5)
    return tn_term_multiply(e, x, tn_term_of_number(1 / y.number));
  if (x.is_number && x.number == 1)
    return tn_term_of_value(tn_reciprocal(e->b, tn_term_tensor(e, y, e->dtype)));
  return tn_term_binary(e, "div", x, y);
}

/* Small integer powers are products: exact for negative bases, and cheaper than pow. */
tn_term tn_term_raise(const tn_terms *e, tn_term x, tn_term y) {
  if (x.is_number && y.is_number) return tn_term_of_number(pow(x.number, y.number));
  if (!y.is_number) return tn_term_binary(e, "pow", x, y);
  x = tn_term_of_value(tn_term_tensor(e, x, e->dtype));
  if (y.number == 1) return x;
  if (y.number == 0.5) return tn_term_of_value(tn_sqrt(e->b, x.value));
  if (y.number == -0.5) return tn_term_of_value(tn_rsqrt(e->b, x.value));
  if (y.number == -1) return tn_term_of_value(tn_reciprocal(e->b, x.value));
  tn_val square = y.number == 2 || y.number == 3 || y.number == 4 ? tn_mul(e->b, x.value, x.value) : 0;
  if (y.number == 2) return tn_term_of_value(square);
  if (y.number == 3) return tn_term_of_value(tn_mul(e->b, square, x.value));
  if (y.number == 4) return tn_term_of_value(tn_mul(e->b, square, square));
  return tn_term_binary(e, "pow", x, y);
}

tn_term tn_term_compare(const tn_terms *e, tn_term_comparison kind, tn_term x, tn_term y) {
  static const char *const op[] = {[TN_TERM_EQ] = "eq", [TN_TERM_NE] = "ne", [TN_TERM_LT] = "lt",
                                   [TN_TERM_LE] = "le", [TN_TERM_GT] = "gt", [TN_TERM_GE] = "ge"};
  if (!x.is_number || !y.is_number) return tn_term_binary(e, op[kind], x, y);
  switch (kind) {
  case TN_TERM_EQ: return tn_term_of_number(x.number == y.number);
  case TN_TERM_NE: return tn_term_of_number(x.number != y.number);
  case TN_TERM_LT: return tn_term_of_number(x.number < y.number);
  case TN_TERM_LE: return tn_term_of_number(x.number <= y.number);
  case TN_TERM_GT: return tn_term_of_number(x.number > y.number);
  default: return tn_term_of_number(x.number >= y.number);
  }
}

tn_term tn_term_not(const tn_terms *e, tn_term t) {
  if (t.is_number) return tn_term_of_number(t.number == 0);
  return tn_term_of_value(tn_not(e->b, t.value));
}

tn_term tn_term_logic(const tn_terms *e, const char *op, tn_term x, tn_term y) {
  bool decides = strcmp(op, "or") == 0;
  if (!x.is_number && !y.is_number) return tn_term_binary(e, op, x, y);
  if (!x.is_number) return tn_term_logic(e, op, y, x);
  return (x.number != 0) == decides ? tn_term_of_number(decides) : y;
}

tn_term tn_term_choose(const tn_terms *e, tn_term yes, tn_term condition, tn_term no) {
  if (condition.is_number) return condition.number != 0 ? yes : no;
  yes = term_round_beside(e, yes, no);
  no = term_round_beside(e, no, yes);
  int32_t dtype = term_common_dtype(e, yes, no);
  tn_val x = tn_term_tensor(e, yes, dtype), y = tn_term_tensor(e, no, dtype);
  return tn_term_of_value(tn_where(e->b, condition.value, x, y));
}
