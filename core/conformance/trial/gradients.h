/* core/conformance/trial/gradients.h: adds gradients to a graph as outputs. */
#pragma once

#include "core/graph/graph.h"

/* Adds d(sum over results of sum(result * dout)) / d(wrt) to a graph: inputs "dout.0" ... for the cotangents,
 * outputs "grad.0" ... for the gradients and "loss" for the sum. results[i] == 0 is left out; a zero gradient
 * has no output. At most 64 wrt. */
tn_status tn_gradients_add(tn_graph *graph, const tn_val *results, int32_t n_results, const tn_val *wrt,
                           int32_t n_wrt);
