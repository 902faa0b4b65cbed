/* core/run/items/parts.c: [source NAME]: sources that the source of [data] joins. */
#include <string.h>

#include "core/base/text/word_list.h"
#include "core/run/section_tables.h"

static const char PREFIX[] = "source ";

static tn_status parts_check_name(tn_env *env, tn_ini *ini, const tn_section *section) {
  const char *name = section->name + strlen(PREFIX);
  if (*name != '\0' &&
      name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0')
    return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s]: the name '%s', expected letters, digits, '_' and '-', as in [source cats]",
                  tn_key_where(ini, section, NULL), section->name, name);
}

static tn_status parts_read_section(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                    tn_part_setting *part) {
  tn_options host, source;
  const tn_item *item;
  tn_key *key = tn_section_key(section, "source");
  const char *where = tn_key_where(ini, section, key);
  TN_TRY(parts_check_name(env, ini, section));
  if (key == NULL)
    return tn_failf(env, TN_EINVAL,
                    "%s: [%s] has no key source, expected one, for example source = image_folder", where,
                    section->name);
  tn_status status = tn_settings_find_item(env, registry, TN_SOURCE, key->value, &item);
  if (status != TN_OK) return tn_wrap(env, status, "%s: [%s] source", where, section->name);
  TN_TRY(
      tn_settings_remove_replaced(env, registry, ini, section, "source", TN_SOURCE, &tn_table_source, item));
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_source, &host));
  TN_TRY(tn_options_start(env, &ini->arena, item, &source));
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&host, &source}, 2));
  TN_TRY(tn_section_finish(env, ini, section, section->name, &source));
  *part = (tn_part_setting){section->name + strlen(PREFIX), (const tn_source *)item, source.data, where};
  return TN_OK;
}

/* Whether a key `sources` of [data...] or of a [source NAME] has the name. */
static tn_status parts_is_joined(tn_ini *ini, const char *name, bool *is_joined) {
  *is_joined = false;
  for (int32_t i = 0; i < ini->n_sections; i++) {
    const tn_section *s = &ini->sections[i];
    const tn_key *key = tn_section_key(s, "sources");
    tn_words names;
    if (key == NULL || !(tn_text_starts(s->name, "data") || tn_text_starts(s->name, PREFIX))) continue;
    TN_TRY(tn_words_split(&ini->arena, key->value, &names));
    *is_joined |= tn_words_contain(&names, name);
  }
  return TN_OK;
}

static tn_status parts_warn_unused(tn_env *env, tn_ini *ini, const tn_section *section) {
  bool is_joined;
  TN_TRY(parts_is_joined(ini, section->name + strlen(PREFIX), &is_joined));
  if (!is_joined)
    tn_logf(env, TN_LOG_WARN, "%s: [%s] is not used: no key sources has its name",
            tn_key_where(ini, section, NULL), section->name);
  return TN_OK;
}

tn_status tn_settings_read_parts(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s) {
  tn_part_setting *parts =
      tn_arena_alloc(&ini->arena, tn_size_mul((size_t)ini->n_sections + 1, sizeof *parts));
  if (parts == NULL) return TN_ENOMEM;
  s->parts = (tn_part_settings){parts, 0};
  for (int32_t i = 0; i < ini->n_sections; i++) {
    tn_section *section = &ini->sections[i];
    if (!tn_text_starts(section->name, PREFIX)) continue;
    tn_status status = parts_read_section(env, registry, ini, section, &parts[s->parts.n]);
    if (status == TN_OK) TN_TRY(parts_warn_unused(env, ini, section));
    if (status == TN_OK) s->parts.n++;
    if (status == TN_EINVAL) tn_section_mark_used(section);
    TN_TRY(tn_ini_note(env, ini, status));
  }
  return TN_OK;
}
