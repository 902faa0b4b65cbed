/* core/step/update/optimizer_state.c: the locations of the trained parameters and of the optimizer state. */
#include "core/base/text/text.h"
#include "core/step/update/update_stages.h"

/* Parameters that are never trained have a region of their own, so that low-precision copies of them are no
 * larger. */
static tn_status optimizer_state_place_frozen(tn_updater *u) {
  int32_t region;
  for (size_t i = 0; i < u->graph->states.n; i++) {
    const tn_gstate *state = &u->graph->states.v[i];
    if (state->what != TN_STATE_PARAM || state->path[0] == '@' || state->type.dtype != TN_F32) continue;
    if (tn_frozen_until(&u->settings->freeze, state->path) != TN_FROZEN_FOREVER) continue;
    TN_TRY(tn_state_map_region(u->map, TN_FROZEN_REGION, TN_F32, &region));
    TN_TRY(tn_state_map_add(u->map, state, region, -1));
  }
  return TN_OK;
}

const char *tn_updater_own(const tn_updater *u, const char *prefix, const char *name) {
  const char *turn = u->settings->turn != NULL ? u->settings->turn->name : "";
  const char *first = *turn != '\0' ? "." : "", *second = *name != '\0' ? "." : "";
  return tn_arena_printf(u->arena, "%s%s%s%s%s", prefix, first, turn, second, name);
}

static const char *optimizer_state_name(const tn_updater *u, const tn_gradient_part *part, const char *name,
                                        int32_t dtype) {
  bool cast = part->dtype != TN_F32;
  const char *text = tn_arena_printf(u->arena, "%s.%s%s%s%s", name, tn_dtype_name(dtype), cast ? "." : "",
                                     cast ? tn_dtype_name(part->dtype) : "", part->blocks ? ".int8" : "");
  if (text != NULL && part->until > 0)
    text = tn_arena_printf(u->arena, "%s.%lld", text, (long long)part->until + 1);
  if (text != NULL && u->settings->turn != NULL)
    text = tn_arena_printf(u->arena, "%s/%s", text, u->settings->turn->name);
  if (text == NULL || part->bucket < 0) return text;
  return tn_arena_printf(u->arena, "%s.b%d", text, (int)part->bucket);
}

const char *tn_updater_region(const tn_updater *u, const tn_gradient_part *part, const char *name) {
  return optimizer_state_name(u, part, name, TN_F32);
}

const char *tn_updater_counter(const tn_updater *u, const tn_gradient_part *part) {
  if (u->settings->turn != NULL) return tn_updater_own(u, TN_UPDATES_STATE, "");
  if (part->until == 0) return TN_UPDATES_STATE;
  return tn_arena_printf(u->arena, TN_UPDATES_STATE ".%lld", (long long)part->until + 1);
}

/* The index of the part's region, which is created if it does not exist. `per`: elements of the part for each
 * of the region. */
static tn_status optimizer_state_region(tn_updater *u, const tn_gradient_part *part, const char *name,
                                        int32_t dtype, int64_t per, int32_t *region) {
  const char *full = optimizer_state_name(u, part, name, dtype);
  if (full == NULL) return TN_ENOMEM;
  TN_TRY(tn_state_map_region(u->map, full, dtype, region));
  if (part->blocks) tn_state_map_align(u->map, *region, (int32_t)(TN_STATE_BLOCK / per));
  tn_state_map_divide(u->map, *region, u->shards);
  u->map->regions.v[*region].host = u->host;
  return TN_OK;
}

static tn_status optimizer_state_place_parameter(tn_updater *u, tn_trained_parameter *param, int32_t region) {
  const tn_gstate *state = param->state;
  if (state->type.dtype != TN_F32)
    return tn_failf(u->env, TN_EINVAL, "parameter '%s' is %s, expected f32", state->path,
                    tn_dtype_name(state->type.dtype));
  TN_TRY(tn_state_map_add(u->map, state, region, -1));
  param->offset = tn_state_map_find(u->map, state->path)->offset;
  return TN_OK;
}

/* A step that trains some of the parameters may have their gradients in another order than the step that has
 * chosen the locations. */
static void optimizer_state_sort(tn_updater *u, const tn_gradient_part *part) {
  tn_trained_parameter *params = u->params + part->first;
  for (int32_t i = 1; i < part->n; i++)
    for (int32_t k = i; k > 0 && params[k - 1].offset > params[k].offset; k--) {
      tn_trained_parameter later = params[k - 1];
      params[k - 1] = params[k];
      params[k] = later;
    }
}

tn_status tn_updater_allocate(tn_updater *u) {
  int32_t region;
  TN_TRY(optimizer_state_place_frozen(u));
  for (int32_t k = 0; k < u->n_parts; k++) {
    tn_gradient_part *part = &u->parts[k];
    TN_TRY(optimizer_state_region(u, part, TN_PARAM_REGION, TN_F32, 1, &region));
    for (int32_t i = part->first; i < part->first + part->n; i++)
      TN_TRY(optimizer_state_place_parameter(u, &u->params[i], region));
    optimizer_state_sort(u, part);
    if (part->blocks)
      tn_state_map_extend(u->map, region,
                          tn_updater_padded_blocks(u->map->regions.v[region].count, u->shards));
    part->count = u->map->regions.v[region].count;
    part->held = part->count / u->shards;
  }
  return TN_OK;
}

/* The optimizer state of one parameter, under the name that checkpoints use: "conv1.weight.momentum". */
static tn_status optimizer_state_allocate(tn_updater *u, const tn_trained_parameter *param, const char *name,
                                          int64_t per, int32_t region) {
  const tn_type *type = &param->state->type;
  int32_t dtype = u->map->regions.v[region].dtype;
  tn_gstate state = {.path = tn_arena_printf(u->arena, "%s.%s", param->state->path, name),
                     .type = {dtype, 1, {(tn_type_count(type) + per - 1) / per}},
                     .what = TN_STATE_OPTIMIZER,
                     .init = "",
                     .where = ""};
  if (state.path == NULL) return TN_ENOMEM;
  if (per == 1) {
    state.type = *type;
    state.type.dtype = dtype;
  }
  return tn_state_map_add(u->map, &state, region, param->offset / per);
}

static tn_status optimizer_state_follow_parameters(tn_updater *u, int32_t region) {
  int32_t params;
  TN_TRY(optimizer_state_region(u, u->part, TN_PARAM_REGION, TN_F32, 1, &params));
  tn_state_map_follow(u->map, region, params);
  return TN_OK;
}

/* One number for the parameters that are trained from the same epoch on. */
static tn_val optimizer_state_scalar(tn_build *b, tn_updater *u, const char *name, const tn_type *type,
                                     const char *init) {
  const char *path = tn_updater_own(u, TN_OPTIMIZER_SCALARS, name);
  if (path != NULL && u->part->until > 0)
    path = tn_arena_printf(u->arena, "%s.%lld", path, (long long)u->part->until + 1);
  tn_val state = path != NULL ? tn_graph_state(u->graph, path, type, TN_STATE_OPTIMIZER, init, "") : 0;
  if (!state) tn_builder_fail(b, path != NULL ? u->graph->env->record->code : TN_ENOMEM);
  return state;
}

/* The region of a state, with the offsets of the parameters, or with those of their blocks. */
static tn_status optimizer_state_place(tn_updater *u, const char *name, const tn_type *type) {
  const tn_gradient_part *part = u->part;
  int64_t per = part->blocks && type->dims[0] * TN_STATE_BLOCK == part->held ? TN_STATE_BLOCK : 1;
  int32_t region;
  if (type->rank != 1 || type->dims[0] * per != part->held)
    return tn_failf(
        u->env, TN_EINVAL,
        "state '%s' is neither of the parameter's type nor a scalar, as an elementwise optimizer requires",
        name);
  TN_TRY(optimizer_state_region(u, part, name, type->dtype, per, &region));
  if (per == 1) TN_TRY(optimizer_state_follow_parameters(u, region));
  for (int32_t i = part->first; i < part->first + part->n; i++)
    TN_TRY(optimizer_state_allocate(u, &u->params[i], name, per, region));
  tn_state_map_extend(u->map, region, part->count / per);
  return TN_OK;
}

tn_val tn_updater_flat_state(tn_build *b, void *context, const char *name, const tn_type *type,
                             const char *init) {
  tn_updater *u = context;
  if (type->rank == 0) return optimizer_state_scalar(b, u, name, type, init);
  const char *whole = optimizer_state_name(u, u->part, name, type->dtype);
  const char *path = whole ? tn_arena_printf(u->arena, "@%s", whole) : NULL;
  tn_status status = path ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && !tn_text_equal(init, "zeros"))
    status = tn_failf(u->env, TN_EINVAL, "state '%s' is initialized with %s, expected zeros", name, init);
  if (status == TN_OK) status = optimizer_state_place(u, name, type);
  if (status != TN_OK) {
    tn_builder_fail(b, status);
    return 0;
  }
  tn_val state = tn_graph_state(u->graph, path, type, TN_STATE_OPTIMIZER, "", "");
  if (!state) tn_builder_fail(b, u->graph->env->record->code);
  return state;
}

tn_val tn_updater_parameter_state(tn_build *b, void *context, const char *name, const tn_type *type,
                                  const char *init) {
  tn_updater *u = context;
  const tn_gstate *param = u->one->state;
  const char *path = tn_arena_printf(u->arena, "%s.%s", param->path, name);
  tn_val state = path ? tn_graph_state(u->graph, path, type, TN_STATE_OPTIMIZER, init, param->where) : 0;
  if (!state) tn_builder_fail(b, path ? u->graph->env->record->code : TN_ENOMEM);
  return state;
}
