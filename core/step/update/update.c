/* core/step/update/update.c: from the loss to the next parameters. The trained parameters are one flat
 * region, or one for each dtype of their gradients and epoch of thawing, so that clipping and an elementwise
 * optimizer are a few pointwise ops over one vector. */
#include <string.h>

#include "core/config/options/options.h"
#include "core/graph/build/emit_optimizer.h"
#include "core/graph/input_state.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* The counter of a part, whose updates begin when it thaws, or of a phase. */
static tn_val update_counter(tn_build *b, void *context, int32_t which) {
  tn_updater *u = context;
  const tn_type scalar = {.dtype = TN_I64};
  const char *path = tn_updater_counter(u, u->part);
  tn_val value = 0;
  if (which == TN_BATCH_BLOCK) return tn_graph_input(u->graph, TN_BLOCK_INPUT, &scalar);
  if (which != TN_UPDATES) return tn_graph_input(u->graph, TN_ITERATION_INPUT, &scalar);
  if (path != NULL) value = tn_graph_state(u->graph, path, &scalar, TN_STATE_HOST, "zeros", "");
  if (value == 0) tn_builder_fail(b, path != NULL ? u->env->record->code : TN_ENOMEM);
  return tn_add(b, value, tn_scalar(b, TN_I64, 1));
}

/* A scalar state is the same for all parts, and is committed by the first. */
static void update_commit(tn_build *b, void *context, tn_val state, tn_val now) {
  tn_updater *u = context;
  const tn_gnode *maker = tn_graph_maker(u->graph, state);
  if (tn_build_status(b) != TN_OK || tn_updater_keep(u, state, now)) return;
  if (maker == NULL || maker->op != &tn_op_state) {
    tn_builder_fail(b, tn_failf(u->env, TN_EINVAL, "tn_build_commit: expected a result of tn_build_state"));
    return;
  }
  const char *path = ((const tn_state_attributes *)maker->attributes)->path;
  if (tn_text_starts(path, TN_OPTIMIZER_SCALARS "."))
    for (size_t i = 0; i < u->graph->commits.n; i++)
      if (tn_text_equal(u->graph->commits.v[i].path, path)) return;
  tn_status status = tn_graph_commit(u->graph, path, now, 0);
  if (status != TN_OK) tn_builder_fail(b, status);
}

/* The numbers of an op are addressed by its elements, and all ranks run the same op over their parts: the
 * parts would get equal numbers. */
static tn_status update_refuse_random(const tn_updater *u, size_t first) {
  for (size_t i = first; i < u->graph->nodes.n; i++)
    if (tn_options_find(&u->graph->nodes.v[i].op->item, "stream") != NULL)
      return tn_failf(u->env, TN_EINVAL,
                      "[distributed] shard = optimizer: optimizer '%s' draws random numbers, which would be "
                      "the same on all devices; expected one that draws none, or shard = no",
                      u->settings->optimizer_kind->item.name);
  return TN_OK;
}

/* The wrappers of the optimizer change the new parameter that it has made. */
static tn_status update_follow(tn_updater *u, const tn_val yielded[TN_UPDATE_RESULTS], tn_val *next) {
  const tn_optimizer_section *s = &u->settings->optimizer;
  const char *name = u->settings->optimizer_kind->item.name;
  if (!(*next = yielded[0])) return tn_failf(u->env, TN_EINVAL, "optimizer '%s' yielded no parameter", name);
  if (s->cautious && !yielded[2])
    return tn_failf(u->env, TN_EINVAL,
                    "[optimizer] cautious = yes: optimizer '%s' does not tell the step of a parameter apart; "
                    "expected one that does, such as adamw, or cautious = no",
                    name);
  if (s->cautious) *next = tn_updater_step_cautiously(u, yielded);
  if (s->lookahead > 0) *next = tn_updater_look_ahead(u, *next);
  return tn_build_status(u->b);
}

static tn_status update_call_optimizer(tn_updater *u, const tn_val in[2], const char *prefix, uint64_t seed,
                                       tn_val *next) {
  tn_val yielded[TN_UPDATE_RESULTS] = {0};
  const tn_optimizer *kind = u->settings->optimizer_kind;
  const void *options = tn_updater_group_options(u, u->one ? u->one->group : 0);
  tn_build_frame frame = {.in = in,
                          .n_in = 2,
                          .yielded = yielded,
                          .n_yield = u->settings->optimizer.cautious ? TN_UPDATE_RESULTS : 1,
                          .prefix = prefix,
                          .where = "",
                          .training = true,
                          .seed = seed,
                          .context = u,
                          .option_value = tn_updater_option,
                          .commit = update_commit,
                          .counter = u->part->until > 0 || u->settings->turn != NULL ? update_counter : NULL,
                          .state = tn_updater_kept_state};
  size_t first = u->graph->nodes.n;
  u->kept = NULL;
  tn_builder_push(u->b, &frame);
  tn_status status = tn_optimizer_update(u->b, kind, options);
  /* the first error is the cause: the optimizer may have failed because of it */
  if (status != TN_OK) tn_builder_fail(u->b, status);
  status = tn_wrap(u->env, tn_build_status(u->b), "optimizer '%s'", kind->item.name);
  if (status == TN_OK) status = update_follow(u, yielded, next);
  if (status == TN_OK && u->shards > 1) status = update_refuse_random(u, first);
  if (status == TN_OK) status = tn_updater_store_states(u, in[0], next);
  tn_builder_pop(u->b);
  return status;
}

/* Of the ops of a part's update. Random streams depend on it, and are those of before for the first part. */
static const char *update_prefix(const tn_updater *u, const tn_gradient_part *part, const char *region) {
  if (part->bucket >= 0) return tn_arena_printf(u->arena, "bucket %d", (int)part->bucket);
  return part->dtype == TN_F32 && part->until == 0 && !part->blocks ? "" : region;
}

static tn_status update_flat_region(tn_updater *u, const tn_gradient_part *part, uint64_t seed) {
  tn_type type = {TN_F32, 1, {part->held}};
  const char *region = tn_updater_region(u, part, TN_PARAM_REGION);
  const char *path = region != NULL ? tn_arena_printf(u->arena, "@%s", region) : NULL;
  tn_val param = path != NULL ? tn_graph_state(u->graph, path, &type, TN_STATE_PARAM, "", "") : 0, next = 0;
  if (!param) return TN_ENOMEM;
  const char *prefix = update_prefix(u, part, region);
  if (prefix == NULL) return TN_ENOMEM;
  TN_TRY(tn_updater_begin_blocks(u));
  const tn_val in[2] = {tn_updater_shape(u, param), tn_updater_shape_gradient(u, part->gradient)};
  TN_TRY(update_call_optimizer(u, in, prefix, seed, &next));
  next = tn_updater_prune(u, next);
  tn_updater_watch_region(u, part, param, next);
  TN_TRY(tn_graph_commit(u->graph, path, next, 0));
  return tn_updater_average(u, next);
}

static tn_status update_parameter(tn_updater *u, const tn_trained_parameter *param, tn_val flat,
                                  uint64_t seed) {
  const tn_gstate *state = param->state;
  tn_val gradient = tn_updater_slice(u, param, flat);
  tn_val now = tn_graph_state(u->graph, state->path, &state->type, state->what, state->init, state->where),
         next = 0;
  if (!now) return u->env->record->code;
  u->one = param;
  TN_TRY(update_call_optimizer(u, (tn_val[]){now, gradient}, state->path, seed, &next));
  next = tn_updater_prune(u, next);
  tn_updater_watch_parameter(u, param, now, next);
  TN_TRY(tn_graph_commit(u->graph, state->path, next, 0));
  return tn_updater_average(u, next);
}

static tn_status update_part(tn_updater *u, const tn_gradient_part *part, uint64_t seed) {
  u->part = part;
  if (u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE)
    return update_flat_region(u, part, seed);
  for (int32_t i = part->first; i < part->first + part->n; i++)
    TN_TRY(update_parameter(u, &u->params[i], part->gradient, seed));
  return TN_OK;
}

/* Commits the update counters that tn_build_counter(b, TN_UPDATES) reads, plus one: the run's or the phase's,
 * and those of the parts that have thawed. */
static tn_status update_count(tn_updater *u) {
  const char *own = u->settings->turn != NULL ? tn_updater_counter(u, NULL) : TN_UPDATES_STATE;
  tn_val now = tn_build_counter(u->b, TN_UPDATES);
  if (own == NULL) return TN_ENOMEM;
  TN_TRY(tn_build_status(u->b));
  TN_TRY(tn_graph_commit(u->graph, own, now, 0));
  for (int32_t i = 0; i < u->n_parts; i++) {
    if (u->parts[i].until == 0 || (i > 0 && u->parts[i].until == u->parts[i - 1].until)) continue;
    u->part = &u->parts[i];
    now = update_counter(u->b, u, TN_UPDATES);
    const char *path = tn_updater_counter(u, u->part);
    if (path == NULL) return TN_ENOMEM;
    TN_TRY(tn_build_status(u->b));
    TN_TRY(tn_graph_commit(u->graph, path, now, 0));
  }
  return TN_OK;
}

/* Commits of the update take effect only if it is applied. The model's own commits precede `first`. */
static void update_predicate_commits(tn_updater *u, size_t first) {
  for (size_t i = first; i < u->graph->commits.n; i++)
    if (!tn_updater_has_chosen(u, &u->graph->commits.v[i])) u->graph->commits.v[i].predicate = u->applied;
}

static tn_status update_emit_gradients(tn_updater *u, uint64_t seed) {
  tn_val loss = tn_graph_find_output(u->graph, "loss");
  (void)seed;
  if (!loss)
    return tn_failf(u->env, TN_EINVAL,
                    "%s: [model] has no `loss`, expected one to train for, for example loss = cross_entropy",
                    u->settings->model_where);
  TN_TRY(tn_updater_scale(u));
  return tn_updater_differentiate(u, loss, u->scale);
}

/* The stages in order: the second pass of [optimizer] sharpness, groups, locations, reduction, loss scaling,
 * clipping, averages of statistics, optimizer with averages of parameters, commits; [run] watch reads between
 * them. */
static tn_status update_emit_stages(tn_updater *u, uint64_t seed) {
  TN_TRY(tn_updater_sharpen(u));
  TN_TRY(tn_updater_group(u));
  TN_TRY(tn_updater_divide(u));
  TN_TRY(tn_updater_allocate(u));
  TN_TRY(tn_updater_watch(u));
  TN_TRY(tn_updater_reduce(u));
  TN_TRY(tn_updater_guard_statistics(u));
  TN_TRY(tn_updater_guard(u));
  tn_updater_unscale(u);
  TN_TRY(tn_updater_prune_gradients(u));
  TN_TRY(tn_updater_watch_gradients(u));
  TN_TRY(tn_updater_clip(u));
  size_t first = u->graph->commits.n;
  TN_TRY(tn_updater_average_statistics(u));
  for (int32_t i = 0; i < u->n_parts; i++) TN_TRY(update_part(u, &u->parts[i], seed));
  TN_TRY(update_count(u));
  TN_TRY(tn_updater_watch_outputs(u));
  update_predicate_commits(u, first);
  return TN_OK;
}

/* The stages of all micro-batches but the last: scaled gradients are accumulated. */
static tn_status update_emit_accumulation(tn_updater *u, uint64_t seed) {
  (void)seed;
  TN_TRY(tn_updater_divide(u));
  TN_TRY(tn_updater_allocate(u));
  TN_TRY(tn_updater_guard_statistics(u));
  return tn_updater_accumulate(u);
}

static tn_status update_emit_with(tn_training_graph *t, tn_update_info *info,
                                  tn_status (*body)(tn_updater *u, uint64_t seed)) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(t->model->graph, &builder));
  tn_updater u = {.env = t->env,
                  .arena = t->arena,
                  .settings = t->settings,
                  .cuts = t->cuts,
                  .epoch = t->epoch,
                  .graph = t->model->graph,
                  .b = tn_builder_handle(builder),
                  .map = t->map,
                  .info = info,
                  .params = t->params,
                  .n_params = t->n_params,
                  .row_major = tn_updater_sees_parameters(t->settings),
                  .shards = tn_settings_shards(t->settings, t->model->graph->ranks),
                  .host = t->host,
                  .scale = t->scale,
                  .watched = t->watched};
  u.buckets = u.shards > 1 || u.host;
  u.sorted = u.buckets || (t->either_place && t->settings->optimizer.clip > 0);
  /* the update belongs to no layer, but its random streams need the seed */
  tn_build_frame frame = {.prefix = "",
                          .where = "",
                          .training = true,
                          .seed = t->seed,
                          .context = &u,
                          .counter = t->settings->turn != NULL ? update_counter : NULL};
  tn_builder_push(u.b, &frame);
  tn_status status = body(&u, t->seed);
  tn_builder_pop(u.b);
  tn_builder_destroy(builder);
  t->params = u.params;
  t->n_params = u.n_params;
  t->scale = u.scale;
  return status;
}

tn_status tn_gradients_emit(tn_training_graph *t) { return update_emit_with(t, NULL, update_emit_gradients); }

tn_status tn_update_emit(tn_training_graph *t, tn_update_info *info) {
  memset(info, 0, sizeof *info);
  return update_emit_with(t, info, update_emit_stages);
}

tn_status tn_accumulate_emit(tn_training_graph *t) {
  return update_emit_with(t, NULL, update_emit_accumulation);
}
