/* tools/plugin/rename.c: replaces and looks for words in C code. */
#include "tools/plugin/rename.h"

#include <ctype.h>
#include <string.h>

static const char *const rename_reserved[] = {
    "auto",    "break",    "case",     "char",     "const",   "continue", "default", "do",     "double",
    "else",    "enum",     "extern",   "float",    "for",     "goto",     "if",      "inline", "int",
    "long",    "register", "return",   "short",    "signed",  "sizeof",   "static",  "struct", "switch",
    "typedef", "union",    "unsigned", "void",     "while",   "bool",     "true",    "false",  "main",
    "abs",     "acos",     "asin",     "atan",     "ceil",    "cos",      "cosh",    "erf",    "exp",
    "exp2",    "expm1",    "fabs",     "floor",    "fma",     "fmax",     "fmin",    "fmod",   "gamma",
    "hypot",   "j0",       "j1",       "jn",       "lgamma",  "log",      "log1p",   "log2",   "logb",
    "log10",   "pow",      "rint",     "round",    "sin",     "sinh",     "sqrt",    "tan",    "tanh",
    "tgamma",  "trunc",    "y0",       "y1",       "yn",      "stdin",    "stdout",  "stderr", "signal",
    "errno",   "printf",   "inline",   "restrict", "volatile"};

static bool rename_is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t rename_word_length(const char *at) {
  size_t n = 0;
  while (rename_is_word(at[n])) n++;
  return n;
}

static bool rename_equals(const char *at, size_t n, const char *word) {
  return word != NULL && strlen(word) == n && memcmp(at, word, n) == 0;
}

void rename_print(FILE *file, const char *code, const char *from, const char *also, const char *to) {
  while (*code != '\0') {
    size_t n = rename_word_length(code);
    if (n == 0)
      fputc(*code++, file);
    else if (rename_equals(code, n, from) || rename_equals(code, n, also))
      fputs(to, file);
    else
      fprintf(file, "%.*s", (int)n, code);
    code += n;
  }
}

/* The end of a comment or text that begins here; `at` itself if none does. */
static const char *rename_skip(const char *at) {
  if (at[0] == '/' && at[1] == '*') {
    const char *end = strstr(at + 2, "*/");
    return end ? end + 2 : at + strlen(at);
  }
  if (at[0] != '"') return at;
  for (at++; *at != '\0' && *at != '"'; at++)
    if (*at == '\\' && at[1] != '\0') at++;
  return *at ? at + 1 : at;
}

bool rename_uses(const char *code, const char *word) {
  while (*code != '\0') {
    const char *after = rename_skip(code);
    size_t n = after == code ? rename_word_length(code) : 0;
    if (n > 0 && rename_equals(code, n, word)) return true;
    code = after != code ? after : code + (n > 0 ? n : 1);
  }
  return false;
}

bool rename_is_name(const char *word) {
  for (size_t i = 0; i < sizeof rename_reserved / sizeof *rename_reserved; i++)
    if (strcmp(word, rename_reserved[i]) == 0) return false;
  if (!islower((unsigned char)word[0]) || strlen(word) > 40 || strncmp(word, "tn_", 3) == 0) return false;
  for (const char *at = word; *at; at++)
    if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) && *at != '_') return false;
  return true;
}
