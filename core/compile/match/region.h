/* core/compile/match/region.h: grows `CLASS+` regions: connected nodes that one kernel computes in one pass
 * over one iteration space. */
#pragma once

#include "core/compile/match/match.h"

/* With more nodes a kernel's inner loop spills registers; with more operands it runs out of pointers. */
enum { TN_REGION_NODES = 128, TN_REGION_OPERANDS = 24 };

typedef struct tn_region_nodes {
  uint32_t node[TN_REGION_NODES]; /* in the order in which they joined; every prefix is a region, too */
  int32_t n;
} tn_region_nodes;

/* Grows a region around `seed`. kernel[i] is the region kernel that accepts node i by itself, or NULL; all
 * nodes of a region have the seed's. */
void tn_region_grow(const tn_matcher *matcher, const tn_catalog_kernel *const *kernel, uint32_t seed,
                    tn_region_nodes *region);

/* Whether a value that the set of the contracted graph makes has a user outside of the set. */
bool tn_region_has_user_outside(const tn_matcher *matcher, tn_val v);

/* A candidate of a set of nodes, sorted in graph order. Its results are the values with users outside. */
tn_status tn_region_candidate(const tn_matcher *matcher, const tn_catalog_kernel *kernel,
                              const uint32_t *nodes, int32_t n, tn_candidate *candidate);

/* The same with given results: a value that another group computes, too, need not be one. */
tn_status tn_region_border(tn_arena *arena, const tn_graph *graph, const tn_catalog_kernel *kernel,
                           const uint32_t *nodes, int32_t n, const tn_val *out, int32_t n_out,
                           tn_candidate *candidate);

/* The same with the nodes in their order, which is a topological one. */
tn_status tn_nodes_border(tn_arena *arena, const tn_graph *graph, const tn_catalog_kernel *kernel,
                          const uint32_t *nodes, int32_t n, const tn_val *out, int32_t n_out,
                          tn_candidate *candidate);
