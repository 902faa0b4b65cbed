/* core/graph/gradient/gradient.h: private to core/graph: the path of gradients, and their sums. */
#pragma once

#include "core/graph/graph.h"

/* Values from which gradients go backward: the loss, or several values of any shape. */
typedef struct tn_gradient_ends {
  tn_val *v;
  int32_t n;
} tn_gradient_ends;

/* For each value, whether it lies on a path from one of wrt to one of the ends through float values and ops
 * that are not TN_OP_NONDIFF. The caller's (tn_release). Checks ends and wrt. */
tn_status tn_gradient_path(const tn_graph *g, const tn_gradient_ends *ends, const tn_val *wrt, int32_t n,
                           bool **on_path);

/* tn_expand_for_gradient for several ends. */
tn_status tn_expand_between(tn_build *b, const tn_gradient_ends *ends, tn_val *wrt, int32_t n);

/* The node of the end that comes last in the graph. */
static inline size_t tn_gradient_last_node(const tn_graph *g, const tn_gradient_ends *ends) {
  size_t last = 0;
  for (int32_t i = 0; i < ends->n; i++)
    if (g->values.v[ends->v[i]].node > last) last = g->values.v[ends->v[i]].node;
  return last;
}

/* Whether the node is differentiable and one of its results is on the path. */
static inline bool tn_gradient_passes(const tn_gnode *node, const bool *on_path) {
  for (int32_t i = 0; i < node->n_out; i++)
    if (on_path[node->first_out + (tn_val)i] && (node->op->flags & TN_OP_NONDIFF) == 0) return true;
  return false;
}

/* x + y; a concatenation if both are padded slices of one tensor that adjoin (gradient_sum.c). */
tn_val tn_gradient_sum(tn_build *b, tn_val x, tn_val y);
