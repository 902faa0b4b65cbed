/* core/plugin/habits.c: reads habits.txt of the plugin folders, and the aliases of ops. */
#include "core/plugin/habits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/plugin/store.h"
#include "tenon/plugin/op.h"

enum { HABITS_LIMIT = 1 << 16, HABITS_WORD = 64 };

/* "nn.BatchNorm2d" becomes "batchnorm2d". */
static void habits_plain_name(char plain[HABITS_WORD], const char *name) {
  const char *dot = strrchr(name, '.');
  size_t n = 0;
  for (const char *c = dot != NULL ? dot + 1 : name; *c != '\0' && n < HABITS_WORD - 1; c++)
    if (*c != '_') plain[n++] = (char)tolower((unsigned char)*c);
  plain[n] = '\0';
}

/* Takes one word off the line; "" at its end. */
static char *habits_take_word(char **line) {
  char *word = *line + strspn(*line, " ");
  char *end = word + strcspn(word, " ");
  *line = *end != '\0' ? end + 1 : end;
  *end = '\0';
  return word;
}

static bool habits_item_is_there(const char *item, const char *const *items, size_t n) {
  bool there = n == 0 || strcmp(item, "-") == 0;
  for (size_t i = 0; i < n; i++) there = there || strcmp(items[i], item) == 0;
  return there;
}

/* Finds the name in the text of a file, which is cut into words. */
static const char *habits_find(char *file, const char *kind, const char *plain, const char *const *items,
                               size_t n) {
  for (char *line = file, *next; line != NULL; line = next) {
    next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    if (strcmp(habits_take_word(&line), kind) != 0 || strcmp(habits_take_word(&line), plain) != 0) continue;
    if (habits_item_is_there(habits_take_word(&line), items, n)) return line;
  }
  return NULL;
}

static bool habits_add_from(const tn_registry *r, const char *path, const char *kind, const char *plain,
                            const char *const *items, size_t n, tn_text *text) {
  char *file = NULL;
  size_t count;
  if (!tn_file_exists(path)) return false;
  if (tn_file_read(r->handle, path, HABITS_LIMIT, &file, &count) != TN_OK) return false;
  const char *found = habits_find(file, kind, plain, items, n);
  if (found != NULL) tn_text_add(text, found);
  tn_release(r->handle, file);
  return found != NULL;
}

/* Whether one of the words is the name, but for capitals and underscores. */
static bool habits_has_word(const char *words, const char *plain) {
  char word[HABITS_WORD], own[HABITS_WORD];
  while (words != NULL && *words != '\0') {
    size_t n = strcspn(words, " ");
    snprintf(word, sizeof word, "%.*s", (int)n, words);
    habits_plain_name(own, word);
    if (strcmp(own, plain) == 0) return true;
    words += n + strspn(words + n, " ");
  }
  return false;
}

/* The op that has the name among its aliases, or its own in other letters. */
static bool habits_add_op(const tn_registry *r, const char *name, const char *plain, tn_text *text) {
  if (tn_store_entry(r, TN_OP, name, NULL) != NULL) return false;
  for (size_t i = 0; i < r->entries.n; i++) {
    const tn_item *item = r->entries.v[i]->item;
    if (item->kind != TN_OP) continue;
    if (!habits_has_word(item->name, plain) && !habits_has_word(((const tn_op *)item)->aliases, plain))
      continue;
    tn_text_add(text, item->name);
    return true;
  }
  return false;
}

bool tn_habits_add(const tn_registry *r, const char *kind, const char *name, const char *const *items,
                   size_t n, tn_text *text) {
  char plain[HABITS_WORD];
  bool found = false;
  habits_plain_name(plain, name);
  for (size_t i = 0; i < r->folders.n && !found; i++) {
    char *path = tn_path_join(r->handle, r->folders.v[i], "habits.txt");
    found = path != NULL && habits_add_from(r, path, kind, plain, items, n, text);
    tn_release(r->handle, path);
  }
  bool op = strcmp(kind, "layer") == 0 || strcmp(kind, "op") == 0;
  return found || (op && habits_add_op(r, name, plain, text));
}
