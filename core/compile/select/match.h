/* core/compile/select/match.h: finds where in a graph a fixed pattern fits. */
#ifndef TN_CORE_COMPILE_SELECT_MATCH_H
#define TN_CORE_COMPILE_SELECT_MATCH_H

#include "core/compile/select/query.h"
#include "core/compile/select/convexity.h"

typedef struct tn_matcher {
  const tn_graph *graph;
  const tn_uses *uses;
  tn_units *units;
  const bool *taken; /* per node: in a group already, or not to be in any */
  tn_arena *arena;   /* of candidates and reasons */
} tn_matcher;

/* Tries a kernel's pattern with its last node at `anchor`. candidate->kernel is set if it fits, NULL
 * if not; *refusal says why a match of the right shape was not taken, and is NULL otherwise. */
tn_status tn_match_at(const tn_matcher *matcher, const tn_catalog_kernel *kernel, uint32_t anchor,
                      tn_candidate *candidate, const char **refusal);

#endif
