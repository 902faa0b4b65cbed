/* core/tokenizer/text/unicode.h: properties and normal forms of Unicode's characters, from utf8proc. A build
 * without utf8proc has the functions of UTF-8 and white space alone. */
#pragma once

#include <stdbool.h>

#include "core/base/text/text.h"

/* TN_EUNAVAILABLE with the remedy where the build has no utf8proc. `place` is in front of the message. */
tn_status tn_unicode_need(const void *handle, const char *place);

/* The character at text[*at] of valid UTF-8, and the place behind it. */
static inline int32_t tn_unicode_next(const char *text, size_t *at) {
  const unsigned char *u = (const unsigned char *)text + *at;
  if (u[0] < 0x80) return ++*at, u[0];
  if (u[0] < 0xe0) return *at += 2, (u[0] & 0x1f) << 6 | (u[1] & 0x3f);
  if (u[0] < 0xf0) return *at += 3, (u[0] & 0x0f) << 12 | (u[1] & 0x3f) << 6 | (u[2] & 0x3f);
  return *at += 4, (u[0] & 0x07) << 18 | (u[1] & 0x3f) << 12 | (u[2] & 0x3f) << 6 | (u[3] & 0x3f);
}

/* The first byte that begins no character of UTF-8; `bytes`: the text is valid. */
size_t tn_unicode_invalid(const char *text, size_t bytes);
/* Writes a character in up to 4 bytes and returns their number. */
size_t tn_unicode_write(int32_t code, char *to);
/* The beginning of n > 0 bytes. n: bytes of a character; 0: the beginning of a character; -n: n bytes that
 * are replaced by one U+FFFD (Unicode 15, section 3.9, "Substitution of Maximal Subparts"). */
int32_t tn_unicode_prefix(const char *text, size_t n);

bool tn_unicode_is_space(int32_t code);           /* White_Space */
bool tn_unicode_is_punctuation(int32_t code);     /* P, and ASCII's punctuation and symbols */
bool tn_unicode_is_number(int32_t code);          /* N */
bool tn_unicode_is_mark(int32_t code);            /* M */
bool tn_unicode_is_nonspacing_mark(int32_t code); /* Mn */
bool tn_unicode_is_control(int32_t code);         /* Cc, Cf, Co */
bool tn_unicode_is_word(int32_t code);            /* letters, marks, decimal numbers, connectors */

/* The end of the cluster of characters (UAX 29) that begins at text[at]. */
size_t tn_unicode_cluster(const char *text, size_t bytes, size_t at);

/* Appends the lower case of a character. */
void tn_unicode_add_lower(tn_text *to, int32_t code);

enum { TN_NFC = 0, TN_NFD = 1, TN_NFKC = 2, TN_NFKD = 3 };
/* Appends the normal form of a valid text. `codes` is memory that the caller keeps and frees. */
typedef struct tn_unicode_codes {
  int32_t *v;
  size_t n, cap;
} tn_unicode_codes;
tn_status tn_unicode_normalize(const void *handle, int32_t form, const char *text, size_t bytes,
                               tn_unicode_codes *codes, tn_text *to);
