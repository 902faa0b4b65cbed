/* core/graph/text/lexer.h: graph text as tokens.
 *
 *   word     letters, digits and _ . @ /   (`layer1.0.conv1`, `@param.f32`, `f32`; digits alone: 8, too)
 *   value    % and digits
 *   string   "...", with \" \\ and \n
 *   end of statement   a line break outside brackets, or ;
 *   mark     any other character but blanks
 *
 * `#` starts a comment that lasts to the end of its line. */
#pragma once

#include "core/base/arena.h"
#include "core/base/text/text.h"

typedef enum tn_token_kind {
  TN_TOKEN_END,
  TN_TOKEN_BREAK,
  TN_TOKEN_WORD,
  TN_TOKEN_VALUE,
  TN_TOKEN_STRING,
  TN_TOKEN_MARK
} tn_token_kind;

typedef struct tn_token {
  tn_token_kind kind;
  const char *start;
  size_t length;
} tn_token;

/* `token` is the current token. Copy the lexer to look further ahead. */
typedef struct tn_lexer {
  const void *handle;
  tn_arena *arena;  /* for copies of names and values */
  const char *name; /* of the text, for messages */
  const char *at;
  int32_t line, depth; /* depth: of open brackets */
  tn_token token;
} tn_lexer;

/* The current token is the first one of the text. */
tn_lexer tn_lexer_start(const void *handle, tn_arena *arena, const char *name, const char *text);
void tn_lexer_next(tn_lexer *lexer);

/* "NAME:LINE: expected WHAT, found ..." as TN_EINVAL. */
tn_status tn_lexer_expected(const tn_lexer *lexer, const char *what);

bool tn_lexer_is(const tn_lexer *lexer, const char *text); /* the current word or mark */
bool tn_lexer_take(tn_lexer *lexer, const char *text);     /* consumes it if it is `text` */
tn_status tn_lexer_expect(tn_lexer *lexer, const char *text);

/* Consumes a word or a string as a name; `what` is for the message. */
tn_status tn_lexer_name(tn_lexer *lexer, const char *what, const char **name);
/* Consumes an integer. */
tn_status tn_lexer_number(tn_lexer *lexer, int64_t *number);
/* Consumes the text up to a comma or closing bracket outside of brackets and strings: an option's value, for
 * tn_options_set_text. The current token is `=` before, the comma or bracket after. */
tn_status tn_lexer_raw(tn_lexer *lexer, const char **text);

/* Whether a name can be printed without quotes: a word that is neither a number nor `_`. */
bool tn_lexer_plain(const char *name);
/* Appends a name, in quotes where it needs them. */
void tn_lexer_print_name(tn_text *text, const char *name);
