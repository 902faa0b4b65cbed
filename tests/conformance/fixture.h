/* tests/conformance/fixture.h: what a test of graphs stands on: a handle, the core's ops, and gradients
 * of a graph's outputs. */
#ifndef TN_TESTS_CONFORMANCE_FIXTURE_H
#define TN_TESTS_CONFORMANCE_FIXTURE_H

#include "core/graph/graph.h"

typedef struct fixture {
  tn_env env;
  tn_slot slot;
  tn_registry *registry;
  struct tn_op_table *ops;
} fixture;

tn_status fixture_open(fixture *f);
void fixture_close(fixture *f);

/* Adds to a graph d(sum over results of sum(result * dout)) / d(wrt): inputs named "dout.0" ... for
 * the cotangents, outputs named "grad.0" ... for the gradients. results[i] == 0 is left out, a gradient
 * that does not exist makes no output. */
tn_status fixture_add_gradients(tn_graph *graph, const tn_val *results, int32_t n_results, const tn_val *wrt,
                                int32_t n_wrt);

#endif
