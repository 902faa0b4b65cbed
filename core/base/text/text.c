/* core/base/text/text.c: growable strings, matching, nearest names, hashing. */
#include "core/base/text/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

tn_text tn_text_new(const void *handle) { return (tn_text){.handle = handle}; }

/* Room for `more` characters and the NUL. */
static bool text_reserve(tn_text *text, size_t more) {
  if (text->failed) return false;
  size_t want = tn_size_add(tn_size_add(text->n, more), 1);
  if (want <= text->cap) return true;
  size_t cap = tn_size_add(text->cap, text->cap / 2);
  if (cap < want) cap = want < 64 ? 64 : want;
  char *grown = tn_resize(text->handle, text->v, cap);
  text->failed = grown == NULL;
  if (text->failed) return false;
  text->v = grown;
  text->cap = cap;
  return true;
}

void tn_text_addn(tn_text *text, const char *more, size_t length) {
  if (!text_reserve(text, length)) return;
  if (length > 0) memcpy(text->v + text->n, more, length);
  text->n += length;
  text->v[text->n] = '\0';
}

void tn_text_add(tn_text *text, const char *more) { tn_text_addn(text, more, strlen(more)); }

void tn_text_addf(tn_text *text, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  if (n < 0) {
    text->failed = true;
    tn_failf(text->handle, TN_EINTERNAL, "the format \"%s\" cannot be printed", format);
  } else if (text_reserve(text, (size_t)n)) {
    vsnprintf(text->v + text->n, (size_t)n + 1, format, again);
    text->n += (size_t)n;
  }
  va_end(again);
  va_end(args);
}

char *tn_text_take(tn_text *text) {
  tn_text_addn(text, "", 0);
  if (text->failed) {
    /* The error record may hold a later error by now, so the failure is recorded again. */
    tn_failf(text->handle, TN_ENOMEM, "out of memory while a text of %zu bytes grew", text->n);
    tn_text_free(text);
    return NULL;
  }
  char *taken = text->v;
  *text = tn_text_new(text->handle);
  return taken;
}

void tn_text_free(tn_text *text) {
  if (text->v != NULL) tn_release(text->handle, text->v);
  *text = tn_text_new(text->handle);
}

bool tn_text_equal(const char *a, const char *b) {
  if (a == NULL || b == NULL) return a == b;
  return strcmp(a, b) == 0;
}

bool tn_text_starts(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool tn_text_ends(const char *text, const char *ending) {
  size_t n = strlen(text), tail = strlen(ending);
  return n > tail && strcmp(text + n - tail, ending) == 0;
}

char *tn_text_trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t n = strlen(text);
  while (n > 0 && isspace((unsigned char)text[n - 1])) n--;
  text[n] = '\0';
  return text;
}

bool tn_text_glob(const char *pattern, const char *text) {
  /* Backtracking to the last star is enough: the match of an earlier star never has to change. */
  const char *star = NULL, *resume = NULL;
  while (*text != '\0') {
    if (*pattern == '*') {
      star = ++pattern;
      resume = text;
    } else if (*pattern == '?' || *pattern == *text) {
      pattern++;
      text++;
    } else if (star != NULL) {
      pattern = star;
      text = ++resume;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return *pattern == '\0';
}

enum { NAME_LIMIT = 64 };

static int32_t text_min(int32_t a, int32_t b) { return a < b ? a : b; }

static bool text_same_letter(char a, char b) {
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance with transpositions (optimal string alignment), case ignored, over three rows. */
static int32_t text_edit_distance(const char *a, int32_t na, const char *b, int32_t nb) {
  int32_t row[3][NAME_LIMIT + 1];
  for (int32_t j = 0; j <= nb; j++) row[0][j] = j;
  for (int32_t i = 1; i <= na; i++) {
    int32_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
    now[0] = i;
    for (int32_t j = 1; j <= nb; j++) {
      int32_t change = last[j - 1] + (text_same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      now[j] = text_min(change, text_min(last[j], now[j - 1]) + 1);
      bool swapped =
          i > 1 && j > 1 && text_same_letter(a[i - 1], b[j - 2]) && text_same_letter(a[i - 2], b[j - 1]);
      if (swapped) now[j] = text_min(now[j], before[j - 2] + 1);
    }
  }
  return row[na % 3][nb];
}

const char *tn_text_nearest(const char *word, const char *const *names, size_t count) {
  size_t n = strlen(word);
  const char *best = NULL;
  int32_t best_distance = NAME_LIMIT;
  if (n == 0 || n > NAME_LIMIT) return NULL;
  for (size_t k = 0; k < count; k++) {
    size_t length = names[k] != NULL ? strlen(names[k]) : 0;
    if (length == 0 || length > NAME_LIMIT) continue;
    int32_t distance = text_edit_distance(word, (int32_t)n, names[k], (int32_t)length);
    /* A shared prefix, as in "weight" for "weight_decay", counts as one edit. */
    size_t common = n < length ? n : length;
    if (common >= 3 && strncmp(word, names[k], common) == 0) distance = text_min(distance, 1);
    int32_t limit = 1 + (int32_t)common / 4;
    if (distance > limit || distance >= (int32_t)n || distance >= best_distance) continue;
    best = names[k];
    best_distance = distance;
  }
  return best;
}

uint64_t tn_hash_bytes(uint64_t hash, const void *bytes, size_t count) {
  const unsigned char *p = bytes;
  for (size_t i = 0; i < count; i++) hash = (hash ^ p[i]) * 1099511628211u;
  return hash;
}

uint64_t tn_hash_text(uint64_t hash, const char *text) { return tn_hash_bytes(hash, text, strlen(text) + 1); }
