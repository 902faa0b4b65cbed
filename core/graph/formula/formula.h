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
 * front of a bracket, a pointwise op. The precedence is Python's. Numbers are folded; an `if` whose
 * condition is a number emits one branch only. f16 and bf16 operands are computed in f32. */
#ifndef TN_CORE_GRAPH_FORMULA_FORMULA_H
#define TN_CORE_GRAPH_FORMULA_FORMULA_H

#include "core/graph/graph.h"

typedef struct tn_formula {
  const char *text;
  const tn_item *item;         /* whose options the formula may name */
  const char *const *operands; /* their names, in schema order */
  int32_t n_operands;
  const char *result; /* name of the result; NULL: any word */
} tn_formula;

/* Whether the text follows the grammar and names only operands and options. TN_EINVAL with the
 * column. Functions are looked up when the formula is emitted. */
tn_status tn_formula_check(const void *handle, const tn_formula *formula);

/* Emits the formula for the operands tn_build_in(b, 0) ... and yields result 0: broadcast over all of
 * them, of type bool if the formula ends in a comparison, else of the first float operand's type
 * (the first operand's where none is float). */
tn_status tn_formula_emit(tn_build *b, const tn_formula *formula, const void *attributes);

#endif
