/* core/run/settings/lengths.c: [model] lengths: the sizes of the dimension that varies between batches. */
#include <string.h>

#include "core/run/settings/section_tables.h"

static tn_status lengths_add(const tn_env *env, const char *word, tn_settings *s) {
  int64_t length;
  if (!tn_text_to_int(word, &length) || length < 1 || length > INT32_MAX)
    return tn_failf(env, TN_EINVAL, "'%s' is no length, expected whole numbers from 1 on, as in 64, 128, 256",
                    word);
  if (s->n_lengths == TN_MAX_LENGTHS)
    return tn_failf(env, TN_EINVAL, "more than %d lengths, and each has programs of its own; leave some out",
                    TN_MAX_LENGTHS);
  if (s->n_lengths > 0 && length <= s->lengths[s->n_lengths - 1])
    return tn_failf(env, TN_EINVAL, "%lld behind %lld, expected lengths that rise", (long long)length,
                    (long long)s->lengths[s->n_lengths - 1]);
  s->lengths[s->n_lengths++] = length;
  return TN_OK;
}

static tn_status lengths_parse(const tn_env *env, char *text, tn_settings *s) {
  char *save = NULL;
  for (char *part = strtok_r(text, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save))
    TN_TRY(lengths_add(env, tn_text_trim(part), s));
  return TN_OK;
}

tn_status tn_settings_read_lengths(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_section *section = tn_ini_section(ini, "model");
  tn_key *key = section != NULL ? tn_section_key(section, "lengths") : NULL;
  s->n_lengths = 0;
  if (key == NULL) return TN_OK;
  key->used = true;
  if (key->value[0] == '\0') return TN_OK; /* as without the key */
  char *text = tn_arena_strdup(&ini->arena, key->value);
  if (text == NULL) return TN_ENOMEM;
  tn_status status = lengths_parse(env, text, s);
  return tn_ini_note(env, ini,
                     tn_wrap(env, status, "%s: [model] lengths", tn_settings_where(ini, "model", "lengths")));
}
