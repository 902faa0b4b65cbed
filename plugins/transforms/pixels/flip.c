/* plugins/transforms/pixels/flip.c: mirrors pictures. */
#include <string.h>

#include "plugins/transforms/transforms.h"

static void flip_row(const char *in, char *out, int64_t width, size_t item) {
  for (int64_t x = 0; x < width; x++)
    memcpy(out + (size_t)(width - 1 - x) * item, in + (size_t)x * item, item);
}

/* The usual case, eight bytes at a time. */
static void flip_bytes(const uint8_t *in, uint8_t *out, int64_t width) {
  int64_t x = 0;
  for (; x + 8 <= width; x += 8) {
    uint64_t eight;
    memcpy(&eight, in + x, 8);
    eight = __builtin_bswap64(eight);
    memcpy(out + width - 8 - x, &eight, 8);
  }
  for (; x < width; x++) out[width - 1 - x] = in[x];
}

void flip_apply(const void *in, const tn_type *type, int vertical, void *out) {
  picture p = picture_of(type);
  size_t item = tn_dtype_size(type->dtype), row = (size_t)p.width * item;
  for (int64_t plane = 0; plane < p.planes; plane++) {
    for (int64_t y = 0; y < p.height; y++) {
      const char *from = (const char *)in + (size_t)(plane * p.height + y) * row;
      int64_t target = vertical ? p.height - 1 - y : y;
      char *to = (char *)out + (size_t)(plane * p.height + target) * row;
      if (vertical)
        memcpy(to, from, row);
      else if (item == 1)
        flip_bytes((const uint8_t *)from, (uint8_t *)to, p.width);
      else
        flip_row(from, to, p.width, item);
    }
  }
}
