/* core/run/course/lengths.c: [model] lengths, the sizes of the dimension that varies between batches, and
 * [model] sizes, those of the dimension `size`, which varies between epochs. */
#include <string.h>

#include "core/run/section_tables.h"

enum { LENGTHS_USUAL_SIZE = 224 };

static tn_status lengths_add(const tn_env *env, const char *word, tn_settings *s) {
  const char *key = tn_settings_lengths_key(s);
  int64_t length;
  if (!tn_text_to_int(word, &length) || length < 1 || length > INT32_MAX)
    return tn_failf(env, TN_EINVAL, "'%s' is no %s, expected whole numbers from 1 on, as in %s", word,
                    s->sizes ? "size" : "length", s->sizes ? "128, 160, 224" : "64, 128, 256");
  if (s->n_lengths == TN_MAX_LENGTHS)
    return tn_failf(env, TN_EINVAL, "more than %d %s, and each has programs of its own; leave some out",
                    TN_MAX_LENGTHS, key);
  if (s->n_lengths > 0 && length <= s->lengths[s->n_lengths - 1])
    return tn_failf(env, TN_EINVAL, "%lld behind %lld, expected %s that rise", (long long)length,
                    (long long)s->lengths[s->n_lengths - 1], key);
  s->lengths[s->n_lengths++] = length;
  return TN_OK;
}

static tn_status lengths_parse(const tn_env *env, char *text, tn_settings *s) {
  char *save = NULL;
  for (char *part = strtok_r(text, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save))
    TN_TRY(lengths_add(env, tn_text_trim(part), s));
  return TN_OK;
}

/* The key of [model], unless it is empty, which is as without it. */
static const tn_key *lengths_find_key(const tn_section *section, const char *name) {
  tn_key *key = section != NULL ? tn_section_key((tn_section *)(uintptr_t)section, name) : NULL;
  if (key == NULL) return NULL;
  key->used = true;
  return key->value[0] != '\0' ? key : NULL;
}

tn_status tn_settings_read_lengths(tn_env *env, tn_ini *ini, tn_settings *s) {
  const tn_section *section = tn_ini_section(ini, "model");
  const tn_key *lengths = lengths_find_key(section, "lengths"), *sizes = lengths_find_key(section, "sizes"),
               *key = sizes != NULL ? sizes : lengths;
  s->n_lengths = 0;
  s->sizes = sizes != NULL;
  if (key == NULL) return TN_OK;
  if (sizes != NULL && lengths != NULL)
    TN_TRY(tn_ini_note(env, ini,
                       tn_failf(env, TN_EINVAL,
                                "%s: [model] sizes beside lengths: one dimension varies, either between "
                                "epochs or between batches; expected one of the two keys",
                                tn_key_where(ini, section, sizes))));
  char *text = tn_arena_strdup(&ini->arena, key->value);
  if (text == NULL) return TN_ENOMEM;
  tn_status status = lengths_parse(env, text, s);
  /* a size in the place of those that are wrong, so that the mistake is told once */
  if (s->sizes && s->n_lengths == 0) s->lengths[s->n_lengths++] = LENGTHS_USUAL_SIZE;
  return tn_ini_note(env, ini,
                     tn_wrap(env, status, "%s: [model] %s", tn_key_where(ini, section, key), key->name));
}

tn_status tn_settings_schedule_size(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                    tn_schedule_setting *s) {
  s->target = TN_SCHEDULES_SIZE;
  if (settings->sizes && settings->n_lengths > 1) return TN_OK;
  return tn_failf(
      env, TN_EINVAL,
      "%s: [%s]: there is one size; expected several to choose from, as [model] sizes = 128, 160, "
      "224 with inputs = image: f32[3, size, size]",
      tn_key_where(ini, tn_ini_section(ini, s->name), NULL), s->name);
}
