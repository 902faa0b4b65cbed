/* core/compile/rematerialization/stream_states.c: see stream_states.h. A streamed value is such a state, or a
 * view of one. Those that packs, commits and outputs read are fetched before all groups, since these readers
 * have no place in the order of launches. */
#include "core/compile/rematerialization/stream_states.h"

#include "core/compile/layout/layout.h"
#include "core/compile/rematerialization/transfer_groups.h"
#include "core/compile/rematerialization/view_bases.h"
#include "core/graph/uses.h"

typedef struct stream_pass {
  tn_cover *cover;
  tn_graph *graph;
  const tn_state_map *map;
  tn_arena arena;
  size_t n;        /* values before the copies */
  tn_val *base;    /* per value */
  bool *streamed;  /* per base */
  tn_val *copy;    /* per value: that its next reader may use; 0: none */
  int64_t *read;   /* per value: `fetched` when its copy was read last */
  int64_t fetched; /* bytes so far */
  TN_VEC(tn_group) groups;
} stream_pass;

static bool stream_is_streamed(const stream_pass *s, tn_val v) {
  return v != 0 && v < s->n && s->streamed[s->base[v]];
}

static tn_status stream_fetch(stream_pass *s, tn_val v, const char *layer, int32_t when) {
  tn_group group;
  TN_TRY(tn_make_transfer_group(s->cover, TN_TRANSFER_FETCH, v, layer, &group, &s->copy[v]));
  group.choice.id = when;
  s->read[v] = s->fetched += (int64_t)group.cost.bytes;
  return tn_vec_push(s->cover->env, &s->groups, group);
}

/* Whether more bytes were fetched since the last reader than keeping the copy takes. */
static bool stream_is_gone(const stream_pass *s, tn_val v) {
  const tn_gvalue *value = &s->graph->values.v[v];
  return s->copy[v] == 0 || s->fetched - s->read[v] > tn_layout_bytes(&value->type, &value->layout);
}

/* ---- readers without a launch ---- */

static tn_status stream_to_end(stream_pass *s, tn_val *v) {
  if (!stream_is_streamed(s, *v)) return TN_OK;
  if (s->copy[*v] == 0)
    TN_TRY(stream_fetch(s, *v, tn_graph_maker(s->graph, s->base[*v])->layer, TN_FETCH_LATE));
  *v = s->copy[*v];
  return TN_OK;
}

/* A copy is a node, and may move the others. */
static tn_status stream_to_pack(stream_pass *s, size_t index) {
  const tn_gnode node = s->graph->nodes.v[index];
  tn_val *in = tn_arena_copy(&s->graph->arena, node.in, (size_t)node.n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node.n_in; k++) TN_TRY(stream_to_end(s, &in[k]));
  s->graph->nodes.v[index].in = in;
  return TN_OK;
}

/* A value that is committed to memory of the host need not come to the device. */
static tn_status stream_to_commit(stream_pass *s, tn_gcommit *commit) {
  const tn_placement *state = tn_state_map_find(s->map, commit->path);
  if (state != NULL && tn_state_map_is_far(s->map, state)) return TN_OK;
  return stream_to_end(s, &commit->value);
}

static tn_status stream_to_ends(stream_pass *s) {
  for (size_t i = 0, n = s->graph->nodes.n; i < n; i++) {
    const tn_gnode *node = &s->graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_PACK) TN_TRY(stream_to_pack(s, i));
  }
  for (size_t i = 0; i < s->graph->commits.n; i++) TN_TRY(stream_to_commit(s, &s->graph->commits.v[i]));
  for (size_t i = 0; i < s->graph->outputs.n; i++) TN_TRY(stream_to_end(s, &s->graph->outputs.v[i].value));
  return TN_OK;
}

/* ---- launches ---- */

static bool stream_group_reads(const stream_pass *s, const tn_group *g) {
  bool reads = false;
  for (int32_t k = 0; k < g->n_in; k++) reads = reads || stream_is_streamed(s, g->in[k]);
  return reads;
}

static tn_status stream_to_group(stream_pass *s, tn_group g) {
  const char *layer = s->graph->nodes.v[tn_group_lead(&g, s->graph)].layer;
  if (!stream_group_reads(s, &g)) return tn_vec_push(s->cover->env, &s->groups, g);
  tn_val *in = tn_arena_copy(&s->cover->arena, g.in, (size_t)g.n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < g.n_in; k++) {
    if (!stream_is_streamed(s, g.in[k])) continue;
    if (stream_is_gone(s, g.in[k])) TN_TRY(stream_fetch(s, g.in[k], layer, TN_FETCH_EARLY));
    in[k] = s->copy[g.in[k]];
  }
  for (int32_t k = 0; k < g.n_in; k++)
    if (stream_is_streamed(s, g.in[k])) s->read[g.in[k]] = s->fetched;
  g.in = in;
  return tn_vec_push(s->cover->env, &s->groups, g);
}

/* ---- the pass ---- */

static bool stream_mark(stream_pass *s) {
  bool any = false;
  for (size_t i = 0; i < s->graph->states.n; i++) {
    const tn_gstate *state = &s->graph->states.v[i];
    if (state->value == 0 || !tn_state_map_is_streamed(s->map, state->path)) continue;
    any = s->streamed[state->value] = true;
  }
  return any;
}

static tn_status stream_rewrite(stream_pass *s) {
  tn_find_view_bases(s->graph, s->base);
  if (!stream_mark(s)) return TN_OK;
  TN_TRY(stream_to_ends(s));
  for (size_t i = 0; i < s->cover->groups.n; i++) TN_TRY(stream_to_group(s, s->cover->groups.v[i]));
  s->cover->groups.n = 0;
  TN_TRY(tn_vec_reserve(s->cover->env, &s->cover->groups, s->groups.n));
  for (size_t i = 0; i < s->groups.n; i++) s->cover->groups.v[s->cover->groups.n++] = s->groups.v[i];
  tn_cover_number_groups(s->cover);
  return TN_OK;
}

tn_status tn_fetch_streamed_states(tn_cover *cover, const tn_state_map *map) {
  stream_pass s = {.cover = cover, .graph = cover->graph, .map = map, .arena = tn_arena_new(cover->env)};
  if (tn_state_map_streamed_bytes(map) == 0) return TN_OK;
  s.n = cover->graph->values.n;
  s.base = tn_arena_alloc(&s.arena, s.n * sizeof *s.base);
  s.streamed = tn_arena_alloc(&s.arena, s.n * sizeof *s.streamed);
  s.copy = tn_arena_alloc(&s.arena, s.n * sizeof *s.copy);
  s.read = tn_arena_alloc(&s.arena, s.n * sizeof *s.read);
  bool made = s.base != NULL && s.streamed != NULL && s.copy != NULL && s.read != NULL;
  tn_status status = made ? stream_rewrite(&s) : TN_ENOMEM;
  tn_vec_free(cover->env, &s.groups);
  tn_arena_free(&s.arena);
  return status;
}
