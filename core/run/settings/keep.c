/* core/run/settings/keep.c: [run] keep_every and target. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/section_tables.h"

/* "5 epochs", "1000 steps" or a duration such as 2h. */
static bool keep_parse(const char *text, tn_keep_every *every) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (end == text || errno != 0 || n < 1) return false;
  end += strspn(end, " ");
  if (tn_text_equal(end, "epochs") || tn_text_equal(end, "epoch")) every->epochs = n;
  if (tn_text_equal(end, "steps") || tn_text_equal(end, "step")) every->steps = n;
  return every->epochs > 0 || every->steps > 0;
}

static tn_status keep_read_every(tn_env *env, tn_ini *ini, tn_settings *s) {
  const char *text = s->run.keep_every;
  if (text == NULL || *text == '\0' || keep_parse(text, &s->keep_every)) return TN_OK;
  bool unit = strpbrk(text, "smhd") != NULL; /* a number alone would be of seconds */
  if (unit && tn_parse_duration(env, text, &s->keep_every.seconds) == TN_OK && s->keep_every.seconds > 0)
    return TN_OK;
  s->keep_every.seconds = 0;
  return tn_failf(
      env, TN_EINVAL,
      "%s: [run] keep_every = %s, expected a number with its unit: 5 epochs, 1000 steps, or a time "
      "such as 2h",
      tn_settings_where(ini, "run", "keep_every"), text);
}

/* "accuracy 0.94" */
static tn_status keep_read_target(tn_env *env, tn_ini *ini, tn_settings *s) {
  const char *text = s->run.target;
  if (text == NULL || *text == '\0') return TN_OK;
  size_t n = strcspn(text, " ");
  char *name = tn_arena_printf(&ini->arena, "%.*s", (int)n, text);
  if (name == NULL) return TN_ENOMEM;
  s->target_metric = name;
  if (text[n] == ' ' && tn_text_to_float(text + n + strspn(text + n, " "), &s->target_value) &&
      isfinite(s->target_value))
    return TN_OK;
  s->target_metric = NULL;
  return tn_failf(env, TN_EINVAL,
                  "%s: [run] target = %s, expected a loss or metric and a number, such as accuracy 0.94",
                  tn_settings_where(ini, "run", "target"), text);
}

tn_status tn_settings_read_keep(tn_env *env, tn_ini *ini, tn_settings *s) {
  TN_TRY(tn_ini_note(env, ini, keep_read_every(env, ini, s)));
  return tn_ini_note(env, ini, keep_read_target(env, ini, s));
}
