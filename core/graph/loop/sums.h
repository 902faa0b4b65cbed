/* core/graph/loop/sums.h: private to core/graph/loop: sums over the steps of a loop that are computed outside
 * of it. The sum of a product of transposed rows, as the gradient of a weight is one, is one product of the
 * rows of all steps; the sum of a sum is one sum. The loop then gives the rows of its steps as outputs. */
#pragma once

#include "core/graph/loop/loop.h"

/* The rows of all steps: an output of the loop, or a value outside of it. */
typedef struct tn_loop_rows {
  int32_t output; /* -1: `outer` has them */
  tn_val outer;
} tn_loop_rows;

typedef struct tn_loop_sum {
  bool product; /* of `left`, transposed, and `right`; otherwise the sum of `left` over `axes` */
  int32_t math; /* of the product */
  tn_loop_rows left, right;
  int64_t axes[TN_MAX_RANK];
  int32_t n_axes;
  tn_type type; /* of the sum */
} tn_loop_sum;

/* Whether the sum over the steps of `part`, a value of the body, can be computed outside. Outputs are added
 * to the parts. b builds the graph that has the loop. */
tn_status tn_loop_sum_find(tn_build *b, tn_loop_parts *parts, tn_val part, bool *found, tn_loop_sum *sum);

/* Emits the sum; first is the first result of the loop. */
tn_val tn_loop_sum_emit(tn_build *b, const tn_loop_sum *sum, tn_val first);
