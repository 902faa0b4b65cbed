/* core/compile/rematerialization/view_bases.h: the value that owns the memory of a view, and commits that
 * overwrite a state. */
#pragma once

#include "core/graph/graph.h"

/* base[v] becomes v, or for a view the value whose memory it shares. `base` has an entry for every value. */
void tn_find_view_bases(const tn_graph *graph, tn_val *base);

/* Whether a commit may overwrite the memory of a state: it is a commit of the same state, or one of the two
 * is a region ("@param.f32"). */
bool tn_commit_may_overwrite(const tn_gcommit *commit, const char *path);
