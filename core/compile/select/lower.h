/* core/compile/select/lower.h: graph rewrites that select needs. */
#ifndef TN_CORE_COMPILE_SELECT_LOWER_H
#define TN_CORE_COMPILE_SELECT_LOWER_H

#include "core/graph/op/schema.h"

/* A new graph in which the marked nodes of `from` are replaced by their decompositions. Nodes that
 * compute the same are merged, since what ops decompose into often overlaps; dead ones are gone. */
tn_status tn_lower_decompose(const tn_graph *from, const bool *marked, tn_graph **graph);

/* Turns `commit p = new if c` into `commit p = where(c, new, old)`. Adds nodes at the end. */
tn_status tn_lower_predicates(tn_graph *graph);

#endif
