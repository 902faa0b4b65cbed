/* core/config/language/values.h: arithmetic on the values of expressions, and values as text. Private to this
 * folder. */
#pragma once

#include "core/config/language/syntax.h"

/* The state that the functions of an evaluation share. */
typedef struct expr_evaluation {
  const void *handle;
  tn_arena *arena;
  const tn_scope *scope;
} expr_evaluation;

tn_value tn_value_number(double number, bool is_integer);
tn_value tn_value_bool(bool holds);
/* TN_EINVAL: the number overflowed, or is beyond 2^53, up to which doubles are exact. */
tn_status tn_value_put_integer(const expr_evaluation *e, int64_t number, bool overflow, tn_value *value);
/* The value as text for a message. */
const char *tn_value_show(const expr_evaluation *e, const tn_value *value);
/* Whether a condition holds. TN_EINVAL: it is neither a number, nor yes or no. */
tn_status tn_value_truth(const expr_evaluation *e, const tn_value *value, bool *holds);
/* Yes and no are the numbers that comparisons return. */
bool tn_value_equal(const tn_value *left, const tn_value *right);
/* TN_BIN_LT ... TN_BIN_POW of two numbers. TN_EINVAL: the result is no number, or too large. */
tn_status tn_value_arithmetic(const expr_evaluation *e, int32_t op, const tn_value *a, const tn_value *b,
                              tn_value *value);
