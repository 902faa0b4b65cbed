/* core/compile/match/match.h: matches fixed patterns against a graph. */
#pragma once

#include "core/compile/kernels/query.h"
#include "core/compile/match/convexity.h"

typedef struct tn_matcher {
  const tn_graph *graph;
  const tn_uses *uses;
  tn_contracted_graph *contracted;
  const bool *taken; /* per node: it is in a group, or needs no kernel */
  /* per entry of uses->node: the user does not read the value, because its group recomputes it */
  const bool *recomputed;
  /* per value: a chosen group reads it for a node that it recomputes, in addition to the graph's users */
  const bool *borrowed;
  const bool *inner; /* per value: it is made inside a chosen group and not stored */
  tn_arena *arena;   /* holds candidates and reasons */
} tn_matcher;

/* Matches a kernel's pattern with its last node at `anchor`. Without a match candidate->kernel is NULL, and
 * *refusal is the reason why a match of the right shape was illegal, or NULL. */
tn_status tn_match_at(const tn_matcher *matcher, const tn_catalog_kernel *kernel, uint32_t anchor,
                      tn_candidate *candidate, const char **refusal);
