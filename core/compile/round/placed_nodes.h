/* core/compile/round/placed_nodes.h: the nodes that run on the host because states in its memory are near:
 * those of an update whose states [optimizer] place has put there, and initial values of streamed weights. */
#pragma once

#include "core/compile/state_map.h"
#include "core/graph/uses.h"

/* The reason that a group on the host has in place of a fallback's (tn_group.fallback). */
extern const char tn_placed_reason[];

/* Per node, in the arena: it reads a state in memory of the host, or a value that depends on one, or nothing
 * but such nodes and commits of such states read it, and it is small, is pointwise with operands no larger
 * than its results, or has no operands. Views, packs, inputs and states are not marked. *placed is NULL if no
 * region of the map is in memory of the host. */
tn_status tn_find_placed_nodes(tn_arena *arena, const tn_graph *graph, const tn_state_map *map,
                               const bool **placed);
