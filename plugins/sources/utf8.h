/* plugins/sources/utf8.h: decodes and encodes UTF-8 (RFC 3629). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MOST = 4 };

/* The length of the sequence with this first byte; 0 for an invalid byte. */
static inline int utf8_length(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

/* Returns the code point at *at and advances *at. An invalid sequence returns -1 and leaves *at: truncated,
 * longer than necessary, a surrogate, or beyond U+10FFFF. */
static inline int32_t utf8_next(const uint8_t *bytes, size_t n, size_t *at) {
  static const int32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
  int length = utf8_length(bytes[*at]);
  if (length == 0 || (size_t)length > n - *at) return -1;
  int32_t code = length == 1 ? bytes[*at] : bytes[*at] & (0x7F >> length);
  for (int i = 1; i < length; i++) {
    uint8_t byte = bytes[*at + (size_t)i];
    if ((byte & 0xC0) != 0x80) return -1;
    code = code << 6 | (byte & 0x3F);
  }
  if (code < lowest[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return -1;
  *at += (size_t)length;
  return code;
}

/* Writes a code point, at most UTF8_MOST bytes; returns the number of bytes. */
static inline int utf8_write(int32_t code, char *to) {
  int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const uint8_t mark[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (int i = length - 1; i > 0; i--) {
    to[i] = (char)(0x80 | (code & 0x3F));
    code >>= 6;
  }
  to[0] = (char)(mark[length] | code);
  return length;
}
