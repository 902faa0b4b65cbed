/* backends/shared/constants.h: operands whose value is known when a kernel is queried. */
#pragma once

#include <stdbool.h>

#include "tenon/attributes.h"
#include "tenon/plugin/kernel.h"

/* Whether every element of an operand is zero, by the graph: the other operand of `maximum` in a ReLU, and of
 * `gt` in its gradient. */
static inline bool tn_operand_is_zero(const tn_match *m, int32_t operand) {
  const tn_node *full = m->constant_node[operand];
  return full != NULL && ((const tn_full_attributes *)full->attributes)->value == 0;
}
