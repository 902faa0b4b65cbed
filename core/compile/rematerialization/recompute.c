/* core/compile/rematerialization/recompute.c: pass `recompute`: rematerialization by fusion.
 *
 * Let region R be the last reader of a value v that another region makes with a few cheap nodes. If R
 * computes v itself, the live interval of v ends at the reader before R, and those of the nodes' operands
 * extend to R. The pass does that only if no launch then has more live bytes: an operand whose live interval
 * grows must have been live where that of v now ends, and these operands together must not be larger than v.
 * Inputs, operands that R reads anyway, and operands that are small beside v cost nothing. A value without
 * operands (a constant) is computed by every region that reads it.
 *
 * The nodes are pure and elementwise, so the bits stay the same. The kernel must have a variant that accepts
 * the present layouts. */
#include "core/compile/rematerialization/recompute.h"

#include <string.h>

#include "core/compile/kernels/describe_match.h"
#include "core/compile/layout/variant_layouts.h"
#include "core/compile/rematerialization/last_readers.h"
#include "core/compile/rematerialization/view_bases.h"
#include "core/compile/match/region.h"
#include "core/graph/input_state.h"

enum {
  RECOMPUTED_NODES = 8, /* at most this many nodes per value */
  RECOMPUTED_FLOPS = 8, /* at most this many operations per element of the value */
  SMALL_RATIO = 16      /* an operand this many times smaller than the value counts as small */
};

typedef struct recomputation {
  tn_cover *cover;
  tn_last_readers live;
  bool changed;
} recomputation;

/* The nodes that R would compute: nodes of the group that makes the value. */
typedef struct node_set {
  uint32_t node[RECOMPUTED_NODES];
  int32_t n;
} node_set;

static const tn_catalog_kernel *find_kernel_of(const tn_catalog_kernel *v, size_t n, const tn_group *g) {
  for (size_t i = 0; i < n; i++)
    if (v[i].entry == g->entry) return &v[i];
  return NULL;
}

/* NULL: the group is not a region, or it falls back, and its operands would have to be copied. */
static const tn_catalog_kernel *region_kernel_of(const recomputation *r, const tn_group *g) {
  const tn_catalog *catalog = r->cover->catalog;
  return g->fallback != NULL ? NULL : find_kernel_of(catalog->regions.v, catalog->regions.n, g);
}

/* The kernel of a group that can take more nodes: of a region, or of a node with a region as its epilogue.
 * The nodes of other patterns are in the pattern's order, which tn_region_border does not keep. */
static const tn_catalog_kernel *growing_kernel_of(const recomputation *r, const tn_group *g) {
  const tn_catalog *catalog = r->cover->catalog;
  const tn_catalog_kernel *kernel = region_kernel_of(r, g);
  if (kernel != NULL || g->fallback != NULL) return kernel;
  kernel = find_kernel_of(catalog->epilogues.v, catalog->epilogues.n, g);
  return kernel != NULL && kernel->pattern->n_nodes == 1 ? kernel : NULL;
}

/* ---- the rule ---- */

static bool has_set_node(const node_set *c, uint32_t node) {
  for (int32_t i = 0; i < c->n; i++)
    if (c->node[i] == node) return true;
  return false;
}

/* The nodes of a group that a value depends on; false if they are too many. */
static bool collect_nodes(const tn_graph *graph, const tn_group *g, tn_val v, node_set *c) {
  c->node[0] = graph->values.v[v].node;
  c->n = 1;
  for (int32_t i = 0; i < c->n; i++) {
    const tn_gnode *node = &graph->nodes.v[c->node[i]];
    for (int32_t k = 0; k < node->n_in; k++) {
      uint32_t maker = graph->values.v[node->in[k]].node;
      if (node->in[k] == 0 || has_set_node(c, maker) || !tn_group_has_node(g, maker)) continue;
      if (c->n == RECOMPUTED_NODES) return false;
      c->node[c->n++] = maker;
    }
  }
  return true;
}

static tn_status is_cheap_to_recompute(recomputation *r, tn_val v, const node_set *c, bool *cheap) {
  double flops = 0;
  for (int32_t i = 0; i < c->n; i++) {
    tn_cost cost;
    TN_TRY(tn_node_cost(&r->cover->arena, r->cover->graph, &r->cover->graph->nodes.v[c->node[i]], &cost));
    flops += cost.flops;
  }
  *cheap = flops <= (double)RECOMPUTED_FLOPS * (double)tn_type_count(tn_graph_type(r->cover->graph, v));
  return TN_OK;
}

/* Whether a group may read the old value of a state: the makers of all commits that may overwrite it come
 * after the group. Then the schedule can keep that order, and the commits stay in place. */
static bool may_read_state(const recomputation *r, int32_t reader, tn_val state) {
  const tn_graph *graph = r->cover->graph;
  const char *path = ((const tn_state_attributes *)tn_graph_maker(graph, state)->attributes)->path;
  for (size_t i = 0; i < graph->commits.n; i++)
    if (tn_commit_may_overwrite(&graph->commits.v[i], path) &&
        r->live.maker[r->live.base[graph->commits.v[i].value]] <= reader)
      return false;
  return true;
}

/* The cost of an operand of the recomputed nodes: nothing, its bytes if its live interval grows, or more than
 * allowed. */
typedef enum operand_cost { FREE, EXTENDED, TOO_MUCH } operand_cost;

static operand_cost cost_of_operand(const recomputation *r, int32_t reader, tn_val v, tn_val operand) {
  const tn_graph *graph = r->cover->graph;
  tn_val u = r->live.base[operand];
  tn_node_kind kind = tn_node_kind_of(tn_graph_maker(graph, u));
  if (tn_last_readers_group_reads(&r->live, &r->cover->groups.v[reader], u) || kind == TN_NODE_INPUT ||
      r->live.last[u] >= reader)
    return FREE;
  if (kind == TN_NODE_STATE) return may_read_state(r, reader, u) ? FREE : TOO_MUCH;
  if (r->live.maker[u] < 0) return TOO_MUCH;
  if (tn_type_bytes(tn_graph_type(graph, u)) <= tn_type_bytes(tn_graph_type(graph, v)) / SMALL_RATIO)
    return FREE;
  return r->live.last[u] >= r->live.before[v] ? EXTENDED : TOO_MUCH;
}

/* Whether the operands of the nodes are available to R without more live bytes than those of v. *constant:
 * the nodes have no operands. */
static bool has_affordable_operands(const recomputation *r, int32_t reader, tn_val v, const node_set *c,
                                    bool *constant) {
  const tn_graph *graph = r->cover->graph;
  size_t extended = 0;
  *constant = true;
  for (int32_t i = 0; i < c->n; i++) {
    const tn_gnode *node = &graph->nodes.v[c->node[i]];
    for (int32_t k = 0; k < node->n_in; k++) {
      tn_val u = node->in[k];
      if (u == 0 || has_set_node(c, graph->values.v[u].node)) continue;
      operand_cost cost = cost_of_operand(r, reader, v, u);
      *constant = false;
      if (cost == TOO_MUCH) return false;
      if (cost == EXTENDED) extended += tn_type_bytes(tn_graph_type(graph, r->live.base[u]));
    }
  }
  return extended <= tn_type_bytes(tn_graph_type(graph, v));
}

static bool has_same_space(const tn_graph *graph, const tn_group *g, tn_val v) {
  return tn_type_same_dims(tn_graph_type(graph, v), tn_graph_type(graph, g->out[0]));
}

/* Whether the live interval of v becomes shorter: v has no other reader, or a group lies between that one and
 * R. */
static bool shortens_interval(const recomputation *r, int32_t reader, tn_val v) {
  return r->live.before[v] == r->live.maker[v] || reader - r->live.before[v] > 1;
}

static tn_status is_worth_recomputing(recomputation *r, int32_t reader, tn_val v, node_set *c, bool *worth) {
  const tn_graph *graph = r->cover->graph;
  const tn_group *g = &r->cover->groups.v[reader];
  bool constant = false;
  *worth = false;
  if (r->live.maker[v] < 0 || r->live.maker[v] == reader) return TN_OK;
  const tn_group *source = &r->cover->groups.v[r->live.maker[v]];
  if (region_kernel_of(r, source) == NULL || !collect_nodes(graph, source, v, c)) return TN_OK;
  if (g->n_nodes + c->n > TN_REGION_NODES || !has_affordable_operands(r, reader, v, c, &constant))
    return TN_OK;
  if (!constant &&
      (r->live.last[v] != reader || !has_same_space(graph, g, v) || !shortens_interval(r, reader, v)))
    return TN_OK;
  return is_cheap_to_recompute(r, v, c, worth);
}

/* ---- the change ---- */

/* A result in another layout, made for a reorder, is the result of no node of the group. */
static bool make_all_results(const tn_graph *graph, const uint32_t *nodes, int32_t n, const tn_val *out,
                             int32_t n_out) {
  for (int32_t k = 0; k < n_out; k++) {
    bool made = false;
    for (int32_t i = 0; i < n; i++) made |= graph->values.v[out[k]].node == nodes[i];
    if (!made) return false;
  }
  return true;
}

/* Whether the statement in front of an epilogue would read what one of the nodes makes. An epilogue comes
 * behind its statement. */
static bool statement_reads_nodes(const tn_graph *graph, const tn_catalog_kernel *kernel,
                                  const uint32_t *nodes, int32_t n) {
  for (int32_t i = 0; kernel->pattern->epilogue >= 0 && i < n; i++) {
    const tn_gnode *node = &graph->nodes.v[nodes[i]];
    if (node->def != kernel->defs[0]) continue;
    for (int32_t k = 0; k < node->n_in; k++)
      for (int32_t j = 0; j < n; j++)
        if (node->in[k] != 0 && graph->values.v[node->in[k]].node == nodes[j]) return true;
  }
  return false;
}

/* The value that a group reads in place of v: v itself, or a reorder of v that pass `layout` has inserted. */
static tn_val operand_in_layout(const tn_graph *graph, const tn_group *g, tn_val v) {
  tn_val reordered = 0;
  for (int32_t k = 0; k < g->n_in; k++) {
    if (g->in[k] == v) return v;
    if (tn_graph_is(graph, g->in[k], "reorder") && tn_graph_maker(graph, g->in[k])->in[0] == v)
      reordered = g->in[k];
  }
  return reordered != 0 ? reordered : v;
}

/* The border of a region has the operands that its nodes name; the group keeps reading their reorders. */
static tn_status use_reordered_operands(recomputation *r, const tn_group *g, tn_candidate *c) {
  tn_val *in = tn_arena_copy(&r->cover->arena, c->in, (size_t)c->n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n_in; i++) in[i] = operand_in_layout(r->cover->graph, g, in[i]);
  c->in = in;
  return TN_OK;
}

/* Queries the group's kernel for other nodes and results; the group changes if the kernel accepts them. */
static tn_status change_group(recomputation *r, int32_t index, const uint32_t *nodes, int32_t n,
                              const tn_val *out, int32_t n_out, bool *accepted) {
  tn_cover *cover = r->cover;
  tn_group *g = &cover->groups.v[index];
  const tn_catalog_kernel *kernel = growing_kernel_of(r, g);
  tn_candidate c = {0};
  *accepted = false;
  if (kernel == NULL || !make_all_results(cover->graph, nodes, n, out, n_out) ||
      statement_reads_nodes(cover->graph, kernel, nodes, n))
    return TN_OK;
  TN_TRY(tn_region_border(&cover->arena, cover->graph, kernel, nodes, n, out, n_out, &c));
  TN_TRY(use_reordered_operands(r, g, &c));
  if (c.n_in > TN_REGION_OPERANDS) return TN_OK;
  TN_TRY(tn_candidate_query(cover->env, &cover->arena, cover->graph, &cover->catalog->target, &c));
  if (c.reason != NULL) return TN_OK;
  tn_group old = *g, changed = tn_candidate_group(&c);
  if (!tn_layout_choose_variant(cover->graph, &changed)) return TN_OK;
  *g = changed;
  g->rejected = old.rejected;
  g->n_rejected = old.n_rejected;
  *accepted = r->changed = true;
  return tn_last_readers_update(&r->live, &old, index);
}

/* The nodes of a region that its results depend on. */
static int32_t needed_nodes(const tn_graph *graph, const tn_group *g, const tn_val *out, int32_t n_out,
                            uint32_t *nodes) {
  bool need[TN_REGION_NODES] = {false};
  int32_t n = 0;
  for (int32_t i = g->n_nodes; i-- > 0;) {
    const tn_gnode *node = &graph->nodes.v[g->nodes[i]];
    for (int32_t k = 0; k < n_out; k++) need[i] |= graph->values.v[out[k]].node == g->nodes[i];
    for (int32_t k = 0; need[i] && k < node->n_in; k++)
      for (int32_t j = 0; j < i; j++)
        need[j] |= node->in[k] != 0 && graph->values.v[node->in[k]].node == g->nodes[j];
  }
  for (int32_t i = 0; i < g->n_nodes; i++)
    if (need[i]) nodes[n++] = g->nodes[i];
  return n;
}

/* After the last reader of v is gone, its region need not store it. A region without other results is
 * removed. */
static tn_status drop_unread_result(recomputation *r, tn_val v) {
  int32_t index = r->live.maker[v], n_out = 0;
  const tn_group *g = &r->cover->groups.v[index];
  uint32_t nodes[TN_REGION_NODES];
  tn_val *out = tn_arena_alloc(&r->cover->arena, (size_t)g->n_out * sizeof *out);
  bool accepted = false;
  if (out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_out; i++)
    if (g->out[i] != v) out[n_out++] = g->out[i];
  if (n_out > 0) {
    int32_t n = needed_nodes(r->cover->graph, g, out, n_out, nodes);
    TN_TRY(change_group(r, index, nodes, n, out, n_out, &accepted));
    if (accepted) r->live.maker[v] = -1;
    return TN_OK;
  }
  r->live.maker[v] = -1;
  r->live.dead[index] = true;
  return tn_last_readers_update(&r->live, g, index);
}

static tn_status recompute_value(recomputation *r, int32_t reader, tn_val v, bool *done) {
  const tn_group *g = &r->cover->groups.v[reader];
  uint32_t nodes[TN_REGION_NODES];
  node_set c = {.n = 0};
  TN_TRY(is_worth_recomputing(r, reader, v, &c, done));
  if (!*done) return TN_OK;
  int32_t n = g->n_nodes;
  memcpy(nodes, g->nodes, (size_t)n * sizeof *nodes);
  for (int32_t i = 0; i < c.n; i++)
    if (!tn_group_has_node(g, c.node[i])) nodes[n++] = c.node[i];
  TN_TRY(change_group(r, reader, nodes, n, g->out, g->n_out, done));
  return *done && r->live.last[v] == r->live.maker[v] ? drop_unread_result(r, v) : TN_OK;
}

static tn_status recompute_operands(recomputation *r, int32_t reader) {
  if (r->live.dead[reader] || growing_kernel_of(r, &r->cover->groups.v[reader]) == NULL) return TN_OK;
  for (int32_t i = 0; i < r->cover->groups.v[reader].n_in; i++) {
    bool done = false;
    TN_TRY(recompute_value(r, reader, r->cover->groups.v[reader].in[i], &done));
    if (done) i = -1; /* the group has other operands now */
  }
  return TN_OK;
}

static void remove_dead_groups(recomputation *r) {
  size_t n = 0;
  for (size_t i = 0; i < r->cover->groups.n; i++)
    if (!r->live.dead[i]) r->cover->groups.v[n++] = r->cover->groups.v[i];
  r->cover->groups.n = n;
}

/* From the end: after the last reader of a value has become independent of it, the reader before may. */
tn_status tn_pass_recompute(tn_cover *cover) {
  recomputation r = {.cover = cover};
  tn_status status = tn_last_readers_create(&r.live, cover);
  for (int32_t i = (int32_t)cover->groups.n; status == TN_OK && i-- > 0;) status = recompute_operands(&r, i);
  if (status == TN_OK && r.changed) {
    remove_dead_groups(&r);
    tn_cover_number_groups(cover);
  }
  tn_last_readers_free(&r.live);
  return status;
}
