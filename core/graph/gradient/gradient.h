/* core/graph/gradient/gradient.h: private to core/graph: what expand.c, differentiate.c and sum.c share. */
#ifndef TN_CORE_GRAPH_GRADIENT_GRADIENT_H
#define TN_CORE_GRAPH_GRADIENT_GRADIENT_H

#include "core/graph/graph.h"

/* Per value, whether it lies on a path from one of wrt to loss along which gradients flow: through
 * float values and ops that are not TN_OP_NONDIFF. The caller's (tn_release). Checks loss and wrt. */
tn_status tn_gradient_path(const tn_graph *g, tn_val loss, const tn_val *wrt, int32_t n, bool **on_path);

/* Whether gradients flow through the node. */
static inline bool tn_gradient_passes(const tn_gnode *node, const bool *on_path) {
  for (int32_t i = 0; i < node->n_out; i++)
    if (on_path[node->first_out + (tn_val)i] && (node->op->flags & TN_OP_NONDIFF) == 0) return true;
  return false;
}

/* sum.c: x + y, or without zeros in between where both are pieces of one tensor's gradient, side by side. */
tn_val tn_gradient_sum(tn_build *b, tn_val x, tn_val y);

#endif
