/* core/config/ini/value.c: the lines of a value joined to one text. */
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

static size_t indentation_of(const char *line) { return strspn(line, " \t"); }

static bool is_empty(const char *line) { return line[indentation_of(line)] == '\0'; }

/* How many leading blanks the continuation lines, those after the first, have in common. */
static size_t shared_indentation(const tn_value_lines *lines) {
  const char *first = NULL;
  size_t shared = 0;
  for (size_t i = 1; i < lines->text.n; i++) {
    const char *line = lines->text.v[i];
    size_t same = 0;
    if (is_empty(line)) continue;
    if (first == NULL) {
      first = line;
      shared = indentation_of(line);
    }
    while (same < shared && line[same] == first[same]) same++;
    shared = same;
  }
  return shared;
}

/* Appends what is not empty and fills `kept` with its line numbers, whose count it returns. */
static int32_t join_into(tn_text *text, const tn_value_lines *lines, int32_t *kept) {
  size_t indentation = shared_indentation(lines);
  int32_t n = 0;
  for (size_t i = 0; i < lines->text.n; i++) {
    const char *line = lines->text.v[i];
    if (is_empty(line)) continue;
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
  int32_t n = join_into(&text, lines, kept);
  if (n == 0 && lines->number.n > 0) kept[0] = lines->number.v[0];
  tn_text_addn(&text, "", 0);
  entry->value = text.failed ? NULL : tn_arena_strdup(arena, text.v);
  entry->value_lines = kept;
  entry->n_value_lines = n > 0 ? n : 1; /* an empty value is one empty line */
  tn_text_free(&text);
  return entry->value != NULL ? TN_OK : TN_ENOMEM;
}
