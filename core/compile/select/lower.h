/* core/compile/select/lower.h: graph rewrites before and between rounds of covering. */
#pragma once

#include "core/graph/op/schema.h"

/* A new graph in which the marked nodes of `from` are replaced by their decompositions. Equal nodes are
 * merged, since decompositions often overlap; dead nodes are removed. */
tn_status tn_lower_decompose(const tn_graph *from, const bool *marked, tn_graph **graph);

/* Replaces `commit p = new if c` by `commit p = where(c, new, old)`. Adds nodes at the end. */
tn_status tn_lower_predicates(tn_graph *graph);
