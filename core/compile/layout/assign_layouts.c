/* core/compile/layout/assign_layouts.c: pass `layout`.
 *
 * Greedy, in the order of the groups: of a kernel's variants the one is taken that costs least with the
 * reorders that it takes. A first sweep against that order has noted how readers would like to find each
 * value, so that a choice looks ahead. A reorder is made where a value lies otherwise than its reader wants.
 * Inputs, outputs and views are row-major, and so is state but for what the map says; what is packed beside
 * state lies like it. With only row-major kernels there is nothing to do. */
#include <string.h>

#include "core/compile/inserted_groups.h"
#include "core/compile/state_map.h"
#include "core/graph/uses.h"
#include "tenon/attributes.h"

/* A value as it lies, and as a reorder made it lie. */
typedef struct twin {
  tn_val value, twin;
  tn_layout layout;
} twin;

typedef struct layouts {
  tn_cover *cover;
  tn_layout *held; /* per value: how something that is not a kernel has to find it; unset: nothing reads it */
  tn_layout *demand; /* per value: how its first reader with a wish would like it; unset: nobody has one */
  size_t n_nodes;    /* before reorders were added */
  TN_VEC(tn_group) groups;
  TN_VEC(twin) twins;
} layouts;

/* ---- whether there is anything to do ---- */

static bool insists(const tn_operand_layout *rules, int32_t n) {
  for (int32_t i = 0; rules != NULL && i < n; i++)
    if (rules[i].rule == TN_LAYOUT_FIXED || rules[i].rule == TN_LAYOUT_PREFERRED) return true;
  return false;
}

static bool may_insist(const tn_group *g) {
  bool any = insists(g->choice.in_rule, g->n_in) || insists(g->choice.out_rule, g->n_out);
  for (int32_t i = 0; i < g->n_variants; i++)
    any |= insists(g->variants[i].in_rule, g->n_in) || insists(g->variants[i].out_rule, g->n_out);
  return any;
}

static bool all_row_major(const tn_cover *cover) {
  for (size_t i = 0; i < cover->groups.n; i++)
    if (may_insist(&cover->groups.v[i])) return false;
  return true;
}

static void set_row_major(tn_graph *graph) {
  for (size_t v = 1; v < graph->values.n; v++)
    graph->values.v[v].layout = tn_layout_row_major(graph->values.v[v].type.rank);
}

static void fill_choice(const tn_graph *graph, tn_group *group) {
  for (int32_t i = 0; i < group->n_in; i++)
    if (group->in[i] != 0) group->choice.in_layout[i] = graph->values.v[group->in[i]].layout;
  for (int32_t i = 0; i < group->n_out; i++)
    group->choice.out_layout[i] = graph->values.v[group->out[i]].layout;
}

/* ---- what a kernel wants ---- */

/* The layout of what a kernel marks ANY: that of the first such operand that does not lie row-major,
 * provided that all of them have the same dims. */
static tn_layout any_layout(const tn_graph *graph, const tn_group *g) {
  const tn_type *type = NULL;
  tn_layout layout = {0};
  bool same = true;
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) {
    bool in = i < g->n_in;
    const tn_operand_layout *rules = in ? g->choice.in_rule : g->choice.out_rule;
    tn_val v = in ? g->in[i] : g->out[i - g->n_in];
    if (v == 0 || rules == NULL || rules[in ? i : i - g->n_in].rule != TN_LAYOUT_ANY) continue;
    const tn_gvalue *value = &graph->values.v[v];
    same = same && (type == NULL || tn_type_same_dims(type, &value->type));
    type = &value->type;
    if (in && !layout.set && !tn_layout_is_row_major(&value->layout, type->rank)) layout = value->layout;
  }
  return same ? layout : (tn_layout){0};
}

/* What the choice says about an operand or result, operands first; NULL: nothing, which means row-major. */
static const tn_operand_layout *rule_of(const tn_group *g, int32_t index) {
  bool in = index < g->n_in;
  const tn_operand_layout *rules = in ? g->choice.in_rule : g->choice.out_rule;
  return rules == NULL ? NULL : &rules[in ? index : index - g->n_in];
}

static tn_val value_at(const tn_group *g, int32_t index) {
  return index < g->n_in ? g->in[index] : g->out[index - g->n_in];
}

/* Rules that point in a circle end as row-major. What is merely preferred stays as it lies. */
static tn_layout wanted(const tn_graph *graph, const tn_group *g, const tn_layout *any, int32_t index) {
  tn_layout row_major = tn_layout_row_major(tn_graph_type(graph, value_at(g, index))->rank);
  for (int32_t hops = 0; hops <= g->n_in + g->n_out; hops++) {
    const tn_operand_layout *rule = rule_of(g, index);
    tn_val value = value_at(g, index);
    if (rule == NULL) return row_major;
    if (rule->rule == TN_LAYOUT_FIXED) return rule->layout;
    if (rule->rule == TN_LAYOUT_ANY && any->set) return *any;
    if (rule->rule == TN_LAYOUT_PREFERRED && value != 0) return graph->values.v[value].layout;
    if (rule->rule != TN_LAYOUT_SAME_AS) return row_major;
    index = rule->same_as;
  }
  return row_major;
}

static tn_status check_wanted(const layouts *l, const tn_group *g, tn_val v, const tn_layout *want) {
  if (tn_layout_fits(want, tn_graph_type(l->cover->graph, v))) return TN_OK;
  return tn_failf(
      l->cover->env, TN_EINVAL,
      "kernel %s of plugin %s: variant \"%s\" asks for a layout that does not fit a value of rank %d",
      g->entry->item->name, g->entry->plugin, g->choice.name, (int)tn_graph_type(l->cover->graph, v)->rank);
}

/* ---- reorders ---- */

/* A reorder group between `from` and `to`, which are one value in two layouts. The node reads reader
 * wise: it may stand for either direction, since both have the same elements. */
static tn_status add_reorder(layouts *l, tn_group *group, tn_val from, tn_val to) {
  tn_arena *arena = &l->cover->arena;
  tn_val *in = tn_arena_copy(arena, &from, sizeof from), *out = tn_arena_copy(arena, &to, sizeof to);
  if (in == NULL || out == NULL) return TN_ENOMEM;
  group->in = in;
  group->out = out;
  return tn_vec_push(l->cover->env, &l->groups, *group);
}

static tn_status new_twin(layouts *l, tn_val v, const tn_layout *layout, tn_group *group, tn_val *made) {
  TN_TRY(tn_helper_reorder(l->cover, v, group));
  *made = group->out[0];
  l->cover->graph->values.v[*made].layout = *layout;
  twin t = {v, *made, *layout};
  return tn_vec_push(l->cover->env, &l->twins, t);
}

static tn_val find_twin(const layouts *l, tn_val v, const tn_layout *layout) {
  int32_t rank = tn_graph_type(l->cover->graph, v)->rank;
  for (size_t i = l->twins.n; i-- > 0;)
    if (l->twins.v[i].value == v && tn_layout_same(&l->twins.v[i].layout, layout, rank))
      return l->twins.v[i].twin;
  return 0;
}

/* *v becomes the value as the reader wants it. */
static tn_status want_operand(layouts *l, tn_val *v, const tn_layout *want) {
  const tn_gvalue *value = &l->cover->graph->values.v[*v];
  tn_group group;
  if (tn_layout_same(&value->layout, want, value->type.rank)) return TN_OK;
  tn_val known = find_twin(l, *v, want), from = *v;
  if (known != 0) {
    *v = known;
    return TN_OK;
  }
  TN_TRY(new_twin(l, from, want, &group, v));
  return add_reorder(l, &group, from, *v);
}

/* A result that others than kernels read is written to its twin, from which the value is made. */
static tn_status want_result(layouts *l, tn_val *v, const tn_layout *want, tn_group *after) {
  tn_gvalue *value = &l->cover->graph->values.v[*v];
  int32_t rank = value->type.rank;
  after->kernel = NULL;
  if (!l->held[*v].set || tn_layout_same(&l->held[*v], want, rank)) {
    value->layout = *want;
    return TN_OK;
  }
  value->layout = l->held[*v];
  return new_twin(l, *v, want, after, v);
}

/* ---- which variant ---- */

static bool agrees(const tn_layout *a, const tn_layout *b, int32_t rank) {
  return !a->set || !b->set || tn_layout_same(a, b, rank);
}

/* What the copies cost that a kernel makes inside, since something does not lie as it prefers. */
static double copies_s(const tn_graph *graph, const tn_group *g) {
  double cost_s = 0;
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) {
    const tn_operand_layout *rule = rule_of(g, i);
    if (value_at(g, i) == 0 || rule == NULL || rule->rule != TN_LAYOUT_PREFERRED || !rule->layout.set)
      continue;
    const tn_gvalue *value = &graph->values.v[value_at(g, i)];
    if (!tn_layout_same(&value->layout, &rule->layout, value->type.rank))
      cost_s += tn_reorder_s(&value->type);
  }
  return cost_s;
}

/* What the reorders around a group would cost if it were done as g->choice says. */
static double reorders_s(const layouts *l, const tn_group *g, const tn_layout *any, bool forward) {
  const tn_graph *graph = l->cover->graph;
  double cost_s = copies_s(graph, g);
  for (int32_t i = 0; i < g->n_in && forward; i++) {
    if (g->in[i] == 0) continue;
    const tn_gvalue *value = &graph->values.v[g->in[i]];
    tn_layout want = wanted(graph, g, any, i);
    if (!tn_layout_same(&value->layout, &want, value->type.rank) && find_twin(l, g->in[i], &want) == 0)
      cost_s += tn_reorder_s(&value->type);
  }
  for (int32_t i = 0; i < g->n_out; i++) {
    const tn_type *type = tn_graph_type(graph, g->out[i]);
    tn_layout want = wanted(graph, g, any, g->n_in + i);
    const tn_layout *held = &l->held[g->out[i]];
    bool fits = held->set ? tn_layout_same(held, &want, type->rank)
                          : agrees(&l->demand[g->out[i]], &want, type->rank);
    if (!fits) cost_s += tn_reorder_s(type);
  }
  return cost_s;
}

/* While sweeping against the order, what is marked ANY follows what the readers of a result want. */
static tn_layout any_demand(const layouts *l, const tn_group *g) {
  for (int32_t i = 0; g->choice.out_rule != NULL && i < g->n_out; i++)
    if (g->choice.out_rule[i].rule == TN_LAYOUT_ANY && l->demand[g->out[i]].set) return l->demand[g->out[i]];
  return (tn_layout){0};
}

static void decide(const layouts *l, tn_group *g, bool forward) {
  double best_s = 0;
  int32_t best = -1;
  for (int32_t i = 0; i < g->n_variants && g->n_variants > 1; i++) {
    g->choice = g->variants[i];
    tn_layout any = forward ? any_layout(l->cover->graph, g) : any_demand(l, g);
    double cost_s = g->choice.cost_s + reorders_s(l, g, &any, forward);
    if (best < 0 || cost_s < best_s) {
      best = i;
      best_s = cost_s;
    }
  }
  if (best >= 0) g->choice = g->variants[best];
}

/* Notes what a group would like of its operands. A wish for something other than row-major, and the wish of
 * an earlier reader, go before others. */
static void note_demand(const layouts *l, const tn_group *g) {
  tn_layout any = any_demand(l, g);
  for (int32_t i = 0; i < g->n_in; i++) {
    if (g->in[i] == 0) continue;
    int32_t rank = tn_graph_type(l->cover->graph, g->in[i])->rank;
    bool follows = g->choice.in_rule != NULL && g->choice.in_rule[i].rule == TN_LAYOUT_ANY && !any.set;
    tn_layout want = wanted(l->cover->graph, g, &any, i), *demand = &l->demand[g->in[i]];
    if (!follows && (!demand->set || !tn_layout_is_row_major(&want, rank))) *demand = want;
  }
}

/* Results of which a kernel takes any layout lie as they have to, or as readers would like them. */
static void lay_as_demanded(layouts *l, const tn_group *g) {
  for (int32_t i = 0; i < g->n_out; i++) {
    tn_val v = g->out[i];
    const tn_layout *like = l->held[v].set ? &l->held[v] : &l->demand[v];
    if (like->set) l->cover->graph->values.v[v].layout = *like;
  }
}

/* What has to be blocked is demanded so by whoever takes it. */
static tn_status start_demands(layouts *l) {
  const tn_graph *graph = l->cover->graph;
  l->demand = tn_alloc(l->cover->env, graph->values.n * sizeof *l->demand);
  if (l->demand == NULL) return TN_ENOMEM;
  for (size_t v = 1; v < graph->values.n; v++)
    if (l->held[v].set && !tn_layout_is_row_major(&l->held[v], graph->values.v[v].type.rank))
      l->demand[v] = l->held[v];
  return TN_OK;
}

static tn_status look_ahead(layouts *l) {
  tn_cover *cover = l->cover;
  TN_TRY(start_demands(l));
  for (size_t i = cover->groups.n; i-- > 0;) {
    tn_group g = cover->groups.v[i];
    lay_as_demanded(l, &g);
    decide(l, &g, false);
    note_demand(l, &g);
  }
  return TN_OK;
}

/* ---- laying a group ---- */

static tn_status lay_operands(layouts *l, tn_group *g, const tn_layout *any) {
  tn_val *in = tn_arena_copy(&l->cover->arena, g->in, (size_t)g->n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_in; i++) {
    if (in[i] == 0) continue;
    tn_layout want = wanted(l->cover->graph, g, any, i);
    TN_TRY(check_wanted(l, g, in[i], &want));
    TN_TRY(want_operand(l, &in[i], &want));
  }
  g->in = in;
  return TN_OK;
}

static tn_status lay_results(layouts *l, tn_group *g, const tn_layout *any, tn_group *after) {
  tn_val *out = tn_arena_copy(&l->cover->arena, g->out, (size_t)g->n_out * sizeof *out);
  if (out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_out; i++) {
    tn_layout want = wanted(l->cover->graph, g, any, g->n_in + i);
    TN_TRY(check_wanted(l, g, out[i], &want));
    TN_TRY(want_result(l, &out[i], &want, &after[i]));
  }
  g->out = out;
  return TN_OK;
}

static tn_status lay_group(layouts *l, const tn_group *old) {
  tn_env *env = l->cover->env;
  tn_group g = *old, *after = tn_alloc(env, (size_t)old->n_out * sizeof *after);
  if (after == NULL) return TN_ENOMEM;
  decide(l, &g, true);
  tn_layout any = any_layout(l->cover->graph, &g);
  tn_status status = lay_operands(l, &g, &any);
  if (status == TN_OK) status = lay_results(l, &g, &any, after);
  if (status == TN_OK) status = tn_vec_push(env, &l->groups, g);
  for (int32_t i = 0; status == TN_OK && i < g.n_out; i++)
    if (after[i].kernel != NULL) status = add_reorder(l, &after[i], g.out[i], old->out[i]);
  tn_release(env, after);
  return status;
}

/* ---- a group that has changed ---- */

static bool lies_as_wanted(const tn_graph *graph, const tn_group *g) {
  tn_layout any = any_layout(graph, g);
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) {
    tn_val v = i < g->n_in ? g->in[i] : g->out[i - g->n_in];
    if (v == 0) continue;
    tn_layout want = wanted(graph, g, &any, i);
    if (!tn_layout_same(&graph->values.v[v].layout, &want, graph->values.v[v].type.rank)) return false;
  }
  return true;
}

bool tn_layout_fit(const tn_graph *graph, tn_group *group) {
  const tn_choice *best = NULL;
  for (int32_t i = 0; i < group->n_variants; i++) {
    group->choice = group->variants[i];
    if (lies_as_wanted(graph, group) && (best == NULL || group->choice.cost_s < best->cost_s))
      best = &group->variants[i];
  }
  if (best == NULL) return false;
  group->choice = *best;
  fill_choice(graph, group);
  return true;
}

/* ---- how values have to lie ---- */

/* How a state lies. */
static tn_layout state_layout(const layouts *l, const char *path, int32_t rank) {
  const tn_placement *p = l->cover->map == NULL ? NULL : tn_state_map_find(l->cover->map, path);
  return p != NULL && p->layout.set ? p->layout : tn_layout_row_major(rank);
}

/* Gives the values of states their layouts; whether one is not row-major. */
static bool lay_states(const layouts *l) {
  tn_graph *graph = l->cover->graph;
  bool any = false;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    tn_layout layout = state_layout(l, state->path, state->type.rank);
    any |= !tn_layout_is_row_major(&layout, state->type.rank);
    if (state->value != 0) graph->values.v[state->value].layout = layout;
  }
  return any;
}

/* How a view or a pack has to find its operand. */
static tn_layout layout_for(const layouts *l, const tn_gnode *node, int32_t operand) {
  const tn_type *type = tn_graph_type(l->cover->graph, node->in[operand]);
  const tn_placement *beside = NULL;
  if (tn_node_kind_of(node) == TN_NODE_PACK && l->cover->map != NULL) {
    const tn_pack_attributes *a = node->attributes;
    if (a->region[0] != '\0')
      beside = tn_state_map_at(l->cover->map, a->region, a->start + a->offsets.v[operand]);
  }
  bool as_state = beside != NULL && beside->layout.set && tn_type_same_dims(&beside->type, type);
  return as_state ? beside->layout : tn_layout_row_major(type->rank);
}

/* A node that is no kernel's work and reads its operands where they lie. */
static bool reads_in_place(const tn_gnode *node) {
  return node->group < 0 && tn_node_kind_of(node) != TN_NODE_WORK;
}

/* The first that reads a value decides. */
static void hold(layouts *l, tn_val v, tn_layout layout) {
  if (!l->held[v].set) l->held[v] = layout;
}

static tn_status mark_held(layouts *l) {
  const tn_graph *graph = l->cover->graph;
  l->held = tn_alloc(l->cover->env, graph->values.n * sizeof *l->held);
  if (l->held == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    for (int32_t k = 0; reads_in_place(node) && k < node->n_in; k++)
      hold(l, node->in[k], layout_for(l, node, k));
  }
  for (size_t i = 0; i < graph->commits.n; i++) {
    const tn_gcommit *commit = &graph->commits.v[i];
    hold(l, commit->value, state_layout(l, commit->path, tn_graph_type(graph, commit->value)->rank));
  }
  for (size_t i = 0; i < graph->outputs.n; i++) {
    tn_val v = graph->outputs.v[i].value;
    hold(l, v, tn_layout_row_major(tn_graph_type(graph, v)->rank));
  }
  return TN_OK;
}

/* ---- what kernels have not made as it has to lie ---- */

/* Behind the group that makes a value, or what it is a view of; before all for what is there from the start.
 */
static size_t place_behind(const layouts *l, tn_val v) {
  const tn_graph *graph = l->cover->graph;
  const tn_gnode *node = tn_graph_maker(graph, v);
  for (; tn_node_kind_of(node) == TN_NODE_VIEW; node = tn_graph_maker(graph, v)) v = node->in[0];
  if (tn_node_kind_of(node) == TN_NODE_STATE || tn_node_kind_of(node) == TN_NODE_INPUT) return 0;
  for (size_t i = 0; i + 1 < l->groups.n; i++)
    for (int32_t k = 0; k < l->groups.v[i].n_out; k++)
      if (l->groups.v[i].out[k] == v) return i + 1;
  return l->groups.n - 1;
}

/* *use becomes the value as it is needed. */
static tn_status straighten(layouts *l, tn_val *use, const tn_layout *need) {
  const tn_gvalue *value = &l->cover->graph->values.v[*use];
  tn_group group;
  tn_val made;
  if (tn_layout_same(&value->layout, need, value->type.rank)) return TN_OK;
  TN_TRY(new_twin(l, *use, need, &group, &made));
  TN_TRY(add_reorder(l, &group, *use, made));
  size_t last = l->groups.n - 1, at = place_behind(l, *use);
  group = l->groups.v[last];
  memmove(&l->groups.v[at + 1], &l->groups.v[at], (last - at) * sizeof group);
  l->groups.v[at] = group;
  *use = made;
  return TN_OK;
}

static tn_status straighten_node(layouts *l, size_t index) {
  tn_graph *graph = l->cover->graph;
  tn_gnode node = graph->nodes.v[index]; /* the table grows */
  tn_val *in = tn_arena_copy(&graph->arena, node.in, (size_t)node.n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node.n_in; k++) {
    tn_layout need = layout_for(l, &node, k);
    TN_TRY(straighten(l, &in[k], &need));
  }
  graph->nodes.v[index].in = in;
  return TN_OK;
}

/* Values that are there from the start, such as a parameter that a view reads, and those that two read in
 * different ways. */
static tn_status straighten_all(layouts *l) {
  tn_graph *graph = l->cover->graph;
  for (size_t i = 0; i < l->n_nodes; i++)
    if (reads_in_place(&graph->nodes.v[i]) && graph->nodes.v[i].n_in > 0) TN_TRY(straighten_node(l, i));
  for (size_t i = 0; i < graph->commits.n; i++) {
    tn_gcommit *commit = &graph->commits.v[i];
    tn_layout need = state_layout(l, commit->path, tn_graph_type(graph, commit->value)->rank);
    TN_TRY(straighten(l, &commit->value, &need));
  }
  for (size_t i = 0; i < graph->outputs.n; i++) {
    tn_val *v = &graph->outputs.v[i].value;
    tn_layout need = tn_layout_row_major(tn_graph_type(graph, *v)->rank);
    TN_TRY(straighten(l, v, &need));
  }
  return TN_OK;
}

/* ---- the pass ---- */

static tn_status lay_all(layouts *l) {
  l->n_nodes = l->cover->graph->nodes.n;
  TN_TRY(mark_held(l));
  TN_TRY(look_ahead(l));
  for (size_t i = 0; i < l->cover->groups.n; i++) TN_TRY(lay_group(l, &l->cover->groups.v[i]));
  TN_TRY(straighten_all(l));
  tn_vec_free(l->cover->env, &l->cover->groups);
  memcpy(&l->cover->groups, &l->groups, sizeof l->groups);
  memset(&l->groups, 0, sizeof l->groups);
  return TN_OK;
}

void tn_cover_number(tn_cover *cover) {
  tn_graph *graph = cover->graph;
  for (size_t i = 0; i < graph->nodes.n; i++) graph->nodes.v[i].group = -1;
  for (size_t i = cover->groups.n; i-- > 0;)
    for (int32_t k = 0; k < cover->groups.v[i].n_nodes; k++)
      graph->nodes.v[cover->groups.v[i].nodes[k]].group = (int32_t)i;
}

tn_status tn_pass_layout(tn_env *env, tn_registry *registry, const tn_target *target, tn_cover *cover) {
  layouts l = {.cover = cover};
  tn_status status = TN_OK;
  (void)registry;
  set_row_major(cover->graph);
  if (cover->lay != NULL) status = tn_layout_states(target, cover);
  bool laid = status == TN_OK && lay_states(&l);
  if (status == TN_OK && (laid || !all_row_major(cover))) status = lay_all(&l);
  for (size_t i = 0; i < cover->groups.n; i++) fill_choice(cover->graph, &cover->groups.v[i]);
  tn_cover_number(cover);
  tn_vec_free(env, &l.groups);
  tn_vec_free(env, &l.twins);
  tn_release(env, l.held);
  tn_release(env, l.demand);
  return status;
}
