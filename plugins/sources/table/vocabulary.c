/* plugins/sources/table/vocabulary.c: a hash table with linear probing, at most half full. */
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/table/table.h"

static uint64_t vocabulary_hash(const char *text, size_t n) {
  uint64_t hash = n, word;
  for (; n >= 8; n -= 8, text += 8) {
    memcpy(&word, text, 8);
    hash = tn_hash_mix(hash, word);
  }
  word = 0;
  if (n > 0) memcpy(&word, text, n);
  return tn_hash_mix(hash, word);
}

/* The slot of a word, or the free one where it belongs. */
static size_t vocabulary_slot(const table_vocabulary *v, const char *text, size_t n) {
  size_t i = vocabulary_hash(text, n) & (v->n_slots - 1);
  for (; v->slots[i] != 0; i = (i + 1) & (v->n_slots - 1)) {
    const table_word *word = &v->words[v->slots[i] - 1];
    if (word->n == n && memcmp(word->text, text, n) == 0) break;
  }
  return i;
}

int32_t table_vocabulary_find(const table_vocabulary *v, const char *text, size_t n) {
  return v->n_slots > 0 ? v->slots[vocabulary_slot(v, text, n)] - 1 : TABLE_ABSENT;
}

static void vocabulary_fill_slots(table_vocabulary *v) {
  memset(v->slots, 0, v->n_slots * sizeof(*v->slots));
  for (int32_t i = 0; i < v->count; i++)
    v->slots[vocabulary_slot(v, v->words[i].text, v->words[i].n)] = i + 1;
}

static tn_status vocabulary_grow(const tn_env *env, table_vocabulary *v) {
  int32_t room = v->room > 0 ? 2 * v->room : 32;
  table_word *words = tn_new(env, (size_t)room * sizeof(*words));
  int32_t *slots = tn_new(env, 2 * (size_t)room * sizeof(*slots));
  if (words == NULL || slots == NULL) {
    tn_delete(env, words);
    tn_delete(env, slots);
    return TN_ENOMEM;
  }
  if (v->count > 0) memcpy(words, v->words, (size_t)v->count * sizeof(*words));
  table_vocabulary_free(env, v);
  *v = (table_vocabulary){words, v->count, room, slots, 2 * (size_t)room};
  vocabulary_fill_slots(v);
  return TN_OK;
}

int32_t table_vocabulary_add(table_memory *m, table_vocabulary *v, const char *text, size_t n) {
  enum { MOST_WORDS = 1 << 28 };
  if (v->count == v->room && (v->room >= MOST_WORDS || vocabulary_grow(m->env, v) != TN_OK))
    return TABLE_FAILED;
  size_t slot = vocabulary_slot(v, text, n);
  if (v->slots[slot] != 0) return v->slots[slot] - 1;
  char *copy = table_memory_copy(m, text, n);
  if (copy == NULL) return TABLE_FAILED;
  v->words[v->count] = (table_word){copy, n};
  v->slots[slot] = ++v->count;
  return v->count - 1;
}

typedef struct ordered_word {
  table_word word;
  double value;
} ordered_word;

static int vocabulary_compare_bytes(const void *a, const void *b) {
  const table_word *x = &((const ordered_word *)a)->word, *y = &((const ordered_word *)b)->word;
  size_t n = x->n < y->n ? x->n : y->n;
  int order = n > 0 ? memcmp(x->text, y->text, n) : 0;
  return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* 1 and 1.0 are two words of one value. */
static int vocabulary_compare_values(const void *a, const void *b) {
  double x = ((const ordered_word *)a)->value, y = ((const ordered_word *)b)->value;
  int order = (x > y) - (x < y);
  return order != 0 ? order : vocabulary_compare_bytes(a, b);
}

tn_status table_vocabulary_sort(table_memory *m, table_vocabulary *v) {
  if (v->count == 0) return TN_OK;
  ordered_word *all = tn_new(m->env, (size_t)v->count * sizeof(*all));
  if (all == NULL) return TN_ENOMEM;
  bool numbers = true;
  for (int32_t i = 0; i < v->count; i++) {
    all[i].word = v->words[i];
    numbers = table_to_number(all[i].word.text, all[i].word.n, &all[i].value) && numbers;
  }
  qsort(all, (size_t)v->count, sizeof(*all), numbers ? vocabulary_compare_values : vocabulary_compare_bytes);
  for (int32_t i = 0; i < v->count; i++) v->words[i] = all[i].word;
  tn_delete(m->env, all);
  vocabulary_fill_slots(v);
  return TN_OK;
}

void table_vocabulary_free(const tn_env *env, table_vocabulary *v) {
  tn_delete(env, v->words);
  tn_delete(env, v->slots);
  v->words = NULL;
  v->slots = NULL;
  v->n_slots = 0;
}
