/* core/tokenizer/text/bytes.c: GPT-2's alphabet, which writes each byte as a visible character: the printable
 * bytes of Latin-1 as they are, and the other 68, in order, as U+0100 and on. */
#include "core/tokenizer/tokenizer.h"

static bool byte_is_printable(int32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/* Bytes below this one that are not printable: 0 .. 0x20, 0x7f .. 0xa0 and 0xad. */
static int32_t byte_rank(int32_t byte) {
  return byte <= 0x20 ? byte : byte <= 0xa0 ? byte - 0x7f + 0x21 : 0x43;
}

size_t tn_byte_character(unsigned char byte, char *to) {
  return tn_unicode_write(byte_is_printable(byte) ? byte : 0x100 + byte_rank(byte), to);
}

int32_t tn_character_byte(int32_t code) {
  if (code < 0x100) return byte_is_printable(code) ? code : -1;
  int32_t rank = code - 0x100;
  return rank <= 0x20 ? rank : rank <= 0x42 ? rank - 0x21 + 0x7f : rank == 0x43 ? 0xad : -1;
}
