/* core/graph/build/emit_formula.c: formulas to nodes, by a stack machine over their postfix steps. */
#include "core/graph/build/emit_formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/config/options/option_value.h"
#include "core/config/options/options.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/term.h"
#include "core/graph/op/schema.h"
#include "core/plugin/kinds.h"
#include "tenon/ops.h"

typedef struct formula_emitter {
  tn_build *b;
  const tn_formula *formula;
  const void *attributes;
  tn_type type;                   /* of the results, but for bool */
  tn_terms terms;                 /* with the builder, b */
  bool widens;                    /* f16 and bf16 to f32 */
  int32_t n_in, n_out;            /* given values: operands, results, gradients of results */
  tn_val given[TN_FORMULA_NAMES]; /* 0: not used yet */
  tn_term_scalars scalars;
  tn_term named[TN_FORMULA_STATEMENTS];
  bool is_emitted[TN_FORMULA_STATEMENTS];
  tn_term *stack;
  int32_t n;
} formula_emitter;

static tn_val formula_given_value(const formula_emitter *e, int32_t i) {
  if (i < e->n_in) return tn_build_in(e->b, i);
  if (i < e->n_in + e->n_out) return tn_build_out(e->b, i - e->n_in);
  return tn_build_out_grad(e->b, i - e->n_in - e->n_out);
}

/* Without a gradient of a result the loss does not depend on it. */
static tn_term formula_given(formula_emitter *e, int32_t i) {
  if (e->given[i] != 0) return tn_term_of_value(e->given[i]);
  tn_val v = formula_given_value(e, i);
  if (v == 0 && (e->formula->partial || i >= e->n_in + e->n_out)) return tn_term_of_number(0);
  int32_t dtype = tn_val_type(e->b, v)->dtype;
  bool narrow = dtype == TN_F16 || dtype == TN_BF16;
  e->given[i] = narrow && e->widens ? tn_to_dtype(e->b, v, TN_F32) : v;
  return tn_term_of_value(e->given[i]);
}

static double formula_largest(int32_t dtype) {
  switch (dtype) {
  case TN_F16: return 65504;
  case TN_BF16: return 0x1.fep127;
  case TN_F32: return 0x1.fffffep127;
  case TN_I32: return INT32_MAX;
  case TN_I64: return 0x1p63;
  case TN_U8: return UINT8_MAX;
  case TN_I8: return INT8_MAX;
  default: return 0x1.fffffffffffffp1023;
  }
}

static tn_term formula_option(const formula_emitter *e, const tn_option *o) {
  const tn_option_value value = tn_option_load(o, e->attributes);
  switch (o->type) {
  case TN_OPT_FLAG:
  case TN_OPT_ENUM:
  case TN_OPT_INT:
  case TN_OPT_SIZE: return tn_term_of_number((double)value.integer);
  default: return tn_term_of_number(value.real);
  }
}

/* ---- calls ---- */

static void formula_set_attribute(const formula_emitter *e, const tn_op *op, tn_term t) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)t.attribute->length, t.attribute->at);
  const tn_option *option = op != NULL ? tn_options_find(&op->item, name) : NULL;
  bool real = option == NULL || option->type == TN_OPT_FLOAT || option->type == TN_OPT_DURATION;
  if (real)
    tn_op_set_float(e->b, name, t.number);
  else
    tn_op_set_int(e->b, name, (int64_t)t.number);
}

/* The dtype of arguments that are numbers: that of the first tensor which is not bool, and is not rounded
 * beside another. */
static int32_t formula_call_dtype(const formula_emitter *e, const tn_term *argument, int32_t n) {
  int32_t rounded = e->terms.dtype;
  for (int32_t i = 0; i < n; i++) {
    if (argument[i].is_number || tn_val_type(e->b, argument[i].value)->dtype == TN_BOOL) continue;
    if (!tn_term_rounds(&e->terms, argument[i])) return tn_val_type(e->b, argument[i].value)->dtype;
    rounded = TN_F64;
  }
  return rounded;
}

static const tn_op *formula_called_op(const formula_emitter *e, const tn_formula_step *s, char name[64]) {
  const tn_graph *g = tn_builder_graph(e->b);
  const tn_op_def *def = NULL;
  snprintf(name, 64, "%.*s", (int)s->length, s->at);
  if (tn_op_table_find(g->ops, g->env, name, &def) == TN_OK) return def->op;
  tn_error_clear(g->env);
  return NULL;
}

/* Any op may be called, provided that it is pointwise, unless the formula calls others, too. */
static tn_status formula_emit_call(formula_emitter *e, const tn_formula_step *s, const tn_term *argument,
                                   tn_term *result) {
  tn_val in[TN_FORMULA_ARGUMENTS];
  char name[64];
  const tn_op *op = formula_called_op(e, s, name);
  if (op != NULL && op->op_class != TN_CLASS_POINTWISE && !e->formula->calls_any)
    return tn_formula_refuse(e->b, e->formula, s->at, "a pointwise op");
  int32_t dtype = formula_call_dtype(e, argument, s->n), n = 0;
  for (int32_t i = 0; i < s->n; i++) {
    if (argument[i].attribute != NULL && !argument[i].is_number)
      return tn_formula_refuse(e->b, e->formula, argument[i].attribute->at,
                               "an attribute that is known while compiling");
    if (argument[i].attribute == NULL)
      in[n++] = tn_term_tensor(&e->terms, tn_term_round(&e->terms, argument[i], dtype), dtype);
  }
  tn_op_begin(e->b, name);
  for (int32_t i = 0; i < n; i++) tn_op_arg(e->b, in[i]);
  for (int32_t i = 0; i < s->n; i++)
    if (argument[i].attribute != NULL) formula_set_attribute(e, op, argument[i]);
  *result = tn_term_of_value(tn_op_end(e->b));
  return TN_OK;
}

/* ---- rounding ---- */

/* 8 bits of mantissa and a small exponent: f16 and bf16 have the number. */
static bool formula_is_short(double number) {
  int exponent;
  double mantissa = frexp(number, &exponent) * 256;
  return !isfinite(number) || (mantissa == trunc(mantissa) && exponent > -14 && exponent < 15);
}

/* Whether a text rounds more than once, so that f16 and bf16 lose digits between its steps. */
static bool formula_rounds(const formula_emitter *e) {
  int32_t n = 0;
  char name[64];
  for (int32_t i = 0; i < e->formula->n_steps; i++) {
    const tn_formula_step *s = &e->formula->steps[i];
    switch (s->kind) {
    case TN_FORMULA_NUMBER: n += formula_is_short(s->number) ? 0 : 2; break;
    case TN_FORMULA_OPTION: n += 2; break;
    case TN_FORMULA_CALL: {
      const tn_op *op = formula_called_op(e, s, name);
      n += op == NULL || (op->flags & TN_OP_EXACT) == 0;
      break;
    }
    case TN_FORMULA_ADD:
    case TN_FORMULA_SUB:
    case TN_FORMULA_MUL:
    case TN_FORMULA_DIV: n++; break;
    case TN_FORMULA_POW: n += 2; break;
    default: break;
    }
  }
  return n > 1;
}

/* ---- steps ---- */

static tn_status formula_emit_statement(formula_emitter *e, int32_t i);

static tn_status formula_emit_named(formula_emitter *e, int32_t i, tn_term *result) {
  if (!e->is_emitted[i]) TN_TRY(formula_emit_statement(e, i));
  *result = e->named[i];
  return TN_OK;
}

static tn_status formula_emit_step(formula_emitter *e, const tn_formula_step *s) {
  tn_term *t = e->stack + (e->n -= tn_formula_step_pops(s)), made = {.scale = 1};
  tn_status status = TN_OK;
  switch (s->kind) {
  case TN_FORMULA_NUMBER: made = tn_term_of_number(s->number); break;
  case TN_FORMULA_LARGEST: made = tn_term_of_number(formula_largest(e->type.dtype)); break;
  case TN_FORMULA_WHOLE: made = tn_term_of_number(!tn_dtype_is_float(e->type.dtype)); break;
  case TN_FORMULA_GIVEN: made = formula_given(e, s->n); break;
  case TN_FORMULA_NAMED: status = formula_emit_named(e, s->n, &made); break;
  case TN_FORMULA_OPTION: made = formula_option(e, s->option); break;
  case TN_FORMULA_ATTRIBUTE: made = t[0], made.attribute = s; break;
  case TN_FORMULA_CALL: status = formula_emit_call(e, s, t, &made); break;
  case TN_FORMULA_NEGATE: made = tn_term_negate(&e->terms, t[0]); break;
  case TN_FORMULA_NOT: made = tn_term_not(&e->terms, t[0]); break;
  case TN_FORMULA_ADD: made = tn_term_add(&e->terms, t[0], t[1]); break;
  case TN_FORMULA_SUB: made = tn_term_subtract(&e->terms, t[0], t[1]); break;
  case TN_FORMULA_MUL: made = tn_term_multiply(&e->terms, t[0], t[1]); break;
  case TN_FORMULA_DIV: made = tn_term_divide(&e->terms, t[0], t[1]); break;
  case TN_FORMULA_POW: made = tn_term_raise(&e->terms, t[0], t[1]); break;
  case TN_FORMULA_AND: made = tn_term_logic(&e->terms, "and", t[0], t[1]); break;
  case TN_FORMULA_OR: made = tn_term_logic(&e->terms, "or", t[0], t[1]); break;
  case TN_FORMULA_CHOOSE: made = tn_term_choose(&e->terms, t[1], t[0], t[2]); break;
  default:
    made = tn_term_compare(&e->terms, (tn_term_comparison)(s->kind - TN_FORMULA_EQ), t[0], t[1]);
    break;
  }
  e->stack[e->n++] = made;
  return status;
}

/* The steps that IF and ELSE leave out, where the condition is a number: a number takes the place of what
 * they would have made. */
static int32_t formula_skip(formula_emitter *e, const tn_formula_step *s) {
  const tn_term *condition = &e->stack[e->n - (s->kind == TN_FORMULA_IF ? 1 : 2)];
  if (!condition->is_number || (condition->number != 0) != (s->kind == TN_FORMULA_ELSE)) return 0;
  e->stack[e->n++] = tn_term_of_number(0);
  return s->n;
}

static tn_status formula_emit_statement(formula_emitter *e, int32_t i) {
  const tn_formula_statement *statement = &e->formula->statements[i];
  const tn_formula_step *steps = e->formula->steps + statement->first;
  for (int32_t k = 0; k < statement->n; k++) {
    if (steps[k].kind == TN_FORMULA_IF || steps[k].kind == TN_FORMULA_ELSE)
      k += formula_skip(e, &steps[k]);
    else
      TN_TRY(formula_emit_step(e, &steps[k]));
  }
  e->named[i] = e->stack[--e->n];
  e->is_emitted[i] = true;
  return tn_build_status(e->b);
}

/* ---- the formula ---- */

/* The operands' broadcast dims, aligned at the last one, with the first float operand's dtype. Type inference
 * has checked that they fit. */
static tn_type formula_result_type(tn_build *b, int32_t n) {
  tn_type type = {n > 0 ? tn_val_type(b, tn_build_in(b, 0))->dtype : TN_F32, 0, {0}};
  for (int32_t i = 0; i < n; i++) {
    tn_type t = *tn_val_type(b, tn_build_in(b, i));
    if (tn_build_in(b, i) == 0) continue;
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
  for (int32_t i = 0; i < f->n_given && !f->partial; i++)
    if (tn_build_in(b, i) == 0)
      return tn_failf(b, TN_EINVAL,
                      "formula of %s %s: operand %s is absent, but a formula needs all operands",
                      tn_kind_name(f->item->kind), f->item->name, f->given[i]);
  return TN_OK;
}

/* A comparison for a result of floats is 0 or 1. */
static void formula_yield(formula_emitter *e, int32_t i) {
  int32_t target = e->formula->statements[i].target, dtype = e->formula->dtypes[target];
  tn_val v = tn_term_tensor(&e->terms, e->named[i], dtype == TN_BOOL ? TN_BOOL : e->terms.dtype);
  v = tn_to_dtype(e->b, v, dtype == TN_ANY ? e->type.dtype : dtype);
  bool scalar = e->formula->scalars != NULL && e->formula->scalars[target];
  if (!scalar && !tn_type_same_dims(tn_val_type(e->b, v), &e->type))
    v = tn_broadcast(e->b, v, e->type.rank, e->type.dims);
  tn_build_yield(e->b, target, v);
}

static void formula_yield_gradient(formula_emitter *e, int32_t i) {
  int32_t operand = e->formula->statements[i].target;
  tn_type type = *tn_val_type(e->b, tn_build_in(e->b, operand));
  tn_val v = tn_term_tensor(&e->terms, e->named[i], e->terms.dtype);
  if (!tn_type_same_dims(tn_val_type(e->b, v), &e->type))
    v = tn_broadcast(e->b, v, e->type.rank, e->type.dims);
  tn_build_yield(e->b, operand, tn_to_dtype(e->b, tn_sum_to(e->b, v, &type), type.dtype));
}

static tn_status formula_emit_targets(formula_emitter *e, bool gradient) {
  const tn_formula *f = e->formula;
  bool chosen = gradient || f->partial;
  e->type = formula_result_type(e->b, e->n_in);
  bool narrow = e->type.dtype == TN_F16 || e->type.dtype == TN_BF16;
  e->widens = narrow && formula_rounds(e);
  e->terms = (tn_terms){e->b, e->widens ? TN_F32 : e->type.dtype, &e->scalars, f->partial};
  for (int32_t i = 0; i < f->n_statements; i++) {
    int32_t target = f->statements[i].target;
    if (target < 0 || (chosen && !tn_build_wants_grad(e->b, target))) continue;
    if (!e->is_emitted[i]) TN_TRY(formula_emit_statement(e, i));
    if (gradient)
      formula_yield_gradient(e, i);
    else
      formula_yield(e, i);
  }
  return tn_build_status(e->b);
}

static tn_status formula_emit(formula_emitter *e, bool gradient) {
  TN_TRY(tn_build_status(e->b));
  e->stack = tn_alloc(e->b, (size_t)e->formula->stack * sizeof *e->stack);
  tn_status status = e->stack != NULL ? formula_emit_targets(e, gradient) : TN_ENOMEM;
  tn_release(e->b, e->stack);
  return status;
}

tn_status tn_formula_emit(tn_build *b, const tn_formula *formula, const void *attributes) {
  formula_emitter e = {.b = b, .formula = formula, .attributes = attributes, .n_in = formula->n_given};
  TN_TRY(tn_build_status(b));
  TN_TRY(formula_check_operands(b, formula));
  return formula_emit(&e, false);
}

tn_status tn_formula_emit_partial(tn_build *b, const tn_formula *formula, const void *attributes,
                                  const tn_val *given, const bool *want, tn_val *yielded) {
  tn_build_frame frame = *tn_builder_frame(b);
  frame.in = given;
  frame.n_in =
      formula->n_given > formula->n_targets ? formula->n_given : formula->n_targets; /* of want, too */
  frame.want = want;
  frame.yielded = yielded;
  frame.n_yield = formula->n_targets;
  tn_builder_push(b, &frame);
  tn_status status = tn_formula_emit(b, formula, attributes);
  if (status != TN_OK) tn_builder_fail(b, status);
  tn_builder_pop(b);
  return status;
}

tn_status tn_formula_emit_gradient(tn_build *b, const tn_formula *formula, const void *attributes) {
  formula_emitter e = {.b = b, .formula = formula, .attributes = attributes, .n_in = formula->n_targets};
  e.n_out = (formula->n_given - e.n_in) / 2;
  return formula_emit(&e, true);
}
