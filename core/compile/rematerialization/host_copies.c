/* core/compile/rematerialization/host_copies.c: see host_copies.h. A value of the host is a state in its
 * memory, a result of a placed group, or a view of either; inputs of a program are on both sides. */
#include "core/compile/rematerialization/host_copies.h"

#include "core/compile/rematerialization/transfer_groups.h"
#include "core/compile/rematerialization/view_bases.h"
#include "core/graph/uses.h"

typedef struct host_copies {
  tn_cover *cover;
  tn_graph *graph;
  const tn_state_map *map;
  tn_arena arena;
  size_t n;     /* values before the copies */
  tn_val *base; /* per value */
  bool *host;   /* per base: it is of the host */
  bool *needed; /* per value of the host: the device reads it */
  tn_val *next; /* per needed value: another one with its base; first: the one of a base; 0: none */
  tn_val *first;
  tn_val *copy; /* per value: its copy on the other side; 0: none */
  TN_VEC(tn_group) groups;
} host_copies;

static bool copies_is_host(const host_copies *c, tn_val v) { return v != 0 && c->host[c->base[v]]; }

static bool copies_state_is_host(const host_copies *c, const char *path) {
  const tn_placement *state = tn_state_map_find(c->map, path);
  return state != NULL && tn_state_map_on_host(c->map, state);
}

/* The new value of such a state is in memory of the host. */
static bool copies_state_is_far(const host_copies *c, const char *path) {
  const tn_placement *state = tn_state_map_find(c->map, path);
  return state != NULL && tn_state_map_is_far(c->map, state);
}

/* ---- which values cross ---- */

static void copies_mark_host(host_copies *c) {
  for (size_t i = 0; i < c->graph->states.n; i++)
    if (c->graph->states.v[i].value != 0)
      c->host[c->graph->states.v[i].value] = copies_state_is_host(c, c->graph->states.v[i].path);
  for (size_t i = 0; i < c->cover->groups.n; i++) {
    const tn_group *g = &c->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_out && g->placed; k++) c->host[g->out[k]] = true;
  }
}

static void copies_need(host_copies *c, tn_val v) {
  if (!copies_is_host(c, v) || c->needed[v]) return;
  c->needed[v] = true;
  c->next[v] = c->first[c->base[v]];
  c->first[c->base[v]] = v;
}

static bool copies_is_pack(const tn_gnode *node) {
  return node->group < 0 && tn_node_kind_of(node) == TN_NODE_PACK;
}

static void copies_mark_needed(host_copies *c) {
  for (size_t i = 0; i < c->cover->groups.n; i++) {
    const tn_group *g = &c->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in && !g->placed; k++) copies_need(c, g->in[k]);
  }
  for (size_t i = 0; i < c->graph->nodes.n; i++) {
    const tn_gnode *node = &c->graph->nodes.v[i];
    for (int32_t k = 0; k < node->n_in && copies_is_pack(node); k++) copies_need(c, node->in[k]);
  }
  for (size_t i = 0; i < c->graph->commits.n; i++)
    if (!copies_state_is_far(c, c->graph->commits.v[i].path)) copies_need(c, c->graph->commits.v[i].value);
  for (size_t i = 0; i < c->graph->outputs.n; i++) copies_need(c, c->graph->outputs.v[i].value);
}

/* ---- copies ---- */

static tn_status copies_add(host_copies *c, int32_t transfer, tn_val v, const char *layer) {
  tn_group group;
  if (c->copy[v] != 0) return TN_OK;
  TN_TRY(tn_make_transfer_group(c->cover, transfer, v, layer, &group, &c->copy[v]));
  group.placed = true;
  group.choice.capturable = false; /* the host waits for its event in each run */
  return tn_vec_push(c->cover->env, &c->groups, group);
}

static tn_status copies_fetch(host_copies *c, tn_val base) {
  for (tn_val v = c->first[base]; v != 0; v = c->next[v])
    TN_TRY(copies_add(c, TN_TRANSFER_FETCH, v, tn_graph_maker(c->graph, base)->layer));
  return TN_OK;
}

/* Whether a value is on the device alone. */
static bool copies_is_away(const host_copies *c, tn_val v) {
  if (v == 0 || v >= c->n || copies_is_host(c, v)) return false;
  return tn_node_kind_of(tn_graph_maker(c->graph, c->base[v])) != TN_NODE_INPUT;
}

static tn_status copies_of_operands(host_copies *c, const tn_group *g, const char *layer) {
  for (int32_t k = 0; k < g->n_in; k++)
    if (copies_is_away(c, g->in[k])) TN_TRY(copies_add(c, TN_TRANSFER_OFFLOAD, g->in[k], layer));
  return TN_OK;
}

/* Replaces those values that have a copy where they are read. */
static tn_status copies_replace(const host_copies *c, bool host, const tn_val **values, int32_t n,
                                tn_arena *arena) {
  tn_val *made = tn_arena_copy(arena, *values, (size_t)n * sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < n; k++)
    if (made[k] != 0 && c->copy[made[k]] != 0 && copies_is_host(c, made[k]) != host)
      made[k] = c->copy[made[k]];
  *values = made;
  return TN_OK;
}

static tn_status copies_add_group(host_copies *c, tn_group g) {
  const tn_gnode *lead = &c->graph->nodes.v[tn_group_lead(&g, c->graph)];
  if (g.placed) TN_TRY(copies_of_operands(c, &g, lead->layer));
  TN_TRY(copies_replace(c, g.placed, &g.in, g.n_in, &c->cover->arena));
  TN_TRY(tn_vec_push(c->cover->env, &c->groups, g));
  for (int32_t k = 0; k < g.n_out && g.placed; k++) TN_TRY(copies_fetch(c, g.out[k]));
  return TN_OK;
}

static tn_status copies_add_groups(host_copies *c) {
  for (size_t i = 0; i < c->graph->states.n; i++)
    if (c->graph->states.v[i].value != 0) TN_TRY(copies_fetch(c, c->graph->states.v[i].value));
  for (size_t i = 0; i < c->cover->groups.n; i++) TN_TRY(copies_add_group(c, c->cover->groups.v[i]));
  return TN_OK;
}

static tn_status copies_of_packs(host_copies *c) {
  for (size_t i = 0; i < c->graph->nodes.n; i++) {
    tn_gnode *node = &c->graph->nodes.v[i];
    if (copies_is_pack(node)) TN_TRY(copies_replace(c, false, &node->in, node->n_in, &c->graph->arena));
  }
  return TN_OK;
}

/* A state of the host also takes values of the device. */
static tn_status copies_of_ends(host_copies *c) {
  for (size_t i = 0; i < c->graph->commits.n; i++) {
    tn_gcommit *commit = &c->graph->commits.v[i];
    bool host = copies_state_is_far(c, commit->path);
    if (host && copies_is_away(c, commit->value))
      TN_TRY(
          copies_add(c, TN_TRANSFER_OFFLOAD, commit->value, tn_graph_maker(c->graph, commit->value)->layer));
    if (c->copy[commit->value] != 0 && copies_is_host(c, commit->value) != host)
      commit->value = c->copy[commit->value];
  }
  for (size_t i = 0; i < c->graph->outputs.n; i++) {
    tn_goutput *output = &c->graph->outputs.v[i];
    if (copies_is_host(c, output->value)) output->value = c->copy[output->value];
  }
  return TN_OK;
}

static tn_status copies_make(host_copies *c) {
  size_t n = c->n = c->graph->values.n;
  c->base = tn_arena_alloc(&c->arena, n * sizeof *c->base);
  c->host = tn_arena_alloc(&c->arena, n * sizeof *c->host);
  c->needed = tn_arena_alloc(&c->arena, n * sizeof *c->needed);
  c->next = tn_arena_alloc(&c->arena, n * sizeof *c->next);
  c->first = tn_arena_alloc(&c->arena, n * sizeof *c->first);
  c->copy = tn_arena_alloc(&c->arena, n * sizeof *c->copy);
  if (c->base == NULL || c->host == NULL || c->needed == NULL || c->next == NULL || c->first == NULL ||
      c->copy == NULL)
    return TN_ENOMEM;
  tn_find_view_bases(c->graph, c->base);
  copies_mark_host(c);
  copies_mark_needed(c);
  TN_TRY(copies_add_groups(c));
  TN_TRY(copies_of_packs(c));
  return copies_of_ends(c);
}

static void copies_take_groups(host_copies *c) {
  tn_vec_free(c->cover->env, &c->cover->groups);
  c->cover->groups.v = c->groups.v;
  c->cover->groups.n = c->groups.n;
  c->cover->groups.cap = c->groups.cap;
  c->groups.v = NULL;
  tn_cover_number_groups(c->cover);
}

tn_status tn_add_host_copies(tn_cover *cover, const tn_state_map *map) {
  host_copies c = {.cover = cover, .graph = cover->graph, .map = map, .arena = tn_arena_new(cover->env)};
  if (tn_state_map_host_bytes(map) == 0) return TN_OK;
  tn_status status = copies_make(&c);
  if (status == TN_OK) copies_take_groups(&c);
  tn_vec_free(cover->env, &c.groups);
  tn_arena_free(&c.arena);
  return status;
}
