#include <string.h>

#include "core/train/samples/sample_media.h"
#include "core/train/samples/sample_view.h"

/* The most bytes of a value in a cell. */
enum { MOST_BYTES = 2000 };

/* ---- a cell ---- */

static void table_add_character(tn_text *to, const char *c, size_t n) {
  if (n == 0)
    tn_text_add(to, "\xEF\xBF\xBD"); /* U+FFFD for a byte that is no character */
  else if (*c == '\n')
    tn_text_add(to, " \xE2\x8F\x8E "); /* U+23CE, the return symbol */
  else if ((unsigned char)*c < ' ')
    tn_text_add(to, " ");
  else if (*c == '<')
    tn_text_add(to, "&lt;");
  else if (*c == '&')
    tn_text_add(to, "&amp;");
  else if (strchr("\\`*_[]|#", *c) != NULL)
    tn_text_addf(to, "\\%c", *c);
  else
    tn_text_addn(to, c, n);
}

/* In a cell, a line and the marks of Markdown are characters. */
static void table_add_escaped(tn_text *to, const tn_text *from) {
  for (size_t at = 0; at < from->n;) {
    size_t n = tn_text_character_bytes(from->v + at, from->n - at);
    if (at > MOST_BYTES) {
      tn_text_add(to, " ...");
      return;
    }
    table_add_character(to, from->v + at, n);
    at += n > 0 ? n : 1;
  }
}

static void table_add_value(const tn_sample_set *set, const tn_sample_value *value, int64_t i,
                            tn_text *text) {
  tn_text cell = tn_text_new(&set->run->env);
  value->view->print(set, value, i, &cell);
  tn_text_add(text, " ");
  table_add_escaped(text, &cell);
  text->failed = text->failed || cell.failed;
  tn_text_add(text, " |");
  tn_text_free(&cell);
}

/* ---- the continuation ---- */

static bool table_continues(const tn_continuation *c) { return c->input != NULL && c->causal; }

static void table_add_tokens(const tn_sample_set *set, const tn_sample_value *as, const char *row, int64_t n,
                             tn_text *text) {
  tn_text cell = tn_text_new(&set->run->env);
  tn_tokens_print(set, as, row, n, &cell);
  tn_text_add(text, " ");
  table_add_escaped(text, &cell);
  tn_text_add(text, " |");
  tn_text_free(&cell);
}

static void table_add_continuation(const tn_sample_set *set, const tn_continuation *c, int64_t i,
                                   tn_text *text) {
  static const tn_sample_value made = {.type = {.dtype = TN_I32, .rank = 1}};
  table_add_tokens(set, c->input, tn_sample_row(c->input, i), tn_continuation_prompt(set, c, i), text);
  table_add_tokens(set, &made, (const char *)(c->tokens + i * c->most), tn_continuation_count(set, c, i),
                   text);
}

/* ---- the table ---- */

static bool table_has(const tn_sample_value *value) {
  return value->view != NULL && value->view->print != NULL;
}

static int32_t table_add_heads(const tn_sample_set *set, const tn_continuation *c, tn_text *text) {
  static const char *const roles[] = {"input", "target", "output"};
  int32_t n = 0;
  for (int32_t k = 0; k < set->n_values; k++) {
    const tn_sample_value *v = &set->values[k];
    const tn_text name = {.v = (char *)(uintptr_t)v->name, .n = strlen(v->name)};
    if (!table_has(v)) continue;
    if (n++ == 0) tn_text_add(text, "| sample |");
    tn_text_add(text, " ");
    table_add_escaped(text, &name);
    tn_text_addf(text, " (%s) |", roles[v->role]);
  }
  if (n == 0 || !table_continues(c)) return n;
  tn_text_add(text, " prompt | continuation |");
  return n + 2;
}

void tn_sample_table(const tn_sample_set *set, const tn_continuation *c, tn_text *text) {
  int32_t columns = table_add_heads(set, c, text);
  if (columns == 0) return;
  tn_text_add(text, "\n|---|");
  for (int32_t k = 0; k < columns; k++) tn_text_add(text, "---|");
  tn_text_add(text, "\n");
  for (int64_t i = 0; i < set->n; i++) {
    tn_text_addf(text, "| %lld |", (long long)i);
    for (int32_t k = 0; k < set->n_values; k++)
      if (table_has(&set->values[k])) table_add_value(set, &set->values[k], i, text);
    if (table_continues(c)) table_add_continuation(set, c, i, text);
    tn_text_add(text, "\n");
  }
}
