/* plugins/sources/field_list.c: see field_list.h. */
#include "plugins/sources/field_list.h"

#include <ctype.h>
#include <string.h>

field_list field_list_of(const void *handle, const char *option, const char *form, const char *text) {
  return (field_list){.handle = handle, .option = option, .form = form, .at = text, .line = 1};
}

/* ---- words ---- */

int32_t field_word_is(field_word word, const char *text) {
  return strlen(text) == word.n && memcmp(text, word.text, word.n) == 0;
}

field_word field_word_trim(const char *text, size_t n) {
  for (; n > 0 && isspace((unsigned char)*text); n--) text++;
  while (n > 0 && isspace((unsigned char)text[n - 1])) n--;
  return (field_word){text, n};
}

/* ---- entries ---- */

/* Behind the quote that closes the one at `at` in the same line; without one, behind `at`. */
static const char *list_skip_quotes(const char *at) {
  const char *end = at + 1 + strcspn(at + 1, "\"\n");
  return *end == '"' ? end + 1 : at + 1;
}

/* The same of a bracket; brackets in quotes do not count. */
static const char *list_skip_brackets(const char *at) {
  const char open = *at, close = open == '(' ? ')' : ']';
  int64_t depth = 0;
  for (const char *c = at; *c != '\0' && *c != '\n';) {
    depth += (*c == open) - (*c == close);
    if (depth == 0) return c + 1;
    c = *c == '"' ? list_skip_quotes(c) : c + 1;
  }
  return at + 1;
}

/* The comma or the end of the line behind an entry. */
static const char *list_entry_end(const char *at) {
  while (*at != '\0' && *at != '\n' && *at != ',')
    at = *at == '(' || *at == '[' ? list_skip_brackets(at) : at + 1;
  return at;
}

static void list_divide(field_word whole, field_entry *e) {
  const char *colon = memchr(whole.text, ':', whole.n);
  e->whole = e->name = whole;
  e->value = (field_word){NULL, 0};
  if (colon == NULL) return;
  size_t n = (size_t)(colon - whole.text);
  e->name = field_word_trim(whole.text, n);
  e->value = field_word_trim(colon + 1, whole.n - n - 1);
}

int32_t field_list_next(field_list *l, field_entry *e) {
  while (*l->at != '\0') {
    const char *end = list_entry_end(l->at);
    field_word whole = field_word_trim(l->at, (size_t)(end - l->at));
    e->line = l->line;
    l->line += *end == '\n';
    l->at = end + (*end != '\0');
    if (whole.n == 0) continue;
    list_divide(whole, e);
    return 1;
  }
  return 0;
}

tn_status field_list_name(const field_list *l, const field_entry *e, char *to, size_t room) {
  size_t n = 0;
  while (n < e->name.n && (isalnum((unsigned char)e->name.text[n]) || e->name.text[n] == '_')) n++;
  if (n == 0 || n < e->name.n || e->value.n == 0) return field_list_refuse(l, e);
  if (n >= room)
    return tn_fail(l->handle, TN_EINVAL, l->option,
                   "%s: the name '%.*s' has %zu characters, expected at most %zu", l->option, (int)n,
                   e->name.text, n, room - 1);
  memcpy(to, e->name.text, n);
  to[n] = '\0';
  return TN_OK;
}

/* ---- failures ---- */

tn_status field_list_refuse(const field_list *l, const field_entry *e) {
  enum { SHOWN = 200 };
  return tn_fail(l->handle, TN_EINVAL, l->option, "%s: line %d: '%.*s' is no field, expected %s", l->option,
                 (int)e->line, (int)(e->whole.n < SHOWN ? e->whole.n : SHOWN), e->whole.text, l->form);
}

tn_status field_list_refuse_twice(const field_list *l, const char *name) {
  return tn_fail(l->handle, TN_EINVAL, l->option,
                 "%s: the field '%s' appears twice, expected once; rename one", l->option, name);
}

tn_status field_list_refuse_more(const field_list *l, int32_t most) {
  return tn_fail(l->handle, TN_EINVAL, l->option, "%s: more than %d fields, expected at most so many",
                 l->option, (int)most);
}
