/* core/run/settings/groups.c: reads [group.NAME]: patterns of parameters, with options of their own. */
#include <string.h>

#include "core/run/section_tables.h"

static tn_status groups_check_freeze(tn_env *env, tn_ini *ini, const tn_section *section,
                                     tn_group_setting *group) {
  if (tn_settings_frozen_until(group->freeze, &group->until)) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s] freeze = %s, expected yes, no, or the last epoch in which the parameters are "
                  "frozen, a number such as 3",
                  tn_settings_where(ini, section->name, "freeze"), section->name, group->freeze);
}

static tn_status groups_check_depth(tn_env *env, tn_ini *ini, const tn_section *section, const tn_settings *s,
                                    int64_t depth) {
  if (depth == TN_DEPTH_AUTO || s->optimizer.layer_decay < 1) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s] depth = %lld has no effect without [optimizer] layer_decay",
                  tn_settings_where(ini, section->name, "depth"), section->name, (long long)depth);
}

static double groups_own(double own, double base) { return own >= 0 ? own : base; }

static tn_group_setting groups_setting(tn_ini *ini, tn_section *section, const tn_match_section *m,
                                       const tn_optimizer_section *base) {
  return (tn_group_setting){.where = tn_key_where(ini, section, tn_section_key(section, "match")),
                            .name = section->name + strlen("group."),
                            .match = m->match,
                            .freeze = m->freeze,
                            .lr_scale = m->lr_scale,
                            .depth = m->depth,
                            .decays = tn_section_key(section, "weight_decay") != NULL,
                            .clip_value = groups_own(m->clip_value, base->clip_value),
                            .clip_layer = groups_own(m->clip_layer, base->clip_layer),
                            .clip_adaptive = groups_own(m->clip_adaptive, base->clip_adaptive)};
}

/* The optimizer's options: keys of the group first, then those of [optimizer]. */
static tn_status groups_read(tn_env *env, tn_ini *ini, tn_section *section, tn_settings *s) {
  tn_options match, skipped, options;
  tn_section *base = tn_ini_section(ini, "optimizer");
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_group, &match));
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_optimizer, &skipped));
  TN_TRY(tn_options_start(env, &ini->arena, &s->optimizer_kind->item, &options));
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&match, &options}, 2));
  TN_TRY(tn_section_fill(env, ini, base, (tn_options *[]){&skipped, &options}, 2));
  TN_TRY(tn_section_finish(env, ini, section, section->name, &match));
  const tn_match_section *m = (const tn_match_section *)match.data;
  tn_group_setting group = groups_setting(ini, section, m, &s->optimizer);
  group.options = options.data;
  TN_TRY(groups_check_freeze(env, ini, section, &group));
  TN_TRY(groups_check_depth(env, ini, section, s, m->depth));
  bool always = group.until == TN_FROZEN_FOREVER;
  TN_TRY(always ? tn_settings_check_frozen_keys(env, ini, section, s->optimizer_kind)
                : tn_settings_check_group_keys(env, ini, section, s->optimizer_kind));
  if (section->mistaken && m->match == NULL) return TN_OK;
  TN_TRY(tn_words_split(&ini->arena, group.match, &group.patterns));
  if (group.until > 0) s->frozen[s->n_frozen++] = group;
  if (!always) s->groups[s->n_groups++] = group;
  return TN_OK;
}

static tn_status groups_check_no_decay(tn_env *env, tn_ini *ini, const tn_settings *s) {
  if (!s->optimizer.no_decay || s->optimizer_kind == NULL ||
      tn_options_find(&s->optimizer_kind->item, "weight_decay") != NULL)
    return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [optimizer] no_decay has no effect: %s has no weight_decay",
                  tn_settings_where(ini, "optimizer", "no_decay"), s->optimizer_kind->item.name);
}

tn_status tn_settings_read_groups(tn_env *env, tn_ini *ini, tn_settings *s) {
  size_t most = (size_t)ini->n_sections + 1;
  s->groups = tn_arena_alloc(&ini->arena, tn_size_mul(most, sizeof *s->groups));
  s->frozen = tn_arena_alloc(&ini->arena, tn_size_mul(most, sizeof *s->frozen));
  if (s->groups == NULL || s->frozen == NULL) return TN_ENOMEM;
  TN_TRY(tn_ini_note(env, ini, groups_check_no_decay(env, ini, s)));
  for (int32_t i = 0; i < ini->n_sections; i++)
    if (tn_text_starts(ini->sections[i].name, "group.") && s->optimizer_kind == NULL)
      tn_section_mark_used(&ini->sections[i]); /* its keys are options of an optimizer that does not exist */
    else if (tn_text_starts(ini->sections[i].name, "group."))
      TN_TRY(tn_settings_note(env, ini, ini->sections[i].name, groups_read(env, ini, &ini->sections[i], s)));
  return tn_settings_find_phases(env, ini, s);
}
