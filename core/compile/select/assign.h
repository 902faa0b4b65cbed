/* core/compile/select/assign.h: pass `assign`: decides for each op whether the device or its fallback runs
 * it. */
#pragma once

#include "core/compile/round/cover_round.h"

/* A graph in its final form: composites without a kernel are decomposed, and every node that needs a kernel
 * is assigned to the device or to the fallback. */
typedef struct tn_assignment {
  tn_env *env;
  tn_catalog *catalog;  /* owned: the device's kernels */
  tn_catalog *fallback; /* owned: the fallback's kernels; NULL: the target has no fallback */
  tn_graph *graph;      /* owned */
  tn_round round;       /* the last round, in which the device's nodes are covered */
} tn_assignment;

/* Reads the graph and makes another. TN_EUNSUPPORTED with every kernel's reason: neither side has a kernel
 * for an op, or the op would fall back and the target refuses that. */
tn_status tn_pass_assign(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                         tn_assignment *assignment);
void tn_assignment_free(tn_assignment *assignment);
