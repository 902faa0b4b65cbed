/* core/compile/rematerialization/forward_backward.c: finds the turn of a cover, its blocks, and what lies
 * idle between. */
#include "core/compile/rematerialization/forward_backward.h"

#include <ctype.h>
#include <string.h>

#include "core/graph/uses.h"
#include "core/graph/input_state.h"

/* A value this many times smaller than all that is kept is not worth a launch. */
enum { NEGLIGIBLE = 1024 };

/* ---- blocks ---- */

static bool is_number(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isdigit((unsigned char)text[i])) return false;
  return n > 0;
}

/* Characters of a layer's path that name its block: up to the last number that is not the end
 * ("layer1.0" of "layer1.0.conv1"), else the first part ("down1" of "down1.conv1"). */
static size_t block_length(const char *path) {
  size_t length = 0, start = 0, n = strlen(path);
  for (size_t i = 0; i < n; i++) {
    if (path[i] != '.') continue;
    if (is_number(path + start, i - start)) length = i;
    start = i + 1;
  }
  return length > 0 ? length : strcspn(path, ".");
}

static const char *layer_of(const tn_halves *h, const tn_group *g) {
  const char *layer = tn_graph_maker(h->cover->graph, g->out[0])->layer;
  return layer != NULL ? layer : "";
}

/* "relu@2.0" and "conv1" are layers that stand for themselves. */
static tn_status name_block(tn_halves *h, int32_t group) {
  const char *layer = layer_of(h, &h->groups[group]);
  size_t n = block_length(layer), at = strcspn(layer, "@");
  h->leaf[group] = n == strlen(layer) || at < n;
  h->block[group] = tn_arena_printf(&h->arena, "%.*s", (int)n, layer);
  return h->block[group] != NULL ? TN_OK : TN_ENOMEM;
}

bool tn_halves_same_block(const tn_halves *h, int32_t a, int32_t b) {
  return (h->leaf[a] && h->leaf[b]) || tn_text_equal(h->block[a], h->block[b]);
}

/* ---- tables ---- */

static bool has_node(const tn_group *g, uint32_t node) {
  for (int32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i] == node) return true;
  return false;
}

/* A result that a reorder stands for is made by a node of another group; that is not followed. */
static bool is_repeatable(const tn_graph *graph, const tn_group *g) {
  if (!g->choice.deterministic || g->role != TN_STREAM_COMPUTE || g->fallback != NULL) return false;
  for (int32_t i = 0; i < g->n_out; i++)
    if (!has_node(g, graph->values.v[g->out[i]].node)) return false;
  for (int32_t i = 0; i < g->n_nodes; i++)
    if (graph->nodes.v[g->nodes[i]].op->flags & TN_OP_EFFECT) return false;
  return true;
}

static tn_status describe_groups(tn_halves *h) {
  for (int32_t i = 0; i < h->n_groups; i++) {
    TN_TRY(name_block(h, i));
    h->repeatable[i] = is_repeatable(h->cover->graph, &h->groups[i]);
  }
  return TN_OK;
}

static void find_bases(tn_halves *h) {
  const tn_graph *graph = h->cover->graph;
  for (size_t v = 1; v < h->n_values; v++) {
    h->base[v] = (tn_val)v;
    h->maker[v] = -1;
    h->bytes[v] = tn_layout_bytes(tn_graph_type(graph, (tn_val)v), &graph->values.v[v].layout);
  }
  for (size_t i = 0; i < h->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_VIEW)
      h->base[node->first_out] = h->base[node->in[0]];
  }
  for (int32_t i = 0; i < h->n_groups; i++)
    for (int32_t k = 0; k < h->groups[i].n_out; k++) h->maker[h->groups[i].out[k]] = i;
}

/* Counts into start[v + 1] first; then start[v] is where the readers of v begin. */
static tn_status list_readers(tn_halves *h) {
  for (int32_t i = 0; i < h->n_groups; i++)
    for (int32_t k = 0; k < h->groups[i].n_in; k++) h->start[h->base[h->groups[i].in[k]] + 1]++;
  for (size_t v = 0; v < h->n_values; v++) h->start[v + 1] += h->start[v];
  int32_t *fill = tn_arena_copy(&h->arena, h->start, h->n_values * sizeof *fill);
  h->readers = tn_arena_alloc(&h->arena, (size_t)h->start[h->n_values] * sizeof *h->readers);
  if (fill == NULL || h->readers == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < h->n_groups; i++)
    for (int32_t k = 0; k < h->groups[i].n_in; k++) h->readers[fill[h->base[h->groups[i].in[k]]]++] = i;
  return TN_OK;
}

/* Values that commits, outputs and packs read are there in any case, so they are never given up. */
static void mark_outside(const tn_halves *h, bool *outside) {
  const tn_graph *graph = h->cover->graph;
  for (size_t i = 0; i < h->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group >= 0 || tn_node_kind_of(node) != TN_NODE_PACK) continue;
    for (int32_t k = 0; k < node->n_in; k++) outside[h->base[node->in[k]]] = true;
  }
  for (size_t i = 0; i < graph->commits.n; i++) outside[h->base[graph->commits.v[i].value]] = true;
  for (size_t i = 0; i < graph->outputs.n; i++) outside[h->base[graph->outputs.v[i].value]] = true;
}

/* ---- the turn ---- */

static int32_t last_reader(const tn_halves *h, tn_val v) {
  return h->start[v + 1] > h->start[v] ? h->readers[h->start[v + 1] - 1] : -1;
}

/* Adds a value's bytes to each group between two of its uses. */
static void add_gaps(const tn_halves *h, tn_val v, int64_t *change) {
  int32_t used = h->maker[v];
  for (int32_t k = h->start[v]; k < h->start[v + 1]; k++) {
    if (h->readers[k] > used + 1) {
      change[used + 1] += h->bytes[v];
      change[h->readers[k]] -= h->bytes[v];
    }
    used = h->readers[k];
  }
}

static bool is_candidate(const tn_halves *h, const bool *outside, tn_val v) {
  return h->maker[v] >= 0 && !outside[v] && h->repeatable[h->maker[v]] && h->bytes[v] > 0 &&
         h->bytes[v] < INT64_MAX;
}

/* Returns the bytes that lie idle at the turn. */
static int64_t find_turn(tn_halves *h, const bool *outside, int64_t *change) {
  int64_t idle = 0, most = 0;
  for (tn_val v = 1; v < h->n_values; v++)
    if (is_candidate(h, outside, v)) add_gaps(h, v, change);
  for (int32_t i = 0; i < h->n_groups; i++) {
    idle += change[i];
    if (idle <= most) continue;
    most = idle;
    h->turn = i;
  }
  return most;
}

static bool crosses_border(const tn_halves *h, tn_val v) {
  for (int32_t k = h->start[v]; k < h->start[v + 1]; k++)
    if (h->readers[k] <= h->turn && !tn_halves_same_block(h, h->maker[v], h->readers[k])) return true;
  return false;
}

static bool used_at_turn(const tn_halves *h, tn_val v) {
  for (int32_t k = h->start[v]; k < h->start[v + 1]; k++)
    if (h->readers[k] == h->turn) return true;
  return h->maker[v] >= h->turn;
}

static tn_status find_kept(tn_halves *h) {
  bool *outside = tn_arena_alloc(&h->arena, h->n_values * sizeof *outside);
  int64_t *change = tn_arena_alloc(&h->arena, ((size_t)h->n_groups + 1) * sizeof *change);
  if (outside == NULL || change == NULL) return TN_ENOMEM;
  mark_outside(h, outside);
  int64_t least = find_turn(h, outside, change) / NEGLIGIBLE;
  for (tn_val v = 1; v < h->n_values; v++) {
    h->late[v] = outside[v] || last_reader(h, v) > h->turn;
    if (!is_candidate(h, outside, v) || !h->late[v] || used_at_turn(h, v) || h->bytes[v] <= least) continue;
    tn_kept kept = {v, crosses_border(h, v)};
    TN_TRY(tn_vec_push(h->env, &h->kept, kept));
  }
  return TN_OK;
}

/* ---- the halves ---- */

static tn_status make_tables(tn_halves *h) {
  size_t groups = (size_t)h->n_groups;
  h->groups = tn_arena_copy(&h->arena, h->cover->groups.v, groups * sizeof *h->groups);
  h->base = tn_arena_alloc(&h->arena, h->n_values * sizeof *h->base);
  h->maker = tn_arena_alloc(&h->arena, h->n_values * sizeof *h->maker);
  h->bytes = tn_arena_alloc(&h->arena, h->n_values * sizeof *h->bytes);
  h->start = tn_arena_alloc(&h->arena, (h->n_values + 1) * sizeof *h->start);
  h->late = tn_arena_alloc(&h->arena, h->n_values * sizeof *h->late);
  h->block = tn_arena_alloc(&h->arena, groups * sizeof *h->block);
  h->leaf = tn_arena_alloc(&h->arena, groups * sizeof *h->leaf);
  h->repeatable = tn_arena_alloc(&h->arena, groups * sizeof *h->repeatable);
  if (h->groups == NULL || h->base == NULL || h->maker == NULL || h->bytes == NULL || h->start == NULL ||
      h->late == NULL || h->block == NULL || h->leaf == NULL || h->repeatable == NULL)
    return TN_ENOMEM;
  find_bases(h);
  TN_TRY(describe_groups(h));
  return list_readers(h);
}

tn_status tn_halves_create(tn_cover *cover, tn_halves *h) {
  *h = (tn_halves){.env = cover->env,
                   .cover = cover,
                   .arena = tn_arena_new(cover->env),
                   .n_groups = (int32_t)cover->groups.n,
                   .n_nodes = cover->graph->nodes.n,
                   .n_values = cover->graph->values.n};
  TN_TRY(make_tables(h));
  return find_kept(h);
}

void tn_halves_free(tn_halves *h) {
  tn_vec_free(h->env, &h->kept);
  tn_arena_free(&h->arena);
}

void tn_halves_restore(const tn_halves *h) {
  tn_graph *graph = h->cover->graph;
  memcpy(h->cover->groups.v, h->groups, (size_t)h->n_groups * sizeof *h->groups);
  h->cover->groups.n = (size_t)h->n_groups;
  graph->nodes.n = h->n_nodes;
  graph->values.n = graph->types.n = h->n_values;
  tn_cover_number(h->cover);
}

bool tn_halves_state_is_old(const tn_halves *h, tn_val state, int32_t group) {
  const tn_graph *graph = h->cover->graph;
  const char *path = ((const tn_state_attributes *)tn_graph_maker(graph, state)->attributes)->path;
  for (size_t i = 0; i < graph->commits.n; i++) {
    const tn_gcommit *c = &graph->commits.v[i];
    bool same = path[0] == '@' || c->path[0] == '@' || tn_text_equal(c->path, path);
    if (same && h->maker[h->base[c->value]] < group) return false;
  }
  return true;
}
