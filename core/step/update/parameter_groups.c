/* core/step/update/parameter_groups.c: parameter groups, and the values of scheduled options, which the host
 * writes into the control block before every step. */
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
  u->info->n_groups = s->n_groups + 1;
  return TN_OK;
}

static double parameter_groups_option(const tn_settings *s, int32_t group, const tn_option *option) {
  const void *data = group == 0 ? s->optimizer_options : s->groups[group - 1].options;
  const char *field = (const char *)data + option->offset;
  return option->type == TN_OPT_INT ? (double)*(const int64_t *)field : *(const double *)field;
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
  if (s->target == TN_SCHEDULES_OPTIMIZER || s->target == TN_SCHEDULES_TRANSFORM) return TN_OK;
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
  for (int32_t g = 0; g < info->n_groups; g++) {
    const char *group = g == 0 ? "" : u->settings->groups[g - 1].name;
    scheduled->values[g] = parameter_groups_option(u->settings, g, option);
    scheduled->schedules[g] = tn_settings_schedule(u->settings, name, group);
  }
  return TN_OK;
}

/* One value per element of the part's region, from the ranges of the groups. */
static tn_status parameter_groups_spread(tn_updater *u, tn_val values, tn_val *spread) {
  const tn_gradient_part *part = u->part;
  int64_t *starts = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *starts));
  int64_t *index = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *index));
  int64_t ranges = 0;
  if (starts == NULL || index == NULL) return TN_ENOMEM;
  for (int32_t i = part->first; i < part->first + part->n; i++) {
    if (ranges > 0 && index[ranges - 1] == u->params[i].group) continue;
    starts[ranges] = ranges == 0 ? 0 : u->params[i].offset;
    index[ranges++] = u->params[i].group;
  }
  *spread = tn_spread(u->b, values, ranges, starts, ranges, index, part->count);
  return tn_build_status(u->b);
}

tn_val tn_updater_option(tn_build *b, void *context, const char *name) {
  tn_updater *u = context;
  tn_val value = 0, result = 0;
  tn_status status = parameter_groups_add_input(u, name, &value);
  if (status == TN_OK && (u->info->n_groups == 1 || value == 0)) return value;
  if (status == TN_OK && (u->one || u->shards > 1)) { /* the parameters of a bucket are of one group */
    int32_t group = u->one ? u->one->group : u->params[u->part->first].group;
    return tn_reshape(b, tn_slice_axis(b, value, 0, group, group + 1), 0, NULL);
  }
  if (status == TN_OK) status = parameter_groups_spread(u, value, &result);
  if (status != TN_OK) tn_builder_fail(b, status);
  return result;
}
