/* core/model/lines/operation.c: operations on values in lines that compute: the checks of operands, and the
 * ops that they become (core/graph/build/term.h). */
#include "core/model/assemble.h"

#include <math.h>
#include <string.h>

#include "core/base/element.h"
#include "core/graph/build/term.h"
#include "core/graph/graph.h"

enum { MOST_OPERANDS = 3 };

bool tn_value_is_word(const char *name) {
  static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

tn_value tn_value_of_number(double number) {
  bool whole = number == floor(number) && fabs(number) <= 0x1p53;
  return (tn_value){.kind = TN_VALUE_NUMBER, .number = number, .is_integer = whole};
}

/* "'+' on f32[8, 4] and 2". */
static const char *operation_describe(const tn_value_place *at, int32_t op, const tn_value *operands,
                                      int32_t n) {
  tn_text text = tn_text_new(at->scope->assembly->env);
  tn_text_addf(&text, "'%s' on ", tn_operator_name(op));
  for (int32_t i = 0; i < n; i++) {
    char type[TN_TYPE_TEXT];
    const char *shown = operands[i].kind == TN_VALUE_TENSOR
                            ? tn_type_format(tn_val_type(at->scope->assembly->b, operands[i].tensor), type)
                            : tn_value_text(&at->scope->assembly->arena, &operands[i]);
    tn_text_addf(&text, "%s%s", i == 0 ? "" : n == 3 && i == 1 ? ", " : " and ", shown != NULL ? shown : "?");
  }
  const char *kept = text.failed ? NULL : tn_arena_strdup(&at->scope->assembly->arena, text.v);
  tn_text_free(&text);
  return kept != NULL ? kept : "an operation";
}

int32_t tn_value_dtype(const tn_value_place *at, const tn_value *value) {
  return tn_val_type(at->scope->assembly->b, value->tensor)->dtype;
}

/* The kinds of elements that an operator takes. */
enum { TAKES_NUMBERS, TAKES_FLOATS, TAKES_BOOL, TAKES_ALL };
static int32_t operation_operator_takes(int32_t op) {
  switch (op) {
  case TN_BIN_AND:
  case TN_BIN_OR:
  case TN_UN_NOT: return TAKES_BOOL;
  case TN_BIN_DIV: return TAKES_FLOATS;
  case TN_BIN_EQ:
  case TN_BIN_NE:
  case TN_CHOOSE: return TAKES_ALL;
  default: return TAKES_NUMBERS;
  }
}

static tn_status operation_check_tensor(const tn_value_place *at, int32_t op, const tn_value *value) {
  const tn_env *env = at->scope->assembly->env;
  int32_t takes = operation_operator_takes(op), dtype = tn_value_dtype(at, value);
  if (takes == TAKES_BOOL && dtype != TN_BOOL)
    return tn_failf(env, TN_EINVAL, "expected bool, the result of a comparison, as in `x > 0`; found %s",
                    tn_dtype_name(dtype));
  if ((takes == TAKES_FLOATS || takes == TAKES_NUMBERS) && dtype == TN_BOOL)
    return tn_failf(env, TN_EINVAL, "expected numbers, found bool; write cast(x, to=f32) for 1 and 0");
  if (takes == TAKES_FLOATS && !tn_dtype_is_float(dtype))
    return tn_failf(env, TN_EINVAL, "expected floats, found %s; write cast(x, to=f32)", tn_dtype_name(dtype));
  return TN_OK;
}

/* Whether a number is one of a type of whole numbers. i64 has those that a double counts exactly. */
static bool operation_holds(int32_t dtype, double number) {
  double low, high;
  tn_element_range(dtype, &low, &high);
  return number == floor(number) && number >= fmax(low, -9e15) && number <= fmin(high, 9e15);
}

/* A number takes the element type of the values beside it, which has to hold it. */
tn_status tn_value_check_number(const tn_value_place *at, const tn_value *number, int32_t dtype) {
  const tn_env *env = at->scope->assembly->env;
  if (tn_dtype_is_float(dtype)) return TN_OK;
  if (operation_holds(dtype, number->number)) return TN_OK;
  if (dtype == TN_BOOL)
    return tn_failf(env, TN_EINVAL, "a number takes the type of the value beside it, bool, expected 0 or 1");
  bool narrow = number->number == floor(number->number) && dtype != TN_I64;
  return tn_failf(env, TN_EINVAL,
                  "a number takes the type of the value beside it, %s, and %s is no %s; write cast(x, to=%s)",
                  tn_dtype_name(dtype), tn_value_text(&at->scope->assembly->arena, number),
                  narrow ? "number of it" : "whole number", narrow ? "i64" : "f32");
}

/* Operands are numbers or values. Values have one element type, which holds the numbers. */
static tn_status operation_check_operands(const tn_value_place *at, int32_t op, const tn_value *operands,
                                          int32_t n) {
  const tn_env *env = at->scope->assembly->env;
  int32_t dtype = TN_ANY;
  for (int32_t i = 0; i < n; i++) {
    if (op == TN_CHOOSE && i == 1) continue; /* the condition */
    if (operands[i].kind == TN_VALUE_NUMBER) continue;
    if (operands[i].kind != TN_VALUE_TENSOR)
      return tn_failf(env, TN_EINVAL, "expected a value or a number, found '%s'",
                      tn_value_text(&at->scope->assembly->arena, &operands[i]));
    TN_TRY(operation_check_tensor(at, op, &operands[i]));
    if (dtype != TN_ANY && dtype != tn_value_dtype(at, &operands[i]))
      return tn_failf(env, TN_EINVAL, "expected one element type on both sides; write cast(x, to=%s)",
                      tn_dtype_name(tn_dtype_is_float(dtype) ? dtype : tn_value_dtype(at, &operands[i])));
    dtype = tn_value_dtype(at, &operands[i]);
  }
  for (int32_t i = 0; i < n && dtype != TN_ANY; i++)
    if (operands[i].kind == TN_VALUE_NUMBER) TN_TRY(tn_value_check_number(at, &operands[i], dtype));
  if (op == TN_CHOOSE) TN_TRY(operation_check_tensor(at, TN_UN_NOT, &operands[1]));
  if ((op == TN_BIN_FLOORDIV || op == TN_BIN_MOD) && operands[1].kind == TN_VALUE_NUMBER &&
      operands[1].number == 0)
    return tn_failf(env, TN_EINVAL, "expected a divisor other than 0");
  return TN_OK;
}

static tn_term operation_apply(const tn_terms *e, int32_t op, const tn_term *x) {
  switch (op) {
  case TN_UN_NEG: return tn_term_negate(e, x[0]);
  case TN_UN_NOT: return tn_term_not(e, x[0]);
  case TN_BIN_OR: return tn_term_logic(e, "or", x[0], x[1]);
  case TN_BIN_AND: return tn_term_logic(e, "and", x[0], x[1]);
  case TN_BIN_ADD: return tn_term_add(e, x[0], x[1]);
  case TN_BIN_SUB: return tn_term_subtract(e, x[0], x[1]);
  case TN_BIN_MUL: return tn_term_multiply(e, x[0], x[1]);
  case TN_BIN_DIV: return tn_term_divide(e, x[0], x[1]);
  case TN_BIN_FLOORDIV: return tn_term_binary(e, "floor_divide", x[0], x[1]);
  case TN_BIN_MOD: return tn_term_binary(e, "remainder", x[0], x[1]);
  case TN_BIN_POW: return tn_term_raise(e, x[0], x[1]);
  case TN_CHOOSE: return tn_term_choose(e, x[0], x[1], x[2]);
  default: return tn_term_compare(e, (tn_term_comparison)(op - TN_BIN_EQ), x[0], x[1]);
  }
}

/* The arithmetic of the line belongs to the line's path. */
tn_build_frame tn_value_frame(const tn_value_place *at) {
  const tn_model_request *request = at->scope->assembly->request;
  return (tn_build_frame){
      .prefix = at->path, .where = at->where, .training = request->training, .seed = request->seed};
}

static tn_term operation_term(const tn_value *value) {
  if (value->kind == TN_VALUE_NUMBER) return tn_term_of_number(value->number);
  return (tn_term){.scale = value->number, .value = value->tensor};
}

/* yes and no are 1 and 0 beside a value. */
static tn_value operation_of_word(const tn_value *value) {
  if (value->kind != TN_VALUE_TEXT || !tn_value_is_word(value->text)) return *value;
  return tn_value_of_number(tn_value_true(value) ? 1 : 0);
}

static tn_status operation_emit(const tn_value_place *at, int32_t op, const tn_value *operands, int32_t n,
                                tn_value *value) {
  tn_build *b = at->scope->assembly->b;
  tn_build_frame frame = tn_value_frame(at);
  tn_term x[MOST_OPERANDS];
  tn_terms terms = {b, TN_F32};
  for (int32_t i = 0; i < n; i++) x[i] = operation_term(&operands[i]);
  TN_TRY(operation_check_operands(at, op, operands, n));
  tn_builder_push(b, &frame);
  tn_term made = operation_apply(&terms, op, x);
  tn_status status = tn_build_status(b);
  tn_builder_pop(b);
  *value = made.is_number ? tn_value_of_number(made.number)
                          : (tn_value){.kind = TN_VALUE_TENSOR, .tensor = made.value, .number = made.scale};
  return status;
}

/* Skips "file.ini:9: add: " at the start of the text. */
static const char *operation_error_behind_op(const char *text, const char *where) {
  text = tn_error_text_behind(text, where, strlen(where));
  return tn_error_text_behind(text, text, strspn(text, "abcdefghijklmnopqrstuvwxyz_"));
}

tn_status tn_value_operate(const tn_value_place *at, int32_t op, const tn_value *given, int32_t n,
                           tn_value *value) {
  tn_env *env = at->scope->assembly->env;
  tn_value operands[MOST_OPERANDS];
  for (int32_t i = 0; i < n; i++) operands[i] = operation_of_word(&given[i]);
  *value = tn_value_of_tensor(0);
  for (int32_t i = 0; i < n; i++)
    if (tn_value_is_unknown(&operands[i])) return TN_OK;
  tn_status status = operation_emit(at, op, operands, n, value);
  if (status != TN_EINVAL) return status;
  const char *text =
      tn_arena_strdup(&at->scope->assembly->arena, operation_error_behind_op(tn_error_text(env), at->where));
  return tn_failf(env, status, "%s: %s", operation_describe(at, op, operands, n), text != NULL ? text : "");
}

/* The value as a tensor, with its pending factor applied. */
tn_status tn_value_settle(const tn_value_place *at, const tn_value *value, int32_t dtype, tn_val *tensor) {
  tn_build *b = at->scope->assembly->b;
  tn_terms terms = {b, dtype};
  tn_build_frame frame = tn_value_frame(at);
  *tensor = 0;
  if (tn_value_is_unknown(value)) return TN_OK;
  tn_builder_push(b, &frame);
  *tensor = tn_term_tensor(&terms, operation_term(value), dtype);
  tn_status status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
}
