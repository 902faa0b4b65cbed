#include "core/formats/canvas.h"

#include <math.h>
#include <string.h>

#include "core/base/element.h"

enum { COLOR_BITS = 8, CANVAS_GAP = 2 };

/* Three bits of the number, from the lowest, become the highest bits of red, green and blue; the next three
 * those below. */
void tn_class_color(int64_t number, uint8_t rgb[3]) {
  memset(rgb, 0, 3);
  for (int bit = COLOR_BITS - 1; bit >= 0; bit--, number >>= 3)
    for (int c = 0; c < 3; c++) rgb[c] |= (uint8_t)((number >> c & 1) << bit);
}

bool tn_canvas_takes(const tn_type *type) {
  return type->rank == 3 && (type->dtype == TN_F32 || type->dtype == TN_U8) &&
         (type->dims[0] == 1 || type->dims[0] == 3) && type->dims[1] >= 1 && type->dims[2] >= 1;
}

/* ---- the picture ---- */

typedef struct canvas_range {
  double low, scale;
} canvas_range;

static canvas_range canvas_find_range(const tn_type *type, const void *value) {
  double low = INFINITY, high = -INFINITY;
  if (type->dtype == TN_U8) return (canvas_range){0, 1};
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double x = tn_element_load(type->dtype, value, i);
    if (isfinite(x) && x < low) low = x;
    if (isfinite(x) && x > high) high = x;
  }
  return high > low ? (canvas_range){low, 255 / (high - low)} : (canvas_range){0, 0};
}

static uint8_t canvas_shade(double x, canvas_range range) {
  double shade = (x - range.low) * range.scale + 0.5;
  return (uint8_t)(shade >= 255 ? 255 : shade > 0 ? shade : 0); /* NaN is black */
}

tn_status tn_canvas_open(const void *handle, const tn_type *type, const void *value, tn_canvas *canvas) {
  int64_t plane = type->dims[1] * type->dims[2];
  *canvas = (tn_canvas){.width = type->dims[2], .height = type->dims[1]};
  canvas->rgb = tn_alloc(handle, tn_size_mul(3, (size_t)plane));
  if (canvas->rgb == NULL) return TN_ENOMEM;
  canvas_range range = canvas_find_range(type, value);
  for (int64_t i = 0; i < plane; i++)
    for (int64_t c = 0; c < 3; c++) {
      int64_t at = (type->dims[0] == 3 ? c : 0) * plane + i;
      canvas->rgb[3 * i + c] = canvas_shade(tn_element_load(type->dtype, value, at), range);
    }
  return TN_OK;
}

tn_status tn_canvas_open_mask(const void *handle, const uint8_t *mask, int64_t width, int64_t height,
                              tn_canvas *canvas) {
  *canvas = (tn_canvas){.width = width, .height = height};
  canvas->rgb = tn_alloc(handle, tn_size_mul(3, tn_size_mul((size_t)width, (size_t)height)));
  if (canvas->rgb == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < width * height; i++) tn_class_color(mask[i], canvas->rgb + 3 * i);
  return TN_OK;
}

tn_status tn_canvas_join(const void *handle, const tn_canvas *parts, int32_t n, tn_canvas *joined) {
  int64_t left = 0;
  *joined = (tn_canvas){.width = CANVAS_GAP * (int64_t)(n - 1)};
  for (int32_t i = 0; i < n; i++) {
    joined->width += parts[i].width;
    if (parts[i].height > joined->height) joined->height = parts[i].height;
  }
  size_t bytes = tn_size_mul(3, tn_size_mul((size_t)joined->width, (size_t)joined->height));
  joined->rgb = tn_alloc(handle, bytes);
  if (joined->rgb == NULL) return TN_ENOMEM;
  memset(joined->rgb, 255, bytes);
  for (int32_t i = 0; i < n; i++) {
    for (int64_t y = 0; y < parts[i].height; y++)
      memcpy(joined->rgb + 3 * (y * joined->width + left), parts[i].rgb + 3 * y * parts[i].width,
             3 * (size_t)parts[i].width);
    left += parts[i].width + CANVAS_GAP;
  }
  return TN_OK;
}

/* ---- masks and boxes over it ---- */

void tn_canvas_blend(tn_canvas *canvas, const uint8_t *mask, int64_t width, int64_t height) {
  uint8_t color[3];
  for (int64_t y = 0; y < canvas->height; y++)
    for (int64_t x = 0; x < canvas->width; x++) {
      uint8_t number = mask[y * height / canvas->height * width + x * width / canvas->width];
      uint8_t *pixel = canvas->rgb + 3 * (y * canvas->width + x);
      tn_class_color(number, color);
      for (int c = 0; c < 3 && number != 0; c++) pixel[c] = (uint8_t)((pixel[c] + color[c] + 1) / 2);
    }
}

/* The nearest pixel on the canvas, or one that is one step outside. */
static int64_t canvas_place(float x, int64_t size) {
  return x >= 0 ? (int64_t)floorf(fminf(x, (float)size)) : -1;
}

static void canvas_paint(tn_canvas *canvas, int64_t x, int64_t y, const uint8_t color[3]) {
  if (x >= 0 && x < canvas->width && y >= 0 && y < canvas->height)
    memcpy(canvas->rgb + 3 * (y * canvas->width + x), color, 3);
}

void tn_canvas_outline(tn_canvas *canvas, const float box[4], int64_t number) {
  uint8_t color[3];
  int64_t left = canvas_place(box[0], canvas->width), top = canvas_place(box[1], canvas->height),
          right = canvas_place(box[2] - 1, canvas->width), bottom = canvas_place(box[3] - 1, canvas->height);
  tn_class_color(number + 1, color);
  for (int64_t x = left; x <= right; x++) {
    canvas_paint(canvas, x, top, color);
    canvas_paint(canvas, x, bottom, color);
  }
  for (int64_t y = top; y <= bottom; y++) {
    canvas_paint(canvas, left, y, color);
    canvas_paint(canvas, right, y, color);
  }
}
