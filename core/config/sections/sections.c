/* core/config/sections/sections.c: filling options from sections, and reporting unused keys and sections. */
#include "core/config/sections/sections.h"

#include <ctype.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/vec.h"
#include "core/config/ini/lines.h"
#include "core/config/options/habits.h"
#include "core/config/options/option_value.h"

typedef TN_VEC(const char *) section_names;

/* Fails with "file.ini:14: [section] key: TEXT". */
static tn_status section_fail_key(const void *handle, tn_ini *ini, const tn_section *section,
                                  const tn_key *key, const char *format, ...) TN_PRINTF(5, 6);
static tn_status section_fail_key(const void *handle, tn_ini *ini, const tn_section *section,
                                  const tn_key *key, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tn_failv(handle, TN_EINVAL, NULL, format, args);
  va_end(args);
  return tn_wrap(handle, TN_EINVAL, "%s: [%s] %s", tn_key_where(ini, section, key), section->name, key->name);
}

/* Appends "did you mean 'x'?" or "expected one of a, b, c". */
static void section_add_advice(tn_text *text, const char *word, const section_names *names, const char *open,
                               const char *close) {
  const char *nearest = tn_text_nearest(word, names->v, names->n);
  if (nearest != NULL) {
    tn_text_addf(text, ", did you mean %s%s%s?", open, nearest, close);
    return;
  }
  for (size_t i = 0; i < names->n; i++)
    tn_text_addf(text, "%s%s%s%s", i == 0 ? ", expected one of " : ", ", open, names->v[i], close);
}

static tn_status section_add_option_names(const void *handle, const tn_item *item, section_names *names) {
  for (int64_t i = 0; tn_options_at(item, i) != NULL; i++)
    TN_TRY(tn_vec_push(handle, names, tn_options_at(item, i)->name));
  return TN_OK;
}

/* Appends "; write it into [run]" for a key of another section. */
static bool section_add_home(tn_text *text, const tn_ini *ini, const char *key) {
  const char *section, *name = tn_option_home(key, ini->homes, &section);
  if (name == NULL) return false;
  bool block = tn_text_equal(section, "block") || tn_text_equal(section, "phase"),
       group = tn_text_equal(section, "group");
  tn_text_addf(text, "; write %s into [%s%s]", tn_text_equal(name, key) ? "it" : name, section,
               block   ? " NAME"
               : group ? ".NAME"
                       : "");
  return true;
}

static tn_status section_fail_unknown_key(const void *handle, tn_ini *ini, const tn_section *section,
                                          const tn_key *key, const section_names *names) {
  tn_text text = tn_text_new(handle);
  tn_text_add(&text, "unknown key");
  const char *habit = tn_option_habit(key->name, names->v, names->n), *there = tn_option_elsewhere(key->name);
  if (habit != NULL)
    tn_text_addf(&text, ", did you mean '%s'?", habit);
  else if (there != NULL)
    tn_text_addf(&text, "; %s", there);
  else if (tn_text_nearest(key->name, names->v, names->n) != NULL ||
           !section_add_home(&text, ini, key->name)) {
    section_add_advice(&text, key->name, names, "'", "'");
    if (names->n == 0) tn_text_add(&text, ", this section has none");
  }
  tn_status status = section_fail_key(handle, ini, section, key, "%s", text.failed ? "unknown key" : text.v);
  tn_text_free(&text);
  return status;
}

static tn_status section_fail_no_option(const void *handle, tn_ini *ini, const tn_section *section,
                                        const tn_key *key, tn_options *const *into, int32_t n) {
  section_names names = {0};
  tn_status status = TN_OK;
  for (int32_t i = 0; i < n && status == TN_OK; i++)
    status = section_add_option_names(handle, into[i]->item, &names);
  if (status == TN_OK) status = section_fail_unknown_key(handle, ini, section, key, &names);
  tn_vec_free(handle, &names);
  return status;
}

/* Whether a line has the form "word = ...": a key that was indented by mistake. */
static bool section_looks_like_key(const char *line) {
  const char *p = line + strspn(line, " \t");
  if (!isalpha((unsigned char)*p)) return false;
  while (isalnum((unsigned char)*p) || *p == '_' || *p == '-') p++;
  p += strspn(p, " \t");
  return *p == '=' && p[1] != '=';
}

static tn_status section_check_lines(const void *handle, tn_ini *ini, const tn_section *section,
                                     const tn_key *key) {
  int32_t row = 1;
  for (const char *line = strchr(key->value, '\n'); line != NULL; line = strchr(line, '\n'), row++) {
    if (!section_looks_like_key(++line)) continue;
    int32_t number = row < key->n_value_lines ? key->value_lines[row] : key->line;
    return section_fail_key(handle, ini, section, key,
                            "'%.*s' in line %d is indented and so continues this key; %s",
                            (int)strcspn(line, "\n"), line, number, "keys begin in column 1");
  }
  return TN_OK;
}

/* The folder that paths of this key are relative to; NULL: the current folder, as for --set. */
static tn_status section_key_folder(const void *handle, tn_ini *ini, const tn_key *key, const char **folder) {
  *folder = NULL;
  if (key->line == 0) return TN_OK;
  if (*ini->path == '\0') { /* a configuration from text has a folder but no file */
    *folder = ini->folder;
    return TN_OK;
  }
  char *found = tn_path_folder(handle, key->file);
  *folder = found != NULL ? tn_arena_strdup(&ini->arena, found) : NULL;
  tn_release(handle, found);
  return *folder != NULL ? TN_OK : TN_ENOMEM;
}

/* Stores the absolute path in the key, if an INI file can represent it. */
static void section_keep_path(tn_ini *ini, tn_key *key, const tn_options *options, const tn_option *option) {
  const char *path = tn_option_load(option, options->data).text;
  if ((option->type != TN_OPT_PATH && option->type != TN_OPT_CODE) || strchr(path, '\n') != NULL ||
      tn_ini_line_flaw(path, false) != NULL)
    return;
  if (*path == '"' || *path == '\0') return;
  const char *kept = tn_arena_strdup(&ini->arena, path);
  if (kept != NULL) key->value = kept;
}

/* Whether a file that is not trusted names code; a key that --set has given is the user's. */
static bool section_leaves_out_code(const void *handle, tn_ini *ini, const tn_section *section,
                                    const tn_key *key, const tn_option *option) {
  if (!ini->untrusted || option->type != TN_OPT_CODE || key->line == 0 || *key->value == '\0') return false;
  tn_logf(handle, TN_LOG_WARN,
          "%s: [%s] %s = %s is left out, since it names code, and the folder may be another user's; --trust "
          "uses it",
          tn_key_where(ini, section, key), section->name, key->name, key->value);
  return true;
}

static tn_status section_set_option(const void *handle, tn_ini *ini, const tn_section *section, tn_key *key,
                                    tn_options *options) {
  const tn_option *option = tn_options_find(options->item, key->name);
  const char *folder = options->folder;
  if (options->given[tn_options_position(options->item, key->name)]) return TN_OK;
  TN_TRY(section_check_lines(handle, ini, section, key));
  if (section_leaves_out_code(handle, ini, section, key, option)) return TN_OK;
  TN_TRY(section_key_folder(handle, ini, key, &options->folder));
  tn_status status = tn_options_set_text(handle, options, key->name, key->value);
  options->folder = folder;
  if (status != TN_OK)
    options->given[tn_options_position(options->item, key->name)] = true; /* though wrong */
  if (status == TN_OK) section_keep_path(ini, key, options, option);
  if (status == TN_OK) return TN_OK;
  /* The message begins with the key's name. */
  return tn_failf(handle, status, "%s: [%s] %s", tn_key_where(ini, section, key), section->name,
                  tn_error_text(handle));
}

/* Keeps the mistake, and remembers that the section has one. */
static tn_status section_note(const void *handle, tn_ini *ini, tn_section *section, tn_status status) {
  section->mistaken = section->mistaken || status == TN_EINVAL;
  return tn_ini_note(handle, ini, status);
}

static tn_status section_fill_key(const void *handle, tn_ini *ini, const tn_section *section, tn_key *key,
                                  tn_options *const *into, int32_t n) {
  bool found = false;
  key->used = true;
  for (int32_t i = 0; i < n; i++) {
    if (tn_options_find(into[i]->item, key->name) == NULL) continue;
    TN_TRY(section_set_option(handle, ini, section, key, into[i]));
    found = true;
  }
  return found ? TN_OK : section_fail_no_option(handle, ini, section, key, into, n);
}

tn_status tn_section_fill(const void *handle, tn_ini *ini, tn_section *section, tn_options *const *into,
                          int32_t n) {
  if (section == NULL) return TN_OK;
  section->used = true;
  for (int32_t i = 0; i < section->n_keys; i++)
    if (!section->keys[i].apart)
      TN_TRY(section_note(handle, ini, section,
                          section_fill_key(handle, ini, section, &section->keys[i], into, n)));
  return TN_OK;
}

tn_status tn_section_finish(const void *handle, tn_ini *ini, const tn_section *section, const char *name,
                            tn_options *options) {
  if (section != NULL && section->mistaken) return TN_OK; /* the wrong key may be the one that is missing */
  tn_status status = tn_options_finish(handle, options);
  if (status == TN_OK) return TN_OK;
  if (section != NULL)
    return tn_failf(handle, status, "%s: [%s] %s", tn_key_where(ini, section, NULL), section->name,
                    tn_error_text(handle));
  return tn_failf(handle, status, "%s%s[%s] %s", ini->path, *ini->path != '\0' ? ": " : "", name,
                  tn_error_text(handle));
}

static bool section_is_pattern(const char *name) { return strpbrk(name, "*?") != NULL; }

/* Fails with the nearest known section names. */
static tn_status section_fail_unknown(const void *handle, tn_ini *ini, const tn_section *section,
                                      const tn_section_pattern *known, int32_t n) {
  section_names names = {0};
  tn_text text = tn_text_new(handle);
  tn_status status = TN_OK;
  for (int32_t i = 0; i < n && status == TN_OK; i++)
    if (!section_is_pattern(known[i].pattern)) status = tn_vec_push(handle, &names, known[i].pattern);
  if (status == TN_OK) {
    const char *habit = tn_section_habit(section->name);
    section_add_advice(&text, habit != NULL ? habit : section->name, &names, "[", "]");
    status = tn_failf(handle, TN_EINVAL, "%s: unknown section [%s]%s", tn_key_where(ini, section, NULL),
                      section->name, text.failed || text.v == NULL ? "" : text.v);
  }
  tn_text_free(&text);
  tn_vec_free(handle, &names);
  return status;
}

static tn_status section_check_key(const void *handle, tn_ini *ini, const tn_section *section,
                                   const tn_key *key, const tn_section_pattern *known, int32_t n) {
  section_names names = {0};
  tn_status status = TN_OK;
  if (key->used) return TN_OK;
  for (int32_t i = 0; i < n; i++) {
    if (known[i].tables == NULL || !tn_text_glob(known[i].pattern, section->name)) continue;
    for (const tn_item *const *table = known[i].tables; *table != NULL && status == TN_OK; table++)
      status = section_add_option_names(handle, *table, &names);
  }
  if (status == TN_OK) status = section_fail_unknown_key(handle, ini, section, key, &names);
  tn_vec_free(handle, &names);
  return status;
}

static tn_status section_check(const void *handle, tn_ini *ini, const tn_section *section,
                               const tn_section_pattern *known, int32_t n) {
  bool is_known = section->used, free_keys = false;
  for (int32_t i = 0; i < n; i++) {
    if (!tn_text_glob(known[i].pattern, section->name)) continue;
    is_known = true;
    free_keys = free_keys || known[i].tables == NULL;
  }
  if (!is_known) return section_fail_unknown(handle, ini, section, known, n);
  if (!section->used)
    return tn_failf(handle, TN_EINVAL, "%s: nothing in this configuration uses the section [%s]; remove it",
                    tn_key_where(ini, section, NULL), section->name);
  for (int32_t i = 0; i < section->n_keys && !free_keys; i++)
    TN_TRY(tn_ini_note(handle, ini, section_check_key(handle, ini, section, &section->keys[i], known, n)));
  return TN_OK;
}

tn_status tn_sections_check(const void *handle, tn_ini *ini, const tn_section_pattern *known, int32_t n) {
  for (int32_t i = 0; i < ini->n_sections; i++)
    TN_TRY(tn_ini_note(handle, ini, section_check(handle, ini, &ini->sections[i], known, n)));
  return tn_ini_tell(handle, ini);
}
