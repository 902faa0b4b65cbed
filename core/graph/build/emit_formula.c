/* core/graph/build/emit_formula.c: formulas to nodes, by a stack machine over their postfix steps. */
#include "core/graph/build/emit_formula.h"
#include "core/graph/build/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/config/options/option_value.h"
#include "tenon/ops.h"

typedef struct formula_emitter {
  tn_terms terms; /* with the builder, b */
  tn_build *b;
  const tn_formula *formula;
  const void *attributes;
  tn_val operand[TN_FORMULA_OPERANDS]; /* widened from f16 and bf16; 0: not used yet */
  tn_term *stack;
  int32_t n;
} formula_emitter;

static tn_term formula_operand(formula_emitter *e, int32_t i) {
  if (e->operand[i] != 0) return tn_term_of_value(e->operand[i]);
  tn_val v = tn_build_in(e->b, i);
  int32_t dtype = tn_val_type(e->b, v)->dtype;
  bool narrow = dtype == TN_F16 || dtype == TN_BF16;
  e->operand[i] = narrow ? tn_to_dtype(e->b, v, TN_F32) : v;
  return tn_term_of_value(e->operand[i]);
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

/* ---- steps ---- */

/* Any op may be called, provided that it is pointwise. */
static tn_status formula_emit_call(formula_emitter *e, const tn_formula_step *s, const tn_term *argument,
                                   tn_term *result) {
  int32_t dtype = e->terms.dtype;
  for (int32_t i = s->n - 1; i >= 0; i--)
    if (!argument[i].is_number && tn_val_type(e->b, argument[i].value)->dtype != TN_BOOL)
      dtype = tn_val_type(e->b, argument[i].value)->dtype;
  tn_val in[TN_FORMULA_ARGUMENTS];
  for (int32_t i = 0; i < s->n; i++) in[i] = tn_term_tensor(&e->terms, argument[i], dtype);
  char op[64];
  snprintf(op, sizeof op, "%.*s", (int)s->length, s->at);
  tn_op_begin(e->b, op);
  for (int32_t i = 0; i < s->n; i++) tn_op_arg(e->b, in[i]);
  tn_val v = tn_op_end(e->b);
  *result = tn_term_of_value(v);
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
  tn_term *t = e->stack + (e->n -= formula_step_pops(s)), made;
  tn_status status = TN_OK;
  switch (s->kind) {
  case TN_FORMULA_NUMBER: made = tn_term_of_number(s->number); break;
  case TN_FORMULA_OPERAND: made = formula_operand(e, s->n); break;
  case TN_FORMULA_OPTION: made = formula_option(e, s->option); break;
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
  case TN_FORMULA_CHOOSE: made = tn_term_choose(&e->terms, t[0], t[1], t[2]); break;
  default:
    made = tn_term_compare(&e->terms, (tn_term_comparison)(s->kind - TN_FORMULA_EQ), t[0], t[1]);
    break;
  }
  e->stack[e->n++] = made;
  return status;
}

static tn_status formula_emit_steps(formula_emitter *e, tn_term *result) {
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
      .terms = {b, narrow ? TN_F32 : type.dtype}, .b = b, .formula = formula, .attributes = attributes};
  tn_term result;
  TN_TRY(formula_emit_steps(&e, &result));
  tn_val y = tn_term_tensor(&e.terms, result, e.terms.dtype);
  if (tn_val_type(b, y)->dtype != TN_BOOL) y = tn_to_dtype(b, y, type.dtype);
  if (!tn_type_same_dims(tn_val_type(b, y), &type)) y = tn_broadcast(b, y, type.rank, type.dims);
  tn_build_yield(b, 0, y);
  return tn_build_status(b);
}
