/* core/compile/rematerialization/recompute.c: pass `recompute`.
 *
 * One rule, small and sound. A region R is the last to read a value v that another region makes by a
 * few cheap nodes. If R computes v itself, v is needed only until its reader before R, and what the
 * nodes read is needed until R. That is done where no launch has more alive than before: what is kept
 * longer must have been alive when v is given up, and be no more than v; inputs and what R reads anyway
 * cost nothing, and what is small beside v counts as nothing. Values made from nothing (constants) are
 * computed by every region that reads them. Such nodes are pure and elementwise, so the bits stay the
 * same; the kernel must have a variant that takes its operands as they lie. The order of the groups stands
 * for that of the launches, which is not known yet. */
#include <string.h>

#include "core/compile/select/region.h"
#include "core/graph/input_state.h"

enum {
  CLONE_NODES = 8, /* nodes that one value may cost */
  CLONE_FLOPS = 8, /* operations per element of it */
  SMALL = 16       /* an operand this many times smaller than the value counts as small */
};

typedef struct reading {
  struct reading *next;
  int32_t group;
} reading;

/* Tables per value count for the value whose memory a view shares. */
typedef struct recompute {
  tn_cover *cover;
  tn_val *base;       /* per value: itself, or what it is a view of */
  int32_t *maker;     /* the group that stores it, -1 */
  int32_t *readers;   /* groups that read it, and everything else that does */
  int32_t *last;      /* the last group that reads it; INT32_MAX where others than groups do */
  int32_t *before;    /* the last but one; its maker where there is none */
  reading **readings; /* every group that has ever read it; newest first */
  bool *dead;         /* per group */
  bool changed;
  tn_arena arena;
} recompute;

/* What R would have to compute: nodes of the group that makes the value. */
typedef struct clone {
  uint32_t node[CLONE_NODES];
  int32_t n;
} clone;

static const tn_pattern *pattern_of(const recompute *r, const tn_group *g, const tn_catalog_kernel **kernel) {
  const tn_catalog *catalog = r->cover->catalog;
  if (g->fallback != NULL) return NULL; /* what is on the other side is not cheap to have */
  for (size_t i = 0; i < catalog->regions.n; i++)
    if (catalog->regions.v[i].entry == g->entry) {
      *kernel = &catalog->regions.v[i];
      return catalog->regions.v[i].pattern;
    }
  return NULL;
}

static bool group_has(const tn_group *g, uint32_t node) {
  for (int32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i] == node) return true;
  return false;
}

/* ---- tables ---- */

static bool reads_base(const recompute *r, const tn_group *g, tn_val base) {
  for (int32_t i = 0; i < g->n_in; i++)
    if (r->base[g->in[i]] == base) return true;
  return false;
}

/* Groups are met in order, but R may become a reader later on. */
static void read_at(recompute *r, tn_val base, int32_t group) {
  r->readers[base]++;
  if (group > r->last[base]) {
    r->before[base] = r->last[base];
    r->last[base] = group;
  } else if (group < r->last[base] && group > r->before[base]) {
    r->before[base] = group;
  }
}

static tn_status add_reading(recompute *r, tn_val v, int32_t group) {
  reading *made = tn_arena_alloc(&r->arena, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  *made = (reading){r->readings[r->base[v]], group};
  r->readings[r->base[v]] = made;
  read_at(r, r->base[v], group);
  return TN_OK;
}

static void find_bases(recompute *r) {
  const tn_graph *graph = r->cover->graph;
  for (size_t v = 0; v < graph->values.n; v++) r->base[v] = (tn_val)v;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_VIEW)
      r->base[node->first_out] = r->base[node->in[0]];
  }
}

static tn_status find_lives(recompute *r) {
  const tn_graph *graph = r->cover->graph;
  for (size_t v = 0; v < graph->values.n; v++) r->maker[v] = r->last[v] = r->before[v] = -1;
  for (size_t i = 0; i < r->cover->groups.n; i++) {
    const tn_group *g = &r->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_out; k++) r->maker[g->out[k]] = r->last[g->out[k]] = (int32_t)i;
    for (int32_t k = 0; k < g->n_in; k++) TN_TRY(add_reading(r, g->in[k], (int32_t)i));
  }
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group >= 0 || tn_node_kind_of(node) != TN_NODE_PACK) continue;
    for (int32_t k = 0; k < node->n_in; k++) read_at(r, r->base[node->in[k]], INT32_MAX);
  }
  for (size_t i = 0; i < graph->commits.n; i++) read_at(r, r->base[graph->commits.v[i].value], INT32_MAX);
  for (size_t i = 0; i < graph->outputs.n; i++) read_at(r, r->base[graph->outputs.v[i].value], INT32_MAX);
  return TN_OK;
}

static tn_status start(recompute *r, tn_cover *cover) {
  size_t n = cover->graph->values.n;
  *r = (recompute){.cover = cover, .arena = tn_arena_new(cover->env)};
  r->base = tn_alloc(cover->env, n * sizeof *r->base);
  r->maker = tn_alloc(cover->env, n * sizeof *r->maker);
  r->readers = tn_alloc(cover->env, n * sizeof *r->readers);
  r->last = tn_alloc(cover->env, n * sizeof *r->last);
  r->before = tn_alloc(cover->env, n * sizeof *r->before);
  r->readings = tn_alloc(cover->env, n * sizeof *r->readings);
  r->dead = tn_alloc(cover->env, cover->groups.n * sizeof *r->dead);
  if (r->base == NULL || r->maker == NULL || r->readers == NULL || r->last == NULL || r->before == NULL ||
      r->readings == NULL || r->dead == NULL)
    return TN_ENOMEM;
  find_bases(r);
  return find_lives(r);
}

static void finish(recompute *r) {
  tn_release(r->cover->env, r->base);
  tn_release(r->cover->env, r->maker);
  tn_release(r->cover->env, r->readers);
  tn_release(r->cover->env, r->last);
  tn_release(r->cover->env, r->before);
  tn_release(r->cover->env, r->readings);
  tn_arena_free(&r->arena);
  tn_release(r->cover->env, r->dead);
}

/* ---- the rule ---- */

static bool clone_has(const clone *c, uint32_t node) {
  for (int32_t i = 0; i < c->n; i++)
    if (c->node[i] == node) return true;
  return false;
}

/* The nodes of a group from which a value follows; false if there are too many. */
static bool collect(const tn_graph *graph, const tn_group *g, tn_val v, clone *c) {
  c->node[0] = graph->values.v[v].node;
  c->n = 1;
  for (int32_t i = 0; i < c->n; i++) {
    const tn_gnode *node = &graph->nodes.v[c->node[i]];
    for (int32_t k = 0; k < node->n_in; k++) {
      uint32_t maker = graph->values.v[node->in[k]].node;
      if (node->in[k] == 0 || clone_has(c, maker) || !group_has(g, maker)) continue;
      if (c->n == CLONE_NODES) return false;
      c->node[c->n++] = maker;
    }
  }
  return true;
}

static tn_status is_cheap(recompute *r, tn_val v, const clone *c, bool *cheap) {
  double flops = 0;
  for (int32_t i = 0; i < c->n; i++) {
    tn_cost cost;
    TN_TRY(tn_node_cost(&r->cover->arena, r->cover->graph, &r->cover->graph->nodes.v[c->node[i]], &cost));
    flops += cost.flops;
  }
  *cheap = flops <= (double)CLONE_FLOPS * (double)tn_type_count(tn_graph_type(r->cover->graph, v));
  return TN_OK;
}

/* Whether a commit writes what the state's value at entry lies in. */
static bool overwrites(const tn_gcommit *commit, const char *path) {
  return path[0] == '@' || commit->path[0] == '@' || tn_text_equal(commit->path, path);
}

/* Whether the reader may read a state's value at entry. A commit stays in place when the group that makes
 * its value comes after the reader, since then nothing keeps the schedule from that order, either. */
static bool is_there_at(const recompute *r, int32_t reader, tn_val state) {
  const tn_graph *graph = r->cover->graph;
  const char *path = ((const tn_state_attributes *)tn_graph_maker(graph, state)->attributes)->path;
  for (size_t i = 0; i < graph->commits.n; i++)
    if (overwrites(&graph->commits.v[i], path) && r->maker[r->base[graph->commits.v[i].value]] <= reader)
      return false;
  return true;
}

/* What an operand of the clone costs: nothing, its bytes where it is kept for longer, or too much. */
typedef enum price { FREE, KEPT, TOO_MUCH } price;

static price price_of(const recompute *r, int32_t reader, tn_val v, tn_val operand) {
  const tn_graph *graph = r->cover->graph;
  tn_val u = r->base[operand];
  tn_node_kind kind = tn_node_kind_of(tn_graph_maker(graph, u));
  if (reads_base(r, &r->cover->groups.v[reader], u) || kind == TN_NODE_INPUT || r->last[u] >= reader)
    return FREE;
  if (kind == TN_NODE_STATE) return is_there_at(r, reader, u) ? FREE : TOO_MUCH;
  if (r->maker[u] < 0) return TOO_MUCH;
  if (tn_type_bytes(tn_graph_type(graph, u)) <= tn_type_bytes(tn_graph_type(graph, v)) / SMALL) return FREE;
  return r->last[u] >= r->before[v] ? KEPT : TOO_MUCH;
}

/* Whether R can have what the clone reads without more being alive than v. `constant`: it reads
 * nothing. */
static bool has_operands(const recompute *r, int32_t reader, tn_val v, const clone *c, bool *constant) {
  const tn_graph *graph = r->cover->graph;
  size_t kept = 0;
  *constant = true;
  for (int32_t i = 0; i < c->n; i++) {
    const tn_gnode *node = &graph->nodes.v[c->node[i]];
    for (int32_t k = 0; k < node->n_in; k++) {
      tn_val u = node->in[k];
      if (u == 0 || clone_has(c, graph->values.v[u].node)) continue;
      price p = price_of(r, reader, v, u);
      *constant = false;
      if (p == TOO_MUCH) return false;
      if (p == KEPT) kept += tn_type_bytes(tn_graph_type(graph, r->base[u]));
    }
  }
  return kept <= tn_type_bytes(tn_graph_type(graph, v));
}

static bool same_space(const tn_graph *graph, const tn_group *g, tn_val v) {
  return tn_type_same_dims(tn_graph_type(graph, v), tn_graph_type(graph, g->out[0]));
}

/* Either nobody else needs v, or it can be given up a while before R. */
static bool saves(const recompute *r, int32_t reader, tn_val v) {
  return r->before[v] == r->maker[v] || reader - r->before[v] > 1;
}

static tn_status is_worth(recompute *r, int32_t reader, tn_val v, clone *c, bool *worth) {
  const tn_graph *graph = r->cover->graph;
  const tn_group *g = &r->cover->groups.v[reader];
  const tn_catalog_kernel *kernel = NULL;
  bool constant = false;
  *worth = false;
  if (r->maker[v] < 0 || r->maker[v] == reader) return TN_OK;
  const tn_group *source = &r->cover->groups.v[r->maker[v]];
  if (pattern_of(r, source, &kernel) == NULL || !collect(graph, source, v, c)) return TN_OK;
  if (g->n_nodes + c->n > TN_REGION_NODES || !has_operands(r, reader, v, c, &constant)) return TN_OK;
  if (!constant && (r->last[v] != reader || !same_space(graph, g, v) || !saves(r, reader, v))) return TN_OK;
  return is_cheap(r, v, c, worth);
}

/* ---- the change ---- */

/* Who reads a value last, now that a group does not. */
static void find_last(recompute *r, tn_val base) {
  if (r->last[base] == INT32_MAX) return;
  r->last[base] = r->maker[base];
  r->before[base] = -1;
  r->readers[base] = 0;
  for (const reading *read = r->readings[base]; read != NULL; read = read->next)
    if (!r->dead[read->group] && reads_base(r, &r->cover->groups.v[read->group], base))
      read_at(r, base, read->group);
}

/* A group at `index` has changed, or is dead. */
static tn_status change_reads(recompute *r, const tn_group *old, int32_t index) {
  const tn_group *g = &r->cover->groups.v[index];
  for (int32_t i = 0; i < old->n_in; i++)
    if (r->dead[index] || !reads_base(r, g, r->base[old->in[i]])) find_last(r, r->base[old->in[i]]);
  for (int32_t i = 0; i < g->n_in && !r->dead[index]; i++)
    if (!reads_base(r, old, r->base[g->in[i]])) TN_TRY(add_reading(r, g->in[i], index));
  return TN_OK;
}

/* What a group leaves for a reorder, in another layout than its node's result has, no node makes. */
static bool make_all(const tn_graph *graph, const uint32_t *nodes, int32_t n, const tn_val *out,
                     int32_t n_out) {
  for (int32_t k = 0; k < n_out; k++) {
    bool made = false;
    for (int32_t i = 0; i < n; i++) made |= graph->values.v[out[k]].node == nodes[i];
    if (!made) return false;
  }
  return true;
}

/* Asks the group's kernel about other nodes and results; the group changes if the kernel agrees. */
static tn_status ask_again(recompute *r, int32_t index, const uint32_t *nodes, int32_t n, const tn_val *out,
                           int32_t n_out, bool *agreed) {
  tn_cover *cover = r->cover;
  tn_group *g = &cover->groups.v[index];
  const tn_catalog_kernel *kernel = NULL;
  tn_candidate c = {0};
  *agreed = false;
  if (pattern_of(r, g, &kernel) == NULL || !make_all(cover->graph, nodes, n, out, n_out)) return TN_OK;
  TN_TRY(tn_region_border(&cover->arena, cover->graph, kernel, nodes, n, out, n_out, &c));
  if (c.n_in > TN_REGION_OPERANDS) return TN_OK;
  TN_TRY(tn_candidate_query(cover->env, &cover->arena, cover->graph, &cover->catalog->target, &c));
  if (c.reason != NULL) return TN_OK;
  tn_group old = *g, changed = tn_group_of(&c);
  if (!tn_layout_fit(cover->graph, &changed)) return TN_OK;
  *g = changed;
  g->rejected = old.rejected;
  g->n_rejected = old.n_rejected;
  *agreed = r->changed = true;
  return change_reads(r, &old, index);
}

/* Nodes of a region that still lead to one of its results. */
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

/* Nobody reads v any more: its region need not store it, nor be launched for it alone. */
static tn_status drop_result(recompute *r, tn_val v) {
  int32_t index = r->maker[v], n_out = 0;
  const tn_group *g = &r->cover->groups.v[index];
  uint32_t nodes[TN_REGION_NODES];
  tn_val *out = tn_arena_alloc(&r->cover->arena, (size_t)g->n_out * sizeof *out);
  bool agreed = false;
  if (out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_out; i++)
    if (g->out[i] != v) out[n_out++] = g->out[i];
  if (n_out > 0) {
    int32_t n = needed_nodes(r->cover->graph, g, out, n_out, nodes);
    TN_TRY(ask_again(r, index, nodes, n, out, n_out, &agreed));
    if (agreed) r->maker[v] = -1;
    return TN_OK;
  }
  r->maker[v] = -1;
  r->dead[index] = true;
  return change_reads(r, g, index);
}

static tn_status try_value(recompute *r, int32_t reader, tn_val v, bool *done) {
  const tn_group *g = &r->cover->groups.v[reader];
  uint32_t nodes[TN_REGION_NODES];
  clone c = {.n = 0};
  TN_TRY(is_worth(r, reader, v, &c, done));
  if (!*done) return TN_OK;
  int32_t n = g->n_nodes;
  memcpy(nodes, g->nodes, (size_t)n * sizeof *nodes);
  for (int32_t i = 0; i < c.n; i++)
    if (!group_has(g, c.node[i])) nodes[n++] = c.node[i];
  TN_TRY(ask_again(r, reader, nodes, n, g->out, g->n_out, done));
  return *done && r->readers[v] == 0 ? drop_result(r, v) : TN_OK;
}

static tn_status try_group(recompute *r, int32_t reader) {
  const tn_catalog_kernel *kernel = NULL;
  if (r->dead[reader] || pattern_of(r, &r->cover->groups.v[reader], &kernel) == NULL) return TN_OK;
  for (int32_t i = 0; i < r->cover->groups.v[reader].n_in; i++) {
    bool done = false;
    TN_TRY(try_value(r, reader, r->cover->groups.v[reader].in[i], &done));
    if (done) i = -1; /* the operands are others now */
  }
  return TN_OK;
}

static void remove_dead(recompute *r) {
  size_t n = 0;
  for (size_t i = 0; i < r->cover->groups.n; i++)
    if (!r->dead[i]) r->cover->groups.v[n++] = r->cover->groups.v[i];
  r->cover->groups.n = n;
}

/* From the end: when the last reader of a value has given it up, the one before may. */
tn_status tn_pass_recompute(tn_env *env, tn_cover *cover) {
  recompute r;
  (void)env;
  tn_status status = start(&r, cover);
  for (int32_t i = (int32_t)cover->groups.n; status == TN_OK && i-- > 0;) status = try_group(&r, i);
  if (status == TN_OK && r.changed) {
    remove_dead(&r);
    tn_cover_number(cover);
  }
  finish(&r);
  return status;
}
