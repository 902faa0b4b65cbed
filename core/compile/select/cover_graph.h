/* core/compile/select/cover_graph.h: rounds of covering, until every composite op is covered or decomposed.
 */
#pragma once

#include "core/compile/round/cover_round.h"

/* Covers *graph and replaces it by its decomposed form. Nodes that no kernel accepts and that have no
 * decomposition stay uncovered, and so do placed nodes, whose kernels are those of `host` (NULL: there are
 * none). *round must be new or finished; it is the last round afterwards, which the caller finishes, also
 * after a failure. */
tn_status tn_run_rounds(tn_round *round, tn_env *env, tn_catalog *catalog, tn_catalog *host,
                        tn_graph **graph);
