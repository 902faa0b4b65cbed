/* core/graph/uses.c: the users of values, as compressed rows. */
#include "core/graph/uses.h"

#include <string.h>

/* start[v + 1] becomes the number of uses of v, then, by a prefix sum, the end of v's users. */
static void uses_count(const tn_graph *g, int32_t *start) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    for (int32_t k = 0; k < node->n_in; k++)
      if (node->in[k] != 0) start[node->in[k] + 1]++;
  }
  for (size_t v = 0; v < g->values.n; v++) start[v + 1] += start[v];
}

static void uses_list(const tn_graph *g, const int32_t *start, int32_t *fill, uint32_t *users) {
  memcpy(fill, start, g->values.n * sizeof(int32_t));
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    for (int32_t k = 0; k < node->n_in; k++)
      if (node->in[k] != 0) users[fill[node->in[k]]++] = (uint32_t)i;
  }
}

tn_status tn_uses_create(tn_arena *arena, const tn_graph *graph, tn_uses *uses) {
  size_t n = graph->values.n;
  int32_t *start = tn_arena_alloc(arena, (n + 2) * sizeof(int32_t));
  int32_t *fill = tn_arena_alloc(arena, (n + 1) * sizeof(int32_t));
  int32_t *outside = tn_arena_alloc(arena, (n + 1) * sizeof(int32_t));
  if (start == NULL || fill == NULL || outside == NULL) return TN_ENOMEM;
  uses_count(graph, start);
  uint32_t *users = tn_arena_alloc(arena, (size_t)start[n] * sizeof(uint32_t));
  if (users == NULL) return TN_ENOMEM;
  uses_list(graph, start, fill, users);
  for (size_t i = 0; i < graph->commits.n; i++) {
    outside[graph->commits.v[i].value]++;
    if (graph->commits.v[i].predicate != 0) outside[graph->commits.v[i].predicate]++;
  }
  for (size_t i = 0; i < graph->outputs.n; i++) outside[graph->outputs.v[i].value]++;
  *uses = (tn_uses){start, users, outside};
  return TN_OK;
}

tn_node_kind tn_node_kind_of(const tn_gnode *node) {
  const char *op = node->op->item.name;
  if (node->op->flags & TN_OP_VIEW) return TN_NODE_VIEW;
  if (strcmp(op, "input") == 0) return TN_NODE_INPUT;
  if (strcmp(op, "state") == 0) return TN_NODE_STATE;
  return strcmp(op, "pack") == 0 ? TN_NODE_PACK : TN_NODE_WORK;
}
