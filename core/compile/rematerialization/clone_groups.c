/* core/compile/rematerialization/clone_groups.c: clones groups of forward into backward.
 *
 * A clone has nodes and values of its own. Ops, attributes (random streams among them), kernel, variant and
 * layouts are those of the original, so the bits are equal. An operand of a clone is live in any case, is
 * rematerialized too if it belongs to the same block, or has its live interval extended. Commits stay with
 * the values of forward: no value is committed twice. */
#include "core/compile/rematerialization/clone_groups.h"

#include <string.h>

#include "core/compile/rematerialization/transfer_groups.h"
#include "core/graph/uses.h"

/* An operand this many times smaller than the result of its reader is kept and not rematerialized. */
enum { KEPT_RATIO = 16 };

tn_status tn_rematerialization_create(const tn_forward_backward *fb, tn_arena *arena,
                                      tn_rematerialization *r) {
  size_t values = fb->n_values, groups = (size_t)fb->n_groups;
  *r = (tn_rematerialization){.fb = fb};
  r->choice = tn_arena_alloc(arena, values * sizeof *r->choice);
  r->fetched = tn_arena_alloc(arena, values * sizeof *r->fetched);
  r->kept = tn_arena_alloc(arena, values * sizeof *r->kept);
  r->remade = tn_arena_alloc(arena, values * sizeof *r->remade);
  r->extended = tn_arena_alloc(arena, values * sizeof *r->extended);
  r->stack = tn_arena_alloc(arena, values * sizeof *r->stack);
  r->copy = tn_arena_alloc(arena, values * sizeof *r->copy);
  r->inner = tn_arena_alloc(arena, values * sizeof *r->inner);
  r->cloned = tn_arena_alloc(arena, groups * sizeof *r->cloned);
  r->before = tn_arena_alloc(arena, groups * sizeof *r->before);
  r->moved = tn_arena_alloc(arena, groups * sizeof *r->moved);
  if (r->choice == NULL || r->remade == NULL || r->extended == NULL || r->stack == NULL || r->copy == NULL ||
      r->inner == NULL || r->cloned == NULL || r->before == NULL || r->moved == NULL || r->fetched == NULL ||
      r->kept == NULL)
    return TN_ENOMEM;
  return TN_OK;
}

/* ---- the clones ---- */

static bool is_small_operand(const tn_forward_backward *fb, tn_val v, int32_t reader) {
  return fb->bytes[v] <= fb->bytes[fb->base[fb->groups[reader].out[0]]] / KEPT_RATIO;
}

/* Makes an operand (a base) of a cloned group available in backward. */
static void provide_operand(tn_rematerialization *r, int32_t reader, tn_val v, int32_t *depth) {
  const tn_forward_backward *fb = r->fb;
  int32_t maker = fb->maker[v];
  if (v == 0 || maker < 0 || r->remade[v] || r->extended[v] || fb->read_in_backward[v]) return;
  if (is_small_operand(fb, v, reader) || !fb->repeatable[maker] ||
      !tn_forward_backward_same_block(fb, maker, reader)) {
    r->extended[v] = true;
    r->extended_bytes += fb->bytes[v];
    return;
  }
  r->remade[v] = true;
  r->stack[(*depth)++] = v;
}

/* A rough time that is equal on all machines and for any number of threads, and so are the choices that it
 * leads to. */
static double estimate_group_s(const tn_group *g) { return g->cost.flops / 2e10 + g->cost.bytes / 1e10; }

static void find_clones(tn_rematerialization *r) {
  const tn_forward_backward *fb = r->fb;
  int32_t depth = 0;
  for (tn_val v = 1; v < fb->n_values; v++) {
    r->remade[v] = r->choice[v].discarded || r->choice[v].offloaded;
    if (r->choice[v].discarded) r->stack[depth++] = v;
  }
  while (depth > 0) {
    int32_t group = fb->maker[r->stack[--depth]];
    const tn_group *g = &fb->groups[group];
    if (r->cloned[group]) continue;
    r->cloned[group] = true;
    r->cost_s += r->measured ? g->choice.cost_s : estimate_group_s(g);
    r->flops += g->cost.flops;
    for (int32_t k = 0; k < g->n_in; k++) provide_operand(r, group, fb->base[g->in[k]], &depth);
  }
}

/* The first group of backward that reads a value, directly or as the position of a clone. */
static int32_t first_value_reader(const tn_rematerialization *r, tn_val v) {
  const tn_forward_backward *fb = r->fb;
  int32_t first = INT32_MAX;
  for (int32_t i = fb->start[v]; i < fb->start[v + 1]; i++) {
    int32_t reader = fb->readers[i], at = reader;
    if (reader <= fb->midpoint) at = r->cloned[reader] ? r->before[reader] : INT32_MAX;
    if (at < first) first = at;
  }
  return first;
}

/* Of its rematerialized results. */
static int32_t first_backward_reader(const tn_rematerialization *r, int32_t group) {
  const tn_group *g = &r->fb->groups[group];
  int32_t first = INT32_MAX;
  for (int32_t k = 0; k < g->n_out; k++) {
    int32_t at = r->remade[g->out[k]] ? first_value_reader(r, g->out[k]) : INT32_MAX;
    if (at < first) first = at;
  }
  return first;
}

/* A value of a cloned group need not be fetched. */
static void find_fetches(tn_rematerialization *r, int32_t group) {
  const tn_group *g = &r->fb->groups[group];
  for (int32_t k = 0; k < g->n_out; k++)
    if (r->choice[g->out[k]].offloaded)
      r->fetched[g->out[k]] = r->cloned[group] ? -1 : first_value_reader(r, g->out[k]);
}

/* A clone must read the old values of states, so it has to run before commits overwrite them. */
static bool reads_old_states(const tn_rematerialization *r, int32_t group) {
  const tn_forward_backward *fb = r->fb;
  const tn_group *g = &fb->groups[group];
  for (int32_t k = 0; k < g->n_in; k++) {
    tn_val v = fb->base[g->in[k]];
    if (v != 0 && tn_node_kind_of(tn_graph_maker(fb->cover->graph, v)) == TN_NODE_STATE &&
        !tn_forward_backward_state_is_old(fb, v, r->before[group]))
      return false;
  }
  return true;
}

void tn_rematerialization_update(tn_rematerialization *r) {
  const tn_forward_backward *fb = r->fb;
  memset(r->remade, 0, fb->n_values * sizeof *r->remade);
  memset(r->extended, 0, fb->n_values * sizeof *r->extended);
  memset(r->cloned, 0, (size_t)fb->n_groups * sizeof *r->cloned);
  r->extended_bytes = 0;
  r->cost_s = r->flops = 0;
  r->possible = true;
  find_clones(r);
  for (int32_t g = fb->midpoint; g >= 0; g--) {
    find_fetches(r, g);
    if (!r->cloned[g]) continue;
    r->before[g] = first_backward_reader(r, g);
    r->possible = r->possible && r->before[g] != INT32_MAX && reads_old_states(r, g);
  }
}

/* ---- nodes and values ---- */

static tn_status clone_node(const tn_rematerialization *r, uint32_t index, const tn_val *in,
                            tn_val *first_out) {
  tn_graph *graph = r->fb->cover->graph;
  tn_gnode node = graph->nodes.v[index]; /* a copy: the table grows */
  TN_TRY(tn_graph_add(graph, node.def, node.attributes, in, node.n_in, node.layer, node.where, first_out));
  for (int32_t k = 0; k < node.n_out; k++)
    graph->values.v[*first_out + (tn_val)k].layout = graph->values.v[node.first_out + (tn_val)k].layout;
  return TN_OK;
}

/* The value that backward reads in place of `v`. A view of a rematerialized value is cloned when it is first
 * read. */
static tn_status rematerialized_value(tn_rematerialization *r, tn_val v, tn_val *value) {
  const tn_forward_backward *fb = r->fb;
  *value = v;
  if (v == 0 || !r->remade[fb->base[v]]) return TN_OK;
  if (r->copy[v] == 0) {
    const tn_gnode node = *tn_graph_maker(fb->cover->graph, v);
    tn_val *in = tn_arena_copy(&fb->cover->arena, node.in, (size_t)node.n_in * sizeof *in);
    if (in == NULL) return TN_ENOMEM;
    TN_TRY(rematerialized_value(r, in[0], &in[0]));
    TN_TRY(clone_node(r, fb->cover->graph->values.v[v].node, in, &r->copy[v]));
  }
  *value = r->copy[v];
  return TN_OK;
}

static tn_status rematerialized_operands(tn_rematerialization *r, const tn_group *g, const tn_val **in) {
  tn_val *made = tn_arena_copy(&r->fb->cover->arena, g->in, (size_t)g->n_in * sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < g->n_in; k++) TN_TRY(rematerialized_value(r, g->in[k], &made[k]));
  *in = made;
  return TN_OK;
}

/* The operand of a node of a clone: a value made inside of the clone, or an operand of the group. */
static tn_status clone_operand(tn_rematerialization *r, tn_val v, tn_val *in) {
  if (r->inner[v] == 0) return rematerialized_value(r, v, in);
  *in = r->inner[v];
  return TN_OK;
}

static tn_status clone_inner_node(tn_rematerialization *r, uint32_t index, uint32_t *made) {
  tn_graph *graph = r->fb->cover->graph;
  const tn_gnode node = graph->nodes.v[index];
  tn_val first = 0, *in = tn_arena_copy(&r->fb->cover->arena, node.in, (size_t)node.n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node.n_in; k++)
    if (in[k] != 0) TN_TRY(clone_operand(r, node.in[k], &in[k]));
  TN_TRY(clone_node(r, index, in, &first));
  *made = graph->values.v[first].node;
  for (int32_t k = 0; k < node.n_out; k++) r->inner[node.first_out + (tn_val)k] = first + (tn_val)k;
  return TN_OK;
}

static void clear_inner_values(tn_rematerialization *r, const tn_group *g) {
  for (int32_t i = 0; i < g->n_nodes; i++) {
    const tn_gnode *node = &r->fb->cover->graph->nodes.v[g->nodes[i]];
    for (int32_t k = 0; k < node->n_out; k++) r->inner[node->first_out + (tn_val)k] = 0;
  }
}

static tn_status clone_group(tn_rematerialization *r, int32_t index, tn_group *clone) {
  tn_cover *cover = r->fb->cover;
  const tn_group *g = &r->fb->groups[index];
  uint32_t *nodes = tn_arena_alloc(&cover->arena, (size_t)g->n_nodes * sizeof *nodes);
  tn_val *out = tn_arena_alloc(&cover->arena, (size_t)g->n_out * sizeof *out);
  if (nodes == NULL || out == NULL) return TN_ENOMEM;
  *clone = *g;
  TN_TRY(rematerialized_operands(r, g, &clone->in));
  for (int32_t i = 0; i < g->n_nodes; i++) TN_TRY(clone_inner_node(r, g->nodes[i], &nodes[i]));
  for (int32_t k = 0; k < g->n_out; k++) {
    out[k] = r->inner[g->out[k]];
    r->copy[g->out[k]] = out[k];
  }
  clear_inner_values(r, g);
  clone->nodes = nodes;
  clone->out = out;
  return TN_OK;
}

/* ---- the new cover ---- */

/* The last group of backward that makes an operand of the group; the midpoint if there is no such group. The
 * schedule runs clones after it. Without that edge it would run them at once, in forward. */
static int32_t last_operand_maker(const tn_forward_backward *fb, int32_t group) {
  const tn_group *g = &fb->groups[group];
  int32_t last = fb->midpoint;
  for (int32_t k = 0; k < g->n_in; k++) {
    tn_val v = fb->base[g->in[k]];
    if (v != 0 && fb->maker[v] > last) last = fb->maker[v];
  }
  return last;
}

static tn_status insert_clones(tn_rematerialization *r, int32_t before) {
  const tn_forward_backward *fb = r->fb;
  for (int32_t g = 0; g <= fb->midpoint; g++) {
    tn_group clone;
    if (!r->cloned[g] || r->before[g] != before) continue;
    TN_TRY(clone_group(r, g, &clone));
    clone.after = r->moved[last_operand_maker(fb, before)] + 1;
    TN_TRY(tn_vec_push(fb->env, &fb->cover->groups, clone));
  }
  return TN_OK;
}

/* ---- copies of offloaded values ---- */

static tn_status add_transfer(tn_rematerialization *r, int32_t transfer, tn_val v, int32_t after,
                              tn_val *copy) {
  const tn_forward_backward *fb = r->fb;
  tn_group group;
  const char *layer = tn_graph_maker(fb->cover->graph, v)->layer;
  tn_val from = transfer == TN_TRANSFER_OFFLOAD ? v : r->kept[v];
  TN_TRY(tn_make_transfer_group(fb->cover, transfer, from, layer, &group, copy));
  group.after = after;
  if (transfer == TN_TRANSFER_OFFLOAD)
    group.choice.id = r->choice[v].awaited ? TN_OFFLOAD_AWAITED : TN_OFFLOAD_BESIDE;
  else
    group.choice.id = r->choice[v].late ? TN_FETCH_LATE : TN_FETCH_EARLY;
  return tn_vec_push(fb->env, &fb->cover->groups, group);
}

/* Behind all groups of forward, whose indices stay as they are. The schedule launches each as soon as its
 * value is made. */
static tn_status insert_offloads(tn_rematerialization *r) {
  const tn_forward_backward *fb = r->fb;
  fb->cover->offload_midpoint = 0;
  for (size_t i = 0; i < fb->idle.n; i++) {
    tn_val v = fb->idle.v[i].value;
    if (!r->choice[v].offloaded || r->fetched[v] < 0) continue;
    fb->cover->offload_midpoint = 1 + r->moved[fb->midpoint];
    TN_TRY(add_transfer(r, TN_TRANSFER_OFFLOAD, v, 0, &r->kept[v]));
  }
  return TN_OK;
}

static tn_status insert_fetches(tn_rematerialization *r, int32_t before) {
  const tn_forward_backward *fb = r->fb;
  for (size_t i = 0; i < fb->idle.n; i++) {
    tn_val v = fb->idle.v[i].value;
    if (r->choice[v].offloaded && r->fetched[v] == before)
      TN_TRY(
          add_transfer(r, TN_TRANSFER_FETCH, v, r->moved[last_operand_maker(fb, before)] + 1, &r->copy[v]));
  }
  return TN_OK;
}

static tn_status add_with_clones(tn_rematerialization *r, int32_t index) {
  const tn_forward_backward *fb = r->fb;
  tn_group group = fb->groups[index];
  if (index == fb->midpoint + 1) TN_TRY(insert_offloads(r));
  if (index > fb->midpoint) {
    TN_TRY(insert_fetches(r, index));
    TN_TRY(insert_clones(r, index));
    TN_TRY(rematerialized_operands(r, &fb->groups[index], &group.in));
  }
  r->moved[index] = (int32_t)fb->cover->groups.n;
  return tn_vec_push(fb->env, &fb->cover->groups, group);
}

tn_status tn_rematerialization_apply(tn_rematerialization *r) {
  const tn_forward_backward *fb = r->fb;
  memset(r->copy, 0, fb->n_values * sizeof *r->copy);
  fb->cover->groups.n = 0;
  fb->cover->offload_midpoint = 0;
  for (int32_t i = 0; i < fb->n_groups; i++) TN_TRY(add_with_clones(r, i));
  tn_cover_number_groups(fb->cover);
  return TN_OK;
}
