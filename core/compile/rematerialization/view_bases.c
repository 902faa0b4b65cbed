/* core/compile/rematerialization/view_bases.c: the value that owns the memory of a view. */
#include "core/compile/rematerialization/view_bases.h"

#include "core/base/text/text.h"
#include "core/graph/uses.h"

void tn_find_view_bases(const tn_graph *graph, tn_val *base) {
  for (size_t v = 0; v < graph->values.n; v++) base[v] = (tn_val)v;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_VIEW) base[node->first_out] = base[node->in[0]];
  }
}

bool tn_commit_may_overwrite(const tn_gcommit *commit, const char *path) {
  return path[0] == '@' || commit->path[0] == '@' || tn_text_equal(commit->path, path);
}
