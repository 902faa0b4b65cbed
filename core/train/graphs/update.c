/* core/train/graphs/update.c: from the loss to the next parameters. The trained parameters are one flat
 * region, so that clipping and an elementwise optimizer are a few pointwise ops over one vector. */
#include <string.h>

#include "core/train/graphs/update_stages.h"
#include "tenon/ops.h"

/* g * min(1, clip / (|g| + 1e-6)), PyTorch's clip_grad_norm_. */
static tn_val update_clip(tn_updater *u, tn_val flat, double most) {
  tn_build *b = u->b;
  tn_val norm = tn_sqrt(b, tn_reduce(b, "reduce_sum", tn_mul(b, flat, flat), 0, NULL, 0));
  tn_val ratio = tn_div(b, tn_scalar(b, TN_F32, most), tn_affine(b, norm, 1.0, 1e-6));
  tn_val factor = tn_op2(b, "minimum", ratio, tn_scalar(b, TN_F32, 1.0));
  if (tn_build_status(b) == TN_OK && tn_graph_output(u->graph, "grad_norm", norm) != TN_OK)
    tn_builder_fail(b, TN_ENOMEM);
  return tn_mul(b, flat, factor);
}

static tn_status update_call_optimizer(tn_updater *u, const tn_val in[2], const char *prefix, uint64_t seed,
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
                          .option_value = tn_updater_option,
                          .state = u->one ? tn_updater_parameter_state : tn_updater_flat_state};
  tn_builder_push(u->b, &frame);
  tn_status status = kind->update(u->b, options);
  /* the first error is the cause: the optimizer may have failed because of it */
  if (status != TN_OK) tn_builder_fail(u->b, status);
  status = tn_build_status(u->b);
  tn_builder_pop(u->b);
  if (status != TN_OK) return tn_wrap(u->env, status, "optimizer '%s'", kind->item.name);
  if (!*next) return tn_failf(u->env, TN_EINVAL, "optimizer '%s' yielded no parameter", kind->item.name);
  return TN_OK;
}

static tn_status update_flat_region(tn_updater *u, tn_val flat, uint64_t seed) {
  tn_type type = {TN_F32, 1, {u->count}};
  tn_val param = tn_graph_state(u->graph, "@param.f32", &type, TN_STATE_PARAM, "", ""), next = 0;
  if (!param) return TN_ENOMEM;
  TN_TRY(update_call_optimizer(u, (tn_val[]){param, flat}, "", seed, &next));
  return tn_graph_commit(u->graph, "@param.f32", next, 0);
}

static tn_status update_each_parameter(tn_updater *u, tn_val flat, uint64_t seed) {
  for (int32_t i = 0; i < u->n_params; i++) {
    tn_trained_parameter *param = &u->params[i];
    const tn_type *type = &param->state->type;
    int64_t start = param->offset, stop = start + tn_type_count(type);
    tn_val gradient = tn_reshape(u->b, tn_slice_axis(u->b, flat, 0, start, stop), type->rank, type->dims),
           next = 0;
    u->one = param;
    TN_TRY(
        update_call_optimizer(u, (tn_val[]){param->state->value, gradient}, param->state->path, seed, &next));
    TN_TRY(tn_graph_commit(u->graph, param->state->path, next, 0));
  }
  u->one = NULL;
  return TN_OK;
}

/* Commits the update counter that tn_build_counter(b, TN_UPDATES) reads, plus one. */
static tn_status update_count(tn_updater *u) {
  tn_val now = tn_build_counter(u->b, TN_UPDATES);
  TN_TRY(tn_build_status(u->b));
  return tn_graph_commit(u->graph, TN_UPDATES_STATE, now, 0);
}

/* Commits of the update take effect only if it is applied. The model's own commits precede `first`. */
static void update_predicate_commits(tn_updater *u, size_t first) {
  for (size_t i = first; i < u->graph->commits.n; i++) u->graph->commits.v[i].predicate = u->applied;
}

/* The stages in order: gradients, locations, reduction, loss scaling, clipping, optimizer, commits. */
static tn_status update_emit_stages(tn_updater *u, uint64_t seed, tn_val loss) {
  TN_TRY(tn_updater_scale(u));
  TN_TRY(tn_updater_differentiate(u, loss, u->scale));
  u->info->first_node = u->graph->nodes.n;
  TN_TRY(tn_updater_group(u));
  TN_TRY(tn_updater_allocate(u));
  tn_val scaled = tn_updater_reduce(u);
  TN_TRY(tn_updater_guard_statistics(u));
  TN_TRY(tn_updater_guard(u, scaled));
  tn_val flat = tn_updater_unscale(u, scaled);
  if (u->settings->optimizer.clip > 0) flat = update_clip(u, flat, u->settings->optimizer.clip);
  TN_TRY(tn_build_status(u->b));
  size_t first = u->graph->commits.n;
  TN_TRY(u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE
             ? update_flat_region(u, flat, seed)
             : update_each_parameter(u, flat, seed));
  TN_TRY(update_count(u));
  update_predicate_commits(u, first);
  return TN_OK;
}

/* The stages of all micro-batches but the last: scaled gradients are accumulated. */
static tn_status update_emit_accumulation(tn_updater *u, uint64_t seed, tn_val loss) {
  (void)seed;
  TN_TRY(tn_updater_scale(u));
  TN_TRY(tn_updater_differentiate(u, loss, u->scale));
  u->info->first_node = u->graph->nodes.n;
  TN_TRY(tn_updater_allocate(u));
  TN_TRY(tn_updater_guard_statistics(u));
  return tn_updater_accumulate(u);
}

static tn_status update_emit_with(tn_env *env, tn_arena *arena, const tn_settings *settings, uint64_t seed,
                                  tn_model *model, tn_state_map *map, tn_update_info *info,
                                  tn_status (*body)(tn_updater *u, uint64_t seed, tn_val loss)) {
  tn_builder *builder = NULL;
  tn_val loss = tn_graph_find_output(model->graph, "loss");
  memset(info, 0, sizeof *info);
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
                  .info = info};
  /* the update belongs to no layer, but its random streams need the seed */
  tn_build_frame frame = {.prefix = "", .where = "", .training = true, .seed = seed};
  tn_builder_push(u.b, &frame);
  tn_status status = body(&u, seed, loss);
  tn_builder_pop(u.b);
  tn_builder_destroy(builder);
  return status;
}

tn_status tn_update_emit(tn_env *env, tn_arena *arena, const tn_settings *settings, uint64_t seed,
                         tn_model *model, tn_state_map *map, tn_update_info *info) {
  return update_emit_with(env, arena, settings, seed, model, map, info, update_emit_stages);
}

tn_status tn_accumulate_emit(tn_env *env, tn_arena *arena, const tn_settings *settings, uint64_t seed,
                             tn_model *model, tn_state_map *map, tn_update_info *info) {
  return update_emit_with(env, arena, settings, seed, model, map, info, update_emit_accumulation);
}
