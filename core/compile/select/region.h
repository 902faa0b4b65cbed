/* core/compile/select/region.h: grows `CLASS+` regions: connected nodes that one kernel does in one pass over
 * one iteration space. */
#ifndef TN_CORE_COMPILE_SELECT_REGION_H
#define TN_CORE_COMPILE_SELECT_REGION_H

#include "core/compile/select/match.h"

/* More nodes make a kernel's inner loop spill; more operands exhaust its pointers. */
enum { TN_REGION_NODES = 48, TN_REGION_OPERANDS = 24 };

typedef struct tn_region_nodes {
  uint32_t node[TN_REGION_NODES]; /* in the order in which they joined: every prefix is a region, too */
  int32_t n;
} tn_region_nodes;

/* Grows around `seed`. kernel[i] is the region kernel that takes node i alone, NULL: none; all nodes
 * of a region have that of the seed. */
void tn_region_grow(const tn_matcher *matcher, const tn_catalog_kernel *const *kernel, uint32_t seed,
                    tn_region_nodes *region);

/* What crosses the border of a set of nodes, as a candidate. Nodes are put into graph order. */
tn_status tn_region_candidate(const tn_matcher *matcher, const tn_catalog_kernel *kernel,
                              const uint32_t *nodes, int32_t n, tn_candidate *candidate);

/* The same with the results given: nodes that are computed elsewhere as well need not leave. */
tn_status tn_region_border(tn_arena *arena, const tn_graph *graph, const tn_catalog_kernel *kernel,
                           const uint32_t *nodes, int32_t n, const tn_val *out, int32_t n_out,
                           tn_candidate *candidate);

#endif
