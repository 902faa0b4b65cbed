/* core/run/settings/prune.c: [prune]: weights that training sets to zero. */
#include <stdio.h>

#include "core/run/section_tables.h"

bool tn_prune_matches(const tn_prune_setting *setting, const char *path, const tn_type *type) {
  bool divides = setting->of == 0 || type->dims[type->rank - 1] % setting->of == 0;
  return setting->given && type->rank >= 2 && divides && tn_words_match(&setting->match, path);
}

/* "2:4": n of m. */
static bool prune_parse_pattern(const char *text, tn_prune_setting *p) {
  int n = 0, m = 0, end = 0;
  p->keep = p->of = 0;
  if (*text == '\0' || tn_text_equal(text, "none")) return true;
  if (sscanf(text, "%d:%d%n", &n, &m, &end) != 2 || text[end] != '\0') return false;
  p->keep = n;
  p->of = m;
  return n >= 1 && n < m && m <= 64;
}

static tn_status prune_check(tn_env *env, tn_ini *ini, const tn_settings *s) {
  const tn_prune_section *o = &s->prune.section;
  if (o->last > 0 && o->last < o->first)
    return tn_failf(env, TN_EINVAL, "%s: [prune] last = %lld is before first = %lld",
                    tn_settings_where(ini, "prune", "last"), (long long)o->last, (long long)o->first);
  if (s->distributed.shard != TN_SHARD_NO)
    return tn_failf(env, TN_EINVAL,
                    "%s: [prune] beside [distributed] shard = optimizer, where no device has all weights of "
                    "a parameter; expected shard = no",
                    tn_settings_where(ini, "prune", "sparsity"));
  return TN_OK;
}

tn_status tn_settings_read_prune(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_prune_section *o = &s->prune.section;
  s->prune.given = tn_ini_section(ini, "prune") != NULL;
  if (!s->prune.given) return TN_OK;
  TN_TRY(tn_settings_read_section(env, ini, &tn_table_prune, o));
  s->prune.where = tn_settings_where(ini, "prune", "match");
  if (!prune_parse_pattern(o->pattern, &s->prune))
    return tn_failf(env, TN_EINVAL,
                    "%s: [prune] pattern = %s, expected none, or how many of how many neighbours stay, as in "
                    "2:4",
                    tn_settings_where(ini, "prune", "pattern"), o->pattern);
  TN_TRY(tn_words_split(&ini->arena, o->match, &s->prune.match));
  return prune_check(env, ini, s);
}
