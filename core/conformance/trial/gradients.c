/* core/conformance/trial/gradients.c: differentiates a weighted sum of results. */
#include "core/conformance/trial/gradients.h"

#include <stdio.h>

#include "tenon/ops.h"

static tn_status emit_gradients(tn_graph *graph, tn_build *b, const tn_val *results, int32_t n_results,
                                const tn_val *wrt, int32_t n_wrt) {
  char name[32];
  tn_val loss = 0, gradient[64];
  for (int32_t i = 0; i < n_results; i++) {
    if (results[i] == 0) continue;
    snprintf(name, sizeof name, "dout.%d", i);
    tn_val dout = tn_graph_input(graph, name, tn_val_type(b, results[i]));
    tn_val part = tn_to_dtype(b, tn_reduce_sum(b, tn_mul(b, results[i], dout), 0, NULL, 0), TN_F64);
    loss = loss == 0 ? part : tn_add(b, loss, part);
  }
  if (loss == 0 || n_wrt > 64)
    return tn_failf(
        b, TN_EINVAL,
        "%d results and %d inputs to differentiate, expected at least 1 result and at most 64 inputs",
        n_results, n_wrt);
  TN_TRY(tn_build_status(b));
  TN_TRY(tn_graph_output(graph, "loss", loss));
  TN_TRY(tn_differentiate(b, loss, 0, wrt, n_wrt, gradient, NULL));
  for (int32_t i = 0; i < n_wrt; i++) {
    snprintf(name, sizeof name, "grad.%d", i);
    if (gradient[i] != 0) TN_TRY(tn_graph_output(graph, name, gradient[i]));
  }
  return tn_build_status(b);
}

tn_status tn_gradients_add(tn_graph *graph, const tn_val *results, int32_t n_results, const tn_val *wrt,
                           int32_t n_wrt) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(graph, &builder));
  tn_build *b = tn_builder_handle(builder);
  tn_status status = emit_gradients(graph, b, results, n_results, wrt, n_wrt);
  if (status != TN_OK) tn_error_move(graph->env, b);
  tn_builder_destroy(builder);
  return status;
}
