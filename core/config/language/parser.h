/* core/config/language/parser.h: the state and the primitives of the model language's parser. Private to
 * this folder. */
#pragma once

#include "core/config/language/syntax.h"

/* Limits of nested brackets, signs and calls, and of operators in one line: a chain of operators makes a
 * tree as deep as the chain is long. */
enum { TN_SYNTAX_DEPTH = 100, TN_SYNTAX_OPERATORS = 1000 };

/* A failure sticks in `status`; the functions below then return NULL or false. */
typedef struct tn_parser {
  const void *handle;
  tn_arena *arena;
  const char *text, *at;    /* one logical line, possibly of several rows; current position */
  const char *file;         /* NULL: messages lack file and line */
  const int32_t *row_lines; /* line number of each row; NULL: all rows have `line` */
  int32_t line;
  int32_t depth, operators;
  tn_status status;
} tn_parser;

/* Records "file:line: ..." for the row that contains `at`. */
void tn_parser_fail(tn_parser *p, const char *at, const char *format, ...) TN_PRINTF(3, 4);
/* Records "expected WHAT, found 'token'". */
void tn_parser_expected(tn_parser *p, const char *what);

void tn_parser_skip(tn_parser *p); /* white space and line ends */
/* Consumes a mark ("," or "<-") or a whole word ("if") if it is next. */
bool tn_parser_take(tn_parser *p, const char *mark);
bool tn_parser_take_word(tn_parser *p, const char *word);
/* The end of the word or name that starts at `at`, or NULL. `hole` allows "{i}". */
const char *tn_scan_word(const char *at);
const char *tn_scan_name(const char *at, bool hole);
/* A copy of the text from `from` to `to`. */
const char *tn_parser_copy(tn_parser *p, const char *from, const char *to);
const char *tn_parser_name(tn_parser *p, bool hole, const char *what);
bool tn_parser_reserved(const char *from, const char *to);

tn_expr *tn_parser_expr(tn_parser *p);
/* The same without `a if c else b` outside of brackets: where `if` begins the condition of the line. */
tn_expr *tn_parser_or(tn_parser *p);
/* Parses arguments up to and including ")", after "(". */
bool tn_parser_args(tn_parser *p, tn_call_arg **args, int32_t *n);
