/* core/base/word_list.h: values that list words, "a, b" or one a line: backends, plugins, observers,
 * patterns of names. */
#ifndef TN_CORE_BASE_WORD_LIST_H
#define TN_CORE_BASE_WORD_LIST_H

#include "core/base/arena.h"
#include "core/base/text.h"

typedef struct tn_words {
  const char **v;
  int32_t n;
} tn_words;

/* Cuts at commas and line ends, trims, leaves out what is empty. Everything lies in the arena. */
tn_status tn_words_split(tn_arena *arena, const char *text, tn_words *words);
/* Whether one of the words is this name, or as a pattern matches it. */
bool tn_words_hold(const tn_words *words, const char *name);
bool tn_words_match(const tn_words *patterns, const char *name);

#endif
