/* core/conformance/trial/tolerance.c: the allowed difference between a kernel and the reference. */
#include <math.h>

#include "core/compile/kernels/describe_match.h"
#include "core/compile/kernels/query.h"
#include "core/conformance/trial/trial.h"

static const double EPS[TN_DTYPES] = {
    [TN_F16] = 0x1p-11, [TN_BF16] = 0x1p-8, [TN_F32] = 0x1p-24, [TN_F64] = 0x1p-53};

/* The terms of the sum in one element of a result: half the operations per element, as each addition comes
 * with a multiplication. */
static double sum_length(tn_arena *arena, const tn_graph *graph, const tn_gnode *node) {
  tn_cost cost = {0};
  double elements = 0;
  if (node->n_in == 0 || tn_node_cost(arena, graph, node, &cost) != TN_OK) return 1;
  for (int32_t i = 0; i < node->n_out; i++) {
    double count = (double)tn_type_count(tn_graph_type(graph, node->first_out + (tn_val)i));
    if (elements == 0 || count < elements) elements = count;
  }
  return elements > 0 ? fmax(1, cost.flops / (2 * elements)) : 1;
}

double tn_trial_tolerance(const tn_graph *graph, int32_t dtype) {
  int32_t sums = dtype == TN_F64 ? TN_F64 : TN_F32;
  tn_arena arena = tn_arena_new(graph->env);
  double longest = 1;
  if (!tn_dtype_is_float(dtype)) return 0;
  for (size_t i = 0; i < graph->nodes.n; i++)
    longest = fmax(longest, sum_length(&arena, graph, &graph->nodes.v[i]));
  tn_arena_free(&arena);
  return 8 * (sqrt(longest) * EPS[sums] + EPS[dtype]);
}
