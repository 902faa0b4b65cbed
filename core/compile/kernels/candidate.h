/* core/compile/kernels/candidate.h: a candidate: nodes that a kernel may compute, and the kernel's answer. */
#pragma once

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
