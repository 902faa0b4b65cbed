/* core/compile/round/placed_nodes.c: see placed_nodes.h. A value is of the host if it is a state in the
 * host's memory, the result of a node of the host, or a view of either. */
#include "core/compile/round/placed_nodes.h"

#include "core/graph/input_state.h"

const char tn_placed_reason[] = "its states are in memory of the host ([optimizer] place, [run] offload)";

typedef struct placed_search {
  const tn_graph *graph;
  const tn_state_map *map;
  tn_uses uses;
  bool *node;  /* per node: the result */
  bool *value; /* per value: it is of the host */
  bool *away;  /* per value: a commit of a state of the device, a predicate or an output reads it */
  bool *kept;  /* per value: a commit of a state in memory of the host reads it */
} placed_search;

static bool placed_is_host_state(const placed_search *s, const char *path) {
  const tn_placement *state = tn_state_map_find(s->map, path);
  return state != NULL && tn_state_map_on_host(s->map, state);
}

static bool placed_is_far_state(const placed_search *s, const char *path) {
  const tn_placement *state = tn_state_map_find(s->map, path);
  return state != NULL && tn_state_map_is_far(s->map, state);
}

static void placed_mark_ends(placed_search *s) {
  for (size_t i = 0; i < s->graph->commits.n; i++) {
    const tn_gcommit *c = &s->graph->commits.v[i];
    (placed_is_far_state(s, c->path) ? s->kept : s->away)[c->value] = true;
    if (c->predicate != 0) s->away[c->predicate] = true;
  }
  for (size_t i = 0; i < s->graph->outputs.n; i++) s->away[s->graph->outputs.v[i].value] = true;
}

static bool placed_reads_host(const placed_search *s, const tn_gnode *node) {
  for (int32_t k = 0; k < node->n_in; k++)
    if (node->in[k] != 0 && s->value[node->in[k]]) return true;
  return false;
}

/* Marks the nodes that depend on states of the host. A pack contains its operands, and is on the device. */
static void placed_go_forward(placed_search *s) {
  for (size_t i = 0; i < s->graph->nodes.n; i++) {
    const tn_gnode *node = &s->graph->nodes.v[i];
    tn_node_kind kind = tn_node_kind_of(node);
    bool host = kind == TN_NODE_STATE
                    ? placed_is_host_state(s, ((const tn_state_attributes *)node->attributes)->path)
                    : (kind == TN_NODE_WORK || kind == TN_NODE_VIEW) && placed_reads_host(s, node);
    s->node[i] = host && kind == TN_NODE_WORK;
    for (int32_t k = 0; host && k < node->n_out; k++) s->value[node->first_out + (tn_val)k] = true;
  }
}

/* Whether all that reads a value is of the host, and something does. */
static bool placed_serves_host(const placed_search *s, tn_val v) {
  if (s->away[v]) return false;
  for (int32_t k = s->uses.start[v]; k < s->uses.start[v + 1]; k++) {
    const tn_gnode *user = &s->graph->nodes.v[s->uses.node[k]];
    if (!s->node[s->uses.node[k]] && !(tn_node_kind_of(user) == TN_NODE_VIEW && s->value[user->first_out]))
      return false;
  }
  return s->kept[v] || s->uses.start[v + 1] > s->uses.start[v];
}

/* Whether an operand is absent, or the same as one before it. */
static bool placed_is_repeated(const tn_gnode *node, int32_t operand) {
  for (int32_t k = 0; k < operand; k++)
    if (node->in[k] == node->in[operand]) return true;
  return node->in[operand] == 0;
}

/* Nodes of a few numbers run on either side. */
enum { SMALL_BYTES = 4096 };

/* Its operands are no larger than its results, so the copies between device and host do not grow. */
static bool placed_may_move(const placed_search *s, const tn_gnode *node) {
  size_t in = 0, out = 0;
  bool none = true,
       elements = node->op->op_class == TN_CLASS_POINTWISE || node->op->op_class == TN_CLASS_RANDOM;
  if (node->op->flags & TN_OP_EFFECT) return false;
  for (int32_t k = 0; k < node->n_in; k++) {
    none = none && node->in[k] == 0;
    in += placed_is_repeated(node, k) ? 0 : tn_type_bytes(tn_graph_type(s->graph, node->in[k]));
  }
  for (int32_t k = 0; k < node->n_out; k++)
    out += tn_type_bytes(tn_graph_type(s->graph, node->first_out + (tn_val)k));
  return none || in + out <= SMALL_BYTES || (elements && in <= out + SMALL_BYTES);
}

/* Marks the nodes that only serve nodes of the host. Views are as their readers. */
static void placed_go_backward(placed_search *s) {
  for (size_t i = s->graph->nodes.n; i-- > 0;) {
    const tn_gnode *node = &s->graph->nodes.v[i];
    tn_node_kind kind = tn_node_kind_of(node);
    bool host = kind == TN_NODE_VIEW || (kind == TN_NODE_WORK && placed_may_move(s, node));
    if (s->node[i] || node->n_out == 0) continue;
    for (int32_t k = 0; host && k < node->n_out; k++)
      host = placed_serves_host(s, node->first_out + (tn_val)k);
    s->node[i] = host && kind == TN_NODE_WORK;
    for (int32_t k = 0; host && k < node->n_out; k++) s->value[node->first_out + (tn_val)k] = true;
  }
}

static bool placed_has_far_region(const tn_state_map *map) {
  for (size_t i = 0; map != NULL && i < map->regions.n; i++)
    if (tn_region_is_far(&map->regions.v[i])) return true;
  return false;
}

tn_status tn_find_placed_nodes(tn_arena *arena, const tn_graph *graph, const tn_state_map *map,
                               const bool **placed) {
  placed_search s = {.graph = graph, .map = map};
  *placed = NULL;
  if (!placed_has_far_region(map)) return TN_OK;
  TN_TRY(tn_uses_create(arena, graph, &s.uses));
  s.node = tn_arena_alloc(arena, (graph->nodes.n + 1) * sizeof *s.node);
  s.value = tn_arena_alloc(arena, graph->values.n * sizeof *s.value);
  s.away = tn_arena_alloc(arena, graph->values.n * sizeof *s.away);
  s.kept = tn_arena_alloc(arena, graph->values.n * sizeof *s.kept);
  if (s.node == NULL || s.value == NULL || s.away == NULL || s.kept == NULL) return TN_ENOMEM;
  placed_mark_ends(&s);
  placed_go_forward(&s);
  placed_go_backward(&s);
  *placed = s.node;
  return TN_OK;
}
