/* core/graph/text/lexer.h: graph text as tokens.
 *
 *   word     letters, digits and _ . @ /   (`layer1.0.conv1`, `@param.f32`, `f32`; digits alone: 8, too)
 *   value    % and digits
 *   string   "...", with \" \\ and \n
 *   end of statement   a line break outside brackets, or ;
 *   mark     any other character but blanks
 *
 * `#` starts a comment that lasts to the end of its line. */
#ifndef TN_CORE_GRAPH_TEXT_LEXER_H
#define TN_CORE_GRAPH_TEXT_LEXER_H

#include "core/base/arena.h"
#include "core/base/text.h"

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

/* `token` is the one at hand. Copy the lexer to look further ahead. */
typedef struct tn_lexer {
  const void *handle;
  tn_arena *arena;  /* of texts that are taken */
  const char *name; /* of the text, for messages */
  const char *at;
  int32_t line, depth; /* depth: of open brackets */
  tn_token token;
} tn_lexer;

/* Stands at the first token. */
tn_lexer tn_lexer_start(const void *handle, tn_arena *arena, const char *name, const char *text);
void tn_lexer_next(tn_lexer *lexer);

/* "NAME:LINE: expected WHAT, found ..." as TN_EINVAL. */
tn_status tn_lexer_expected(const tn_lexer *lexer, const char *what);

bool tn_lexer_is(const tn_lexer *lexer, const char *text); /* the word or mark at hand */
bool tn_lexer_take(tn_lexer *lexer, const char *text);     /* passes it */
tn_status tn_lexer_expect(tn_lexer *lexer, const char *text);

/* Takes a word or a string as a name; `what` is for the message. */
tn_status tn_lexer_name(tn_lexer *lexer, const char *what, const char **name);
/* Takes a whole number. */
tn_status tn_lexer_number(tn_lexer *lexer, int64_t *number);
/* Takes everything up to a comma or closing bracket outside of any bracket and string: an option's
 * value, as tn_options_set_text wants it. The lexer stands at `=` and ends at the comma or bracket. */
tn_status tn_lexer_raw(tn_lexer *lexer, const char **text);

/* Whether a name needs no quotes, and could not be taken for a number or an absent operand. */
bool tn_lexer_plain(const char *name);
/* Appends a name, quoted if it must be. */
void tn_lexer_print_name(tn_text *text, const char *name);

#endif
