/* core/compile/kernels/query.h: queries of kernels about candidates, and the costs of candidates. */
#pragma once

#include "core/compile/kernels/candidate.h"

/* Queries the kernel. TN_OK also if it declines; other codes are failures of the kernel or of memory. */
tn_status tn_candidate_query(tn_env *env, tn_arena *arena, const tn_graph *graph, const tn_target *target,
                             tn_candidate *candidate);

/* The cost of a candidate where it is compared with another one: where one of them is measured, and not the
 * other, the estimates of both count. */
double tn_candidate_cost_beside(const tn_candidate *candidate, const tn_candidate *other);

/* The group of a candidate that its kernel accepted. */
tn_group tn_candidate_group(const tn_candidate *candidate);
