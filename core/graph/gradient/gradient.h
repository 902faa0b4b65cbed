/* core/graph/gradient/gradient.h: private to core/graph: the path of gradients, and their sums. */
#pragma once

#include "core/graph/graph.h"

/* For each value, whether it lies on a path from one of wrt to loss through float values and ops that are
 * not TN_OP_NONDIFF. The caller's (tn_release). Checks loss and wrt. */
tn_status tn_gradient_path(const tn_graph *g, tn_val loss, const tn_val *wrt, int32_t n, bool **on_path);

/* Whether the node is differentiable and one of its results is on the path. */
static inline bool tn_gradient_passes(const tn_gnode *node, const bool *on_path) {
  for (int32_t i = 0; i < node->n_out; i++)
    if (on_path[node->first_out + (tn_val)i] && (node->op->flags & TN_OP_NONDIFF) == 0) return true;
  return false;
}

/* x + y; a concatenation if both are padded slices of one tensor that adjoin (gradient_sum.c). */
tn_val tn_gradient_sum(tn_build *b, tn_val x, tn_val y);
