/* core/compile/layout/assign_layouts.c: pass `layout`.
 *
 * Greedy list processing with one sweep of look-ahead. A sweep against the order of the groups notes for each
 * value the layout that its readers request. A sweep in order then chooses for each group the variant with
 * the least cost, the reorders around it included. A reorder is inserted where a value has another layout
 * than its reader requires. Inputs, outputs and views are row-major, but for views of padded rows
 * (view_rows.c); a state has the layout that the state map gives it, and so has a value that is packed beside
 * it. With row-major kernels alone the pass changes
 * nothing. */
#include "core/compile/layout/assign_layouts.h"

#include <string.h>

#include "core/compile/layout/layout.h"
#include "core/compile/layout/layout_assignment.h"
#include "core/compile/layout/parameter_layouts.h"
#include "core/compile/layout/variant_layouts.h"

/* ---- whether a kernel requires or prefers layouts ---- */

static bool rules_name_layouts(const tn_operand_layout *rules, int32_t n) {
  for (int32_t i = 0; rules != NULL && i < n; i++)
    if (rules[i].rule == TN_LAYOUT_FIXED || rules[i].rule == TN_LAYOUT_PREFERRED) return true;
  return false;
}

static bool may_need_layouts(const tn_group *g) {
  bool any =
      rules_name_layouts(g->choice.in_rule, g->n_in) || rules_name_layouts(g->choice.out_rule, g->n_out);
  for (int32_t i = 0; i < g->n_variants; i++)
    any |= rules_name_layouts(g->variants[i].in_rule, g->n_in) ||
           rules_name_layouts(g->variants[i].out_rule, g->n_out);
  return any;
}

static bool is_all_row_major(const tn_cover *cover) {
  for (size_t i = 0; i < cover->groups.n; i++)
    if (may_need_layouts(&cover->groups.v[i])) return false;
  return true;
}

static void set_row_major(tn_graph *graph) {
  for (size_t v = 1; v < graph->values.n; v++)
    graph->values.v[v].layout = tn_layout_row_major(graph->values.v[v].type.rank);
}

/* ---- the choice of a variant ---- */

static bool layouts_agree(const tn_layout *a, const tn_layout *b, int32_t rank) {
  return !a->set || !b->set || tn_layout_same(a, b, rank);
}

/* The time of the reorders around a group if it ran as g->choice says. */
static double reorders_s(const tn_layout_assignment *a, const tn_group *g, const tn_layout *any,
                         bool forward) {
  const tn_graph *graph = a->cover->graph;
  double cost_s = tn_variant_copies_s(a->device, graph, g);
  for (int32_t i = 0; i < g->n_in && forward; i++) {
    if (g->in[i] == 0) continue;
    const tn_gvalue *value = &graph->values.v[g->in[i]];
    tn_layout want = tn_variant_layout(graph, g, any, i);
    if (!tn_layout_same(&value->layout, &want, value->type.rank) && tn_reorder_find(a, g->in[i], &want) == 0)
      cost_s += tn_layout_reorder_s(a->device, &value->type);
  }
  for (int32_t i = 0; i < g->n_out; i++) {
    const tn_type *type = tn_graph_type(graph, g->out[i]);
    tn_layout made = tn_variant_layout(graph, g, any, g->n_in + i);
    const tn_layout *required = &a->required[g->out[i]];
    bool fits = required->set ? tn_layout_same(required, &made, type->rank)
                              : layouts_agree(&a->requested[g->out[i]], &made, type->rank);
    if (!fits) cost_s += tn_layout_reorder_s(a->device, type);
  }
  return cost_s;
}

/* In the sweep against the order, TN_LAYOUT_ANY follows the request of a result's readers. */
static tn_layout any_requested_layout(const tn_layout_assignment *a, const tn_group *g) {
  for (int32_t i = 0; g->choice.out_rule != NULL && i < g->n_out; i++)
    if (g->choice.out_rule[i].rule == TN_LAYOUT_ANY && a->requested[g->out[i]].set)
      return a->requested[g->out[i]];
  return (tn_layout){0};
}

static void choose_cheapest_variant(const tn_layout_assignment *a, tn_group *g, bool forward) {
  double best_s = 0;
  int32_t best = -1;
  for (int32_t i = 0; i < g->n_variants && g->n_variants > 1; i++) {
    g->choice = g->variants[i];
    tn_layout any = forward ? tn_variant_any_layout(a->cover->graph, g) : any_requested_layout(a, g);
    double cost_s = g->choice.cost_s + reorders_s(a, g, &any, forward);
    if (best < 0 || cost_s < best_s) {
      best = i;
      best_s = cost_s;
    }
  }
  if (best >= 0) g->choice = g->variants[best];
}

/* ---- the sweep against the order ---- */

/* Notes the layouts that a group requests for its operands. A request for another layout than row-major
 * replaces that of a later reader; a row-major request is noted only for a value without one. */
static void note_requests(const tn_layout_assignment *a, const tn_group *g) {
  tn_layout any = any_requested_layout(a, g);
  for (int32_t i = 0; i < g->n_in; i++) {
    if (g->in[i] == 0) continue;
    int32_t rank = tn_graph_type(a->cover->graph, g->in[i])->rank;
    bool follows = g->choice.in_rule != NULL && g->choice.in_rule[i].rule == TN_LAYOUT_ANY && !any.set;
    tn_layout want = tn_variant_layout(a->cover->graph, g, &any, i), *requested = &a->requested[g->in[i]];
    if (!follows && (!requested->set || !tn_layout_is_row_major(&want, rank))) *requested = want;
  }
}

/* Results get their required layouts, or else the requested ones, for the variants that accept any layout. */
static void assume_requested_layouts(tn_layout_assignment *a, const tn_group *g) {
  for (int32_t i = 0; i < g->n_out; i++) {
    tn_val v = g->out[i];
    const tn_layout *layout = a->required[v].set ? &a->required[v] : &a->requested[v];
    if (layout->set) a->cover->graph->values.v[v].layout = *layout;
  }
}

/* A required layout that is not row-major counts as requested. */
static tn_status start_requests(tn_layout_assignment *a) {
  const tn_graph *graph = a->cover->graph;
  a->requested = tn_alloc(a->cover->env, graph->values.n * sizeof *a->requested);
  if (a->requested == NULL) return TN_ENOMEM;
  for (size_t v = 1; v < graph->values.n; v++)
    if (a->required[v].set && !tn_layout_is_row_major(&a->required[v], graph->values.v[v].type.rank))
      a->requested[v] = a->required[v];
  return TN_OK;
}

static tn_status find_requests(tn_layout_assignment *a) {
  TN_TRY(start_requests(a));
  for (size_t i = a->cover->groups.n; i-- > 0;) {
    tn_group g = a->cover->groups.v[i];
    for (int32_t k = 0; k < g.n_out; k++) tn_layout_request_rows(a, g.out[k]);
    assume_requested_layouts(a, &g);
    choose_cheapest_variant(a, &g, false);
    note_requests(a, &g);
  }
  return TN_OK;
}

/* ---- the sweep in order ---- */

static tn_status check_variant_layout(const tn_layout_assignment *a, const tn_group *g, tn_val v,
                                      const tn_layout *layout) {
  const tn_type *type = tn_graph_type(a->cover->graph, v);
  if (tn_layout_is_valid(layout, type)) return TN_OK;
  return tn_failf(
      a->cover->env, TN_EINVAL,
      "kernel %s of plugin %s: variant \"%s\" asks for a layout that does not fit a value of rank %d",
      g->entry->item->name, g->entry->plugin, g->choice.name, (int)type->rank);
}

static tn_status assign_operand_layouts(tn_layout_assignment *a, tn_group *g, const tn_layout *any) {
  tn_val *in = tn_arena_copy(&a->cover->arena, g->in, (size_t)g->n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_in; i++) {
    if (in[i] == 0) continue;
    tn_layout want = tn_variant_layout(a->cover->graph, g, any, i);
    TN_TRY(check_variant_layout(a, g, in[i], &want));
    TN_TRY(tn_reorder_operand(a, &in[i], &want));
  }
  g->in = in;
  return TN_OK;
}

static tn_status assign_result_layouts(tn_layout_assignment *a, tn_group *g, const tn_layout *any,
                                       tn_group *reorders) {
  tn_val *out = tn_arena_copy(&a->cover->arena, g->out, (size_t)g->n_out * sizeof *out);
  if (out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_out; i++) {
    tn_layout made = tn_variant_layout(a->cover->graph, g, any, g->n_in + i);
    TN_TRY(check_variant_layout(a, g, out[i], &made));
    TN_TRY(tn_reorder_result(a, &out[i], &made, &reorders[i]));
  }
  g->out = out;
  return TN_OK;
}

static tn_status assign_group_layouts(tn_layout_assignment *a, const tn_group *old) {
  tn_env *env = a->cover->env;
  tn_group g = *old, *reorders = tn_alloc(env, (size_t)old->n_out * sizeof *reorders);
  if (reorders == NULL) return TN_ENOMEM;
  choose_cheapest_variant(a, &g, true);
  tn_layout any = tn_variant_any_layout(a->cover->graph, &g);
  tn_status status = assign_operand_layouts(a, &g, &any);
  if (status == TN_OK) status = assign_result_layouts(a, &g, &any, reorders);
  if (status == TN_OK) status = tn_vec_push(env, &a->groups, g);
  for (int32_t i = 0; status == TN_OK && i < g.n_out; i++)
    if (reorders[i].kernel != NULL) status = tn_reorder_add(a, &reorders[i], g.out[i], old->out[i]);
  tn_release(env, reorders);
  return status;
}

/* ---- the pass ---- */

static tn_status assign_all_layouts(tn_layout_assignment *a) {
  a->n_nodes = a->cover->graph->nodes.n;
  TN_TRY(tn_layout_find_required(a));
  TN_TRY(tn_layout_find_row_views(a));
  TN_TRY(find_requests(a));
  for (size_t i = 0; i < a->cover->groups.n; i++) TN_TRY(assign_group_layouts(a, &a->cover->groups.v[i]));
  TN_TRY(tn_reorder_remaining(a));
  tn_vec_free(a->cover->env, &a->cover->groups);
  memcpy(&a->cover->groups, &a->groups, sizeof a->groups);
  memset(&a->groups, 0, sizeof a->groups);
  return TN_OK;
}

tn_status tn_pass_layout(const tn_target *target, tn_cover *cover, const tn_state_map *map,
                         tn_state_map *parameters) {
  tn_layout_assignment a = {.cover = cover, .device = &target->properties, .map = map};
  tn_status status = TN_OK;
  set_row_major(cover->graph);
  if (parameters != NULL) status = tn_layout_parameters(target, cover, parameters);
  bool other_states = status == TN_OK && tn_layout_set_states(&a);
  if (status == TN_OK && (other_states || !is_all_row_major(cover))) status = assign_all_layouts(&a);
  for (size_t i = 0; i < cover->groups.n; i++) tn_variant_store_layouts(cover->graph, &cover->groups.v[i]);
  tn_cover_number_groups(cover);
  tn_vec_free(cover->env, &a.groups);
  tn_vec_free(cover->env, &a.reordered);
  tn_release(cover->env, a.required);
  tn_release(cover->env, a.only_rows);
  tn_release(cover->env, a.requested);
  return status;
}
