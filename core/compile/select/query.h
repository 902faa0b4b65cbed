/* core/compile/select/query.h: a set of nodes that a kernel might do, and what the kernel says about it. */
#ifndef TN_CORE_COMPILE_SELECT_QUERY_H
#define TN_CORE_COMPILE_SELECT_QUERY_H

#include "core/compile/select/catalog.h"

/* What the matcher or a growing region found. Everything it points to lies in the arena of the pass. */
typedef struct tn_candidate {
  const tn_catalog_kernel *kernel;
  int32_t n_nodes, n_in, n_out;
  const uint32_t *nodes;  /* of the graph, in the order in which the kernel sees them */
  const bool *swapped;    /* per node: the kernel sees its first two operands the other way round */
  const int32_t *numbers; /* as in tn_match_node.in, of all nodes one after the other */
  const tn_val *in, *out; /* in: 0 where absent */

  /* the kernel's answer */
  const tn_match *match;
  tn_choice choice; /* the cheapest of its variants */
  const tn_choice *variants;
  int32_t n_variants;
  tn_cost cost;
  const char *reason; /* why not; NULL if it can */
  bool replayed;      /* kernel and variant are those of an earlier compilation */
} tn_candidate;

/* Asks the kernel. TN_OK whatever it says; other codes are failures of the kernel or of memory. */
tn_status tn_candidate_query(tn_env *env, tn_arena *arena, const tn_graph *graph, const tn_target *target,
                             tn_candidate *candidate);

/* Floating-point operations of a node, and the bytes that it moves when it stands alone. */
tn_status tn_node_cost(tn_arena *arena, const tn_graph *graph, const tn_gnode *node, tn_cost *cost);

/* The group that a candidate becomes once its kernel has agreed. */
tn_group tn_group_of(const tn_candidate *candidate);

#endif
