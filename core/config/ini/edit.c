/* core/config/ini/edit.c: overrides from the command line, and printing back. */
#include <string.h>

#include "core/config/ini/parse.h"

static const char OVERRIDE[] = "--set";

/* "section.key=value" in pieces, in the arena. */
typedef struct tn_override {
  const char *place, *section, *key;
  char *value;
} tn_override;

static tn_status split(const void *handle, tn_arena *arena, const char *assignment, tn_override *out) {
  char *text = tn_arena_strdup(arena, assignment);
  out->place = tn_arena_printf(arena, "%s %s", OVERRIDE, assignment);
  if (text == NULL || out->place == NULL) return TN_ENOMEM;
  char *equals = strchr(text, '=');
  if (equals == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: no '=', expected section.key=value", out->place);
  *equals = '\0';
  char *dot = strrchr(text, '.');
  if (dot == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: no '.' before '=', expected section.key=value", out->place);
  *dot = '\0';
  out->key = tn_text_trim(dot + 1);
  out->value = equals + 1;
  TN_TRY(tn_ini_key_name(handle, out->place, out->key));
  return tn_ini_section_name(handle, arena, out->place, text, &out->section);
}

/* A value may have several lines here too; each must be one that a file can hold. */
static tn_status cut_lines(const void *handle, const tn_override *override, tn_value_lines *lines) {
  char *line = override->value + strspn(override->value, " \t");
  while (line != NULL) {
    char *next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    size_t n = strlen(line);
    while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL) line[--n] = '\0';
    const char *flaw = tn_ini_line_flaw(line, next != NULL || lines->text.n > 0);
    if (flaw != NULL)
      return tn_failf(handle, TN_EINVAL, "%s: the value '%s' cannot be kept in a file: %s", override->place,
                      line, flaw);
    TN_TRY(tn_value_lines_add(handle, lines, line, 0));
    line = next;
  }
  return TN_OK;
}

static tn_status read_override(const void *handle, tn_arena *arena, const tn_override *override,
                               tn_ini_entry *entry) {
  tn_value_lines lines = {{0}, {0}};
  tn_status status = cut_lines(handle, override, &lines);
  if (status == TN_OK) status = tn_value_lines_join(handle, arena, &lines, entry);
  tn_value_lines_free(handle, &lines);
  return status;
}

static tn_section *section_for(tn_ini *ini, const char *name) {
  tn_section *section = tn_ini_section(ini, name);
  if (section != NULL) return section;
  section = tn_ini_add_section(&ini->arena, &ini->sections, &ini->n_sections);
  if (section == NULL) return NULL;
  section->name = name;
  section->file = OVERRIDE;
  return section;
}

tn_status tn_ini_set(const void *handle, tn_ini *ini, const char *assignment) {
  tn_override override = {0};
  tn_ini_entry entry = {0};
  TN_TRY(split(handle, &ini->arena, assignment, &override));
  TN_TRY(read_override(handle, &ini->arena, &override, &entry));
  tn_section *section = section_for(ini, override.section);
  if (section == NULL) return TN_ENOMEM;
  const char *place = tn_arena_printf(&ini->arena, "%s %s.%s", OVERRIDE, override.section, override.key);
  if (place == NULL) return TN_ENOMEM;
  tn_key key = {.name = override.key,
                .value = entry.value,
                .file = place,
                .value_lines = entry.value_lines,
                .n_value_lines = entry.n_value_lines};
  return tn_ini_put_key(&ini->arena, section, &key);
}

/* A line with its dollars doubled, since reading makes one of two. */
static void print_line(tn_text *text, const char *line, size_t n) {
  for (size_t i = 0; i < n; i++) tn_text_addn(text, line[i] == '$' ? "$$" : line + i, line[i] == '$' ? 2 : 1);
}

/* Several lines stand below their key, indented. A value that begins like a comment stands close to its
 * '=', as it did when it was read. */
static void print_key(tn_text *text, const tn_key *key) {
  const char *line = key->value;
  bool several = strchr(line, '\n') != NULL;
  tn_text_addf(text, "%s =%s", key->name,
               several || *line == '\0' || *line == '#' || *line == ';' ? "" : " ");
  for (;;) {
    size_t n = strcspn(line, "\n");
    if (several) tn_text_add(text, "\n    ");
    print_line(text, line, n);
    if (line[n] == '\0') break;
    line += n + 1;
  }
  tn_text_addn(text, "\n", 1);
}

tn_status tn_ini_print(const void *handle, const tn_ini *ini, tn_text *text) {
  for (int32_t i = 0; i < ini->n_sections; i++) {
    const tn_section *section = &ini->sections[i];
    tn_text_addf(text, "%s[%s]\n", i > 0 ? "\n" : "", section->name);
    for (int32_t k = 0; k < section->n_keys; k++) print_key(text, &section->keys[k]);
  }
  return text->failed ? tn_failf(handle, TN_ENOMEM, "out of memory while a configuration was printed")
                      : TN_OK;
}
