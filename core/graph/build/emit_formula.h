/* core/graph/build/emit_formula.h: private to core/graph: emits formulas. */
#pragma once

#include "core/graph/formula/formula.h"
#include "core/graph/graph.h"

/* Emits a parsed formula for the operands tn_build_in(b, 0) ... and yields the results: broadcast over all of
 * them, in the type of the schema, else in the first float operand's (the first operand's if no operand is
 * float). Numbers are folded; an `if` whose condition is a number emits one branch only, and a statement that
 * no result needs is left out. f16 and bf16 operands are computed in f32, unless at most one step of the text
 * rounds. */
tn_status tn_formula_emit(tn_build *b, const tn_formula *formula, const void *attributes);

/* Emits a parsed formula with `partial` for the values of its given names, 0 for those that are absent, in a
 * frame of its own on the top one. `want` says which targets are emitted, and `yielded`, zeros before, has
 * their values afterwards; both have n_targets elements. */
tn_status tn_formula_emit_partial(tn_build *b, const tn_formula *formula, const void *attributes,
                                  const tn_val *given, const bool *want, tn_val *yielded);

/* Emits a parsed gradient for the operands, the results tn_build_out(b, 0) ... and their gradients, which the
 * text names in this order, and yields the gradients of the operands that want one: summed over dimensions
 * that were broadcast, in the operand's type. */
tn_status tn_formula_emit_gradient(tn_build *b, const tn_formula *formula, const void *attributes);
