/* core/graph/text/lexer.c: graph text as tokens. */
#include "core/graph/text/lexer.h"

#include <ctype.h>
#include <string.h>

static bool lexer_in_word(char c) {
  return isalnum((unsigned char)c) || (c != '\0' && strchr("_.@/", c) != NULL);
}

static bool lexer_is_digit(char c) { return c >= '0' && c <= '9'; }

/* Blanks, comments, and inside brackets line breaks. */
static void lexer_skip(tn_lexer *l) {
  for (;;) {
    if (*l->at == '#')
      while (*l->at != '\0' && *l->at != '\n') l->at++;
    else if (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')
      l->at++;
    else if (*l->at == '\n' && l->depth > 0) {
      l->at++;
      l->line++;
    } else
      return;
  }
}

/* The length of a string with its quotes; 0 if it does not end within its line. */
static size_t lexer_string_length(const char *at) {
  size_t n = 1;
  for (; at[n] != '"'; n++) {
    if (at[n] == '\\') n++;
    if (at[n] == '\0' || at[n] == '\n') return 0;
  }
  return n + 1;
}

static tn_token lexer_scan(const char *at) {
  tn_token t = {.start = at, .length = 1, .kind = TN_TOKEN_MARK};
  if (*at == '\0') return (tn_token){.start = at, .kind = TN_TOKEN_END};
  if (*at == '\n' || *at == ';') {
    t.kind = TN_TOKEN_BREAK;
  } else if (lexer_in_word(*at)) {
    t.kind = TN_TOKEN_WORD;
    while (lexer_in_word(at[t.length])) t.length++;
  } else if (*at == '%' && lexer_is_digit(at[1])) {
    t.kind = TN_TOKEN_VALUE;
    while (lexer_is_digit(at[t.length])) t.length++;
  } else if (*at == '"' && lexer_string_length(at) > 0) {
    t.kind = TN_TOKEN_STRING;
    t.length = lexer_string_length(at);
  }
  return t;
}

void tn_lexer_next(tn_lexer *l) {
  if (l->token.kind == TN_TOKEN_BREAK && *l->token.start == '\n') l->line++;
  lexer_skip(l);
  /* Inside brackets `;` is a mark: it separates the parts of a layout. */
  l->token = lexer_scan(l->at);
  if (l->depth > 0 && *l->at == ';') l->token.kind = TN_TOKEN_MARK;
  l->at += l->token.length;
  char c = *l->token.start;
  if (l->token.kind == TN_TOKEN_MARK && strchr("([{", c) != NULL) l->depth++;
  if (l->token.kind == TN_TOKEN_MARK && strchr(")]}", c) != NULL && l->depth > 0) l->depth--;
}

tn_lexer tn_lexer_start(const void *handle, tn_arena *arena, const char *name, const char *text) {
  tn_lexer l = {.handle = handle, .arena = arena, .name = name, .at = text, .line = 1};
  tn_lexer_next(&l);
  return l;
}

tn_status tn_lexer_expected(const tn_lexer *l, const char *what) {
  int length = l->token.length < 40 ? (int)l->token.length : 40;
  if (l->token.kind == TN_TOKEN_END || l->token.kind == TN_TOKEN_BREAK)
    return tn_failf(l->handle, TN_EINVAL, "%s:%d: expected %s, found the end of the %s", l->name, l->line,
                    what, l->token.kind == TN_TOKEN_END ? "text" : "statement");
  return tn_failf(l->handle, TN_EINVAL, "%s:%d: expected %s, found '%.*s'", l->name, l->line, what, length,
                  l->token.start);
}

bool tn_lexer_is(const tn_lexer *l, const char *text) {
  bool can = l->token.kind == TN_TOKEN_WORD || l->token.kind == TN_TOKEN_MARK;
  return can && strlen(text) == l->token.length && memcmp(l->token.start, text, l->token.length) == 0;
}

bool tn_lexer_take(tn_lexer *l, const char *text) {
  if (!tn_lexer_is(l, text)) return false;
  tn_lexer_next(l);
  return true;
}

tn_status tn_lexer_expect(tn_lexer *l, const char *text) {
  char what[16] = "'";
  if (tn_lexer_take(l, text)) return TN_OK;
  strncat(what, text, sizeof what - 3);
  strcat(what, "'");
  return tn_lexer_expected(l, what);
}

static tn_status lexer_take_string(tn_lexer *l, const char **name) {
  const char *at = l->token.start, *end = at + l->token.length - 1;
  char *out = tn_arena_alloc(l->arena, l->token.length);
  if (out == NULL) return TN_ENOMEM;
  *name = out;
  for (at++; at < end; at++) {
    bool escaped = *at == '\\';
    if (escaped) at++;
    *out++ = escaped && *at == 'n' ? '\n' : *at;
  }
  tn_lexer_next(l);
  return TN_OK;
}

static const char *lexer_copy(tn_lexer *l, const char *start, size_t length) {
  char *text = tn_arena_alloc(l->arena, length + 1);
  if (text != NULL) memcpy(text, start, length);
  return text;
}

tn_status tn_lexer_name(tn_lexer *l, const char *what, const char **name) {
  if (l->token.kind == TN_TOKEN_STRING) return lexer_take_string(l, name);
  if (l->token.kind != TN_TOKEN_WORD) return tn_lexer_expected(l, what);
  *name = lexer_copy(l, l->token.start, l->token.length);
  tn_lexer_next(l);
  return *name != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_lexer_number(tn_lexer *l, int64_t *number) {
  char digits[24];
  if (l->token.kind == TN_TOKEN_WORD && l->token.length < sizeof digits) {
    memcpy(digits, l->token.start, l->token.length);
    digits[l->token.length] = '\0';
    if (tn_text_to_int(digits, number)) {
      tn_lexer_next(l);
      return TN_OK;
    }
  }
  return tn_lexer_expected(l, "an integer");
}

tn_status tn_lexer_raw(tn_lexer *l, const char **text) {
  const char *start = l->at, *p = start;
  int32_t depth = 0;
  for (; *p != '\0' && *p != '\n'; p++) {
    if (*p == '"' && lexer_string_length(p) > 0) p += lexer_string_length(p) - 1;
    if (depth == 0 && (*p == ',' || *p == ')')) break;
    if (strchr("([{", *p) != NULL) depth++;
    if (strchr(")]}", *p) != NULL) depth--;
  }
  *text = lexer_copy(l, start, (size_t)(p - start));
  l->at = p;
  tn_lexer_next(l);
  if (depth != 0) return tn_lexer_expected(l, "brackets that close again");
  return *text != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- names ---- */

bool tn_lexer_plain(const char *name) {
  size_t digits = strspn(name, "0123456789"), n = 0;
  while (lexer_in_word(name[n])) n++;
  return n > 0 && name[n] == '\0' && digits < n && strcmp(name, "_") != 0;
}

void tn_lexer_print_name(tn_text *text, const char *name) {
  if (tn_lexer_plain(name)) {
    tn_text_add(text, name);
    return;
  }
  tn_text_add(text, "\"");
  for (; *name != '\0'; name++) {
    if (*name == '\n')
      tn_text_add(text, "\\n");
    else
      tn_text_addf(text, "%s%c", *name == '"' || *name == '\\' ? "\\" : "", *name);
  }
  tn_text_add(text, "\"");
}
