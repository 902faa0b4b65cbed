/* core/compile/layout/parameter_layouts.c: the layouts of parameters for a whole run.
 *
 * A kernel with a preferred layout copies an operand that has another one, in every step: a convolution packs
 * its weights in forward and for the gradient of its input, and unpacks their gradient. For a kernel with a
 * fixed layout, row-major or another, the host inserts a reorder. A parameter that is stored in the layout
 * that costs least over all of its uses saves most of these copies: every use votes for its layout with the
 * time of a copy.
 *
 * A parameter qualifies if the layout of every use can be decided by itself, not by that of another operand,
 * and if its gradient is packed beside it (tn_pack_attributes), so that other programs see it only by itself
 * or as elements of the flat region, in any order. A layout with padding would move everything behind the
 * parameter, so it is not considered. */
#include "core/compile/layout/parameter_layouts.h"

#include "core/compile/layout/layout.h"
#include "core/compile/kernels/recorded_choices.h"
#include "core/graph/uses.h"
#include "tenon/attributes.h"

/* A use of a parameter: an operand or a result of a group. */
typedef struct layout_use {
  const tn_group *group;
  int32_t index; /* as in tn_group_value */
} layout_use;

typedef struct parameter_layouts {
  const tn_target *target;
  const tn_cover *cover;
  tn_state_map *map;
  tn_uses uses;
  tn_arena arena;
  int32_t *maker;                    /* per value: the group that makes it, or -1 */
  size_t *first_reader;              /* per value, and one more: its first entry in `readers` */
  layout_use *readers;               /* operands of groups */
  tn_hash_index states;              /* the graph's states, by their offset in the map */
  TN_VEC(layout_use) parameter_uses; /* of the parameter that is being assigned */
} parameter_layouts;

static bool is_layout_rule(const tn_operand_layout *rule, int32_t kind) {
  return rule != NULL && rule->rule == kind;
}

/* ---- the uses of a parameter ---- */

/* Whether the layout of an operand or result depends on no other one in all variants of a group. */
static bool has_vote(const tn_group *g, int32_t index) {
  for (int32_t i = 0; i < g->n_variants; i++) {
    const tn_operand_layout *rule = tn_group_layout_rule(g, &g->variants[i], index);
    if (is_layout_rule(rule, TN_LAYOUT_ANY) || is_layout_rule(rule, TN_LAYOUT_SAME_AS)) return false;
  }
  return g->n_variants > 0;
}

/* The layout that a variant requires or prefers; unset: it takes every layout without a copy. */
static tn_layout voted_layout(const tn_group *g, int32_t variant, int32_t index, int32_t rank) {
  const tn_operand_layout *rule = tn_group_layout_rule(g, &g->variants[variant], index);
  bool named = is_layout_rule(rule, TN_LAYOUT_FIXED) || is_layout_rule(rule, TN_LAYOUT_PREFERRED);
  return named ? rule->layout : tn_layout_row_major(rank);
}

/* Whether a node that no kernel computes reads a value, such as a view. */
static bool has_other_readers(const parameter_layouts *p, tn_val v) {
  for (int32_t k = p->uses.start[v]; k < p->uses.start[v + 1]; k++)
    if (p->cover->graph->nodes.v[p->uses.node[k]].group < 0) return true;
  return p->uses.outside[v] > 0;
}

/* Adds the readers of a state's value; *open becomes false if one of them has no vote. */
static tn_status add_value_readers(parameter_layouts *p, tn_val v, bool *open) {
  *open = *open && !has_other_readers(p, v);
  for (size_t i = p->first_reader[v]; i < p->first_reader[v + 1]; i++) {
    *open = *open && has_vote(p->readers[i].group, p->readers[i].index);
    TN_TRY(tn_vec_push(p->cover->env, &p->parameter_uses, p->readers[i]));
  }
  return TN_OK;
}

static uint64_t hash_offset(int64_t offset) { return tn_hash_bytes(TN_HASH_START, &offset, sizeof offset); }

/* Adds the readers of the parameter and of its copies in other types. */
static tn_status add_parameter_readers(parameter_layouts *p, const tn_placement *param, bool *open) {
  const tn_graph *graph = p->cover->graph;
  size_t probe = 0;
  uint64_t hash = hash_offset(param->offset);
  for (int64_t i; *open && (i = tn_hash_index_next(&p->states, hash, &probe)) != TN_HASH_INDEX_NONE;) {
    const tn_gstate *state = &graph->states.v[i];
    if (tn_state_map_are_parallel(p->map, tn_state_map_find(p->map, state->path), param))
      TN_TRY(add_value_readers(p, state->value, open));
  }
  return TN_OK;
}

/* The operand whose layout the result of an elementwise kernel follows: the only one with the dims of the
 * only result. 0: the group has another form. */
static tn_val layout_source(const tn_cover *cover, const tn_group *g) {
  tn_val found = 0;
  if (g->n_out != 1 || !is_layout_rule(tn_group_layout_rule(g, &g->choice, g->n_in), TN_LAYOUT_ANY)) return 0;
  for (int32_t k = 0; k < g->n_in; k++) {
    bool same = g->in[k] != 0 && tn_type_same_dims(tn_graph_type(cover->graph, g->in[k]),
                                                   tn_graph_type(cover->graph, g->out[0]));
    if (same && (found != 0 || !is_layout_rule(tn_group_layout_rule(g, &g->choice, k), TN_LAYOUT_ANY)))
      return 0;
    if (same) found = g->in[k];
  }
  return found;
}

/* Adds the kernel that makes the gradient. Elementwise kernels between it and the pack, such as casts, are
 * skipped. */
static tn_status add_gradient_maker(parameter_layouts *p, tn_val v, bool *open) {
  const tn_cover *cover = p->cover;
  for (tn_val next = v; next != 0; v = next) {
    next = p->maker[v] < 0 ? 0 : layout_source(cover, &cover->groups.v[p->maker[v]]);
    *open = *open && p->uses.outside[v] == 0 && p->uses.start[v + 1] - p->uses.start[v] == 1;
    if (next == 0) break;
  }
  *open = *open && p->maker[v] >= 0;
  if (!*open) return TN_OK;
  const tn_group *g = &cover->groups.v[p->maker[v]];
  int32_t index = g->n_in;
  while (g->out[index - g->n_in] != v) index++;
  *open = has_vote(g, index);
  return tn_vec_push(cover->env, &p->parameter_uses, ((layout_use){g, index}));
}

/* ---- the cheapest layout ---- */

static bool is_valid_without_padding(const tn_type *type, const tn_layout *layout) {
  return layout->set && tn_layout_is_valid(layout, type) &&
         tn_layout_bytes(type, layout) == (int64_t)tn_type_bytes(type);
}

/* The least time of a use if the parameter has a layout. */
static double parameter_use_s(const parameter_layouts *p, const layout_use *use, const tn_layout *layout) {
  const tn_group *g = use->group;
  tn_val v = tn_group_value(g, use->index);
  const tn_type *type = tn_graph_type(p->cover->graph, v);
  double least_s = 0;
  for (int32_t i = 0; i < g->n_variants; i++) {
    tn_layout vote = voted_layout(g, i, use->index, type->rank);
    bool same = !vote.set || tn_layout_same(&vote, layout, type->rank);
    double cost_s = g->variants[i].cost_s + (same ? 0 : tn_layout_reorder_s(&p->target->properties, type));
    if (i == 0 || cost_s < least_s) least_s = cost_s;
  }
  return least_s;
}

static double parameter_uses_s(const parameter_layouts *p, const tn_layout *layout) {
  double cost_s = 0;
  for (size_t i = 0; i < p->parameter_uses.n; i++)
    cost_s += parameter_use_s(p, &p->parameter_uses.v[i], layout);
  return cost_s;
}

/* The layout that costs least over all uses; row-major unless another one is cheaper. */
static tn_layout cheapest_layout(const parameter_layouts *p, const tn_type *type) {
  tn_layout best = tn_layout_row_major(type->rank);
  double best_s = parameter_uses_s(p, &best);
  for (size_t i = 0; i < p->parameter_uses.n; i++) {
    const layout_use *use = &p->parameter_uses.v[i];
    for (int32_t k = 0; k < use->group->n_variants; k++) {
      tn_layout layout = voted_layout(use->group, k, use->index, type->rank);
      if (!is_valid_without_padding(type, &layout)) continue;
      double cost_s = parameter_uses_s(p, &layout);
      if (cost_s >= best_s) continue;
      best_s = cost_s;
      best = layout;
    }
  }
  return best;
}

static tn_layout recorded_layout(const tn_recorded_choices *replay, const tn_placement *param) {
  tn_layout layout;
  const char *text = tn_recorded_layout(replay, param->path);
  bool fits = text != NULL && tn_layout_parse(text, &param->type, &layout);
  return fits && is_valid_without_padding(&param->type, &layout) ? layout
                                                                 : tn_layout_row_major(param->type.rank);
}

/* ---- the pass ---- */

static tn_status assign_parameter_layout(parameter_layouts *p, const tn_placement *param, tn_val gradient) {
  bool open = param->type.rank > 1 && p->map->regions.v[param->region].align <= TN_REGION_ALIGN_ELEMENTS;
  tn_layout layout = tn_layout_row_major(param->type.rank);
  p->parameter_uses.n = 0;
  if (open) TN_TRY(add_parameter_readers(p, param, &open));
  if (open) TN_TRY(add_gradient_maker(p, gradient, &open));
  if (open)
    layout = p->target->replay != NULL ? recorded_layout(p->target->replay, param)
                                       : cheapest_layout(p, &param->type);
  if (!tn_layout_is_row_major(&layout, param->type.rank)) tn_state_map_set_layout(p->map, param, &layout);
  return TN_OK;
}

static tn_status assign_packed_parameters(parameter_layouts *p, const tn_gnode *pack) {
  const tn_pack_attributes *a = pack->attributes;
  for (int32_t i = 0; i < pack->n_in && a->region[0] != '\0'; i++) {
    const tn_placement *param = tn_state_map_at(p->map, a->region, a->start + a->offsets.v[i]);
    if (param != NULL && tn_type_same_dims(&param->type, tn_graph_type(p->cover->graph, pack->in[i])))
      TN_TRY(assign_parameter_layout(p, param, pack->in[i]));
  }
  return TN_OK;
}

/* Whether a kernel requires or prefers another layout than row-major. */
static bool has_layouts(const tn_cover *cover) {
  for (size_t i = 0; i < cover->groups.n; i++) {
    const tn_group *g = &cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in + g->n_out; k++) {
      const tn_operand_layout *rule = tn_group_layout_rule(g, &g->choice, k);
      if (is_layout_rule(rule, TN_LAYOUT_PREFERRED) || is_layout_rule(rule, TN_LAYOUT_FIXED)) return true;
    }
  }
  return false;
}

static tn_status find_makers_and_uses(parameter_layouts *p) {
  const tn_cover *cover = p->cover;
  p->maker = tn_arena_alloc(&p->arena, cover->graph->values.n * sizeof *p->maker);
  if (p->maker == NULL) return TN_ENOMEM;
  for (size_t v = 0; v < cover->graph->values.n; v++) p->maker[v] = -1;
  for (size_t i = 0; i < cover->groups.n; i++)
    for (int32_t k = 0; k < cover->groups.v[i].n_out; k++) p->maker[cover->groups.v[i].out[k]] = (int32_t)i;
  return tn_uses_create(&p->arena, cover->graph, &p->uses);
}

/* The operands of all groups, sorted by value (counting sort). */
static tn_status find_readers(parameter_layouts *p) {
  const tn_cover *cover = p->cover;
  size_t values = cover->graph->values.n;
  p->first_reader = tn_arena_alloc(&p->arena, (values + 2) * sizeof *p->first_reader);
  if (p->first_reader == NULL) return TN_ENOMEM;
  size_t *fill = p->first_reader + 1;
  for (size_t i = 0; i < cover->groups.n; i++)
    for (int32_t k = 0; k < cover->groups.v[i].n_in; k++) fill[cover->groups.v[i].in[k] + 1]++;
  for (size_t v = 0; v < values; v++) fill[v + 1] += fill[v];
  p->readers = tn_arena_alloc(&p->arena, tn_size_mul(fill[values], sizeof *p->readers));
  if (p->readers == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < cover->groups.n; i++)
    for (int32_t k = 0; k < cover->groups.v[i].n_in; k++)
      p->readers[fill[cover->groups.v[i].in[k]]++] = (layout_use){&cover->groups.v[i], k};
  return TN_OK;
}

static tn_status index_states(parameter_layouts *p) {
  const tn_graph *graph = p->cover->graph;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    const tn_placement *placement = state->value == 0 ? NULL : tn_state_map_find(p->map, state->path);
    if (placement != NULL && placement->path[0] != '@')
      TN_TRY(tn_hash_index_add(&p->states, hash_offset(placement->offset), (uint32_t)i));
  }
  return TN_OK;
}

tn_status tn_layout_parameters(const tn_target *target, const tn_cover *cover, tn_state_map *map) {
  parameter_layouts p = {.target = target,
                         .cover = cover,
                         .map = map,
                         .arena = tn_arena_new(cover->env),
                         .states = tn_hash_index_new(cover->env)};
  if (!has_layouts(cover)) return TN_OK;
  tn_status status = find_makers_and_uses(&p);
  if (status == TN_OK) status = find_readers(&p);
  if (status == TN_OK) status = index_states(&p);
  for (size_t i = 0; status == TN_OK && i < cover->graph->nodes.n; i++)
    if (tn_node_kind_of(&cover->graph->nodes.v[i]) == TN_NODE_PACK)
      status = assign_packed_parameters(&p, &cover->graph->nodes.v[i]);
  tn_vec_free(cover->env, &p.parameter_uses);
  tn_hash_index_free(&p.states);
  tn_arena_free(&p.arena);
  return status;
}
