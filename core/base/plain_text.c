/* core/base/plain_text.c: texts from outside that are shown on a terminal. */
#include "tenon/context.h"

#include <string.h>

#include "core/base/text/text.h"

/* Bytes of a character of UTF-8 that is not shown; 0: it is shown. The directions are those of the Unicode
 * Bidirectional Algorithm (UAX 9): U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. */
static int plain_hidden_bytes(const unsigned char *at) {
  if (at[0] == 0xC2 && at[1] >= 0x80 && at[1] <= 0x9F) return 2;
  if (at[0] == 0xD8 && at[1] == 0x9C) return 2;
  if (at[0] != 0xE2 || (at[1] != 0x80 && at[1] != 0x81)) return 0;
  if (at[1] == 0x81) return at[2] >= 0xA6 && at[2] <= 0xA9 ? 3 : 0;
  return at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xAA && at[2] <= 0xAE) ? 3 : 0;
}

size_t tn_text_character_bytes(const char *text, size_t n) {
  const unsigned char *at = (const unsigned char *)text;
  size_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : at[0] >= 0xC2 ? 2 : 0;
  if (at[0] > 0xF4 || bytes > n) return 0;
  for (size_t i = 1; i < bytes; i++)
    if ((at[i] & 0xC0) != 0x80) return 0;
  bool overlong = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
  bool outside = (at[0] == 0xED && at[1] > 0x9F) || (at[0] == 0xF4 && at[1] > 0x8F);
  return overlong || outside ? 0 : bytes;
}

void tn_text_make_plain(char *text) {
  size_t n = text != NULL ? strlen(text) : 0;
  for (size_t i = 0; i < n;) {
    size_t bytes = tn_text_character_bytes(text + i, n - i);
    bool shown = bytes > 0 && plain_hidden_bytes((const unsigned char *)text + i) == 0;
    if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) text[i] = ' ';
    if (bytes == 0) bytes = 1;
    if (!shown) memset(text + i, '?', bytes);
    i += bytes;
  }
}
