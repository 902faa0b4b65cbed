/* core/base/plain_text.c: texts from outside that are shown on a terminal. */
#include "tenon/context.h"

#include <string.h>

/* Bytes of a character of UTF-8 that is not shown; 0: it is shown. The directions are those of the Unicode
 * Bidirectional Algorithm (UAX 9): U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. */
static int plain_hidden_bytes(const unsigned char *at) {
  if (at[0] == 0xC2 && at[1] >= 0x80 && at[1] <= 0x9F) return 2;
  if (at[0] == 0xD8 && at[1] == 0x9C) return 2;
  if (at[0] != 0xE2 || (at[1] != 0x80 && at[1] != 0x81)) return 0;
  if (at[1] == 0x81) return at[2] >= 0xA6 && at[2] <= 0xA9 ? 3 : 0;
  return at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xAA && at[2] <= 0xAE) ? 3 : 0;
}

void tn_text_make_plain(char *text) {
  for (unsigned char *at = (unsigned char *)text; at != NULL && *at != '\0'; at++) {
    int hidden = plain_hidden_bytes(at);
    if (*at < 0x20 || *at == 0x7F) *at = ' ';
    if (hidden > 0) memset(at, '?', (size_t)hidden);
  }
}
