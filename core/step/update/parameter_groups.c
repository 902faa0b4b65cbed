/* core/step/update/parameter_groups.c: parameter groups, and the values of scheduled options, which the host
 * writes into the control block before every step. */
#include <math.h>

#include "core/base/text/text.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

static tn_status parameter_groups_assign(tn_updater *u) {
  const tn_settings *s = u->settings;
  for (int32_t g = 0; g < s->n_groups; g++) {
    int32_t members = 0;
    for (int32_t i = 0; i < u->n_params; i++) {
      tn_trained_parameter *param = &u->params[i];
      if (param->group != 0 || !tn_words_match(&s->groups[g].patterns, param->state->path)) continue;
      param->group = g + 1;
      members++;
    }
    /* a group that thaws may be one of statistics, or its parameters are frozen in this step; [adapt] freezes
     * the groups of a configuration that trains all */
    if (members == 0 && s->groups[g].until == 0 && s->adapters.n == 0)
      return tn_failf(
          u->env, TN_EINVAL,
          "%s: [group.%s] match: '%s' matches no parameter that the loss depends on, or only parameters "
          "of earlier groups",
          s->groups[g].where, s->groups[g].name, s->groups[g].match);
  }
  return TN_OK;
}

static const tn_group_setting *parameter_groups_setting(const tn_updater *u, int32_t setting) {
  return setting == 0 ? NULL : &u->settings->groups[setting - 1];
}

/* A group for each of the settings, whether or not it has parameters: the first one's values are reported. */
static tn_status parameter_groups_start(tn_updater *u) {
  int32_t n = u->info->n_groups = u->settings->n_groups + 1;
  u->groups = tn_arena_alloc(u->arena, tn_size_mul((size_t)n + (size_t)u->n_params, sizeof *u->groups));
  for (int32_t i = 0; u->groups != NULL && i < n; i++) {
    const tn_group_setting *setting = parameter_groups_setting(u, i);
    u->groups[i] = (tn_update_group){.setting = i, .lr = setting ? setting->lr_scale : 1, .decays = true};
  }
  return u->groups != NULL ? TN_OK : TN_ENOMEM;
}

/* The number of a group with these values, which is appended if there is none. */
static int32_t parameter_groups_find(tn_updater *u, tn_update_group wanted) {
  for (int32_t i = 0; i < u->info->n_groups; i++) {
    const tn_update_group *group = &u->groups[i];
    if (group->setting == wanted.setting && group->lr == wanted.lr && group->decays == wanted.decays)
      return i;
  }
  u->groups[u->info->n_groups] = wanted;
  return u->info->n_groups++;
}

/* layer_decay ^ (last - depth), by the depth of the group or that of the layer. */
static tn_status parameter_groups_decay(const tn_updater *u, const tn_group_setting *setting, int64_t depth,
                                        int64_t last, double *factor) {
  bool given = setting != NULL && setting->depth != TN_DEPTH_AUTO;
  if (given && setting->depth > last)
    return tn_failf(
        u->env, TN_EINVAL, "%s: [group.%s] depth = %lld, expected 0 to %lld: the model has %lld layers",
        setting->where, setting->name, (long long)setting->depth, (long long)last, (long long)last + 1);
  *factor = pow(u->settings->optimizer.layer_decay, (double)(last - (given ? setting->depth : depth)));
  return TN_OK;
}

/* Parameters of a group that differ in their depth, or in their dimensions with no_decay, are groups. */
static tn_status parameter_groups_divide(tn_updater *u) {
  const tn_optimizer_section *s = &u->settings->optimizer;
  bool layers = s->layer_decay > 0 && s->layer_decay < 1;
  int64_t *depths = NULL, last = 0;
  if (layers) TN_TRY(tn_updater_find_depths(u, &depths, &last));
  for (int32_t i = 0; i < u->n_params; i++) {
    tn_trained_parameter *param = &u->params[i];
    const tn_group_setting *setting = parameter_groups_setting(u, param->group);
    tn_update_group wanted = u->groups[param->group];
    double factor = 1;
    if (layers) TN_TRY(parameter_groups_decay(u, setting, depths[i], last, &factor));
    wanted.lr *= factor;
    wanted.decays = !s->no_decay || param->state->type.rank > 1 || (setting != NULL && setting->decays);
    param->group = parameter_groups_find(u, wanted);
  }
  return TN_OK;
}

const void *tn_updater_group_options(const tn_updater *u, int32_t group) {
  const tn_group_setting *setting = parameter_groups_setting(u, u->groups[group].setting);
  return setting == NULL ? u->settings->optimizer_options : setting->options;
}

/* [optimizer] no_decay */
static bool parameter_groups_is_zero(const tn_updater *u, int32_t group, const tn_option *option) {
  return tn_text_equal(option->name, "weight_decay") && !u->groups[group].decays;
}

/* The samples of an update with all of [optimizer] accumulate, for lr_batch; 0: lr does not follow them. */
static int64_t parameter_groups_samples(const tn_settings *s) {
  int64_t samples;
  bool large =
      __builtin_mul_overflow(s->data[TN_SPLIT_TRAIN].section.batch, s->optimizer.accumulate, &samples);
  return s->optimizer.lr_batch == 0 ? 0 : large ? INT64_MAX : samples;
}

static double parameter_groups_by_batch(const tn_settings *s) {
  double samples = (double)parameter_groups_samples(s);
  return samples > 0 ? tn_lr_by_batch(samples / (double)s->optimizer.lr_batch, s->optimizer.lr_rule) : 1;
}

static double parameter_groups_option(const tn_updater *u, int32_t group, const tn_option *option) {
  const char *field = (const char *)tn_updater_group_options(u, group) + option->offset;
  double value = option->type == TN_OPT_INT ? (double)*(const int64_t *)field : *(const double *)field;
  if (parameter_groups_is_zero(u, group, option)) return 0;
  if (!tn_text_equal(option->name, "lr")) return value;
  return value * u->groups[group].lr * parameter_groups_by_batch(u->settings);
}

/* A new entry. */
static tn_scheduled_option *parameter_groups_add(tn_updater *u, const char *name, const char *input,
                                                 int32_t n) {
  tn_scheduled_option *added = &u->info->scheduled[u->info->n_scheduled];
  size_t count = (size_t)n;
  *added = (tn_scheduled_option){.name = name, .input = tn_arena_strdup(u->arena, input), .n = n};
  added->values = tn_arena_alloc(u->arena, tn_size_mul(count, sizeof *added->values));
  added->schedules = tn_arena_alloc(u->arena, tn_size_mul(count, sizeof *added->schedules));
  if (added->input == NULL || added->values == NULL || added->schedules == NULL) return NULL;
  u->info->n_scheduled++;
  return added;
}

/* The options of layers and the weights of losses, whose inputs the model has; and the decay of averages. */
static tn_status parameter_groups_add_other(tn_updater *u, const tn_schedule_setting *s) {
  if (s->target == TN_SCHEDULES_OPTIMIZER || s->target == TN_SCHEDULES_TRANSFORM ||
      s->target == TN_SCHEDULES_ACCUMULATE)
    return TN_OK;
  const char *name = s->name + strlen("schedule."), *input = tn_arena_printf(u->arena, "control.%s", name);
  tn_scheduled_option *added = input != NULL ? parameter_groups_add(u, name, input, 1) : NULL;
  if (added == NULL) return TN_ENOMEM;
  added->is_factor = s->target != TN_SCHEDULES_EMA;
  added->ahead = s->target == TN_SCHEDULES_EMA;
  added->values[0] = u->settings->optimizer.ema;
  added->schedules[0] = s;
  return TN_OK;
}

/* Allocates an entry for each option of the optimizer, and adds those of other schedules. */
static tn_status parameter_groups_allocate_options(tn_updater *u) {
  const tn_settings *s = u->settings;
  size_t n = (size_t)s->n_schedules;
  while (tn_options_at(&s->optimizer_kind->item, (int64_t)n - s->n_schedules)) n++;
  u->info->scheduled = tn_arena_alloc(u->arena, tn_size_mul(n + 1, sizeof *u->info->scheduled));
  if (u->info->scheduled == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < s->n_schedules; i++) TN_TRY(parameter_groups_add_other(u, &s->schedules[i]));
  return TN_OK;
}

tn_status tn_updater_group(tn_updater *u) {
  TN_TRY(parameter_groups_assign(u));
  TN_TRY(parameter_groups_start(u));
  TN_TRY(parameter_groups_divide(u));
  return parameter_groups_allocate_options(u);
}

static bool parameter_groups_have_schedule(const tn_settings *s, const char *option) {
  bool has = tn_settings_schedule(s, option, "") != NULL;
  for (int32_t g = 0; g < s->n_groups; g++)
    has = has || tn_settings_schedule(s, option, s->groups[g].name) != NULL;
  return has;
}

/* The input of a scheduled option, added at its first use; 0: it has no schedule and need not have one. */
static tn_status parameter_groups_add_input(tn_updater *u, const char *name, tn_val *value) {
  const tn_item *item = &u->settings->optimizer_kind->item;
  const tn_option *option = tn_options_find(item, name);
  tn_update_info *info = u->info;
  if (option == NULL || !(option->flags & (TN_OPT_SCHEDULED | TN_OPT_SCHEDULABLE)))
    return tn_failf(u->env, TN_EINVAL,
                    "optimizer '%s' asks for the option '%s', which it does not mark TN_OPT_SCHEDULED or "
                    "TN_OPT_SCHEDULABLE",
                    item->name, name);
  if (!(option->flags & TN_OPT_SCHEDULED) && !parameter_groups_have_schedule(u->settings, name)) return TN_OK;
  tn_type type = {TN_F32, info->n_groups > 1, {info->n_groups > 1 ? info->n_groups : 0}};
  const char *input = tn_updater_own(u, "control", name);
  *value = input ? tn_graph_input(u->graph, input, &type) : 0;
  if (!*value) return TN_ENOMEM;
  for (int32_t i = 0; i < info->n_scheduled; i++)
    if (tn_text_equal(info->scheduled[i].name, name)) return TN_OK;
  tn_scheduled_option *scheduled = parameter_groups_add(u, option->name, input, info->n_groups);
  if (scheduled == NULL) return TN_ENOMEM;
  if (tn_text_equal(name, "lr")) scheduled->samples = parameter_groups_samples(u->settings);
  scheduled->rule = u->settings->optimizer.lr_rule;
  for (int32_t g = 0; g < info->n_groups; g++) {
    const tn_group_setting *group = parameter_groups_setting(u, u->groups[g].setting);
    scheduled->values[g] = parameter_groups_option(u, g, option);
    if (!parameter_groups_is_zero(u, g, option))
      scheduled->schedules[g] = tn_settings_schedule(u->settings, name, group == NULL ? "" : group->name);
  }
  return TN_OK;
}

/* One value for each element of the part's region, or for each block, from the ranges of the groups. */
static tn_status parameter_groups_spread(tn_updater *u, tn_val values, tn_val *spread) {
  const tn_gradient_part *part = u->part;
  int64_t *starts = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *starts));
  int64_t *index = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *index));
  int64_t ranges = 0, per = part->blocks ? TN_STATE_BLOCK : 1;
  if (starts == NULL || index == NULL) return TN_ENOMEM;
  for (int32_t i = part->first; i < part->first + part->n; i++) {
    if (ranges > 0 && index[ranges - 1] == u->params[i].group) continue;
    starts[ranges] = ranges == 0 ? 0 : u->params[i].offset / per;
    index[ranges++] = u->params[i].group;
  }
  *spread = tn_spread(u->b, values, ranges, starts, ranges, index, part->count / per);
  return tn_build_status(u->b);
}

tn_val tn_updater_option(tn_build *b, void *context, const char *name) {
  tn_updater *u = context;
  tn_val value = 0, result = 0;
  tn_status status = parameter_groups_add_input(u, name, &value);
  if (status == TN_OK && (u->info->n_groups == 1 || value == 0)) return value;
  if (status == TN_OK && (u->one || u->buckets)) { /* the parameters of a bucket are of one group */
    int32_t group = u->one ? u->one->group : u->params[u->part->first].group;
    return tn_reshape(b, tn_slice_axis(b, value, 0, group, group + 1), 0, NULL);
  }
  if (status == TN_OK) status = parameter_groups_spread(u, value, &result);
  if (status != TN_OK) tn_builder_fail(b, status);
  return status == TN_OK ? tn_updater_shape(u, result) : 0;
}
