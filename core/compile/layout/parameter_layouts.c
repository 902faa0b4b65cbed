/* core/compile/layout/parameter_layouts.c: how parameters lie for a whole run.
 *
 * A kernel that prefers a layout makes a copy of what lies otherwise, in every step: a convolution packs its
 * weights on the way forward and for the gradient of its input, and unpacks their gradient. What stays in the
 * layout that most would like is copied no more. That is for parameters of which all that programs see as a
 * whole is the flat region, elements in any order: their gradient is packed beside them (tn_pack_attributes).
 * A layout with padding would move all that lies behind it, so it is not taken. */
#include "core/compile/cover.h"
#include "core/compile/select/recorded_choices.h"
#include "core/compile/state_map.h"
#include "core/graph/uses.h"
#include "tenon/attributes.h"

/* An operand or a result of a group. */
typedef struct voter {
  const tn_group *group;
  int32_t index; /* operands first */
} voter;

typedef struct election {
  const tn_target *target;
  tn_cover *cover;
  tn_uses uses;
  tn_arena arena;
  int32_t *maker; /* per value: the group that makes it, -1 */
  TN_VEC(voter) voters;
} election;

static const tn_operand_layout *rule_of(const tn_group *g, const tn_choice *variant, int32_t index) {
  bool in = index < g->n_in;
  const tn_operand_layout *rules = in ? variant->in_rule : variant->out_rule;
  return rules == NULL ? NULL : &rules[in ? index : index - g->n_in];
}

static bool is_rule(const tn_operand_layout *rule, int32_t kind) {
  return rule != NULL && rule->rule == kind;
}

/* ---- who has a say ---- */

/* Whether all variants of a group leave it open how an operand or result lies. */
static bool leaves_open(const tn_group *g, int32_t index) {
  for (int32_t i = 0; i < g->n_variants; i++)
    if (!is_rule(rule_of(g, &g->variants[i], index), TN_LAYOUT_PREFERRED)) return false;
  return g->n_variants > 0;
}

/* Adds the readers of a state's value; *open is false where one does not leave its layout open. */
static tn_status add_readers(election *e, tn_val v, bool *open) {
  const tn_cover *cover = e->cover;
  int32_t found = 0;
  for (size_t i = 0; i < cover->groups.n; i++) {
    const tn_group *g = &cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in; k++) {
      if (g->in[k] != v) continue;
      *open = *open && leaves_open(g, k);
      found++;
      TN_TRY(tn_vec_push(cover->env, &e->voters, ((voter){g, k})));
    }
  }
  *open = *open && found == e->uses.start[v + 1] - e->uses.start[v] && e->uses.outside[v] == 0;
  return TN_OK;
}

/* All values of the parameter: itself, and copies of it in another type. */
static tn_status add_all_readers(election *e, const tn_placement *param, bool *open) {
  const tn_graph *graph = e->cover->graph;
  for (size_t i = 0; *open && i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    const tn_placement *p = state->value == 0 ? NULL : tn_state_map_find(e->cover->map, state->path);
    if (p != NULL && p->path[0] != '@' && tn_state_map_together(e->cover->map, p, param))
      TN_TRY(add_readers(e, state->value, open));
  }
  return TN_OK;
}

/* The only operand of an elementwise kernel that has the dims of its only result; 0: it is another kind. */
static tn_val followed_operand(const tn_cover *cover, const tn_group *g) {
  tn_val found = 0;
  if (g->n_out != 1 || !is_rule(rule_of(g, &g->choice, g->n_in), TN_LAYOUT_ANY)) return 0;
  for (int32_t k = 0; k < g->n_in; k++) {
    bool same = g->in[k] != 0 && tn_type_same_dims(tn_graph_type(cover->graph, g->in[k]),
                                                   tn_graph_type(cover->graph, g->out[0]));
    if (same && (found != 0 || !is_rule(rule_of(g, &g->choice, k), TN_LAYOUT_ANY))) return 0;
    if (same) found = g->in[k];
  }
  return found;
}

/* Adds the kernel that makes the gradient, which may be cast before it is packed. */
static tn_status add_gradient(election *e, tn_val v, bool *open) {
  const tn_cover *cover = e->cover;
  for (tn_val next = v; next != 0; v = next) {
    next = e->maker[v] < 0 ? 0 : followed_operand(cover, &cover->groups.v[e->maker[v]]);
    *open = *open && e->uses.outside[v] == 0 && e->uses.start[v + 1] - e->uses.start[v] == 1;
    if (next == 0) break;
  }
  *open = *open && e->maker[v] >= 0;
  if (!*open) return TN_OK;
  const tn_group *g = &cover->groups.v[e->maker[v]];
  int32_t index = g->n_in;
  while (g->out[index - g->n_in] != v) index++;
  *open = leaves_open(g, index);
  return tn_vec_push(cover->env, &e->voters, ((voter){g, index}));
}

/* ---- what they say ---- */

static bool without_padding(const tn_type *type, const tn_layout *layout) {
  return layout->set && tn_layout_fits(layout, type) &&
         tn_layout_bytes(type, layout) == (int64_t)tn_type_bytes(type);
}

/* What a voter takes at least where its operand lies so. */
static double voter_s(const election *e, const voter *who, const tn_layout *layout) {
  const tn_group *g = who->group;
  tn_val v = who->index < g->n_in ? g->in[who->index] : g->out[who->index - g->n_in];
  const tn_type *type = tn_graph_type(e->cover->graph, v);
  double least_s = 0;
  for (int32_t i = 0; i < g->n_variants; i++) {
    const tn_operand_layout *rule = rule_of(g, &g->variants[i], who->index);
    bool same = !rule->layout.set || tn_layout_same(&rule->layout, layout, type->rank);
    double cost_s = g->variants[i].cost_s + (same ? 0 : tn_reorder_s(type));
    if (i == 0 || cost_s < least_s) least_s = cost_s;
  }
  return least_s;
}

static double all_s(const election *e, const tn_layout *layout) {
  double cost_s = 0;
  for (size_t i = 0; i < e->voters.n; i++) cost_s += voter_s(e, &e->voters.v[i], layout);
  return cost_s;
}

/* The layout that costs least; row-major where no other is cheaper. */
static tn_layout elect(const election *e, const tn_type *type) {
  tn_layout best = tn_layout_row_major(type->rank);
  double best_s = all_s(e, &best);
  for (size_t i = 0; i < e->voters.n; i++) {
    const voter *who = &e->voters.v[i];
    for (int32_t k = 0; k < who->group->n_variants; k++) {
      const tn_layout *layout = &rule_of(who->group, &who->group->variants[k], who->index)->layout;
      if (!without_padding(type, layout)) continue;
      double cost_s = all_s(e, layout);
      if (cost_s >= best_s) continue;
      best_s = cost_s;
      best = *layout;
    }
  }
  return best;
}

static tn_layout recorded(const tn_replay *replay, const tn_placement *param) {
  tn_layout layout;
  const char *text = tn_replay_layout(replay, param->path);
  bool fits = text != NULL && tn_layout_parse(text, &param->type, &layout);
  return fits && without_padding(&param->type, &layout) ? layout : tn_layout_row_major(param->type.rank);
}

/* ---- the pass ---- */

static tn_status lay_parameter(election *e, const tn_placement *param, tn_val gradient) {
  bool open = param->type.rank > 1;
  tn_layout layout = tn_layout_row_major(param->type.rank);
  e->voters.n = 0;
  if (open) TN_TRY(add_all_readers(e, param, &open));
  if (open) TN_TRY(add_gradient(e, gradient, &open));
  if (open) layout = e->target->replay != NULL ? recorded(e->target->replay, param) : elect(e, &param->type);
  if (!tn_layout_is_row_major(&layout, param->type.rank)) tn_state_map_lay(e->cover->lay, param, &layout);
  return TN_OK;
}

static tn_status lay_packed(election *e, const tn_gnode *pack) {
  const tn_pack_attributes *a = pack->attributes;
  for (int32_t i = 0; i < pack->n_in && a->region[0] != '\0'; i++) {
    const tn_placement *param = tn_state_map_at(e->cover->map, a->region, a->start + a->offsets.v[i]);
    if (param != NULL && tn_type_same_dims(&param->type, tn_graph_type(e->cover->graph, pack->in[i])))
      TN_TRY(lay_parameter(e, param, pack->in[i]));
  }
  return TN_OK;
}

/* Whether anybody would vote. */
static bool has_preferences(const tn_cover *cover) {
  for (size_t i = 0; i < cover->groups.n; i++) {
    const tn_group *g = &cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in + g->n_out; k++)
      if (is_rule(rule_of(g, &g->choice, k), TN_LAYOUT_PREFERRED)) return true;
  }
  return false;
}

static tn_status start(election *e) {
  const tn_cover *cover = e->cover;
  e->maker = tn_arena_alloc(&e->arena, cover->graph->values.n * sizeof *e->maker);
  if (e->maker == NULL) return TN_ENOMEM;
  for (size_t v = 0; v < cover->graph->values.n; v++) e->maker[v] = -1;
  for (size_t i = 0; i < cover->groups.n; i++)
    for (int32_t k = 0; k < cover->groups.v[i].n_out; k++) e->maker[cover->groups.v[i].out[k]] = (int32_t)i;
  return tn_uses_create(&e->arena, cover->graph, &e->uses);
}

tn_status tn_layout_states(const tn_target *target, tn_cover *cover) {
  election e = {.target = target, .cover = cover, .arena = tn_arena_new(cover->env)};
  if (!has_preferences(cover)) return TN_OK;
  tn_status status = start(&e);
  for (size_t i = 0; status == TN_OK && i < cover->graph->nodes.n; i++)
    if (tn_node_kind_of(&cover->graph->nodes.v[i]) == TN_NODE_PACK)
      status = lay_packed(&e, &cover->graph->nodes.v[i]);
  tn_vec_free(cover->env, &e.voters);
  tn_arena_free(&e.arena);
  return status;
}
