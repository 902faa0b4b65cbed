/* core/base/text/word_list.h: values that list words, "a, b" or one per line (backends, plugins, observers,
 * name patterns), and alternatives written "a|b|c". */
#pragma once

#include "core/base/arena.h"
#include "core/base/text/text.h"

typedef struct tn_words {
  const char **v;
  int32_t n;
} tn_words;

/* Splits the text at commas and line ends, trims the words and drops empty ones. The result lives in the
 * arena. */
tn_status tn_words_split(tn_arena *arena, const char *text, tn_words *words);
/* Whether one of the words equals the name, or matches it as a pattern. */
bool tn_words_contain(const tn_words *words, const char *name);
bool tn_words_match(const tn_words *patterns, const char *name);

/* Alternatives written "a|b|c": the position of a word, or -1; the word at a position with its length in
 * *n, or NULL past the end. */
int32_t tn_alternatives_find(const char *alternatives, const char *word);
const char *tn_alternatives_at(const char *alternatives, int32_t position, size_t *n);
