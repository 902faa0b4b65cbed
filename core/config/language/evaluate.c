/* core/config/language/evaluate.c: evaluation of expressions. */
#include <math.h>
#include <string.h>

#include "core/config/language/values.h"

static tn_status eval_expr(const expr_evaluation *e, const tn_expr *expr, tn_value *value);

/* An operation on values of the model. */
static tn_status eval_operate(const expr_evaluation *e, int32_t op, const tn_value *operands, int32_t n,
                              tn_value *value) {
  return e->scope->calls->operate(e->scope->calls->context, op, operands, n, value);
}

/* `and` and `or` evaluate the right operand only if needed: `n != 0 and x / n > 1`. */
static tn_status eval_logic(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value side, sides[2];
  bool holds;
  TN_TRY(eval_expr(e, expr->items[0], &side));
  if (side.kind == TN_VALUE_TENSOR) {
    sides[0] = side;
    TN_TRY(eval_expr(e, expr->items[1], &sides[1]));
    return eval_operate(e, expr->op, sides, 2, value);
  }
  TN_TRY(tn_value_truth(e, &side, &holds));
  if (holds == (expr->op == TN_BIN_AND)) {
    TN_TRY(eval_expr(e, expr->items[1], &side));
    if (side.kind == TN_VALUE_TENSOR) { /* the left side does not decide */
      *value = side;
      return TN_OK;
    }
    TN_TRY(tn_value_truth(e, &side, &holds));
  }
  *value = tn_value_bool(holds);
  return TN_OK;
}

static tn_status eval_need_number(const expr_evaluation *e, int32_t op, const tn_value *value) {
  if (value->kind == TN_VALUE_NUMBER) return TN_OK;
  return tn_failf(e->handle, TN_EINVAL, "'%s' needs numbers, found '%s'", tn_operator_name(op),
                  tn_value_show(e, value));
}

static tn_status eval_binary(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value a, b;
  if (expr->op == TN_BIN_AND || expr->op == TN_BIN_OR) return eval_logic(e, expr, value);
  TN_TRY(eval_expr(e, expr->items[0], &a));
  TN_TRY(eval_expr(e, expr->items[1], &b));
  if (a.kind == TN_VALUE_TENSOR || b.kind == TN_VALUE_TENSOR)
    return eval_operate(e, expr->op, (tn_value[]){a, b}, 2, value);
  if (expr->op == TN_BIN_EQ || expr->op == TN_BIN_NE) {
    *value = tn_value_bool(tn_value_equal(&a, &b) == (expr->op == TN_BIN_EQ));
    return TN_OK;
  }
  TN_TRY(eval_need_number(e, expr->op, &a));
  TN_TRY(eval_need_number(e, expr->op, &b));
  return tn_value_arithmetic(e, expr->op, &a, &b, value);
}

static tn_status eval_unary(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value inner;
  bool holds;
  TN_TRY(eval_expr(e, expr->items[0], &inner));
  if (inner.kind == TN_VALUE_TENSOR) return eval_operate(e, expr->op, &inner, 1, value);
  if (expr->op == TN_UN_NOT) {
    TN_TRY(tn_value_truth(e, &inner, &holds));
    *value = tn_value_bool(!holds);
    return TN_OK;
  }
  /* "inf" is a word; only its negation needs the number. */
  if (inner.kind == TN_VALUE_TEXT && strcmp(inner.text, "inf") == 0) inner = tn_value_number(INFINITY, false);
  TN_TRY(eval_need_number(e, expr->op, &inner));
  *value = tn_value_number(inner.is_integer && inner.number == 0 ? 0 : -inner.number, inner.is_integer);
  return TN_OK;
}

static tn_status eval_word(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  for (int32_t i = 0; i < e->scope->n; i++)
    if (strcmp(e->scope->names[i], expr->word) == 0) {
      *value = e->scope->values[i];
      return TN_OK;
    }
  if (e->scope->calls != NULL) return e->scope->calls->name(e->scope->calls->context, expr->word, value);
  if (e->scope->word != NULL) e->scope->word(e->scope->context, expr->word);
  *value = (tn_value){.kind = TN_VALUE_TEXT, .text = expr->word};
  return TN_OK;
}

/* Of values of the model both sides are computed, and chosen from for each element. */
static tn_status eval_choice(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value sides[3];
  bool holds;
  TN_TRY(eval_expr(e, expr->items[1], &sides[1]));
  if (sides[1].kind != TN_VALUE_TENSOR) {
    TN_TRY(tn_value_truth(e, &sides[1], &holds));
    return eval_expr(e, expr->items[holds ? 0 : 2], value);
  }
  TN_TRY(eval_expr(e, expr->items[0], &sides[0]));
  TN_TRY(eval_expr(e, expr->items[2], &sides[2]));
  return eval_operate(e, TN_CHOOSE, sides, 3, value);
}

static tn_status eval_check_bytes(const expr_evaluation *e, size_t bytes) {
  if (bytes <= TN_VALUE_MOST_BYTES) return TN_OK;
  return tn_failf(
      e->handle, TN_EINVAL,
      "a value has more than %d bytes, expected at most %d; arguments that contain others several "
      "times make values this long",
      TN_VALUE_MOST_BYTES, TN_VALUE_MOST_BYTES);
}

static size_t eval_value_bytes(const tn_value *value) {
  enum { NUMBER_BYTES = 8 };
  if (value->kind == TN_VALUE_NUMBER || value->kind == TN_VALUE_TENSOR) return NUMBER_BYTES;
  return value->kind == TN_VALUE_LIST ? (size_t)value->bytes : strlen(value->text);
}

static tn_status eval_list(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value *items = tn_arena_alloc(e->arena, tn_size_mul((size_t)expr->n_items, sizeof(*items)));
  if (items == NULL) return TN_ENOMEM;
  size_t bytes = 2;
  for (int32_t i = 0; i < expr->n_items; i++) {
    TN_TRY(eval_expr(e, expr->items[i], &items[i]));
    bytes += eval_value_bytes(&items[i]) + 2;
    TN_TRY(eval_check_bytes(e, bytes));
  }
  *value =
      (tn_value){.kind = TN_VALUE_LIST, .items = items, .n_items = expr->n_items, .bytes = (int32_t)bytes};
  return TN_OK;
}

/* dims(REF): all dimensions as a list. */
static tn_status eval_dims(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  int32_t rank = e->scope->rank != NULL ? e->scope->rank(e->scope->context, expr->word) : -1;
  if (rank < 0)
    return tn_failf(e->handle, TN_EINVAL,
                    "dims(%s): there is no such value, expected the name of an earlier line or 'in'",
                    expr->word);
  tn_value *items = tn_arena_alloc(e->arena, ((size_t)rank + 1) * sizeof(*items));
  if (items == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < rank; i++) {
    int64_t size = 0;
    (void)e->scope->dim(e->scope->context, expr->word, i, &size);
    TN_TRY(tn_value_put_integer(e, size, false, &items[i]));
  }
  *value = (tn_value){.kind = TN_VALUE_LIST, .items = items, .n_items = rank, .bytes = 12 * rank + 2};
  return TN_OK;
}

static tn_status eval_dim(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value axis;
  int64_t size = 0;
  if (expr->n_items == 0) return eval_dims(e, expr, value);
  TN_TRY(eval_expr(e, expr->items[0], &axis));
  if (axis.kind != TN_VALUE_NUMBER || !axis.is_integer)
    return tn_failf(e->handle, TN_EINVAL, "dim(%s, %s): expected a whole number for the dimension",
                    expr->word, tn_value_show(e, &axis));
  if (e->scope->dim == NULL)
    return tn_failf(e->handle, TN_EINVAL, "dim(%s, %s): no sizes are known here", expr->word,
                    tn_value_show(e, &axis));
  if (!e->scope->dim(e->scope->context, expr->word, (int64_t)axis.number, &size))
    return tn_failf(e->handle, TN_EINVAL, "dim(%s, %s): there is no such value, or it has no such dimension",
                    expr->word, tn_value_show(e, &axis));
  return tn_value_put_integer(e, size, false, value);
}

/* Prints a call such as normal(0, 0.02) as text, with names of the scope replaced by their values. */
static tn_status eval_print_call(const expr_evaluation *e, const tn_expr *expr, tn_text *text) {
  tn_text_addf(text, "%s(", expr->word);
  for (int32_t i = 0; i < expr->n_args; i++) {
    const tn_call_arg *arg = &expr->args[i];
    tn_value value;
    TN_TRY(eval_expr(e, arg->value, &value));
    const char *printed = tn_value_text(e->arena, &value);
    if (printed == NULL) return TN_ENOMEM;
    tn_text_addf(text, "%s%s%s%s", i > 0 ? ", " : "", arg->name != NULL ? arg->name : "",
                 arg->name != NULL ? "=" : "", printed);
    TN_TRY(eval_check_bytes(e, text->n));
  }
  tn_text_add(text, ")");
  return TN_OK;
}

/* sqrt(4) is a number wherever an expression stands. */
static tn_status eval_function(const expr_evaluation *e, const tn_expr *expr, bool *found, tn_value *value) {
  double y;
  *found = false;
  if (expr->n_args != 1 || expr->args[0].name != NULL || !tn_number_function(expr->word, 1, &y)) return TN_OK;
  TN_TRY(eval_expr(e, expr->args[0].value, value));
  *found = value->kind == TN_VALUE_NUMBER && tn_number_function(expr->word, value->number, &y);
  if (*found) *value = tn_value_number(y, y == floor(y) && fabs(y) <= 0x1p53);
  return TN_OK;
}

static tn_status eval_call(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  bool found;
  if (e->scope->calls != NULL) return e->scope->calls->call(e->scope->calls->context, expr, value);
  TN_TRY(eval_function(e, expr, &found, value));
  if (found) return TN_OK;
  tn_text text = tn_text_new(e->handle);
  *value = (tn_value){.kind = TN_VALUE_TEXT};
  tn_status status = eval_print_call(e, expr, &text);
  if (status == TN_OK && !text.failed) value->text = tn_arena_strdup(e->arena, text.v);
  if (status == TN_OK && value->text == NULL) status = TN_ENOMEM;
  tn_text_free(&text);
  return status;
}

/* A whole number of an index. */
static tn_status eval_index_number(const expr_evaluation *e, const tn_expr *expr, int64_t *number) {
  tn_value value;
  TN_TRY(eval_expr(e, expr, &value));
  if (value.kind == TN_VALUE_TENSOR)
    return tn_failf(e->handle, TN_EINVAL,
                    "a value of the model stands between '[' and ']', expected whole numbers; write "
                    "index_select(x, ids, axis=0) for elements that a value chooses, `a if mask else b` for "
                    "those where a mask holds");
  if (value.kind != TN_VALUE_NUMBER || !value.is_integer)
    return tn_failf(e->handle, TN_EINVAL, "'%s' between '[' and ']', expected a whole number",
                    tn_value_show(e, &value));
  *number = (int64_t)value.number;
  return TN_OK;
}

static tn_status eval_index(const expr_evaluation *e, const tn_index_expr *expr, tn_index *index) {
  *index = (tn_index){.kind = expr->kind, .step = 1};
  index->has_start = expr->start != NULL;
  index->has_stop = expr->stop != NULL;
  if (expr->start != NULL) TN_TRY(eval_index_number(e, expr->start, &index->start));
  if (expr->stop != NULL) TN_TRY(eval_index_number(e, expr->stop, &index->stop));
  if (expr->step != NULL) TN_TRY(eval_index_number(e, expr->step, &index->step));
  if (index->step >= 1) return TN_OK;
  return tn_failf(e->handle, TN_EINVAL,
                  "the step %lld between '[' and ']', expected at least 1; write flip(x, axes=[1]) for the "
                  "other direction",
                  (long long)index->step);
}

/* x[0], x[:, 1:-1]: a part of a list or of a value of the model. */
static tn_status eval_part(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value x;
  tn_index *index = tn_arena_alloc(e->arena, tn_size_mul((size_t)expr->n_index, sizeof *index));
  if (index == NULL) return TN_ENOMEM;
  TN_TRY(eval_expr(e, expr->items[0], &x));
  for (int32_t i = 0; i < expr->n_index; i++) TN_TRY(eval_index(e, &expr->index[i], &index[i]));
  if (x.kind == TN_VALUE_LIST) return tn_index_list(e->handle, e->arena, &x, index, expr->n_index, value);
  if (x.kind == TN_VALUE_TENSOR)
    return e->scope->calls->part(e->scope->calls->context, expr->items[0], &x, index, expr->n_index, value);
  return tn_failf(e->handle, TN_EINVAL, "'%s' has no parts, expected a value or a list in front of '['",
                  tn_value_show(e, &x));
}

static tn_status eval_expr(const expr_evaluation *e, const tn_expr *expr, tn_value *value) {
  switch (expr->kind) {
  case TN_EXPR_NUMBER: *value = tn_value_number(expr->number, expr->is_integer); return TN_OK;
  case TN_EXPR_WORD: return eval_word(e, expr, value);
  case TN_EXPR_CALL: return eval_call(e, expr, value);
  case TN_EXPR_LIST: return eval_list(e, expr, value);
  case TN_EXPR_SHARED: *value = (tn_value){.kind = TN_VALUE_SHARED, .text = expr->word}; return TN_OK;
  case TN_EXPR_DIM: return eval_dim(e, expr, value);
  case TN_EXPR_UNARY: return eval_unary(e, expr, value);
  case TN_EXPR_CHOOSE: return eval_choice(e, expr, value);
  case TN_EXPR_PART: return eval_part(e, expr, value);
  default: return eval_binary(e, expr, value);
  }
}

static expr_evaluation eval_start(const void *handle, tn_arena *arena, const tn_scope *scope) {
  static const tn_scope nothing = {0};
  return (expr_evaluation){.handle = handle, .arena = arena, .scope = scope != NULL ? scope : &nothing};
}

tn_status tn_expr_evaluate(const void *handle, tn_arena *arena, const tn_expr *expr, const tn_scope *scope,
                           tn_value *value) {
  expr_evaluation evaluation = eval_start(handle, arena, scope);
  *value = (tn_value){0};
  return eval_expr(&evaluation, expr, value);
}

tn_status tn_expr_holds(const void *handle, tn_arena *arena, const tn_expr *expr, const tn_scope *scope,
                        bool *holds) {
  expr_evaluation evaluation = eval_start(handle, arena, scope);
  tn_value value;
  *holds = false;
  TN_TRY(eval_expr(&evaluation, expr, &value));
  return tn_value_truth(&evaluation, &value, holds);
}
