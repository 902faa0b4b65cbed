/* plugins/sources/image/image.c: checks sizes and stores rows for the decoders. */
#include "plugins/sources/image/image.h"

tn_status image_check_size(const image_sink *sink, uint64_t height, uint64_t width) {
  if (height == 0 || width == 0)
    return tn_fail(sink->handle, TN_EINVAL, NULL, "%s: has no pixels (%llu x %llu)", sink->path,
                   (unsigned long long)width, (unsigned long long)height);
  if (height > (uint64_t)sink->most_pixels / width)
    return tn_fail(sink->handle, TN_EINVAL, "max_pixels",
                   "%s: has %llu x %llu pixels, expected at most %lld in all", sink->path,
                   (unsigned long long)width, (unsigned long long)height, (long long)sink->most_pixels);
  return TN_OK;
}

tn_status image_size(image_sink *sink, uint64_t height, uint64_t width, int *wanted) {
  *wanted = 0;
  TN_TRY(image_check_size(sink, height, width));
  sink->height = (int64_t)(sink->orientation >= 5 ? width : height);
  sink->width = (int64_t)(sink->orientation >= 5 ? height : width);
  if (sink->planes == NULL) return TN_OK;
  *wanted = 1;
  return sink->planes(sink);
}

/* GCC vectorizes the loop for each level of the x86-64 psABI; the dynamic loader selects the version.
 * Sanitizers would run before the selection. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) &&                 \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#endif
static void
image_split(const uint8_t *restrict rgb, int64_t width, uint8_t *restrict red, uint8_t *restrict green,
            uint8_t *restrict blue) {
  for (int64_t x = 0; x < width; x++) {
    red[x] = rgb[3 * x];
    green[x] = rgb[3 * x + 1];
    blue[x] = rgb[3 * x + 2];
  }
}

/* The places of a stored row in a plane: of its first pixel, and from one pixel to the next. Orientation 6, a
 * phone held upright: the first stored row is the right side. */
static int64_t image_row_start(const image_sink *sink, int64_t y, int64_t *step) {
  int64_t height = sink->height, width = sink->width, last = height * width - 1;
  int turned = sink->orientation >= 5;
  int from_right =
      sink->orientation == 2 || sink->orientation == 3 || sink->orientation == 6 || sink->orientation == 7;
  int from_below =
      sink->orientation == 3 || sink->orientation == 4 || sink->orientation == 7 || sink->orientation == 8;
  int64_t along = turned ? width : 1, across = turned ? 1 : width;
  int backwards = turned ? from_below : from_right, last_first = turned ? from_right : from_below;
  *step = backwards ? -along : along;
  int64_t corner = (from_right ? width - 1 : 0) + (from_below ? last - (width - 1) : 0);
  return corner + (last_first ? -across : across) * y;
}

static void image_put_turned(image_sink *sink, int64_t y, const uint8_t *rgb) {
  int64_t plane = sink->height * sink->width, step;
  int64_t n = sink->orientation >= 5 ? sink->height : sink->width;
  uint8_t *to = sink->to + image_row_start(sink, y, &step);
  for (int64_t x = 0; x < n; x++, to += step)
    for (int64_t c = 0; c < 3; c++) to[c * plane] = rgb[3 * x + c];
}

void image_put_row(image_sink *sink, int64_t y, const uint8_t *rgb) {
  int64_t plane = sink->height * sink->width;
  if (sink->orientation > 1) {
    image_put_turned(sink, y, rgb);
    return;
  }
  uint8_t *red = sink->to + y * sink->width;
  image_split(rgb, sink->width, red, red + plane, red + 2 * plane);
}
