/* core/compile/rematerialization/forward_backward.c: finds the midpoint of a cover, its blocks, and the idle
 * values between. */
#include "core/compile/rematerialization/forward_backward.h"

#include <ctype.h>
#include <string.h>

#include "core/compile/layout/layout.h"
#include "core/compile/rematerialization/view_bases.h"
#include "core/graph/input_state.h"
#include "core/graph/uses.h"

/* A value this many times smaller than all idle bytes is not worth a launch. */
enum { NEGLIGIBLE_RATIO = 1024 };

/* ---- blocks ---- */

static bool is_block_number(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isdigit((unsigned char)text[i])) return false;
  return n > 0;
}

/* The length of the block's name in a layer's path: up to the last number that is not the end ("layer1.0" of
 * "layer1.0.conv1"), or else the first part ("down1" of "down1.conv1"). */
static size_t block_name_length(const char *path) {
  size_t length = 0, start = 0, n = strlen(path);
  for (size_t i = 0; i < n; i++) {
    if (path[i] != '.') continue;
    if (is_block_number(path + start, i - start)) length = i;
    start = i + 1;
  }
  return length > 0 ? length : strcspn(path, ".");
}

static const char *group_layer(const tn_forward_backward *fb, const tn_group *g) {
  const char *layer = tn_graph_maker(fb->cover->graph, g->out[0])->layer;
  return layer != NULL ? layer : "";
}

/* "relu@2.0" and "conv1" are single layers. */
static tn_status name_group_block(tn_forward_backward *fb, int32_t group) {
  const char *layer = group_layer(fb, &fb->groups[group]);
  size_t n = block_name_length(layer), at = strcspn(layer, "@");
  fb->single_layer[group] = n == strlen(layer) || at < n;
  fb->block[group] = tn_arena_printf(&fb->arena, "%.*s", (int)n, layer);
  return fb->block[group] != NULL ? TN_OK : TN_ENOMEM;
}

bool tn_forward_backward_same_block(const tn_forward_backward *fb, int32_t a, int32_t b) {
  return (fb->single_layer[a] && fb->single_layer[b]) || tn_text_equal(fb->block[a], fb->block[b]);
}

/* ---- tables ---- */

/* A group with a result that a node of another group makes (a reorder) is not repeated. */
static bool is_group_repeatable(const tn_graph *graph, const tn_group *g) {
  if (!g->choice.deterministic || g->role != TN_STREAM_COMPUTE || g->fallback != NULL) return false;
  for (int32_t i = 0; i < g->n_out; i++)
    if (!tn_group_has_node(g, graph->values.v[g->out[i]].node)) return false;
  for (int32_t i = 0; i < g->n_nodes; i++)
    if (graph->nodes.v[g->nodes[i]].op->flags & TN_OP_EFFECT) return false;
  return true;
}

static tn_status describe_groups(tn_forward_backward *fb) {
  for (int32_t i = 0; i < fb->n_groups; i++) {
    TN_TRY(name_group_block(fb, i));
    fb->repeatable[i] = is_group_repeatable(fb->cover->graph, &fb->groups[i]);
  }
  return TN_OK;
}

static void fill_value_tables(tn_forward_backward *fb) {
  const tn_graph *graph = fb->cover->graph;
  tn_find_view_bases(graph, fb->base);
  for (size_t v = 1; v < fb->n_values; v++) {
    fb->maker[v] = -1;
    fb->bytes[v] = tn_layout_bytes(tn_graph_type(graph, (tn_val)v), &graph->values.v[v].layout);
  }
  for (int32_t i = 0; i < fb->n_groups; i++)
    for (int32_t k = 0; k < fb->groups[i].n_out; k++) fb->maker[fb->groups[i].out[k]] = i;
}

/* Compressed rows: counts into start[v + 1] first; after the sums start[v] is the index of the first reader
 * of v. */
static tn_status list_value_readers(tn_forward_backward *fb) {
  for (int32_t i = 0; i < fb->n_groups; i++)
    for (int32_t k = 0; k < fb->groups[i].n_in; k++) fb->start[fb->base[fb->groups[i].in[k]] + 1]++;
  for (size_t v = 0; v < fb->n_values; v++) fb->start[v + 1] += fb->start[v];
  int32_t *fill = tn_arena_copy(&fb->arena, fb->start, fb->n_values * sizeof *fill);
  fb->readers = tn_arena_alloc(&fb->arena, (size_t)fb->start[fb->n_values] * sizeof *fb->readers);
  if (fill == NULL || fb->readers == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < fb->n_groups; i++)
    for (int32_t k = 0; k < fb->groups[i].n_in; k++) fb->readers[fill[fb->base[fb->groups[i].in[k]]]++] = i;
  return TN_OK;
}

/* Values that commits, outputs and packs read are never discarded. */
static void mark_read_outside(const tn_forward_backward *fb, bool *outside) {
  const tn_graph *graph = fb->cover->graph;
  for (size_t i = 0; i < fb->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group >= 0 || tn_node_kind_of(node) != TN_NODE_PACK) continue;
    for (int32_t k = 0; k < node->n_in; k++) outside[fb->base[node->in[k]]] = true;
  }
  for (size_t i = 0; i < graph->commits.n; i++) outside[fb->base[graph->commits.v[i].value]] = true;
  for (size_t i = 0; i < graph->outputs.n; i++) outside[fb->base[graph->outputs.v[i].value]] = true;
}

/* ---- the midpoint ---- */

static int32_t last_group_reader(const tn_forward_backward *fb, tn_val v) {
  return fb->start[v + 1] > fb->start[v] ? fb->readers[fb->start[v + 1] - 1] : -1;
}

/* Adds a value's bytes to the groups between two of its uses, as differences between consecutive groups. */
static void add_idle_gaps(const tn_forward_backward *fb, tn_val v, int64_t *change) {
  int32_t used = fb->maker[v];
  for (int32_t k = fb->start[v]; k < fb->start[v + 1]; k++) {
    if (fb->readers[k] > used + 1) {
      change[used + 1] += fb->bytes[v];
      change[fb->readers[k]] -= fb->bytes[v];
    }
    used = fb->readers[k];
  }
}

static bool can_offload(const tn_forward_backward *fb, const bool *outside, tn_val v) {
  const tn_group *g = fb->maker[v] >= 0 ? &fb->groups[fb->maker[v]] : NULL;
  return g != NULL && !outside[v] && g->role == TN_STREAM_COMPUTE && g->fallback == NULL &&
         fb->bytes[v] > 0 && fb->bytes[v] < INT64_MAX;
}

static bool can_rematerialize(const tn_forward_backward *fb, const bool *outside, tn_val v) {
  return can_offload(fb, outside, v) && fb->repeatable[fb->maker[v]];
}

/* Returns the idle bytes at the midpoint. */
static int64_t find_midpoint(tn_forward_backward *fb, const bool *outside, int64_t *change) {
  int64_t idle = 0, most = 0;
  for (tn_val v = 1; v < fb->n_values; v++)
    if (can_rematerialize(fb, outside, v)) add_idle_gaps(fb, v, change);
  for (int32_t i = 0; i < fb->n_groups; i++) {
    idle += change[i];
    if (idle <= most) continue;
    most = idle;
    fb->midpoint = i;
  }
  return most;
}

static bool is_block_border(const tn_forward_backward *fb, tn_val v) {
  for (int32_t k = fb->start[v]; k < fb->start[v + 1]; k++)
    if (fb->readers[k] <= fb->midpoint && !tn_forward_backward_same_block(fb, fb->maker[v], fb->readers[k]))
      return true;
  return false;
}

static bool is_used_at_midpoint(const tn_forward_backward *fb, tn_val v) {
  for (int32_t k = fb->start[v]; k < fb->start[v + 1]; k++)
    if (fb->readers[k] == fb->midpoint) return true;
  return fb->maker[v] >= fb->midpoint;
}

static tn_status find_idle_values(tn_forward_backward *fb) {
  bool *outside = tn_arena_alloc(&fb->arena, fb->n_values * sizeof *outside);
  int64_t *change = tn_arena_alloc(&fb->arena, ((size_t)fb->n_groups + 1) * sizeof *change);
  if (outside == NULL || change == NULL) return TN_ENOMEM;
  mark_read_outside(fb, outside);
  int64_t least = find_midpoint(fb, outside, change) / NEGLIGIBLE_RATIO;
  for (tn_val v = 1; v < fb->n_values; v++) {
    fb->read_in_backward[v] = outside[v] || last_group_reader(fb, v) > fb->midpoint;
    if (!can_offload(fb, outside, v) || !fb->read_in_backward[v] || is_used_at_midpoint(fb, v) ||
        fb->bytes[v] <= least)
      continue;
    tn_idle_value idle = {v, is_block_border(fb, v), can_rematerialize(fb, outside, v)};
    TN_TRY(tn_vec_push(fb->env, &fb->idle, idle));
  }
  return TN_OK;
}

/* ---- forward and backward ---- */

static tn_status make_forward_backward_tables(tn_forward_backward *fb) {
  size_t groups = (size_t)fb->n_groups;
  fb->groups = tn_arena_copy(&fb->arena, fb->cover->groups.v, groups * sizeof *fb->groups);
  fb->base = tn_arena_alloc(&fb->arena, fb->n_values * sizeof *fb->base);
  fb->maker = tn_arena_alloc(&fb->arena, fb->n_values * sizeof *fb->maker);
  fb->bytes = tn_arena_alloc(&fb->arena, fb->n_values * sizeof *fb->bytes);
  fb->start = tn_arena_alloc(&fb->arena, (fb->n_values + 1) * sizeof *fb->start);
  fb->read_in_backward = tn_arena_alloc(&fb->arena, fb->n_values * sizeof *fb->read_in_backward);
  fb->block = tn_arena_alloc(&fb->arena, groups * sizeof *fb->block);
  fb->single_layer = tn_arena_alloc(&fb->arena, groups * sizeof *fb->single_layer);
  fb->repeatable = tn_arena_alloc(&fb->arena, groups * sizeof *fb->repeatable);
  if (fb->groups == NULL || fb->base == NULL || fb->maker == NULL || fb->bytes == NULL || fb->start == NULL ||
      fb->read_in_backward == NULL || fb->block == NULL || fb->single_layer == NULL || fb->repeatable == NULL)
    return TN_ENOMEM;
  fill_value_tables(fb);
  TN_TRY(describe_groups(fb));
  return list_value_readers(fb);
}

tn_status tn_forward_backward_create(tn_cover *cover, tn_forward_backward *fb) {
  *fb = (tn_forward_backward){.env = cover->env,
                              .cover = cover,
                              .arena = tn_arena_new(cover->env),
                              .n_groups = (int32_t)cover->groups.n,
                              .n_nodes = cover->graph->nodes.n,
                              .n_values = cover->graph->values.n};
  TN_TRY(make_forward_backward_tables(fb));
  return find_idle_values(fb);
}

void tn_forward_backward_free(tn_forward_backward *fb) {
  tn_vec_free(fb->env, &fb->idle);
  tn_arena_free(&fb->arena);
}

void tn_forward_backward_restore(const tn_forward_backward *fb) {
  tn_graph *graph = fb->cover->graph;
  memcpy(fb->cover->groups.v, fb->groups, (size_t)fb->n_groups * sizeof *fb->groups);
  fb->cover->groups.n = (size_t)fb->n_groups;
  graph->nodes.n = fb->n_nodes;
  graph->values.n = graph->types.n = fb->n_values;
  tn_cover_number_groups(fb->cover);
}

bool tn_forward_backward_state_is_old(const tn_forward_backward *fb, tn_val state, int32_t group) {
  const tn_graph *graph = fb->cover->graph;
  const char *path = ((const tn_state_attributes *)tn_graph_maker(graph, state)->attributes)->path;
  for (size_t i = 0; i < graph->commits.n; i++) {
    const tn_gcommit *c = &graph->commits.v[i];
    if (tn_commit_may_overwrite(c, path) && fb->maker[fb->base[c->value]] < group) return false;
  }
  return true;
}
