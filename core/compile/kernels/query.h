/* core/compile/kernels/query.h: a candidate: nodes that a kernel may compute, and the kernel's answer. */
#ifndef TN_CORE_COMPILE_KERNELS_QUERY_H
#define TN_CORE_COMPILE_KERNELS_QUERY_H

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/group.h"

/* Made by the matcher or from a region. Everything that it points to lives in the arena of the pass. */
typedef struct tn_candidate {
  const tn_catalog_kernel *kernel;
  int32_t n_nodes, n_in, n_out;
  const uint32_t *nodes;  /* in the order in which the kernel sees them */
  const bool *shared;     /* per node: only recomputed, not taken (`&` in the pattern); NULL: all are taken */
  const bool *swapped;    /* per node: the kernel sees its first two operands exchanged; NULL: no node is */
  const int32_t *numbers; /* as in tn_match_node.in, concatenated over all nodes */
  const tn_val *in, *out; /* in: 0 where absent */

  /* the kernel's answer, set by tn_candidate_query */
  const tn_match *match;
  tn_match_key key; /* of the match */
  tn_choice choice; /* the cheapest of its variants */
  const tn_choice *variants;
  int32_t n_variants;
  tn_cost cost;
  const char *reason; /* why the kernel declined; NULL: it accepted */
  bool replayed;      /* kernel and variant are those of the replayed compilation */
} tn_candidate;

/* Whether the group of a candidate is the one that has a node. */
static inline bool tn_candidate_takes(const tn_candidate *c, int32_t node) {
  return c->shared == NULL || !c->shared[node];
}
/* The last node is always taken. */
static inline uint32_t tn_candidate_last_node(const tn_candidate *c) { return c->nodes[c->n_nodes - 1]; }

/* Queries the kernel. TN_OK also if it declines; other codes are failures of the kernel or of memory. */
tn_status tn_candidate_query(tn_env *env, tn_arena *arena, const tn_graph *graph, const tn_target *target,
                             tn_candidate *candidate);

/* Floating-point operations of a node, and the bytes that it moves in a launch of its own. */
tn_status tn_node_cost(tn_arena *arena, const tn_graph *graph, const tn_gnode *node, tn_cost *cost);

/* The cost of a candidate where it is compared with another one: where one of them is measured, and not the
 * other, the estimates of both count. */
double tn_candidate_cost_beside(const tn_candidate *candidate, const tn_candidate *other);

/* The group of a candidate that its kernel accepted. */
tn_group tn_candidate_group(const tn_candidate *candidate);

#endif
