/* core/train/update.c: from the loss to the next parameters. The trained parameters are one flat
 * region, so clipping and the optimizer are a few pointwise ops over one long vector. */
#include "core/train/update.h"

#include <string.h>

#include "core/base/text.h"
#include "tenon/ops.h"
#include "tenon/random.h"

/* A trained parameter: where it lies and which group it is in. */
typedef struct tn_trained {
  const tn_gstate *state;
  tn_val gradient;
  int64_t offset; /* in elements of the region */
  int32_t group;
} tn_trained;

typedef struct tn_updater {
  tn_env *env;
  tn_arena *arena;
  const tn_settings *settings;
  tn_graph *graph;
  tn_build *b;
  tn_state_map *map;
  tn_update_plan *plan;
  tn_trained *params;
  int32_t n_params;
  int64_t count;         /* elements of the flat region */
  const tn_trained *one; /* per-parameter optimizers: the parameter at hand */
} tn_updater;

static const char region_name[] = "param.f32";

/* ---- gradients ---- */

static tn_status collect_params(tn_updater *u, const tn_gstate ***states, tn_val **wrt, int32_t *n) {
  size_t most = u->graph->states.n + 1;
  *states = tn_arena_alloc(u->arena, tn_size_mul(most, sizeof **states));
  *wrt = tn_arena_alloc(u->arena, tn_size_mul(most, sizeof **wrt));
  *n = 0;
  if (!*states || !*wrt) return TN_ENOMEM;
  for (size_t i = 0; i < u->graph->states.n; i++) {
    const tn_gstate *state = &u->graph->states.v[i];
    if (state->what != TN_STATE_PARAM || !state->value) continue;
    tn_gstate *copy = tn_arena_copy(u->arena, state, sizeof *state); /* the table may move */
    if (!copy) return TN_ENOMEM;
    (*states)[*n] = copy;
    (*wrt)[(*n)++] = state->value;
  }
  return TN_OK;
}

/* Differentiates, and lists the parameters that the loss depends on in the order in which their
 * gradients become ready. */
static tn_status differentiate(tn_updater *u, tn_val loss) {
  const tn_gstate **states;
  tn_val *wrt, *gradient;
  int32_t n, *order;
  TN_TRY(collect_params(u, &states, &wrt, &n));
  gradient = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + 1, sizeof *gradient));
  order = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + 1, sizeof *order));
  u->params = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + 1, sizeof *u->params));
  if (!gradient || !order || !u->params) return TN_ENOMEM;
  TN_TRY(tn_differentiate(u->b, loss, 0, wrt, n, gradient, order));
  for (int32_t k = 0; k < n; k++) {
    int32_t i = order[k];
    if (i < 0 || i >= n || !gradient[i]) continue;
    u->params[u->n_params++] =
        (tn_trained){.state = states[i], .gradient = tn_cast(u->b, gradient[i], TN_F32)};
  }
  if (u->n_params == 0)
    return tn_failf(u->env, TN_EINVAL, "%s: the loss depends on no parameter, so there is nothing to train",
                    u->settings->model_where);
  return tn_build_status(u->b);
}

/* ---- groups ---- */

/* Group 0 is what no [group.NAME] matches; the first that matches wins. */
static tn_status assign_groups(tn_updater *u) {
  const tn_settings *s = u->settings;
  for (int32_t g = 0; g < s->n_groups; g++) {
    int32_t members = 0;
    for (int32_t i = 0; i < u->n_params; i++) {
      tn_trained *param = &u->params[i];
      if (param->group != 0 || !tn_words_match(&s->groups[g].patterns, param->state->path)) continue;
      param->group = g + 1;
      members++;
    }
    if (members == 0)
      return tn_failf(
          u->env, TN_EINVAL,
          "%s: [group.%s] match: '%s' matches no parameter, or only what groups above have taken; "
          "parameters have names like '%s'",
          s->groups[g].where, s->groups[g].name, s->groups[g].match, u->params[0].state->path);
  }
  u->plan->n_groups = s->n_groups + 1;
  return TN_OK;
}

static double option_of(const tn_settings *s, int32_t group, const tn_option *option) {
  const void *data = group == 0 ? s->optimizer_options : s->groups[group - 1].options;
  const char *field = (const char *)data + option->offset;
  return option->type == TN_OPT_INT ? (double)*(const int64_t *)field : *(const double *)field;
}

/* Room for as many controls as the optimizer has options. */
static tn_status make_controls(tn_updater *u) {
  size_t n = 0;
  while (tn_options_at(&u->settings->optimizer_kind->item, (int64_t)n)) n++;
  u->plan->controls = tn_arena_alloc(u->arena, tn_size_mul(n + 1, sizeof *u->plan->controls));
  return u->plan->controls ? TN_OK : TN_ENOMEM;
}

/* The control input of a scheduled option, made at its first use. */
static tn_status control_for(tn_updater *u, const char *name, tn_val *value) {
  const tn_item *item = &u->settings->optimizer_kind->item;
  const tn_option *option = tn_options_find(item, name);
  tn_update_plan *plan = u->plan;
  if (!option || !(option->flags & TN_OPT_SCHEDULED))
    return tn_failf(u->env, TN_EINVAL,
                    "optimizer '%s' asks for the option '%s', which it does not mark TN_OPT_SCHEDULED",
                    item->name, name);
  tn_type type = {TN_F32, plan->n_groups > 1, {plan->n_groups > 1 ? plan->n_groups : 0}};
  const char *input = tn_arena_printf(u->arena, "control.%s", name);
  *value = input ? tn_graph_input(u->graph, input, &type) : 0;
  if (!*value) return TN_ENOMEM;
  for (int32_t i = 0; i < plan->n_controls; i++)
    if (tn_text_equal(plan->controls[i].name, name)) return TN_OK;
  tn_control *control = &plan->controls[plan->n_controls++];
  control->name = option->name;
  control->values = tn_arena_alloc(u->arena, tn_size_mul((size_t)plan->n_groups, sizeof *control->values));
  if (!control->values) return TN_ENOMEM;
  for (int32_t g = 0; g < plan->n_groups; g++) control->values[g] = option_of(u->settings, g, option);
  return TN_OK;
}

/* One value per element of the flat region, by the ranges of the groups. */
static tn_status spread_over_groups(tn_updater *u, tn_val values, tn_val *spread) {
  int64_t *starts = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *starts));
  int64_t *index = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *index));
  int64_t ranges = 0;
  if (!starts || !index) return TN_ENOMEM;
  for (int32_t i = 0; i < u->n_params; i++) {
    if (ranges > 0 && index[ranges - 1] == u->params[i].group) continue;
    starts[ranges] = ranges == 0 ? 0 : u->params[i].offset;
    index[ranges++] = u->params[i].group;
  }
  tn_begin(u->b, "spread");
  tn_arg(u->b, values);
  tn_set_ints(u->b, "starts", ranges, starts);
  tn_set_ints(u->b, "index", ranges, index);
  tn_set_int(u->b, "count", u->count);
  *spread = tn_end(u->b);
  return tn_build_status(u->b);
}

static tn_val option_value(tn_build *b, void *context, const char *name) {
  tn_updater *u = context;
  tn_val value = 0, result = 0;
  tn_status status = control_for(u, name, &value);
  if (status == TN_OK && u->plan->n_groups == 1) return value;
  if (status == TN_OK && u->one) {
    int32_t group = u->one->group;
    return tn_reshape(b, tn_slice_axis(b, value, 0, group, group + 1), 0, NULL);
  }
  if (status == TN_OK) status = spread_over_groups(u, value, &result);
  if (status != TN_OK) tn_builder_fail(b, status);
  return result;
}

/* ---- the flat region ---- */

static tn_status place_params(tn_updater *u) {
  int32_t region;
  TN_TRY(tn_state_map_region(u->map, region_name, TN_F32, &region));
  for (int32_t i = 0; i < u->n_params; i++) {
    const tn_gstate *state = u->params[i].state;
    if (state->type.dtype != TN_F32)
      return tn_failf(u->env, TN_EINVAL, "parameter '%s' is %s, expected f32", state->path,
                      tn_dtype_name(state->type.dtype));
    TN_TRY(tn_state_map_add(u->map, state, region, -1));
    u->params[i].offset = tn_state_map_find(u->map, state->path)->offset;
  }
  u->count = u->map->regions.v[region].count;
  return TN_OK;
}

/* All gradients as one vector; the memory pass lets each be computed in its slice. */
static tn_val pack_gradients(tn_updater *u) {
  int64_t *offsets = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *offsets));
  if (!offsets) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  tn_begin(u->b, "pack");
  for (int32_t i = 0; i < u->n_params; i++) {
    offsets[i] = u->params[i].offset;
    tn_arg(u->b, u->params[i].gradient);
  }
  tn_set_ints(u->b, "offsets", u->n_params, offsets);
  tn_set_int(u->b, "count", u->count);
  return tn_end(u->b);
}

/* g * min(1, clip / (|g| + 1e-6)), PyTorch's clip_grad_norm_. */
static tn_val clip(tn_updater *u, tn_val flat, double most) {
  tn_build *b = u->b;
  tn_val norm = tn_sqrt(b, tn_reduce(b, "reduce_sum", tn_mul(b, flat, flat), 0, NULL, 0));
  tn_val ratio = tn_div(b, tn_scalar(b, TN_F32, most), tn_affine(b, norm, 1.0, 1e-6));
  tn_val factor = tn_op2(b, "minimum", ratio, tn_scalar(b, TN_F32, 1.0));
  if (tn_build_status(b) == TN_OK && tn_graph_output(u->graph, "grad_norm", norm) != TN_OK)
    tn_builder_fail(b, TN_ENOMEM);
  return tn_mul(b, flat, factor);
}

/* ---- slots ---- */

/* A slot of one parameter, so that checkpoints name it: "conv1.weight.momentum". */
static tn_status place_slot(tn_updater *u, const tn_trained *param, const char *slot, int32_t region) {
  tn_gstate state = {.path = tn_arena_printf(u->arena, "%s.%s", param->state->path, slot),
                     .type = param->state->type,
                     .what = TN_STATE_SLOT,
                     .init = "",
                     .where = ""};
  if (!state.path) return TN_ENOMEM;
  return tn_state_map_add(u->map, &state, region, param->offset);
}

/* tn_state inside an elementwise optimizer: a region beside the parameters'. */
static tn_val flat_slot(tn_build *b, void *context, const char *name, const tn_type *type, const char *init) {
  tn_updater *u = context;
  int32_t region;
  const char *path = tn_arena_printf(u->arena, "@%s.f32", name);
  tn_status status = path ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && (type->dtype != TN_F32 || type->rank != 1 || type->dims[0] != u->count))
    status =
        tn_failf(u->env, TN_EINVAL,
                 "slot '%s' is not of the parameter's type, which an elementwise optimizer's must be", name);
  if (status == TN_OK && !tn_text_equal(init, "zeros"))
    status = tn_failf(u->env, TN_EINVAL, "slot '%s' starts with %s, expected zeros", name, init);
  if (status == TN_OK) status = tn_state_map_region(u->map, path ? path + 1 : "", TN_F32, &region);
  for (int32_t i = 0; status == TN_OK && i < u->n_params; i++)
    status = place_slot(u, &u->params[i], name, region);
  if (status == TN_OK && u->map->regions.v[region].count < u->count)
    u->map->regions.v[region].count = u->count;
  if (status != TN_OK) {
    tn_builder_fail(b, status);
    return 0;
  }
  tn_val slot = tn_graph_state(u->graph, path, type, TN_STATE_SLOT, "", "");
  if (!slot) tn_builder_fail(b, u->graph->env->slot->code);
  return slot;
}

/* tn_state inside an optimizer that sees one parameter at a time: of any type, and initialized as it says. */
static tn_val slot_of_one(tn_build *b, void *context, const char *name, const tn_type *type,
                          const char *init) {
  tn_updater *u = context;
  const tn_gstate *param = u->one->state;
  const char *path = tn_arena_printf(u->arena, "%s.%s", param->path, name);
  tn_val slot = path ? tn_graph_state(u->graph, path, type, TN_STATE_SLOT, init, param->where) : 0;
  if (!slot) tn_builder_fail(b, path ? u->graph->env->slot->code : TN_ENOMEM);
  return slot;
}

/* ---- the optimizer ---- */

static tn_status call_optimizer(tn_updater *u, const tn_val in[2], const char *prefix, uint64_t seed,
                                tn_val *next) {
  const tn_optimizer *kind = u->settings->optimizer_kind;
  int32_t group = u->one ? u->one->group : 0;
  const void *options = group == 0 ? u->settings->optimizer_options : u->settings->groups[group - 1].options;
  tn_build_frame frame = {.in = in,
                          .n_in = 2,
                          .yielded = next,
                          .n_yield = 1,
                          .prefix = prefix,
                          .where = "",
                          .training = true,
                          .seed = seed,
                          .context = u,
                          .option_value = option_value,
                          .state = u->one ? slot_of_one : flat_slot};
  tn_builder_push(u->b, &frame);
  tn_status status = kind->update(u->b, options);
  /* what stuck first is the cause; the optimizer may have refused what came of it */
  if (status != TN_OK) tn_builder_fail(u->b, status);
  status = tn_build_status(u->b);
  tn_builder_pop(u->b);
  if (status != TN_OK) return tn_wrap(u->env, status, "optimizer '%s'", kind->item.name);
  if (!*next) return tn_failf(u->env, TN_EINVAL, "optimizer '%s' yielded no parameter", kind->item.name);
  return TN_OK;
}

static tn_status update_flat(tn_updater *u, tn_val flat, uint64_t seed) {
  tn_type type = {TN_F32, 1, {u->count}};
  tn_val param = tn_graph_state(u->graph, "@param.f32", &type, TN_STATE_PARAM, "", ""), next = 0;
  if (!param) return TN_ENOMEM;
  TN_TRY(call_optimizer(u, (tn_val[]){param, flat}, "", seed, &next));
  return tn_graph_commit(u->graph, "@param.f32", next, 0);
}

static tn_status update_each(tn_updater *u, tn_val flat, uint64_t seed) {
  for (int32_t i = 0; i < u->n_params; i++) {
    tn_trained *param = &u->params[i];
    const tn_type *type = &param->state->type;
    int64_t start = param->offset, stop = start + tn_type_count(type);
    tn_val gradient = tn_reshape(u->b, tn_slice_axis(u->b, flat, 0, start, stop), type->rank, type->dims),
           next = 0;
    u->one = param;
    TN_TRY(call_optimizer(u, (tn_val[]){param->state->value, gradient}, param->state->path, seed, &next));
    TN_TRY(tn_graph_commit(u->graph, param->state->path, next, 0));
  }
  u->one = NULL;
  return TN_OK;
}

/* The count of updates that tn_counter(b, TN_UPDATES) reads plus one is written back. */
static tn_status count_update(tn_updater *u) {
  tn_val now = tn_counter(u->b, TN_UPDATES);
  TN_TRY(tn_build_status(u->b));
  return tn_graph_commit(u->graph, TN_UPDATES_STATE, now, 0);
}

static tn_status emit(tn_updater *u, uint64_t seed, tn_val loss) {
  TN_TRY(differentiate(u, loss));
  TN_TRY(assign_groups(u));
  TN_TRY(place_params(u));
  TN_TRY(make_controls(u));
  tn_val flat = pack_gradients(u);
  if (u->settings->optimizer.clip > 0) flat = clip(u, flat, u->settings->optimizer.clip);
  TN_TRY(tn_build_status(u->b));
  TN_TRY(u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE ? update_flat(u, flat, seed)
                                                                           : update_each(u, flat, seed));
  return count_update(u);
}

tn_status tn_update_emit(tn_env *env, tn_arena *arena, const tn_settings *settings, uint64_t seed,
                         tn_model *model, tn_state_map *map, tn_update_plan *plan) {
  tn_builder *builder = NULL;
  tn_val loss = tn_graph_find_output(model->graph, "loss");
  memset(plan, 0, sizeof *plan);
  if (!loss)
    return tn_failf(env, TN_EINVAL,
                    "%s: [model] has no `loss`, expected one to train for, for example loss = cross_entropy",
                    settings->model_where);
  TN_TRY(tn_builder_create(model->graph, &builder));
  tn_updater u = {.env = env,
                  .arena = arena,
                  .settings = settings,
                  .graph = model->graph,
                  .b = tn_builder_handle(builder),
                  .map = map,
                  .plan = plan};
  /* gradients and updates are nobody's layer, but their random streams still need the seed */
  tn_build_frame frame = {.prefix = "", .where = "", .training = true, .seed = seed};
  tn_builder_push(u.b, &frame);
  tn_status status = emit(&u, seed, loss);
  tn_builder_pop(u.b);
  tn_builder_destroy(builder);
  return status;
}

/* ---- init ---- */

static tn_status init_state(tn_graph *graph, tn_build *b, const tn_placement *place, uint64_t seed) {
  if (!place->init || *place->init == '\0') return TN_OK;
  if (!tn_graph_state(graph, place->path, &place->type, place->what, place->init, place->where))
    return TN_ENOMEM;
  uint64_t stream = tn_mix(seed, tn_hash_text(TN_HASH_START, place->path));
  tn_val value = tn_initializer_emit(b, place->init, &place->type, stream);
  tn_status status = tn_build_status(b);
  if (status != TN_OK)
    return tn_wrap(b, status, "%s: '%s'", place->where && *place->where ? place->where : "state",
                   place->path);
  return tn_graph_commit(graph, place->path, value, 0);
}

tn_status tn_init_graph(tn_env *env, struct tn_op_table *ops, uint64_t seed, const tn_state_map *map,
                        tn_graph **out) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  *out = NULL;
  TN_TRY(tn_graph_create(env, ops, &graph));
  tn_status status = tn_builder_create(graph, &builder);
  for (size_t i = 0; status == TN_OK && i < map->states.n; i++)
    status = init_state(graph, tn_builder_handle(builder), &map->states.v[i], seed);
  tn_builder_destroy(builder);
  if (status == TN_OK)
    *out = graph;
  else
    tn_graph_destroy(graph);
  return status;
}
