/* core/compile/select/convexity.h: a graph in which groups of nodes are contracted to one unit each, kept in
 * an order in which operands come first.
 *
 * A group is launched as one, so the contracted graph must stay free of cycles: a set of nodes may
 * become a group only if it is convex there, that is, if no path leaves it and comes back. Groups
 * that are convex among the nodes alone can still wait for each other. */
#ifndef TN_CORE_COMPILE_SELECT_CONVEXITY_H
#define TN_CORE_COMPILE_SELECT_CONVEXITY_H

#include "core/graph/uses.h"

typedef struct tn_units {
  const tn_graph *graph;
  const tn_uses *uses;
  int32_t *unit;   /* per node: its unit, which is the number of one of its nodes */
  int32_t *member; /* per unit: first node; then `next` per node, -1 at the end */
  int32_t *next;
  int32_t *position; /* per unit */
  int32_t *order;    /* unit at each position; -1 where units have been merged away */
  uint32_t *set, *seen, set_epoch, seen_epoch; /* marks per unit; a mark holds in its epoch only */
  int32_t set_first, set_last;                 /* positions of the set's ends */
  int32_t *stack, *moved;
} tn_units;

/* One unit per node. Everything lies in the arena. */
tn_status tn_units_create(tn_arena *arena, const tn_graph *graph, const tn_uses *uses, tn_units *units);

/* A set of nodes, each a unit of its own, that may become one. */
void tn_units_set_start(tn_units *units);
void tn_units_set_add(tn_units *units, uint32_t node);
static inline bool tn_units_set_has(const tn_units *u, uint32_t node) {
  return u->set[u->unit[node]] == u->set_epoch;
}
/* Whether the set, which is these nodes, is convex; false as well where finding out takes too long. */
bool tn_units_set_convex(tn_units *units, const uint32_t *nodes, int32_t n);
/* Whether a convex set stays so when a neighbour joins. */
bool tn_units_set_admits(tn_units *units, uint32_t node);
/* Makes the set, which must be convex, one unit. */
void tn_units_set_merge(tn_units *units, const uint32_t *nodes, int32_t n);

#endif
