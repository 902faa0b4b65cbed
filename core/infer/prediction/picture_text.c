/* core/infer/prediction/picture_text.c: BMP, which every browser shows and which needs no compression, in
 * base64. */
#include "core/infer/prediction/picture_text.h"

#include <math.h>
#include <string.h>

#include "core/base/text/base64.h"

enum { HEADER = 54, MOST_SIDE = 512 };

bool tn_picture_is(const tn_type *type) {
  return type->rank == 3 && (type->dtype == TN_F32 || type->dtype == TN_U8) &&
         (type->dims[0] == 1 || type->dims[0] == 3) && type->dims[1] >= 1 && type->dims[1] <= MOST_SIDE &&
         type->dims[2] >= 1 && type->dims[2] <= MOST_SIDE;
}

/* ---- numbers as shades ---- */

static double picture_number(const tn_type *type, const void *value, int64_t i) {
  return type->dtype == TN_U8 ? (double)((const uint8_t *)value)[i] : (double)((const float *)value)[i];
}

typedef struct picture_range {
  double low, scale;
} picture_range;

static picture_range picture_find_range(const tn_type *type, const void *value) {
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double x = picture_number(type, value, i);
    if (isfinite(x) && x < low) low = x;
    if (isfinite(x) && x > high) high = x;
  }
  return high > low ? (picture_range){low, 255 / (high - low)} : (picture_range){0, 0};
}

static unsigned char picture_shade(double x, picture_range range) {
  double shade = (x - range.low) * range.scale + 0.5;
  return (unsigned char)(shade >= 255 ? 255 : shade > 0 ? shade : 0); /* NaN is black */
}

/* ---- BMP ---- */

static void picture_put(unsigned char *to, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static void picture_put_header(unsigned char *bmp, uint32_t width, uint32_t height, uint32_t bytes) {
  memset(bmp, 0, HEADER);
  bmp[0] = 'B';
  bmp[1] = 'M';
  picture_put(bmp + 2, bytes, 4);
  picture_put(bmp + 10, HEADER, 4);
  picture_put(bmp + 14, 40, 4); /* size of the second header */
  picture_put(bmp + 18, width, 4);
  picture_put(bmp + 22, height, 4);
  picture_put(bmp + 26, 1, 2);  /* planes */
  picture_put(bmp + 28, 24, 2); /* bits of a pixel */
}

/* Rows from the lowest to the highest, blue before red, each row a multiple of four bytes. */
static void picture_put_pixels(unsigned char *to, size_t row_bytes, const tn_type *type, const void *value) {
  int64_t height = type->dims[1], width = type->dims[2], plane = height * width;
  picture_range range = picture_find_range(type, value);
  for (int64_t y = 0; y < height; y++)
    for (int64_t x = 0; x < width; x++)
      for (int64_t c = 0; c < 3; c++) {
        int64_t channel = type->dims[0] == 3 ? c : 0;
        double number = picture_number(type, value, channel * plane + y * width + x);
        to[(size_t)(height - 1 - y) * row_bytes + 3 * (size_t)x + 2 - (size_t)c] =
            picture_shade(number, range);
      }
}

char *tn_picture_text(const void *handle, const tn_type *type, const void *value) {
  static const char head[] = "data:image/bmp;base64,";
  size_t height = (size_t)type->dims[1], width = (size_t)type->dims[2], row_bytes = (3 * width + 3) / 4 * 4;
  size_t bytes = HEADER + height * row_bytes;
  unsigned char *bmp = tn_alloc(handle, bytes);
  char *text = tn_alloc(handle, sizeof head + tn_base64_length(bytes));
  if (bmp != NULL && text != NULL) {
    memset(bmp, 0, bytes);
    picture_put_header(bmp, (uint32_t)width, (uint32_t)height, (uint32_t)bytes);
    picture_put_pixels(bmp + HEADER, row_bytes, type, value);
    memcpy(text, head, sizeof head - 1);
    tn_base64(bmp, bytes, text + sizeof head - 1);
  }
  tn_release(handle, bmp);
  if (bmp != NULL) return text;
  tn_release(handle, text);
  return NULL;
}
