/* core/compile/constant_groups.c: finds the groups of a cover that are launched once. */
#include "core/compile/constant_groups.h"

#include "core/compile/layout/layout.h"
#include "core/compile/packing/pack_intervals.h"
#include "core/compile/rematerialization/view_bases.h"
#include "core/graph/uses.h"
#include "tenon/plugin/backend.h"

typedef struct constant_search {
  tn_cover *cover;
  tn_val *base;   /* per value: the value that owns its memory */
  bool *constant; /* per value: a constant group makes it */
  bool *placed;   /* per value: a commit, an output, a pack or a collective asks for its location */
  int64_t bytes;  /* that the constants found so far keep */
  bool fixed_states;
} constant_search;

/* ---- values with a location that others decide ---- */

static void mark_pack_operands(constant_search *s, const tn_gnode *node) {
  if (node->group >= 0 || tn_node_kind_of(node) != TN_NODE_PACK) return;
  for (int32_t k = 0; k < node->n_in; k++) s->placed[s->base[node->in[k]]] = true;
}

static void mark_collective_operands(constant_search *s, const tn_group *g) {
  for (int32_t k = 0; k < g->n_in && g->role != TN_STREAM_COMPUTE; k++) s->placed[s->base[g->in[k]]] = true;
}

static void mark_placed_values(constant_search *s) {
  const tn_graph *graph = s->cover->graph;
  for (size_t i = 0; i < graph->nodes.n; i++) mark_pack_operands(s, &graph->nodes.v[i]);
  for (size_t i = 0; i < s->cover->groups.n; i++) mark_collective_operands(s, &s->cover->groups.v[i]);
  for (size_t i = 0; i < graph->commits.n; i++) s->placed[s->base[graph->commits.v[i].value]] = true;
  for (size_t i = 0; i < graph->outputs.n; i++) s->placed[s->base[graph->outputs.v[i].value]] = true;
}

/* ---- constant groups ---- */

static bool has_effect(const tn_graph *graph, const tn_group *g) {
  for (int32_t i = 0; i < g->n_nodes; i++)
    if ((graph->nodes.v[g->nodes[i]].op->flags & TN_OP_EFFECT) != 0) return true;
  return false;
}

static bool has_constant_operands(const constant_search *s, const tn_group *g) {
  for (int32_t k = 0; k < g->n_in; k++)
    if (g->in[k] != 0 && !s->constant[s->base[g->in[k]]]) return false;
  return true;
}

/* The memory that the results of a group take; -1: one of them is too large, or must lie elsewhere. */
static int64_t kept_bytes(const constant_search *s, const tn_group *g) {
  int64_t sum = 0;
  for (int32_t k = 0; k < g->n_out; k++) {
    const tn_gvalue *value = &s->cover->graph->values.v[g->out[k]];
    int64_t bytes = tn_layout_bytes(&value->type, &value->layout);
    if (s->placed[g->out[k]] || (!s->fixed_states && bytes > TN_CONSTANT_VALUE_BYTES)) return -1;
    sum += tn_interval_aligned(bytes);
  }
  return sum;
}

/* Takes a group that depends on nothing. Random numbers of a run depend on the counters that the op reads, so
 * an op of class random without operands is a constant, too. */
static bool take_constant_group(constant_search *s, const tn_group *g) {
  if (g->fallback != NULL || g->role != TN_STREAM_COMPUTE || has_effect(s->cover->graph, g)) return false;
  if (!has_constant_operands(s, g)) return false;
  int64_t bytes = kept_bytes(s, g);
  if (bytes < 0 || (!s->fixed_states && s->bytes + bytes > TN_CONSTANT_PROGRAM_BYTES)) return false;
  s->bytes += bytes;
  for (int32_t k = 0; k < g->n_out; k++) s->constant[g->out[k]] = true;
  return true;
}

/* Groups are in topological order, so the operands of a group have been seen before it. */
static tn_status move_constant_groups(constant_search *s) {
  tn_cover *cover = s->cover;
  size_t kept = 0;
  TN_TRY(tn_vec_reserve(cover->env, &cover->constants, cover->groups.n));
  for (size_t i = 0; i < cover->groups.n; i++) {
    const tn_group g = cover->groups.v[i];
    if (take_constant_group(s, &g))
      cover->constants.v[cover->constants.n++] = g;
    else
      cover->groups.v[kept++] = g;
  }
  cover->groups.n = kept;
  cover->keeps_constants = true;
  tn_cover_number_groups(cover);
  return TN_OK;
}

static void mark_fixed_states(const constant_search *s) {
  const tn_graph *graph = s->cover->graph;
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].value != 0) s->constant[graph->states.v[i].value] = true;
}

tn_status tn_pass_constants(tn_cover *cover, bool fixed_states) {
  size_t n = cover->graph->values.n;
  tn_arena memory = tn_arena_new(cover->env);
  constant_search s = {.cover = cover, .fixed_states = fixed_states};
  s.base = tn_arena_alloc(&memory, n * sizeof *s.base);
  s.constant = tn_arena_alloc(&memory, n * sizeof *s.constant);
  s.placed = tn_arena_alloc(&memory, n * sizeof *s.placed);
  tn_status status = s.base != NULL && s.constant != NULL && s.placed != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) {
    tn_find_view_bases(cover->graph, s.base);
    mark_placed_values(&s);
    if (fixed_states) mark_fixed_states(&s);
    status = move_constant_groups(&s);
  }
  tn_arena_free(&memory);
  return status;
}
