/* core/config/ini/edit.c: overrides from the command line, and printing. */
#include <string.h>

#include "core/config/ini/parse.h"

static const char OVERRIDE[] = "--set";

/* The parts of "section.key=value", in the arena. */
typedef struct ini_override {
  const char *where, *section, *key;
  char *value;
} ini_override;

static tn_status ini_override_split(const void *handle, tn_arena *arena, const char *assignment,
                                    ini_override *out) {
  char *text = tn_arena_strdup(arena, assignment);
  out->where = tn_arena_printf(arena, "%s %s", OVERRIDE, assignment);
  if (text == NULL || out->where == NULL) return TN_ENOMEM;
  char *equals = strchr(text, '=');
  if (equals == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: no '=', expected section.key=value", out->where);
  *equals = '\0';
  char *dot = strrchr(text, '.');
  if (dot == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: no '.' before '=', expected section.key=value", out->where);
  *dot = '\0';
  out->key = tn_text_trim(dot + 1);
  out->value = equals + 1;
  TN_TRY(tn_ini_key_name(handle, out->where, out->key));
  return tn_ini_section_name(handle, arena, out->where, text, &out->section);
}

/* Splits the value of an override into lines. Each line must be valid in a file. */
static tn_status ini_override_lines(const void *handle, const ini_override *override, tn_value_lines *lines) {
  char *line = override->value + strspn(override->value, " \t");
  while (line != NULL) {
    char *next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    size_t n = strlen(line);
    while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL) line[--n] = '\0';
    const char *flaw = tn_ini_line_flaw(line, next != NULL || lines->text.n > 0);
    if (flaw != NULL)
      return tn_failf(handle, TN_EINVAL, "%s: the value '%s' cannot be kept in a file: %s", override->where,
                      line, flaw);
    TN_TRY(tn_value_lines_add(handle, lines, line, 0));
    line = next;
  }
  return TN_OK;
}

static tn_status ini_override_read(const void *handle, tn_arena *arena, const ini_override *override,
                                   tn_ini_entry *entry) {
  tn_value_lines lines = {{0}, {0}};
  tn_status status = ini_override_lines(handle, override, &lines);
  if (status == TN_OK) status = tn_value_lines_join(handle, arena, &lines, entry);
  tn_value_lines_free(handle, &lines);
  return status;
}

static tn_section *ini_override_section(tn_ini *ini, const char *name) {
  tn_section *section = tn_ini_section(ini, name);
  if (section != NULL) return section;
  section = tn_ini_add_section(&ini->arena, &ini->sections, &ini->n_sections);
  if (section == NULL) return NULL;
  section->name = name;
  section->file = OVERRIDE;
  return section;
}

tn_status tn_ini_set(const void *handle, tn_ini *ini, const char *assignment) {
  ini_override override = {0};
  tn_ini_entry entry = {0};
  TN_TRY(ini_override_split(handle, &ini->arena, assignment, &override));
  TN_TRY(ini_override_read(handle, &ini->arena, &override, &entry));
  tn_section *section = ini_override_section(ini, override.section);
  if (section == NULL) return TN_ENOMEM;
  const char *where = tn_arena_printf(&ini->arena, "%s %s.%s", OVERRIDE, override.section, override.key);
  if (where == NULL) return TN_ENOMEM;
  tn_key key = {.name = override.key,
                .value = entry.value,
                .file = where,
                .value_lines = entry.value_lines,
                .n_value_lines = entry.n_value_lines};
  return tn_ini_put_key(&ini->arena, section, &key);
}

/* Prints a line with each dollar doubled; reading undoes it. */
static void ini_print_line(tn_text *text, const char *line, size_t n) {
  for (size_t i = 0; i < n; i++) tn_text_addn(text, line[i] == '$' ? "$$" : line + i, line[i] == '$' ? 2 : 1);
}

/* A value of several lines is printed below its key, indented. A value that begins with '#' or ';' is
 * printed directly behind '=', where reading does not take it for a comment. */
static void ini_print_key(tn_text *text, const tn_key *key) {
  const char *line = key->value;
  bool several = strchr(line, '\n') != NULL;
  tn_text_addf(text, "%s =%s", key->name,
               several || *line == '\0' || *line == '#' || *line == ';' ? "" : " ");
  for (;;) {
    size_t n = strcspn(line, "\n");
    if (several) tn_text_add(text, "\n    ");
    ini_print_line(text, line, n);
    if (line[n] == '\0') break;
    line += n + 1;
  }
  tn_text_addn(text, "\n", 1);
}

tn_status tn_ini_print(const void *handle, const tn_ini *ini, tn_text *text) {
  for (int32_t i = 0; i < ini->n_sections; i++) {
    const tn_section *section = &ini->sections[i];
    tn_text_addf(text, "%s[%s]\n", i > 0 ? "\n" : "", section->name);
    for (int32_t k = 0; k < section->n_keys; k++) ini_print_key(text, &section->keys[k]);
  }
  return text->failed ? tn_failf(handle, TN_ENOMEM, "out of memory while a configuration was printed")
                      : TN_OK;
}
