/* core/compile/layout/variant_layouts.c: resolves the layout rules of a variant. */
#include "core/compile/layout/variant_layouts.h"

#include "core/compile/layout/layout.h"

tn_layout tn_variant_any_layout(const tn_graph *graph, const tn_group *g) {
  const tn_type *type = NULL;
  tn_layout layout = {0};
  bool same = true;
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) {
    const tn_operand_layout *rule = tn_group_layout_rule(g, &g->choice, i);
    tn_val v = tn_group_value(g, i);
    if (v == 0 || rule == NULL || rule->rule != TN_LAYOUT_ANY) continue;
    const tn_gvalue *value = &graph->values.v[v];
    same = same && (type == NULL || tn_type_same_dims(type, &value->type));
    type = &value->type;
    if (i < g->n_in && !layout.set && !tn_layout_is_row_major(&value->layout, type->rank))
      layout = value->layout;
  }
  return same ? layout : (tn_layout){0};
}

/* A cycle of rules TN_LAYOUT_SAME_AS ends as row-major. */
tn_layout tn_variant_layout(const tn_graph *graph, const tn_group *g, const tn_layout *any, int32_t index) {
  tn_layout row_major = tn_layout_row_major(tn_graph_type(graph, tn_group_value(g, index))->rank);
  for (int32_t hops = 0; hops <= g->n_in + g->n_out; hops++) {
    const tn_operand_layout *rule = tn_group_layout_rule(g, &g->choice, index);
    tn_val value = tn_group_value(g, index);
    if (rule == NULL) return row_major;
    if (rule->rule == TN_LAYOUT_FIXED) return rule->layout;
    if (rule->rule == TN_LAYOUT_ANY && any->set) return *any;
    if (rule->rule == TN_LAYOUT_PREFERRED && value != 0) return graph->values.v[value].layout;
    if (rule->rule != TN_LAYOUT_SAME_AS) return row_major;
    index = rule->same_as;
  }
  return row_major;
}

double tn_variant_copies_s(const tn_device_properties *device, const tn_graph *graph, const tn_group *g) {
  double cost_s = 0;
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) {
    const tn_operand_layout *rule = tn_group_layout_rule(g, &g->choice, i);
    tn_val v = tn_group_value(g, i);
    if (v == 0 || rule == NULL || rule->rule != TN_LAYOUT_PREFERRED || !rule->layout.set) continue;
    const tn_gvalue *value = &graph->values.v[v];
    if (!tn_layout_same(&value->layout, &rule->layout, value->type.rank))
      cost_s += tn_layout_reorder_s(device, &value->type);
  }
  return cost_s;
}

static bool has_required_layouts(const tn_graph *graph, const tn_group *g) {
  tn_layout any = tn_variant_any_layout(graph, g);
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) {
    tn_val v = tn_group_value(g, i);
    if (v == 0) continue;
    tn_layout required = tn_variant_layout(graph, g, &any, i);
    if (!tn_layout_same(&graph->values.v[v].layout, &required, graph->values.v[v].type.rank)) return false;
  }
  return true;
}

bool tn_layout_choose_variant(const tn_graph *graph, tn_group *group) {
  const tn_choice *best = NULL;
  for (int32_t i = 0; i < group->n_variants; i++) {
    group->choice = group->variants[i];
    if (has_required_layouts(graph, group) && (best == NULL || group->choice.cost_s < best->cost_s))
      best = &group->variants[i];
  }
  if (best == NULL) return false;
  group->choice = *best;
  tn_variant_store_layouts(graph, group);
  return true;
}

void tn_variant_store_layouts(const tn_graph *graph, tn_group *group) {
  for (int32_t i = 0; i < group->n_in; i++)
    if (group->in[i] != 0) group->choice.in_layout[i] = graph->values.v[group->in[i]].layout;
  for (int32_t i = 0; i < group->n_out; i++)
    group->choice.out_layout[i] = graph->values.v[group->out[i]].layout;
}
