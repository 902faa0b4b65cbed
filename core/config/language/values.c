/* core/config/language/values.c: see values.h. Numbers are doubles with a flag for integers; integer results
 * are exact, and an inexact one is an error. */
#include "core/config/language/values.h"

#include <math.h>
#include <string.h>

const char *tn_operator_name(int32_t op) {
  static const char *const names[] = {
      [TN_BIN_OR] = "or",       [TN_BIN_AND] = "and", [TN_BIN_EQ] = "==",  [TN_BIN_NE] = "!=",
      [TN_BIN_LT] = "<",        [TN_BIN_LE] = "<=",   [TN_BIN_GT] = ">",   [TN_BIN_GE] = ">=",
      [TN_BIN_ADD] = "+",       [TN_BIN_SUB] = "-",   [TN_BIN_MUL] = "*",  [TN_BIN_DIV] = "/",
      [TN_BIN_FLOORDIV] = "//", [TN_BIN_MOD] = "%",   [TN_BIN_POW] = "**", [TN_UN_NEG] = "-",
      [TN_UN_NOT] = "not",
  };
  return op == TN_CHOOSE ? "if" : names[op];
}

tn_value tn_value_number(double number, bool is_integer) {
  return (tn_value){.kind = TN_VALUE_NUMBER, .number = number, .is_integer = is_integer};
}

tn_value tn_value_bool(bool holds) { return tn_value_number(holds ? 1 : 0, true); }

/* The value as text for a message. */
const char *tn_value_show(const expr_evaluation *e, const tn_value *value) {
  const char *text = tn_value_text(e->arena, value);
  return text != NULL ? text : "?";
}

/* 1 for yes, 0 for no, -1 for any other word. */
static int32_t value_yes_or_no(const char *word) {
  static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
  for (int32_t i = 0; i < 6; i++)
    if (strcmp(words[i], word) == 0) return i % 2;
  return -1;
}

bool tn_value_true(const tn_value *value) {
  switch (value->kind) {
  case TN_VALUE_NUMBER: return value->number != 0;
  case TN_VALUE_TEXT: return value_yes_or_no(value->text) == 1;
  case TN_VALUE_LIST: return value->n_items > 0;
  default: return true;
  }
}

tn_status tn_value_truth(const expr_evaluation *e, const tn_value *value, bool *holds) {
  *holds = tn_value_true(value);
  if (value->kind == TN_VALUE_NUMBER || (value->kind == TN_VALUE_TEXT && value_yes_or_no(value->text) >= 0))
    return TN_OK;
  return tn_failf(e->handle, TN_EINVAL,
                  "'%s' is neither a number, nor yes or no, nor a name that is known here",
                  tn_value_show(e, value));
}

/* Integers are stored in doubles, which are exact up to 2^53. */
tn_status tn_value_put_integer(const expr_evaluation *e, int64_t number, bool overflow, tn_value *value) {
  if (overflow || number > (INT64_C(1) << 53) || number < -(INT64_C(1) << 53))
    return tn_failf(e->handle, TN_EINVAL, "a whole number becomes too large, expected at most 2^53");
  *value = tn_value_number((double)number, true);
  return TN_OK;
}

/* The quotient rounded down and the remainder with the sign of the divisor, as // and % of Python. */
static tn_status value_divide_integers(const expr_evaluation *e, int32_t op, int64_t a, int64_t b,
                                       tn_value *value) {
  int64_t quotient = a / b, remainder = a % b;
  if (op == TN_BIN_DIV && remainder != 0) {
    *value = tn_value_number((double)a / (double)b, false);
    return TN_OK;
  }
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    quotient--;
    remainder += b;
  }
  return tn_value_put_integer(e, op == TN_BIN_MOD ? remainder : quotient, false, value);
}

static double value_divide_reals(int32_t op, double a, double b) {
  if (op == TN_BIN_DIV) return a / b;
  double remainder = fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == TN_BIN_MOD) return remainder;
  return nearbyint((a - remainder) / b); /* a - remainder is a multiple of b up to rounding */
}

/* A whole power of a whole number, exactly; a negative exponent gives a fraction. */
static tn_status value_raise_integer(const expr_evaluation *e, int64_t a, int64_t b, tn_value *value) {
  int64_t result = 1;
  bool overflow = false;
  if (b < 0) {
    *value = tn_value_number(pow((double)a, (double)b), false);
    return TN_OK;
  }
  if (a == 0 || a == 1 || a == -1)
    return tn_value_put_integer(e, b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a, false, value);
  for (int64_t i = 0; i < b && !overflow; i++) overflow = __builtin_mul_overflow(result, a, &result);
  return tn_value_put_integer(e, result, overflow, value);
}

static tn_status value_integer_arithmetic(const expr_evaluation *e, int32_t op, int64_t a, int64_t b,
                                          tn_value *value) {
  int64_t result = 0;
  switch (op) {
  case TN_BIN_ADD: return tn_value_put_integer(e, a + b, false, value);
  case TN_BIN_SUB: return tn_value_put_integer(e, a - b, false, value);
  case TN_BIN_MUL: {
    bool overflow = __builtin_mul_overflow(a, b, &result);
    return tn_value_put_integer(e, result, overflow, value);
  }
  case TN_BIN_POW: return value_raise_integer(e, a, b, value);
  default: return value_divide_integers(e, op, a, b, value);
  }
}

static double value_real_arithmetic(int32_t op, double a, double b) {
  switch (op) {
  case TN_BIN_ADD: return a + b;
  case TN_BIN_SUB: return a - b;
  case TN_BIN_MUL: return a * b;
  case TN_BIN_POW: return pow(a, b);
  default: return value_divide_reals(op, a, b);
  }
}

static bool value_compare(int32_t op, double a, double b) {
  switch (op) {
  case TN_BIN_LT: return a < b;
  case TN_BIN_LE: return a <= b;
  case TN_BIN_GT: return a > b;
  default: return a >= b;
  }
}

tn_status tn_value_arithmetic(const expr_evaluation *e, int32_t op, const tn_value *a, const tn_value *b,
                              tn_value *value) {
  bool divides = op == TN_BIN_DIV || op == TN_BIN_FLOORDIV || op == TN_BIN_MOD;
  if (op >= TN_BIN_LT && op <= TN_BIN_GE) {
    *value = tn_value_bool(value_compare(op, a->number, b->number));
    return TN_OK;
  }
  if (divides && b->number == 0)
    return tn_failf(e->handle, TN_EINVAL, "%s %s 0 divides by zero", tn_value_show(e, a),
                    tn_operator_name(op));
  if (op == TN_BIN_POW && a->number == 0 && b->number < 0)
    return tn_failf(e->handle, TN_EINVAL, "%s ** %s divides by zero", tn_value_show(e, a),
                    tn_value_show(e, b));
  if (a->is_integer && b->is_integer)
    return value_integer_arithmetic(e, op, (int64_t)a->number, (int64_t)b->number, value);
  double result = value_real_arithmetic(op, a->number, b->number);
  if (op == TN_BIN_POW && isnan(result) && !isnan(a->number) && !isnan(b->number))
    return tn_failf(e->handle, TN_EINVAL, "%s ** %s is no real number, expected a base that is not negative",
                    tn_value_show(e, a), tn_value_show(e, b));
  *value = tn_value_number(result, false);
  return TN_OK;
}

/* Converts yes and no to the numbers that comparisons return. */
static tn_value value_as_number(const tn_value *value) {
  int32_t holds = value->kind == TN_VALUE_TEXT ? value_yes_or_no(value->text) : -1;
  return holds >= 0 ? tn_value_bool(holds == 1) : *value;
}

bool tn_value_equal(const tn_value *left, const tn_value *right) {
  tn_value a = value_as_number(left), b = value_as_number(right);
  if (a.kind != b.kind) return false;
  if (a.kind == TN_VALUE_NUMBER) return a.number == b.number;
  if (a.kind == TN_VALUE_TENSOR) return a.tensor == b.tensor; /* in lists */
  if (a.kind != TN_VALUE_LIST) return strcmp(a.text, b.text) == 0;
  if (a.n_items != b.n_items) return false;
  for (int32_t i = 0; i < a.n_items; i++)
    if (!tn_value_equal(&a.items[i], &b.items[i])) return false;
  return true;
}

/* A float keeps its decimal point, so that 2.0 does not read back as an integer. */
static void value_print_number(tn_text *text, const tn_value *value) {
  if (value->is_integer) {
    tn_text_addf(text, "%lld", (long long)value->number);
    return;
  }
  size_t start = text->n;
  tn_text_add_float(text, value->number);
  if (!text->failed && strpbrk(text->v + start, ".en") == NULL) tn_text_add(text, ".0");
}

static void value_print_value(tn_text *text, const tn_value *value) {
  switch (value->kind) {
  case TN_VALUE_NUMBER: value_print_number(text, value); return;
  case TN_VALUE_SHARED: tn_text_addf(text, "@%s", value->text); return;
  case TN_VALUE_LIST:
    tn_text_add(text, "[");
    for (int32_t i = 0; i < value->n_items; i++) {
      if (i > 0) tn_text_add(text, ", ");
      value_print_value(text, &value->items[i]);
    }
    tn_text_add(text, "]");
    return;
  case TN_VALUE_TENSOR: tn_text_add(text, "a value"); return;
  default: tn_text_add(text, value->text); return;
  }
}

const char *tn_value_text(tn_arena *arena, const tn_value *value) {
  tn_text text = tn_text_new(arena->handle);
  value_print_value(&text, value);
  tn_text_addn(&text, "", 0);
  const char *kept = text.failed ? NULL : tn_arena_strdup(arena, text.v);
  tn_text_free(&text);
  return kept;
}
