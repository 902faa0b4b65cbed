/* core/graph/liveness.c: who uses what, and what is needed at all. */
#include "core/graph/graph.h"

tn_status tn_graph_count_uses(const tn_graph *g, int32_t **uses) {
  int32_t *count = tn_alloc(g->env, tn_size_mul(g->values.n, sizeof *count));
  *uses = count;
  if (count == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < g->nodes.n; i++)
    for (int32_t k = 0; k < g->nodes.v[i].n_in; k++) count[g->nodes.v[i].in[k]]++;
  for (size_t i = 0; i < g->commits.n; i++) {
    count[g->commits.v[i].value]++;
    count[g->commits.v[i].predicate]++;
  }
  for (size_t i = 0; i < g->outputs.n; i++) count[g->outputs.v[i].value]++;
  count[0] = 0; /* absent operands were counted along */
  return TN_OK;
}

static void mark(const tn_graph *g, bool *live, tn_val v) {
  if (v != 0) live[g->values.v[v].node] = true;
}

tn_status tn_graph_live(const tn_graph *g, bool **out) {
  bool *live = tn_alloc(g->env, tn_size_mul(g->nodes.n, sizeof *live));
  *out = live;
  if (live == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < g->commits.n; i++) {
    mark(g, live, g->commits.v[i].value);
    mark(g, live, g->commits.v[i].predicate);
  }
  for (size_t i = 0; i < g->outputs.n; i++) mark(g, live, g->outputs.v[i].value);
  for (size_t i = g->nodes.n; i-- > 0;) {
    const tn_gnode *node = &g->nodes.v[i];
    if ((node->op->flags & TN_OP_EFFECT) != 0) live[i] = true;
    for (int32_t k = 0; live[i] && k < node->n_in; k++) mark(g, live, node->in[k]);
  }
  return TN_OK;
}
