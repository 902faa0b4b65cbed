/* plugins/sources/image/png.c: decodes PNG with libpng. The library reports errors with a callback that must
 * not return; the callback jumps back to image_png_guarded. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "plugins/sources/image/image.h"

typedef struct png_source {
  image_sink *sink;
  png_structp png;
  png_infop info;
  jmp_buf back;
  const uint8_t *bytes;
  size_t count, at;
  uint8_t *pixels; /* the picture; an interlaced one is decoded in seven passes */
  char text[128];
} png_source;

static void image_png_on_error(png_structp png, png_const_charp message) {
  png_source *s = png_get_error_ptr(png);
  snprintf(s->text, sizeof(s->text), "%s", message);
  longjmp(s->back, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static void image_png_read_bytes(png_structp png, png_bytep to, size_t count) {
  png_source *s = png_get_io_ptr(png);
  if (count > s->count - s->at) png_error(png, "the file ends too soon");
  memcpy(to, s->bytes + s->at, count);
  s->at += count;
}

/* Whether pixels stay numbers of a palette, one byte each. */
static int image_png_is_numbers(const png_source *s) {
  return s->sink->keeps_palette && png_get_color_type(s->png, s->info) == PNG_COLOR_TYPE_PALETTE;
}

/* Converts every kind of PNG to 8-bit RGB, as Pillow does: palettes and grey are expanded, 16 bits lose their
 * lower half, transparency is dropped. */
static void image_png_convert_to_rgb(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  int color = png_get_color_type(png, info);
  if (color == PNG_COLOR_TYPE_GRAY || color == PNG_COLOR_TYPE_GRAY_ALPHA) png_set_gray_to_rgb(png);
}

/* The numbers in front of a row as equal red, green and blue, from the last to the first. */
static void image_png_spread(uint8_t *row, size_t width) {
  for (size_t x = width; x-- > 0;) memset(row + 3 * x, row[x], 3);
}

static tn_status image_png_read_rows(png_source *s) {
  int numbers = image_png_is_numbers(s);
  if (numbers)
    png_set_packing(s->png);
  else
    image_png_convert_to_rgb(s->png, s->info);
  int passes = png_set_interlace_handling(s->png);
  png_read_update_info(s->png, s->info);
  int64_t height = png_get_image_height(s->png, s->info);
  size_t width = png_get_image_width(s->png, s->info), stride = width * 3;
  if (png_get_rowbytes(s->png, s->info) != (numbers ? width : stride))
    png_error(s->png, "unknown kind of pixels");
  s->pixels = tn_new(s->sink->handle, (size_t)height * stride);
  if (s->pixels == NULL) return TN_ENOMEM;
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < height; y++) png_read_row(s->png, s->pixels + (size_t)y * stride, NULL);
  png_read_end(s->png, NULL);
  for (int64_t y = 0; y < height; y++) {
    if (numbers) image_png_spread(s->pixels + (size_t)y * stride, width);
    image_put_row(s->sink, y, s->pixels + (size_t)y * stride);
  }
  return TN_OK;
}

/* Of a chunk in front of the pixels. */
static int image_png_orientation(const png_source *s) {
#ifdef PNG_eXIf_SUPPORTED
  png_bytep exif = NULL;
  png_uint_32 n = 0;
  if (!s->sink->ignores_orientation && png_get_eXIf_1(s->png, s->info, &n, &exif) != 0)
    return image_exif_orientation(exif, n);
#endif
  (void)s;
  return 0;
}

/* All values that change between setjmp and longjmp are members of the source, not local variables. */
static tn_status image_png_guarded(png_source *s) {
  int wanted;
  if (setjmp(s->back) != 0)
    return tn_fail(s->sink->handle, TN_EINVAL, NULL,
                   "%s: damaged PNG: %s; remove it, or set corrupt = skip in [data]", s->sink->path, s->text);
  png_set_read_fn(s->png, s, image_png_read_bytes);
  png_read_info(s->png, s->info);
  s->sink->orientation = image_png_orientation(s);
  tn_status status = image_size(s->sink, png_get_image_height(s->png, s->info),
                                png_get_image_width(s->png, s->info), &wanted);
  return status == TN_OK && wanted ? image_png_read_rows(s) : status;
}

static tn_status image_png_prepare(png_source *s) {
  s->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, image_png_on_error, on_warning);
  if (s->png != NULL) s->info = png_create_info_struct(s->png);
  if (s->info != NULL) return TN_OK;
  return tn_fail(s->sink->handle, TN_ENOMEM, NULL, "%s: out of memory while decoding", s->sink->path);
}

tn_status image_decode_png(image_sink *sink, const uint8_t *bytes, size_t count) {
  png_source s;
  memset(&s, 0, sizeof(s));
  s.sink = sink;
  s.bytes = bytes;
  s.count = count;
  tn_status status = image_png_prepare(&s);
  if (status == TN_OK) status = image_png_guarded(&s);
  if (s.png != NULL) png_destroy_read_struct(&s.png, &s.info, NULL);
  tn_delete(sink->handle, s.pixels);
  return status;
}
