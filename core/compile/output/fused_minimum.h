/* core/compile/output/fused_minimum.h: the bytes that a program moves where everything but its products is
 * fused; docs/guide/devices.md has the rules. */
#pragma once

#include "core/graph/graph.h"

/* Of a graph before pass `assign`, so that it is the same for all devices. */
tn_status tn_fused_minimum(const tn_graph *graph, double *bytes);
