/* core/config/ini/value.c: joining the lines of a value. */
#include <string.h>

#include "core/config/ini/lines.h"

tn_status tn_value_lines_add(const void *handle, tn_value_lines *lines, const char *text, int32_t number) {
  TN_TRY(tn_vec_push(handle, &lines->text, text));
  return tn_vec_push(handle, &lines->number, number);
}

void tn_value_lines_free(const void *handle, tn_value_lines *lines) {
  tn_vec_free(handle, &lines->text);
  tn_vec_free(handle, &lines->number);
}

static size_t ini_value_indentation(const char *line) { return strspn(line, " \t"); }

static bool ini_value_is_empty(const char *line) { return line[ini_value_indentation(line)] == '\0'; }

/* The number of leading blanks that all continuation lines, those after the first, have in common. */
static size_t ini_value_shared_indentation(const tn_value_lines *lines) {
  const char *first = NULL;
  size_t shared = 0;
  for (size_t i = 1; i < lines->text.n; i++) {
    const char *line = lines->text.v[i];
    size_t same = 0;
    if (ini_value_is_empty(line)) continue;
    if (first == NULL) {
      first = line;
      shared = ini_value_indentation(line);
    }
    while (same < shared && line[same] == first[same]) same++;
    shared = same;
  }
  return shared;
}

/* Appends the non-empty lines, stores their line numbers in `kept` and returns their count. */
static int32_t ini_value_join_into(tn_text *text, const tn_value_lines *lines, int32_t *kept) {
  size_t indentation = ini_value_shared_indentation(lines);
  int32_t n = 0;
  for (size_t i = 0; i < lines->text.n; i++) {
    const char *line = lines->text.v[i];
    if (ini_value_is_empty(line)) continue;
    if (n > 0) tn_text_addn(text, "\n", 1);
    tn_text_add(text, i == 0 ? line : line + indentation);
    kept[n++] = lines->number.v[i];
  }
  return n;
}

tn_status tn_value_lines_join(const void *handle, tn_arena *arena, const tn_value_lines *lines,
                              tn_ini_entry *entry) {
  size_t room = tn_size_mul(tn_size_add(lines->text.n, 1), sizeof(int32_t));
  int32_t *kept = tn_arena_alloc(arena, room);
  if (kept == NULL) return TN_ENOMEM;
  tn_text text = tn_text_new(handle);
  int32_t n = ini_value_join_into(&text, lines, kept);
  if (n == 0 && lines->number.n > 0) kept[0] = lines->number.v[0];
  tn_text_addn(&text, "", 0);
  entry->value = text.failed ? NULL : tn_arena_strdup(arena, text.v);
  entry->value_lines = kept;
  entry->n_value_lines = n > 0 ? n : 1; /* an empty value is one empty line */
  tn_text_free(&text);
  return entry->value != NULL ? TN_OK : TN_ENOMEM;
}
