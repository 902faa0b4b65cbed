/* core/graph/liveness.c: the nodes that outputs, commits and effects depend on. */
#include "core/graph/graph.h"

static void liveness_mark(const tn_graph *g, bool *live, tn_val v) {
  if (v != 0) live[g->values.v[v].node] = true;
}

tn_status tn_graph_live(const tn_graph *g, bool **out) {
  bool *live = tn_alloc(g->env, tn_size_mul(g->nodes.n, sizeof *live));
  *out = live;
  if (live == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < g->commits.n; i++) {
    liveness_mark(g, live, g->commits.v[i].value);
    liveness_mark(g, live, g->commits.v[i].predicate);
  }
  for (size_t i = 0; i < g->outputs.n; i++) liveness_mark(g, live, g->outputs.v[i].value);
  for (size_t i = g->nodes.n; i-- > 0;) {
    const tn_gnode *node = &g->nodes.v[i];
    if ((node->op->flags & TN_OP_EFFECT) != 0) live[i] = true;
    for (int32_t k = 0; live[i] && k < node->n_in; k++) liveness_mark(g, live, node->in[k]);
  }
  return TN_OK;
}
