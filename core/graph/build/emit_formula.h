/* core/graph/build/emit_formula.h: private to core/graph: emits formulas. */
#pragma once

#include "core/graph/formula/formula.h"
#include "core/graph/graph.h"

/* Emits a parsed formula for the operands tn_build_in(b, 0) ... and yields result 0: broadcast over all of
 * them, of type bool if the formula ends in a comparison, else of the first float operand's type (the first
 * operand's if no operand is float). Numbers are folded; an `if` whose condition is a number emits one branch
 * only. f16 and bf16 operands are computed in f32. */
tn_status tn_formula_emit(tn_build *b, const tn_formula *formula, const void *attributes);
