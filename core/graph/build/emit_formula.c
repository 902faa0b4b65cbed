/* core/graph/build/emit_formula.c: formulas to nodes, by a stack machine over their postfix steps. */
#include "core/graph/build/emit_formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/config/options/option_value.h"
#include "tenon/ops.h"

/* The value of a part of a formula: a number known now, or scale * value. The scale is applied late, so that
 * `2 * x + 1` becomes one affine. */
typedef struct term {
  bool is_number;
  double number, scale;
  tn_val value;
} term;

typedef struct formula_emitter {
  tn_build *b;
  const tn_formula *formula;
  const void *attributes;
  int32_t dtype;                       /* of tensors made of numbers where no operand decides */
  tn_val operand[TN_FORMULA_OPERANDS]; /* widened from f16 and bf16; 0: not used yet */
  term *stack;
  int32_t n;
} formula_emitter;

/* ---- terms ---- */

static term term_of_number(double number) { return (term){.is_number = true, .number = number, .scale = 1}; }

static term term_of_value(tn_val value) { return (term){.scale = 1, .value = value}; }

static int32_t term_dtype(const formula_emitter *e, tn_val v) { return tn_val_type(e->b, v)->dtype; }

/* The term as a tensor; a number becomes a scalar of `dtype`, bool included. */
static tn_val term_tensor(const formula_emitter *e, term t, int32_t dtype) {
  if (t.is_number) return tn_scalar(e->b, dtype, t.number);
  if (t.scale == 1) return t.value;
  return t.scale == -1 ? tn_neg(e->b, t.value) : tn_affine(e->b, t.value, t.scale, 0);
}

static bool term_is_float(const formula_emitter *e, term t) {
  return !t.is_number && tn_dtype_is_float(term_dtype(e, t.value));
}

/* A number takes the dtype of the other side. */
static int32_t term_common_dtype(const formula_emitter *e, term x, term y) {
  return !x.is_number ? term_dtype(e, x.value) : !y.is_number ? term_dtype(e, y.value) : e->dtype;
}

static term term_binary(const formula_emitter *e, const char *op, term x, term y) {
  int32_t dtype = term_common_dtype(e, x, y);
  tn_val left = term_tensor(e, x, dtype), right = term_tensor(e, y, dtype);
  return term_of_value(tn_op2(e->b, op, left, right));
}

/* value + shift, in one affine with the pending scale. */
static term term_add_number(const formula_emitter *e, term t, double shift) {
  if (!term_is_float(e, t)) return term_binary(e, "add", t, term_of_number(shift));
  return term_of_value(tn_affine(e->b, t.value, t.scale, shift));
}

static term term_negate(const formula_emitter *e, term t) {
  if (t.is_number) return term_of_number(-t.number);
  if (!term_is_float(e, t)) return term_of_value(tn_neg(e->b, t.value));
  t.scale = -t.scale;
  return t;
}

static term term_add(const formula_emitter *e, term x, term y) {
  if (x.is_number && y.is_number) return term_of_number(x.number + y.number);
  if (y.is_number) return term_add_number(e, x, y.number);
  if (x.is_number) return term_add_number(e, y, x.number);
  return term_binary(e, "add", x, y);
}

static term term_subtract(const formula_emitter *e, term x, term y) {
  if (x.is_number || y.is_number) return term_add(e, x, term_negate(e, y));
  return term_binary(e, "sub", x, y);
}

static term term_multiply(const formula_emitter *e, term x, term y) {
  if (x.is_number && y.is_number) return term_of_number(x.number * y.number);
  if (x.is_number) return term_multiply(e, y, x);
  if (!y.is_number || !term_is_float(e, x)) return term_binary(e, "mul", x, y);
  if (x.scale != 1) x = term_of_value(term_tensor(e, x, e->dtype));
  x.scale = y.number;
  return x;
}

/* Dividing by a power of two is multiplying by its inverse, exactly; other divisors keep the
 * rounding of a division. */
static term term_divide(const formula_emitter *e, term x, term y) {
  int exponent;
  if (x.is_number && y.is_number) return term_of_number(x.number / y.number);
  if (y.is_number && y.number != 0 && fabs(frexp(y.number, &exponent)) == 0.5)
    return term_multiply(e, x, term_of_number(1 / y.number));
  if (x.is_number && x.number == 1) return term_of_value(tn_reciprocal(e->b, term_tensor(e, y, e->dtype)));
  return term_binary(e, "div", x, y);
}

/* Small integer powers are products: exact for negative bases, and cheaper than pow. */
static term term_raise(const formula_emitter *e, term x, term y) {
  if (x.is_number && y.is_number) return term_of_number(pow(x.number, y.number));
  if (!y.is_number) return term_binary(e, "pow", x, y);
  x = term_of_value(term_tensor(e, x, e->dtype));
  if (y.number == 1) return x;
  if (y.number == 0.5) return term_of_value(tn_sqrt(e->b, x.value));
  if (y.number == -0.5) return term_of_value(tn_rsqrt(e->b, x.value));
  if (y.number == -1) return term_of_value(tn_reciprocal(e->b, x.value));
  tn_val square = y.number == 2 || y.number == 3 || y.number == 4 ? tn_mul(e->b, x.value, x.value) : 0;
  if (y.number == 2) return term_of_value(square);
  if (y.number == 3) return term_of_value(tn_mul(e->b, square, x.value));
  if (y.number == 4) return term_of_value(tn_mul(e->b, square, square));
  return term_binary(e, "pow", x, y);
}

static term term_compare(const formula_emitter *e, tn_formula_kind kind, term x, term y) {
  static const char *const op[] = {[TN_FORMULA_EQ] = "eq", [TN_FORMULA_NE] = "ne", [TN_FORMULA_LT] = "lt",
                                   [TN_FORMULA_LE] = "le", [TN_FORMULA_GT] = "gt", [TN_FORMULA_GE] = "ge"};
  if (!x.is_number || !y.is_number) return term_binary(e, op[kind], x, y);
  switch (kind) {
  case TN_FORMULA_EQ: return term_of_number(x.number == y.number);
  case TN_FORMULA_NE: return term_of_number(x.number != y.number);
  case TN_FORMULA_LT: return term_of_number(x.number < y.number);
  case TN_FORMULA_LE: return term_of_number(x.number <= y.number);
  case TN_FORMULA_GT: return term_of_number(x.number > y.number);
  default: return term_of_number(x.number >= y.number);
  }
}

static term term_not(const formula_emitter *e, term t) {
  if (t.is_number) return term_of_number(t.number == 0);
  return term_of_value(tn_not(e->b, t.value));
}

/* `and` and `or`: a side that is a number either decides or drops out. */
static term term_logic(const formula_emitter *e, const char *op, term x, term y) {
  bool decides = strcmp(op, "or") == 0;
  if (!x.is_number && !y.is_number) return term_binary(e, op, x, y);
  if (!x.is_number) return term_logic(e, op, y, x);
  return (x.number != 0) == decides ? term_of_number(decides) : y;
}

static term term_choose(const formula_emitter *e, term yes, term condition, term no) {
  if (condition.is_number) return condition.number != 0 ? yes : no;
  int32_t dtype = term_common_dtype(e, yes, no);
  tn_val x = term_tensor(e, yes, dtype), y = term_tensor(e, no, dtype);
  return term_of_value(tn_where(e->b, condition.value, x, y));
}

static term term_of_operand(formula_emitter *e, int32_t i) {
  if (e->operand[i] != 0) return term_of_value(e->operand[i]);
  tn_val v = tn_build_in(e->b, i);
  int32_t dtype = term_dtype(e, v);
  bool narrow = dtype == TN_F16 || dtype == TN_BF16;
  e->operand[i] = narrow ? tn_to_dtype(e->b, v, TN_F32) : v;
  return term_of_value(e->operand[i]);
}

static term term_of_option(const formula_emitter *e, const tn_option *o) {
  const tn_option_value value = tn_option_load(o, e->attributes);
  switch (o->type) {
  case TN_OPT_FLAG:
  case TN_OPT_ENUM:
  case TN_OPT_INT:
  case TN_OPT_SIZE: return term_of_number((double)value.integer);
  default: return term_of_number(value.real);
  }
}

/* ---- steps ---- */

/* Any op may be called, provided that it is pointwise. */
static tn_status formula_emit_call(formula_emitter *e, const tn_formula_step *s, const term *argument,
                                   term *result) {
  int32_t dtype = e->dtype;
  for (int32_t i = s->n - 1; i >= 0; i--)
    if (!argument[i].is_number && term_dtype(e, argument[i].value) != TN_BOOL)
      dtype = term_dtype(e, argument[i].value);
  tn_val in[TN_FORMULA_ARGUMENTS];
  for (int32_t i = 0; i < s->n; i++) in[i] = term_tensor(e, argument[i], dtype);
  char op[64];
  snprintf(op, sizeof op, "%.*s", (int)s->length, s->at);
  tn_op_begin(e->b, op);
  for (int32_t i = 0; i < s->n; i++) tn_op_arg(e->b, in[i]);
  tn_val v = tn_op_end(e->b);
  *result = term_of_value(v);
  if (v != 0 && tn_graph_maker(tn_builder_graph(e->b), v)->op->op_class != TN_CLASS_POINTWISE)
    return tn_formula_refuse(e->b, e->formula, s->at, "a pointwise op");
  return TN_OK;
}

/* The number of terms that a step pops. */
static int32_t formula_step_pops(const tn_formula_step *s) {
  switch (s->kind) {
  case TN_FORMULA_NUMBER:
  case TN_FORMULA_OPERAND:
  case TN_FORMULA_OPTION: return 0;
  case TN_FORMULA_CALL: return s->n;
  case TN_FORMULA_NEGATE:
  case TN_FORMULA_NOT: return 1;
  case TN_FORMULA_CHOOSE: return 3;
  default: return 2;
  }
}

static tn_status formula_emit_step(formula_emitter *e, const tn_formula_step *s) {
  term *t = e->stack + (e->n -= formula_step_pops(s)), made;
  tn_status status = TN_OK;
  switch (s->kind) {
  case TN_FORMULA_NUMBER: made = term_of_number(s->number); break;
  case TN_FORMULA_OPERAND: made = term_of_operand(e, s->n); break;
  case TN_FORMULA_OPTION: made = term_of_option(e, s->option); break;
  case TN_FORMULA_CALL: status = formula_emit_call(e, s, t, &made); break;
  case TN_FORMULA_NEGATE: made = term_negate(e, t[0]); break;
  case TN_FORMULA_NOT: made = term_not(e, t[0]); break;
  case TN_FORMULA_ADD: made = term_add(e, t[0], t[1]); break;
  case TN_FORMULA_SUB: made = term_subtract(e, t[0], t[1]); break;
  case TN_FORMULA_MUL: made = term_multiply(e, t[0], t[1]); break;
  case TN_FORMULA_DIV: made = term_divide(e, t[0], t[1]); break;
  case TN_FORMULA_POW: made = term_raise(e, t[0], t[1]); break;
  case TN_FORMULA_AND: made = term_logic(e, "and", t[0], t[1]); break;
  case TN_FORMULA_OR: made = term_logic(e, "or", t[0], t[1]); break;
  case TN_FORMULA_CHOOSE: made = term_choose(e, t[0], t[1], t[2]); break;
  default: made = term_compare(e, s->kind, t[0], t[1]); break;
  }
  e->stack[e->n++] = made;
  return status;
}

static tn_status formula_emit_steps(formula_emitter *e, term *result) {
  const tn_formula *f = e->formula;
  e->stack = tn_alloc(e->b, (size_t)f->stack * sizeof *e->stack);
  tn_status status = e->stack != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; i < f->n_steps && status == TN_OK; i++) status = formula_emit_step(e, &f->steps[i]);
  if (status == TN_OK) *result = e->stack[0];
  tn_release(e->b, e->stack);
  return status;
}

/* ---- the formula ---- */

/* The operands' broadcast dims, aligned at the last one, with the first float operand's dtype. Type inference
 * has checked that they fit. */
static tn_type formula_result_type(tn_build *b, int32_t n) {
  tn_type type = {n > 0 ? tn_val_type(b, tn_build_in(b, 0))->dtype : TN_F32, 0, {0}};
  for (int32_t i = 0; i < n; i++) {
    tn_type t = *tn_val_type(b, tn_build_in(b, i));
    if (tn_dtype_is_float(t.dtype) && !tn_dtype_is_float(type.dtype)) type.dtype = t.dtype;
    int32_t grow = t.rank - type.rank;
    if (grow > 0) {
      memmove(type.dims + grow, type.dims, (size_t)type.rank * sizeof *type.dims);
      for (int32_t k = 0; k < grow; k++) type.dims[k] = 1;
      type.rank = t.rank;
    }
    for (int32_t k = 0; k < t.rank; k++) {
      int64_t *dim = &type.dims[type.rank - t.rank + k];
      if (*dim == 1) *dim = t.dims[k];
    }
  }
  return type;
}

static tn_status formula_check_operands(tn_build *b, const tn_formula *f) {
  for (int32_t i = 0; i < f->n_operands; i++)
    if (tn_build_in(b, i) == 0)
      return tn_failf(b, TN_EINVAL,
                      "formula of op %s: operand %s is absent, but a formula needs all operands",
                      f->item->name, f->operands[i]);
  return TN_OK;
}

tn_status tn_formula_emit(tn_build *b, const tn_formula *formula, const void *attributes) {
  TN_TRY(tn_build_status(b));
  TN_TRY(formula_check_operands(b, formula));
  tn_type type = formula_result_type(b, formula->n_operands);
  bool narrow = type.dtype == TN_F16 || type.dtype == TN_BF16;
  formula_emitter e = {
      .b = b, .formula = formula, .attributes = attributes, .dtype = narrow ? TN_F32 : type.dtype};
  term result;
  TN_TRY(formula_emit_steps(&e, &result));
  tn_val y = term_tensor(&e, result, e.dtype);
  if (term_dtype(&e, y) != TN_BOOL) y = tn_to_dtype(b, y, type.dtype);
  if (!tn_type_same_dims(tn_val_type(b, y), &type)) y = tn_broadcast(b, y, type.rank, type.dims);
  tn_build_yield(b, 0, y);
  return tn_build_status(b);
}
