/* core/base/text/word_list.c: lists of words, and alternatives such as "a|b|c". */
#include "core/base/text/word_list.h"

#include <string.h>

tn_status tn_words_split(tn_arena *arena, const char *text, tn_words *words) {
  size_t most = 1;
  char *rest = tn_arena_strdup(arena, text);
  for (const char *c = text; *c != '\0'; c++) most += *c == ',' || *c == '\n';
  words->n = 0;
  words->v = tn_arena_alloc(arena, tn_size_mul(most, sizeof *words->v));
  if (rest == NULL || words->v == NULL) return TN_ENOMEM;
  for (char *word; (word = strsep(&rest, ",\n")) != NULL;) {
    word = tn_text_trim(word);
    if (*word != '\0') words->v[words->n++] = word;
  }
  return TN_OK;
}

bool tn_words_contain(const tn_words *words, const char *name) {
  for (int32_t i = 0; i < words->n; i++)
    if (tn_text_equal(words->v[i], name)) return true;
  return false;
}

bool tn_words_match(const tn_words *patterns, const char *name) {
  for (int32_t i = 0; i < patterns->n; i++)
    if (tn_text_glob(patterns->v[i], name)) return true;
  return false;
}

const char *tn_alternatives_at(const char *alternatives, int32_t position, size_t *n) {
  while (position-- > 0) {
    alternatives = strchr(alternatives, '|');
    if (alternatives == NULL) return NULL;
    alternatives++;
  }
  *n = strcspn(alternatives, "|");
  return alternatives;
}

int32_t tn_alternatives_find(const char *alternatives, const char *word) {
  size_t n;
  for (int32_t i = 0;; i++) {
    const char *at = tn_alternatives_at(alternatives, i, &n);
    if (at == NULL) return -1;
    if (strlen(word) == n && memcmp(at, word, n) == 0) return i;
  }
}
