/* core/graph/formula/formula.h: pointwise computations as text: an op, "y = x / (1 + exp(-beta * x))", or its
 * gradient, "part = dz / y; dx = part; dy = -(part * z)".
 *
 *   text      = statement {";" statement}
 *   statement = word "=" choice
 *   choice  = or ["if" or "else" choice]
 *   or      = and {"or" and}            and = not {"and" not}        not = "not" not | compare
 *   compare = sum [("==" | "!=" | "<" | "<=" | ">" | ">=") sum]
 *   sum     = product {("+" | "-") product}
 *   product = sign {("*" | "/") sign}   sign = "-" sign | power      power = atom ["^" sign]
 *   atom    = number | word | word "(" argument {"," argument} ")" | "(" choice ")"
 *   argument = choice | word "=" choice
 *
 * A word is a given value, the name of an earlier statement, an option (int, float, flag or enum: a number
 * known while compiling), one of pi, inf, nan, largest (the greatest finite number of the element type) and
 * whole (1 for integers, else 0), or, in front of a bracket, a pointwise op, whose attributes are arguments
 * with a name. The precedence is Python's. The parsed form is postfix: a list of steps for a stack machine
 * (core/graph/build/emit_formula.h). The condition of a choice comes first, so that a condition known while
 * compiling skips the other part. */
#pragma once

#include <stddef.h>

#include "core/base/arena.h"
#include "tenon/plugin/plugin.h"

/* TN_FORMULA_BYTES: of the text. A longer one is a mistake: an op that a person writes has some dozen terms.
 * TN_FORMULA_NAMES: of given values: operands, and for a gradient results and their gradients. */
enum {
  TN_FORMULA_NAMES = 6 * TN_MAX_RANK,
  TN_FORMULA_ARGUMENTS = 8,
  TN_FORMULA_STATEMENTS = 32,
  TN_FORMULA_BYTES = 4096
};

typedef enum tn_formula_kind {
  TN_FORMULA_NUMBER,
  TN_FORMULA_LARGEST,
  TN_FORMULA_WHOLE,
  TN_FORMULA_GIVEN,
  TN_FORMULA_NAMED, /* of an earlier statement */
  TN_FORMULA_OPTION,
  TN_FORMULA_ATTRIBUTE, /* the term on the stack is an attribute of the call that follows */
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
  TN_FORMULA_IF,    /* where the condition on the stack is a number and false: to the part behind `else` */
  TN_FORMULA_ELSE,  /* where it is a number and true: to CHOOSE */
  TN_FORMULA_CHOOSE /* pops no, yes, condition */
} tn_formula_kind;

/* Pops its arguments and pushes one term. */
typedef struct tn_formula_step {
  tn_formula_kind kind;
  /* GIVEN, NAMED: the index; CALL: the number of arguments; IF, ELSE: the number of steps to go on by */
  int32_t n;
  double number;           /* NUMBER */
  const tn_option *option; /* OPTION */
  const char *at;          /* CALL, ATTRIBUTE: the name in the text, */
  size_t length;           /* and its length */
} tn_formula_step;

typedef struct tn_formula_statement {
  const char *name; /* in the text */
  size_t length;
  int32_t first, n; /* its steps */
  int32_t target;   /* the value that it defines; -1: a part of others */
  bool used;        /* by a later statement */
} tn_formula_statement;

typedef struct tn_formula {
  const char *what; /* "formula" or "gradient", for messages */
  const char *text;
  const tn_item *item;      /* the op: its options may be named */
  const char *const *given; /* the names of values that the text may use: operands; for a gradient also
                               results and their gradients */
  int32_t n_given;
  const char *const *targets; /* the names of values that it defines: results, or gradients of operands */
  int32_t n_targets;
  const int32_t *dtypes; /* of the targets of a formula; TN_ANY: that of the operands */
  const char *expects;   /* a target, for messages: "the name of the op's result" */
  /* Given values may be absent, and the text reads 0 for them; only the targets with tn_build_wants_grad are
   * emitted; an f64 scalar beside a value of another dtype is rounded to it. */
  bool partial;
  const bool *scalars; /* of the targets: stays a scalar; NULL: each has the dims of the operands */
  bool calls_any;      /* ops that are not pointwise may be called, too */
  const tn_formula_step *steps;
  const tn_formula_statement *statements;
  int32_t n_steps, n_statements;
  int32_t stack; /* the most terms on it at any time */
} tn_formula;

/* Parses the text into steps, which live in the arena. `all`: it defines every target; else one at least.
 * TN_EINVAL if it is longer than TN_FORMULA_BYTES, or with the column if it violates the grammar, names
 * anything but given values, earlier statements and numeric options, or has a statement without use.
 * Functions are looked up when the formula is emitted. */
tn_status tn_formula_parse(const void *handle, tn_arena *arena, bool all, tn_formula *formula);

/* The number of terms that a step pops. */
int32_t tn_formula_step_pops(const tn_formula_step *step);

/* "formula of KIND NAME: column N: expected ..., found ...", as TN_EINVAL. `at` points into the text. */
tn_status tn_formula_refuse(const void *handle, const tn_formula *formula, const char *at,
                            const char *expected);
