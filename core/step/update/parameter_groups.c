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
    /* a group that thaws may be one of statistics, or its parameters are frozen in this step */
    if (members == 0 && s->groups[g].until == 0)
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

/* Allocates an entry for each option of the optimizer. */
static tn_status parameter_groups_allocate_options(tn_updater *u) {
  size_t n = 0;
  while (tn_options_at(&u->settings->optimizer_kind->item, (int64_t)n)) n++;
  u->info->scheduled = tn_arena_alloc(u->arena, tn_size_mul(n + 1, sizeof *u->info->scheduled));
  return u->info->scheduled ? TN_OK : TN_ENOMEM;
}

tn_status tn_updater_group(tn_updater *u) {
  TN_TRY(parameter_groups_assign(u));
  return parameter_groups_allocate_options(u);
}

/* The input of a scheduled option, added at its first use. */
static tn_status parameter_groups_add_input(tn_updater *u, const char *name, tn_val *value) {
  const tn_item *item = &u->settings->optimizer_kind->item;
  const tn_option *option = tn_options_find(item, name);
  tn_update_info *info = u->info;
  if (option == NULL || !(option->flags & TN_OPT_SCHEDULED))
    return tn_failf(u->env, TN_EINVAL,
                    "optimizer '%s' asks for the option '%s', which it does not mark TN_OPT_SCHEDULED",
                    item->name, name);
  tn_type type = {TN_F32, info->n_groups > 1, {info->n_groups > 1 ? info->n_groups : 0}};
  const char *input = tn_updater_own(u, "control", name);
  *value = input ? tn_graph_input(u->graph, input, &type) : 0;
  if (!*value) return TN_ENOMEM;
  for (int32_t i = 0; i < info->n_scheduled; i++)
    if (tn_text_equal(info->scheduled[i].name, name)) return TN_OK;
  tn_scheduled_option *scheduled = &info->scheduled[info->n_scheduled++];
  scheduled->name = option->name;
  scheduled->input = tn_arena_strdup(u->arena, input);
  if (scheduled->input == NULL) return TN_ENOMEM;
  scheduled->values =
      tn_arena_alloc(u->arena, tn_size_mul((size_t)info->n_groups, sizeof *scheduled->values));
  if (scheduled->values == NULL) return TN_ENOMEM;
  for (int32_t g = 0; g < info->n_groups; g++)
    scheduled->values[g] = parameter_groups_option(u->settings, g, option);
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
  if (status == TN_OK && u->info->n_groups == 1) return value;
  if (status == TN_OK && (u->one || u->shards > 1)) { /* the parameters of a bucket are of one group */
    int32_t group = u->one ? u->one->group : u->params[u->part->first].group;
    return tn_reshape(b, tn_slice_axis(b, value, 0, group, group + 1), 0, NULL);
  }
  if (status == TN_OK) status = parameter_groups_spread(u, value, &result);
  if (status != TN_OK) tn_builder_fail(b, status);
  return result;
}
