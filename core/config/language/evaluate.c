/* core/config/language/evaluate.c: the value of an expression. Numbers are doubles with a mark that says
 * "whole number"; whole ones stay exact, or it is an error. */
#include <math.h>
#include <string.h>

#include "core/config/language/syntax.h"

/* What every function below hands on. */
typedef struct tn_evaluation {
  const void *handle;
  tn_arena *arena;
  const tn_scope *scope;
} tn_evaluation;

static tn_status evaluate(const tn_evaluation *e, const tn_expr *expr, tn_value *value);

static const char *operator_name(int32_t op) {
  static const char *const names[] = {
      [TN_BIN_OR] = "or",       [TN_BIN_AND] = "and", [TN_BIN_EQ] = "==", [TN_BIN_NE] = "!=",
      [TN_BIN_LT] = "<",        [TN_BIN_LE] = "<=",   [TN_BIN_GT] = ">",  [TN_BIN_GE] = ">=",
      [TN_BIN_ADD] = "+",       [TN_BIN_SUB] = "-",   [TN_BIN_MUL] = "*", [TN_BIN_DIV] = "/",
      [TN_BIN_FLOORDIV] = "//", [TN_BIN_MOD] = "%",   [TN_UN_NEG] = "-",  [TN_UN_NOT] = "not",
  };
  return names[op];
}

static tn_value number_value(double number, bool whole) {
  return (tn_value){.what = TN_VALUE_NUMBER, .number = number, .is_integer = whole};
}

static tn_value bool_value(bool holds) { return number_value(holds ? 1 : 0, true); }

/* The value as a message shows it. */
static const char *shown(const tn_evaluation *e, const tn_value *value) {
  const char *text = tn_value_text(e->arena, value);
  return text != NULL ? text : "?";
}

/* 1 for yes, 0 for no, -1 for any other word. */
static int32_t yes_or_no(const char *word) {
  static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
  for (int32_t i = 0; i < 6; i++)
    if (strcmp(words[i], word) == 0) return i % 2;
  return -1;
}

bool tn_value_true(const tn_value *value) {
  switch (value->what) {
  case TN_VALUE_NUMBER: return value->number != 0;
  case TN_VALUE_TEXT: return yes_or_no(value->text) == 1;
  case TN_VALUE_LIST: return value->n_items > 0;
  default: return true;
  }
}

static tn_status truth(const tn_evaluation *e, const tn_value *value, bool *holds) {
  *holds = tn_value_true(value);
  if (value->what == TN_VALUE_NUMBER || (value->what == TN_VALUE_TEXT && yes_or_no(value->text) >= 0))
    return TN_OK;
  return tn_failf(e->handle, TN_EINVAL,
                  "'%s' is neither a number, nor yes or no, nor a name that is known here", shown(e, value));
}

/* Whole numbers live in doubles, exact up to 2^53. */
static tn_status put_whole(const tn_evaluation *e, int64_t number, bool overflow, tn_value *value) {
  if (overflow || number > (INT64_C(1) << 53) || number < -(INT64_C(1) << 53))
    return tn_failf(e->handle, TN_EINVAL, "a whole number becomes too large, expected at most 2^53");
  *value = number_value((double)number, true);
  return TN_OK;
}

/* The quotient rounded down, and the remainder with the sign of the divisor: Python's // and %. */
static tn_status divide_whole(const tn_evaluation *e, int32_t op, int64_t a, int64_t b, tn_value *value) {
  int64_t quotient = a / b, remainder = a % b;
  if (op == TN_BIN_DIV && remainder != 0) {
    *value = number_value((double)a / (double)b, false);
    return TN_OK;
  }
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    quotient--;
    remainder += b;
  }
  return put_whole(e, op == TN_BIN_MOD ? remainder : quotient, false, value);
}

static double divide_real(int32_t op, double a, double b) {
  if (op == TN_BIN_DIV) return a / b;
  double remainder = fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == TN_BIN_MOD) return remainder;
  return nearbyint((a - remainder) / b); /* a - remainder is a multiple of b but for rounding */
}

static tn_status calculate_whole(const tn_evaluation *e, int32_t op, int64_t a, int64_t b, tn_value *value) {
  int64_t result = 0;
  switch (op) {
  case TN_BIN_ADD: return put_whole(e, a + b, false, value);
  case TN_BIN_SUB: return put_whole(e, a - b, false, value);
  case TN_BIN_MUL: {
    bool overflow = __builtin_mul_overflow(a, b, &result);
    return put_whole(e, result, overflow, value);
  }
  default: return divide_whole(e, op, a, b, value);
  }
}

static double calculate_real(int32_t op, double a, double b) {
  switch (op) {
  case TN_BIN_ADD: return a + b;
  case TN_BIN_SUB: return a - b;
  case TN_BIN_MUL: return a * b;
  default: return divide_real(op, a, b);
  }
}

static bool compare(int32_t op, double a, double b) {
  switch (op) {
  case TN_BIN_LT: return a < b;
  case TN_BIN_LE: return a <= b;
  case TN_BIN_GT: return a > b;
  default: return a >= b;
  }
}

static tn_status calculate(const tn_evaluation *e, int32_t op, const tn_value *a, const tn_value *b,
                           tn_value *value) {
  bool divides = op == TN_BIN_DIV || op == TN_BIN_FLOORDIV || op == TN_BIN_MOD;
  if (op >= TN_BIN_LT && op <= TN_BIN_GE) {
    *value = bool_value(compare(op, a->number, b->number));
    return TN_OK;
  }
  if (divides && b->number == 0)
    return tn_failf(e->handle, TN_EINVAL, "%s %s 0 divides by zero", shown(e, a), operator_name(op));
  if (a->is_integer && b->is_integer)
    return calculate_whole(e, op, (int64_t)a->number, (int64_t)b->number, value);
  *value = number_value(calculate_real(op, a->number, b->number), false);
  return TN_OK;
}

/* yes and no are equal to what comparisons give. */
static tn_value as_number(const tn_value *value) {
  int32_t holds = value->what == TN_VALUE_TEXT ? yes_or_no(value->text) : -1;
  return holds >= 0 ? bool_value(holds == 1) : *value;
}

static bool equal(const tn_value *left, const tn_value *right) {
  tn_value a = as_number(left), b = as_number(right);
  if (a.what != b.what) return false;
  if (a.what == TN_VALUE_NUMBER) return a.number == b.number;
  if (a.what != TN_VALUE_LIST) return strcmp(a.text, b.text) == 0;
  if (a.n_items != b.n_items) return false;
  for (int32_t i = 0; i < a.n_items; i++)
    if (!equal(&a.items[i], &b.items[i])) return false;
  return true;
}

/* `and` and `or` look at the right side only if they must: `n != 0 and x / n > 1`. */
static tn_status evaluate_logic(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value side;
  bool holds;
  TN_TRY(evaluate(e, expr->items[0], &side));
  TN_TRY(truth(e, &side, &holds));
  if (holds == (expr->op == TN_BIN_AND)) {
    TN_TRY(evaluate(e, expr->items[1], &side));
    TN_TRY(truth(e, &side, &holds));
  }
  *value = bool_value(holds);
  return TN_OK;
}

static tn_status need_number(const tn_evaluation *e, int32_t op, const tn_value *value) {
  if (value->what == TN_VALUE_NUMBER) return TN_OK;
  return tn_failf(e->handle, TN_EINVAL, "'%s' needs numbers, found '%s'", operator_name(op), shown(e, value));
}

static tn_status evaluate_binary(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value a, b;
  if (expr->op == TN_BIN_AND || expr->op == TN_BIN_OR) return evaluate_logic(e, expr, value);
  TN_TRY(evaluate(e, expr->items[0], &a));
  TN_TRY(evaluate(e, expr->items[1], &b));
  if (expr->op == TN_BIN_EQ || expr->op == TN_BIN_NE) {
    *value = bool_value(equal(&a, &b) == (expr->op == TN_BIN_EQ));
    return TN_OK;
  }
  TN_TRY(need_number(e, expr->op, &a));
  TN_TRY(need_number(e, expr->op, &b));
  return calculate(e, expr->op, &a, &b, value);
}

static tn_status evaluate_unary(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value inner;
  bool holds;
  TN_TRY(evaluate(e, expr->items[0], &inner));
  if (expr->op == TN_UN_NOT) {
    TN_TRY(truth(e, &inner, &holds));
    *value = bool_value(!holds);
    return TN_OK;
  }
  /* Infinity is a word, so that only its negative needs care. */
  if (inner.what == TN_VALUE_TEXT && strcmp(inner.text, "inf") == 0) inner = number_value(INFINITY, false);
  TN_TRY(need_number(e, expr->op, &inner));
  *value = number_value(inner.is_integer && inner.number == 0 ? 0 : -inner.number, inner.is_integer);
  return TN_OK;
}

static tn_status evaluate_word(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  for (int32_t i = 0; i < e->scope->n; i++)
    if (strcmp(e->scope->names[i], expr->word) == 0) {
      *value = e->scope->values[i];
      return TN_OK;
    }
  *value = (tn_value){.what = TN_VALUE_TEXT, .text = expr->word};
  return TN_OK;
}

static tn_status evaluate_list(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value *items = tn_arena_alloc(e->arena, tn_size_mul((size_t)expr->n_items, sizeof(*items)));
  if (items == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < expr->n_items; i++) TN_TRY(evaluate(e, expr->items[i], &items[i]));
  *value = (tn_value){.what = TN_VALUE_LIST, .items = items, .n_items = expr->n_items};
  return TN_OK;
}

static tn_status evaluate_dim(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_value axis;
  int64_t size = 0;
  TN_TRY(evaluate(e, expr->items[0], &axis));
  if (axis.what != TN_VALUE_NUMBER || !axis.is_integer)
    return tn_failf(e->handle, TN_EINVAL, "dim(%s, %s): expected a whole number for the dimension",
                    expr->word, shown(e, &axis));
  if (e->scope->dim == NULL)
    return tn_failf(e->handle, TN_EINVAL, "dim(%s, %s): no sizes are known here", expr->word,
                    shown(e, &axis));
  if (!e->scope->dim(e->scope->context, expr->word, (int64_t)axis.number, &size))
    return tn_failf(e->handle, TN_EINVAL, "dim(%s, %s): there is no such value, or it has no such dimension",
                    expr->word, shown(e, &axis));
  return put_whole(e, size, false, value);
}

/* A call as a value is its own text, with names of the scope filled in: normal(0, 0.02). */
static tn_status print_call(const tn_evaluation *e, const tn_expr *expr, tn_text *text) {
  tn_text_addf(text, "%s(", expr->word);
  for (int32_t i = 0; i < expr->n_args; i++) {
    const tn_call_arg *arg = &expr->args[i];
    tn_value value;
    TN_TRY(evaluate(e, arg->value, &value));
    const char *printed = tn_value_text(e->arena, &value);
    if (printed == NULL) return TN_ENOMEM;
    tn_text_addf(text, "%s%s%s%s", i > 0 ? ", " : "", arg->name != NULL ? arg->name : "",
                 arg->name != NULL ? "=" : "", printed);
  }
  tn_text_add(text, ")");
  return TN_OK;
}

static tn_status evaluate_call(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  tn_text text = tn_text_new(e->handle);
  *value = (tn_value){.what = TN_VALUE_TEXT};
  tn_status status = print_call(e, expr, &text);
  if (status == TN_OK && !text.failed) value->text = tn_arena_strdup(e->arena, text.v);
  if (status == TN_OK && value->text == NULL) status = TN_ENOMEM;
  tn_text_free(&text);
  return status;
}

static tn_status evaluate(const tn_evaluation *e, const tn_expr *expr, tn_value *value) {
  switch (expr->what) {
  case TN_EXPR_NUMBER: *value = number_value(expr->number, expr->is_integer); return TN_OK;
  case TN_EXPR_WORD: return evaluate_word(e, expr, value);
  case TN_EXPR_CALL: return evaluate_call(e, expr, value);
  case TN_EXPR_LIST: return evaluate_list(e, expr, value);
  case TN_EXPR_SHARED: *value = (tn_value){.what = TN_VALUE_SHARED, .text = expr->word}; return TN_OK;
  case TN_EXPR_DIM: return evaluate_dim(e, expr, value);
  case TN_EXPR_UNARY: return evaluate_unary(e, expr, value);
  default: return evaluate_binary(e, expr, value);
  }
}

static tn_evaluation evaluation_of(const void *handle, tn_arena *arena, const tn_scope *scope) {
  static const tn_scope nothing = {0};
  return (tn_evaluation){.handle = handle, .arena = arena, .scope = scope != NULL ? scope : &nothing};
}

tn_status tn_expr_evaluate(const void *handle, tn_arena *arena, const tn_expr *expr, const tn_scope *scope,
                           tn_value *value) {
  tn_evaluation evaluation = evaluation_of(handle, arena, scope);
  *value = (tn_value){0};
  return evaluate(&evaluation, expr, value);
}

tn_status tn_expr_holds(const void *handle, tn_arena *arena, const tn_expr *expr, const tn_scope *scope,
                        bool *holds) {
  tn_evaluation evaluation = evaluation_of(handle, arena, scope);
  tn_value value;
  *holds = false;
  TN_TRY(evaluate(&evaluation, expr, &value));
  return truth(&evaluation, &value, holds);
}

/* A fraction keeps its point, so that 2.0 does not pass for a whole number. */
static void print_number(tn_text *text, const tn_value *value) {
  if (value->is_integer) {
    tn_text_addf(text, "%lld", (long long)value->number);
    return;
  }
  size_t start = text->n;
  tn_text_add_float(text, value->number);
  if (!text->failed && strpbrk(text->v + start, ".en") == NULL) tn_text_add(text, ".0");
}

static void print_value(tn_text *text, const tn_value *value) {
  switch (value->what) {
  case TN_VALUE_NUMBER: print_number(text, value); return;
  case TN_VALUE_SHARED: tn_text_addf(text, "@%s", value->text); return;
  case TN_VALUE_LIST:
    tn_text_add(text, "[");
    for (int32_t i = 0; i < value->n_items; i++) {
      if (i > 0) tn_text_add(text, ", ");
      print_value(text, &value->items[i]);
    }
    tn_text_add(text, "]");
    return;
  default: tn_text_add(text, value->text); return;
  }
}

const char *tn_value_text(tn_arena *arena, const tn_value *value) {
  tn_text text = tn_text_new(arena->handle);
  print_value(&text, value);
  tn_text_addn(&text, "", 0);
  const char *kept = text.failed ? NULL : tn_arena_strdup(arena, text.v);
  tn_text_free(&text);
  return kept;
}
