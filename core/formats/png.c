/* core/formats/png.c: see png.h. A file is a signature and chunks: length, type, data, CRC-32. The data of
 * IDAT are a stream of zlib (RFC 1950), here of stored blocks (RFC 1951), whose rows each begin with a
 * filter. */
#include "core/formats/png.h"

#include <string.h>

#include "core/base/file/file.h"

enum { PNG_MOST_SIDE = 65535, PNG_CHUNK = 12, PNG_HEADER = 13, PNG_BLOCK = 65535, PNG_BLOCK_HEAD = 5 };
enum { PNG_ADLER = 65521 };

static uint8_t *png_put(uint8_t *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
  return to + 4;
}

/* CRC-32 (ISO 3309), four bits at a time. */
static uint32_t png_crc(const uint8_t *bytes, size_t n) {
  uint32_t table[16], crc = 0xFFFFFFFFu;
  for (uint32_t i = 0; i < 16; i++) {
    table[i] = i;
    for (int bit = 0; bit < 4; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
  }
  for (size_t i = 0; i < n; i++) {
    crc ^= bytes[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

/* Writes length and type in front of n bytes that lie at to + 8, and the checksum behind them. */
static uint8_t *png_close_chunk(uint8_t *to, const char *type, size_t n) {
  png_put(to, (uint32_t)n);
  memcpy(to + 4, type, 4);
  return png_put(to + 8 + n, png_crc(to + 4, n + 4));
}

/* The bytes of all rows, each behind a filter that changes nothing. */
typedef struct png_rows {
  const uint8_t *pixels;
  size_t row, n; /* bytes of a row with its filter, and of all */
} png_rows;

static uint8_t png_byte(const png_rows *rows, size_t i) {
  return i % rows->row == 0 ? 0 : rows->pixels[i / rows->row * (rows->row - 1) + i % rows->row - 1];
}

/* A stream of zlib; returns its bytes. */
static size_t png_store(const png_rows *rows, uint8_t *to) {
  uint8_t *start = to;
  uint32_t a = 1, b = 0;
  *to++ = 0x78;
  *to++ = 0x01;
  for (size_t at = 0; at < rows->n;) {
    size_t n = rows->n - at < PNG_BLOCK ? rows->n - at : PNG_BLOCK;
    *to++ = at + n == rows->n;
    for (int i = 0; i < 4; i++) *to++ = (uint8_t)((i < 2 ? n : ~n) >> (8 * (i % 2)));
    for (size_t end = at + n; at < end; at++) {
      *to = png_byte(rows, at);
      a = (a + *to++) % PNG_ADLER;
      b = (b + a) % PNG_ADLER;
    }
  }
  return (size_t)(png_put(to, b << 16 | a) - start);
}

typedef struct png_form {
  size_t pixel_bytes;
  uint8_t color; /* the type: PNG_RGB, PNG_PALETTE */
  const uint8_t *palette;
  size_t palette_bytes;
} png_form;
enum { PNG_RGB = 2, PNG_PALETTE = 3 };

/* `what` is in front of a message. */
static tn_status png_encode(const void *handle, const char *what, int64_t width, int64_t height,
                            const uint8_t *pixels, const png_form *form, uint8_t **out, size_t *n) {
  static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  const uint8_t kind[] = {8, form->color, 0, 0, 0}; /* bits, color, deflate, filters, not interlaced */
  if (width < 1 || height < 1 || width > PNG_MOST_SIDE || height > PNG_MOST_SIDE)
    return tn_failf(handle, TN_EINVAL, "%s: a picture of %lld x %lld pixels, expected sides of 1 to %d", what,
                    (long long)width, (long long)height, PNG_MOST_SIDE);
  size_t row = form->pixel_bytes * (size_t)width + 1;
  const png_rows rows = {pixels, row, row * (size_t)height};
  size_t stream = rows.n + (rows.n / PNG_BLOCK + 1) * PNG_BLOCK_HEAD + 6;
  uint8_t *bytes = tn_resize(handle, NULL,
                             sizeof signature + 4 * PNG_CHUNK + PNG_HEADER + form->palette_bytes + stream),
          *to = bytes;
  *out = bytes;
  if (bytes == NULL) return TN_ENOMEM;
  memcpy(to, signature, sizeof signature);
  to += sizeof signature;
  memcpy(png_put(png_put(to + 8, (uint32_t)width), (uint32_t)height), kind, sizeof kind);
  to = png_close_chunk(to, "IHDR", PNG_HEADER);
  if (form->palette_bytes > 0) {
    memcpy(to + 8, form->palette, form->palette_bytes);
    to = png_close_chunk(to, "PLTE", form->palette_bytes);
  }
  to = png_close_chunk(to, "IDAT", png_store(&rows, to + 8));
  *n = (size_t)(png_close_chunk(to, "IEND", 0) - bytes);
  return TN_OK;
}

static tn_status png_write(const void *handle, const char *path, int64_t width, int64_t height,
                           const uint8_t *pixels, const png_form *form) {
  uint8_t *bytes = NULL;
  size_t n;
  TN_TRY(png_encode(handle, path, width, height, pixels, form, &bytes, &n));
  tn_status status = tn_file_write_atomic(handle, path, bytes, n);
  tn_release(handle, bytes);
  return status;
}

tn_status tn_png_encode(const void *handle, int64_t width, int64_t height, const uint8_t *rgb,
                        uint8_t **bytes, size_t *n) {
  const png_form form = {.pixel_bytes = 3, .color = PNG_RGB};
  *bytes = NULL;
  return png_encode(handle, "PNG", width, height, rgb, &form, bytes, n);
}

tn_status tn_png_write(const void *handle, const char *path, int64_t width, int64_t height,
                       const uint8_t *rgb) {
  const png_form form = {.pixel_bytes = 3, .color = PNG_RGB};
  return png_write(handle, path, width, height, rgb, &form);
}

tn_status tn_png_write_indexed(const void *handle, const char *path, int64_t width, int64_t height,
                               const uint8_t *pixels, const uint8_t *palette, int32_t colors) {
  const png_form form = {1, PNG_PALETTE, palette, 3 * (size_t)colors};
  return png_write(handle, path, width, height, pixels, &form);
}
