/* core/run/course/phases.c: [group.NAME] freeze: which parameters are frozen in which epochs. */
#include "core/run/section_tables.h"

bool tn_settings_frozen_until(const char *freeze, int64_t *until) {
  static const char *const on[] = {"yes", "true", "on"}, *const off[] = {"no", "false", "off"};
  *until = 0;
  for (int i = 0; i < 3; i++) {
    if (tn_text_equal(freeze, on[i])) *until = TN_FROZEN_FOREVER;
    if (tn_text_equal(freeze, on[i]) || tn_text_equal(freeze, off[i])) return true;
  }
  return tn_text_to_int(freeze, until) && *until >= 0 && *until < TN_FROZEN_FOREVER;
}

/* Groups with freeze = yes take their parameters first; then the first group that matches a name takes it. */
static tn_status phases_list_patterns(tn_ini *ini, tn_settings *s) {
  for (int32_t i = 0; i < s->n_frozen; i++)
    if (s->frozen[i].until == TN_FROZEN_FOREVER)
      TN_TRY(tn_freeze_add(&ini->arena, &s->freeze, &s->frozen[i].patterns, TN_FROZEN_FOREVER));
  for (int32_t i = 0; s->n_frozen > 0 && i < s->n_groups; i++)
    TN_TRY(tn_freeze_add(&ini->arena, &s->freeze, &s->groups[i].patterns, s->groups[i].until));
  return TN_OK;
}

/* Adds the phase that begins when the group thaws, in order, unless there is one. False: there are too many.
 */
static bool phases_add(tn_settings *s, const tn_group_setting *group) {
  int64_t first = group->until + 1;
  int32_t at = s->n_phases;
  while (at > 0 && s->phases[at - 1] >= first) at--;
  if (at < s->n_phases && s->phases[at] == first) return true;
  if (s->n_phases == TN_MAX_PHASES) return false;
  for (int32_t i = s->n_phases++; i > at; i--) s->phases[i] = s->phases[i - 1];
  s->phases[at] = first;
  return true;
}

tn_status tn_settings_find_phases(tn_env *env, tn_ini *ini, tn_settings *s) {
  s->phases[0] = s->n_phases = 1;
  for (int32_t i = 0; i < s->n_groups; i++) {
    const tn_group_setting *g = &s->groups[i];
    if (phases_add(s, g)) continue;
    TN_TRY(
        tn_ini_note(env, ini,
                    tn_failf(env, TN_EINVAL,
                             "%s: [group.%s] freeze = %s: the groups thaw in more than %d different epochs, "
                             "and a run has programs for each; let some thaw together",
                             g->where, g->name, g->freeze, TN_MAX_PHASES - 1)));
    break;
  }
  return phases_list_patterns(ini, s);
}

int32_t tn_settings_phase(const tn_settings *s, int64_t epoch) {
  int32_t phase = 0;
  if (s->n_turns > 0) return 0; /* those of [phase NAME] follow in each step */
  while (phase + 1 < s->n_phases && s->phases[phase + 1] <= epoch) phase++;
  return phase;
}

int64_t tn_settings_phase_end(const tn_settings *s, int32_t phase) {
  return phase + 1 < s->n_phases ? s->phases[phase + 1] - 1 : s->run.epochs;
}
