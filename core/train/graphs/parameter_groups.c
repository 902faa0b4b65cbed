/* core/train/graphs/parameter_groups.c: parameter groups, and the values of scheduled options, which the host
 * writes into the control block before every step. */
#include "core/base/text.h"
#include "core/train/graphs/update_stages.h"
#include "tenon/ops.h"

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

tn_status tn_updater_group(tn_updater *u) {
  TN_TRY(assign_groups(u));
  return make_controls(u);
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
  tn_op_begin(u->b, "spread");
  tn_op_arg(u->b, values);
  tn_op_set_ints(u->b, "starts", ranges, starts);
  tn_op_set_ints(u->b, "index", ranges, index);
  tn_op_set_int(u->b, "count", u->count);
  *spread = tn_op_end(u->b);
  return tn_build_status(u->b);
}

tn_val tn_updater_option(tn_build *b, void *context, const char *name) {
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
