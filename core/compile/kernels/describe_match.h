/* core/compile/kernels/describe_match.h: a candidate in the form in which its kernel sees it, and its cost.
 */
#pragma once

#include "core/compile/kernels/candidate.h"
#include "core/compile/kernels/tuner.h"

/* Nodes, types and numbers of a candidate, in the arena. */
tn_status tn_describe_match(tn_arena *arena, const tn_graph *graph, const tn_target *target,
                            const tn_candidate *candidate, tn_match **match);

/* Floating-point operations of all nodes, and bytes of the operands and results that cross the candidate's
 * border. */
tn_cost tn_match_cost(const tn_graph *graph, const tn_candidate *candidate, const tn_match *match);
/* Floating-point operations of a node, and the bytes that it moves in a launch of its own. */
tn_status tn_node_cost(tn_arena *arena, const tn_graph *graph, const tn_gnode *node, tn_cost *cost);
/* The candidate as a tuner sees it, in the arena. */
tn_status tn_describe_tuning(tn_arena *arena, const tn_graph *graph, const tn_candidate *candidate,
                             tn_tuning *tuning);
/* Estimated seconds of a launch: that work at the rates of the device, products of matrices at those of their
 * first operand's dtype. */
double tn_match_seconds(const tn_graph *graph, const tn_candidate *candidate, const tn_match *match,
                        const tn_device_properties *device);
