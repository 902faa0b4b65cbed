/* core/base/text/text.h: growable strings, number conversion, matching, nearest-name search, hashing. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

/* A growable string. Failures stick (`failed`), so appending needs no check after each call; tn_text_take
 * reports them. tn_text_new makes an empty one. */
typedef struct tn_text {
  const void *handle;
  char *v; /* NUL-terminated after the first append */
  size_t n, cap;
  bool failed;
} tn_text;

tn_text tn_text_new(const void *handle);
void tn_text_add(tn_text *text, const char *more);
void tn_text_addn(tn_text *text, const char *more, size_t length);
void tn_text_addf(tn_text *text, const char *format, ...) TN_PRINTF(2, 3);
/* Moves the string to the caller (tn_release), or returns NULL with TN_ENOMEM recorded. */
char *tn_text_take(tn_text *text);
void tn_text_free(tn_text *text);

bool tn_text_equal(const char *a, const char *b); /* NULL-safe */
bool tn_text_starts(const char *text, const char *prefix);
/* Whether a text that is longer ends so: a name with an extension. */
bool tn_text_ends(const char *text, const char *ending);
/* Cuts white space at both ends in place; returns the new start. */
char *tn_text_trim(char *text);
/* Shell pattern match with * and ? only. */
bool tn_text_glob(const char *pattern, const char *text);

/* Bytes of the character of UTF-8 that n > 0 bytes begin with (RFC 3629); 0: they begin with none. */
size_t tn_text_character_bytes(const char *text, size_t n);

/* The name among `names` nearest to `word` by edit distance, if near enough to suggest; or NULL. */
const char *tn_text_nearest(const char *word, const char *const *names, size_t count);

/* Converts the whole text as a decimal number, with a point as the locale "C" has; false if it is not a
 * number or does not fit the type. A float may also be inf or nan, with a sign. */
bool tn_text_to_int(const char *text, int64_t *value);
bool tn_text_to_float(const char *text, double *value);
/* Appends the shortest decimal text that reads back to the same double. */
void tn_text_add_float(tn_text *text, double value);

/* FNV-1a, 64 bit. Start with TN_HASH_START; feed pieces in order. tn_hash_text includes the ending
 * NUL, so that "ab", "c" and "a", "bc" differ. */
#define TN_HASH_START 14695981039346656037u
uint64_t tn_hash_bytes(uint64_t hash, const void *bytes, size_t count);
uint64_t tn_hash_text(uint64_t hash, const char *text);
