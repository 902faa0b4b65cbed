/* core/run/course/accumulate.c: [schedule.accumulate], the batches of each update
 * (docs/decisions/0115-batches-that-grow.md). */
#include "core/run/section_tables.h"

tn_status tn_settings_schedule_accumulate(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                          tn_schedule_setting *s) {
  s->target = TN_SCHEDULES_ACCUMULATE;
  if (settings->optimizer.accumulate > 1) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s] with [optimizer] accumulate = %lld: there is nothing to change; expected "
                  "accumulate = N, the most batches of an update, such as accumulate = 8",
                  tn_key_where(ini, tn_ini_section(ini, s->name), NULL), s->name,
                  (long long)settings->optimizer.accumulate);
}

tn_status tn_settings_check_accumulate(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                       const tn_schedule_setting *s) {
  double most = (double)settings->optimizer.accumulate, toward = s->section.toward;
  if (s->target != TN_SCHEDULES_ACCUMULATE || s->section.metric == NULL) return TN_OK; /* it was not read */
  if (toward >= 0 && toward <= most) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s] toward = %g, expected a number of batches from 0 to %g, which is [optimizer] "
                  "accumulate, the most of an update",
                  tn_settings_where(ini, s->name, "toward"), s->name, toward, most);
}
