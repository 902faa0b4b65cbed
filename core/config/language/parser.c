/* core/config/language/parser.c: characters, words and names of the model language, and its error
 * messages. */
#include "core/config/language/parser.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int32_t parser_line_of(const tn_parser *p, const char *at) {
  int32_t row = 0;
  if (p->row_lines == NULL) return p->line;
  for (const char *c = p->text; c < at; c++) row += *c == '\n';
  return p->row_lines[row];
}

void tn_parser_fail(tn_parser *p, const char *at, const char *format, ...) {
  va_list args;
  if (p->status != TN_OK) return;
  va_start(args, format);
  p->status = tn_failv(p->handle, TN_EINVAL, NULL, format, args);
  va_end(args);
  if (p->file == NULL) return;
  int32_t line = parser_line_of(p, at);
  if (line > 0)
    tn_wrap(p->handle, p->status, "%s:%d", p->file, line);
  else
    tn_wrap(p->handle, p->status, "%s", p->file);
}

/* Length of the token at `at`, for messages. */
static int parser_token_length(const char *at) {
  size_t n = 0;
  while (n < 32 && (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.')) n++;
  if (n == 0 && (strncmp(at, "<-", 2) == 0 || strncmp(at, "//", 2) == 0 || (*at != '\0' && at[1] == '=')))
    n = 2;
  if (n == 0) n = 1;
  while (((unsigned char)at[n] & 0xC0) == 0x80) n++; /* the rest of a UTF-8 character */
  return (int)n;
}

void tn_parser_expected(tn_parser *p, const char *what) {
  tn_parser_skip(p);
  if (*p->at == '\0')
    tn_parser_fail(p, p->at, "expected %s, found the end of the line", what);
  else
    tn_parser_fail(p, p->at, "expected %s, found '%.*s'", what, parser_token_length(p->at), p->at);
}

void tn_parser_skip(tn_parser *p) { p->at += strspn(p->at, " \t\n"); }

bool tn_parser_take(tn_parser *p, const char *mark) {
  tn_parser_skip(p);
  if (!tn_text_starts(p->at, mark)) return false;
  p->at += strlen(mark);
  return true;
}

bool tn_parser_take_word(tn_parser *p, const char *word) {
  tn_parser_skip(p);
  size_t n = strlen(word);
  if (strncmp(p->at, word, n) != 0 || tn_scan_word(p->at) != p->at + n) return false;
  p->at += n;
  return true;
}

const char *tn_scan_word(const char *at) {
  if (!isalpha((unsigned char)*at) && *at != '_') return NULL;
  while (isalnum((unsigned char)*at) || *at == '_') at++;
  return at;
}

/* The end of the "{i}" or "{i+N}" at `at`, or NULL. */
static const char *parser_scan_hole(const char *at) {
  enum { MOST_DIGITS = 6 };
  if (!tn_text_starts(at, "{i")) return NULL;
  at += strlen("{i");
  size_t digits = *at == '+' ? strspn(at + 1, "0123456789") : 0;
  if (*at == '+' && (digits == 0 || digits > MOST_DIGITS)) return NULL;
  if (*at == '+') at += 1 + digits;
  return *at == '}' ? at + 1 : NULL;
}

const char *tn_name_hole(const char *name) {
  const char *hole = strstr(name, "{i");
  return hole != NULL && parser_scan_hole(hole) != NULL ? hole : NULL;
}

int64_t tn_name_hole_start(const char *hole) {
  return hole[strlen("{i")] == '+' ? strtoll(hole + strlen("{i+"), NULL, 10) : 0;
}

/* The end of one part of a name: a word, a word with "{i}", or digits. */
static const char *parser_scan_part(const char *at, bool hole) {
  const char *end = tn_scan_word(at), *behind = end != NULL && hole ? parser_scan_hole(end) : NULL;
  if (end != NULL) return behind != NULL ? behind : end;
  while (isdigit((unsigned char)*at)) {
    end = ++at;
  }
  return end != NULL && tn_scan_word(end) == NULL ? end : NULL;
}

const char *tn_scan_name(const char *at, bool hole) {
  const char *end = parser_scan_part(at, hole);
  while (end != NULL && *end == '.') end = parser_scan_part(end + 1, hole);
  return end;
}

const char *tn_parser_copy(tn_parser *p, const char *from, const char *to) {
  char *copy = tn_arena_alloc(p->arena, (size_t)(to - from) + 1);
  if (copy == NULL)
    p->status = TN_ENOMEM;
  else
    memcpy(copy, from, (size_t)(to - from));
  return copy;
}

const char *tn_parser_name(tn_parser *p, bool hole, const char *what) {
  tn_parser_skip(p);
  const char *from = p->at, *to = tn_scan_name(from, hole);
  if (to == NULL) {
    tn_parser_expected(p, what);
    return NULL;
  }
  p->at = to;
  return tn_parser_copy(p, from, to);
}

bool tn_parser_reserved(const char *from, const char *to) {
  static const char *const words[] = {"if", "and", "or", "not"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strlen(words[i]) == (size_t)(to - from) && memcmp(words[i], from, (size_t)(to - from)) == 0)
      return true;
  return false;
}
