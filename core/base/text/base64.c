#include "core/base/text/base64.h"

#include <stdint.h>

void tn_base64(const void *from, size_t n, char *to) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *bytes = from;
  for (size_t i = 0; i < n; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16;
    if (i + 1 < n) three |= (uint32_t)bytes[i + 1] << 8;
    if (i + 2 < n) three |= bytes[i + 2];
    *to++ = digits[three >> 18];
    *to++ = digits[three >> 12 & 63];
    *to++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
    *to++ = i + 2 < n ? digits[three & 63] : '=';
  }
  *to = '\0';
}
