/* core/graph/formula/formula.h: a pointwise op as one line of text, "y = x / (1 + exp(-beta * x))".
 *
 *   formula = word "=" choice
 *   choice  = or ["if" or "else" choice]
 *   or      = and {"or" and}            and = not {"and" not}        not = "not" not | compare
 *   compare = sum [("==" | "!=" | "<" | "<=" | ">" | ">=") sum]
 *   sum     = product {("+" | "-") product}
 *   product = sign {("*" | "/") sign}   sign = "-" sign | power      power = atom ["^" sign]
 *   atom    = number | word | word "(" choice {"," choice} ")" | "(" choice ")"
 *
 * A word is an operand, an option (int, float, flag or enum: a number known while compiling) or, in
 * front of a bracket, a pointwise op. The precedence is Python's. The parsed form is postfix: a list of
 * steps for a stack machine (core/graph/build/emit_formula.h). */
#pragma once

#include <stddef.h>

#include "core/base/arena.h"
#include "tenon/plugin/plugin.h"

/* TN_FORMULA_BYTES: of the text. A longer one is a mistake: an op that a person writes has some dozen terms.
 */
enum { TN_FORMULA_OPERANDS = 4 * TN_MAX_RANK, TN_FORMULA_ARGUMENTS = 8, TN_FORMULA_BYTES = 4096 };

typedef enum tn_formula_kind {
  TN_FORMULA_NUMBER,
  TN_FORMULA_OPERAND,
  TN_FORMULA_OPTION,
  TN_FORMULA_CALL,
  TN_FORMULA_NEGATE,
  TN_FORMULA_NOT,
  TN_FORMULA_ADD,
  TN_FORMULA_SUB,
  TN_FORMULA_MUL,
  TN_FORMULA_DIV,
  TN_FORMULA_POW,
  TN_FORMULA_EQ,
  TN_FORMULA_NE,
  TN_FORMULA_LT,
  TN_FORMULA_LE,
  TN_FORMULA_GT,
  TN_FORMULA_GE,
  TN_FORMULA_AND,
  TN_FORMULA_OR,
  TN_FORMULA_CHOOSE /* pops no, condition, yes */
} tn_formula_kind;

/* Pops its arguments and pushes one term. */
typedef struct tn_formula_step {
  tn_formula_kind kind;
  int32_t n;               /* OPERAND: its index; CALL: the number of arguments */
  double number;           /* NUMBER */
  const tn_option *option; /* OPTION */
  const char *at;          /* CALL: the op's name in the text, */
  size_t length;           /* and its length */
} tn_formula_step;

typedef struct tn_formula {
  const char *text;
  const tn_item *item;         /* the op: its options may be named */
  const char *const *operands; /* their names, in schema order */
  int32_t n_operands;
  const char *result; /* name of the result; NULL: any word */
  const tn_formula_step *steps;
  int32_t n_steps, stack; /* stack: the most terms on it at any time */
} tn_formula;

/* Parses the text into steps, which live in the arena. TN_EINVAL if it is longer than TN_FORMULA_BYTES, or
 * with the column if it violates the grammar or names anything but operands and numeric options. Functions
 * are looked up when the formula is emitted. */
tn_status tn_formula_parse(const void *handle, tn_arena *arena, tn_formula *formula);

/* "formula of op OP: column N: expected ..., found ...", as TN_EINVAL. `at` points into the text. */
tn_status tn_formula_refuse(const void *handle, const tn_formula *formula, const char *at,
                            const char *expected);
