/* core/compile/match/convexity.h: the contracted graph, and convex sets in it.
 *
 * Every group of nodes is contracted to one vertex, and the vertices are kept in topological order. A group
 * is one launch, so the contracted graph must stay acyclic: a set of nodes may become a group only if it is
 * convex in the contracted graph, that is, if no path leaves the set and re-enters it. Convexity in the graph
 * of nodes would not be enough: two such groups can depend on each other. */
#pragma once

#include "core/graph/uses.h"

typedef struct tn_contracted_graph {
  const tn_graph *graph;
  const tn_uses *uses;
  int32_t *vertex;       /* per node: its vertex, numbered as one of the vertex's nodes */
  int32_t *first_member; /* per vertex: its first node */
  int32_t *next_member;  /* per node: the vertex's next node, -1 at the end */
  /* The vertices in topological order are a circular list through the number `end`, which is no vertex. */
  int32_t *next, *previous;
  int64_t *position; /* per vertex and `end`: grows along the list */
  int32_t end;
  uint32_t *set, *seen; /* per vertex: the epoch in which it was marked */
  uint32_t set_epoch, seen_epoch;
  int64_t set_first, set_last; /* the first and last position of the set's vertices */
  int32_t set_tail;            /* the vertex at the last position */
  int32_t *stack;              /* scratch */
} tn_contracted_graph;

/* The vertices in topological order: from first to next until `end`. */
static inline int32_t tn_contracted_first(const tn_contracted_graph *c) { return c->next[c->end]; }

/* One vertex per node. Everything lives in the arena. */
tn_status tn_contracted_create(tn_arena *arena, const tn_graph *graph, const tn_uses *uses,
                               tn_contracted_graph *contracted);

/* The set: nodes, each a vertex of its own, that may become one vertex. */
void tn_contracted_set_start(tn_contracted_graph *contracted);
void tn_contracted_set_add(tn_contracted_graph *contracted, uint32_t node);
/* The set becomes these nodes. */
void tn_contracted_set_of(tn_contracted_graph *contracted, const uint32_t *nodes, int32_t n);
static inline bool tn_contracted_set_has(const tn_contracted_graph *c, uint32_t node) {
  return c->set[c->vertex[node]] == c->set_epoch;
}
/* Whether the set, which consists of these nodes, is convex; false also if the search takes too long. */
bool tn_contracted_set_is_convex(tn_contracted_graph *contracted, const uint32_t *nodes, int32_t n);
/* Whether a convex set stays convex if a neighbour joins. */
bool tn_contracted_set_admits(tn_contracted_graph *contracted, uint32_t node);
/* Makes the set, which must be convex, one vertex. */
void tn_contracted_set_merge(tn_contracted_graph *contracted, const uint32_t *nodes, int32_t n);
