/* plugins/sources/image/webp.c: decodes WebP with libwebp. Its container is a RIFF file; the orientation is
 * in a chunk EXIF behind the picture (WebP container specification). */
#include <string.h>

#include <webp/decode.h>

#include "plugins/sources/image/image.h"

enum { RIFF_HEAD = 12, CHUNK_HEAD = 8 };

static size_t webp_number(const uint8_t *bytes) {
  return bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
}

static int webp_orientation(const uint8_t *bytes, size_t count) {
  for (size_t at = RIFF_HEAD; at + CHUNK_HEAD <= count;) {
    size_t size = webp_number(bytes + at + 4), left = count - at - CHUNK_HEAD;
    if (size > left) return 0;
    if (memcmp(bytes + at, "EXIF", 4) == 0) return image_exif_orientation(bytes + at + CHUNK_HEAD, size);
    at += CHUNK_HEAD + size + (size & 1);
  }
  return 0;
}

static tn_status webp_fail(const image_sink *sink, const char *what) {
  return tn_fail(sink->handle, TN_EINVAL, NULL,
                 "%s: damaged WebP: %s; remove it, or set corrupt = skip in [data]", sink->path, what);
}

static tn_status webp_read_rows(image_sink *sink, const uint8_t *bytes, size_t count, int height, int width) {
  size_t stride = (size_t)width * 3, size = (size_t)height * stride;
  uint8_t *pixels = tn_new(sink->handle, size);
  if (pixels == NULL) return TN_ENOMEM;
  int decoded = WebPDecodeRGBInto(bytes, count, pixels, size, (int)stride) != NULL;
  for (int64_t y = 0; decoded && y < height; y++) image_put_row(sink, y, pixels + (size_t)y * stride);
  tn_delete(sink->handle, pixels);
  return decoded ? TN_OK : webp_fail(sink, "its data cannot be decoded");
}

tn_status image_decode_webp(image_sink *sink, const uint8_t *bytes, size_t count) {
  WebPBitstreamFeatures features;
  int wanted;
  if (WebPGetFeatures(bytes, count, &features) != VP8_STATUS_OK) return webp_fail(sink, "it has no header");
  if (features.has_animation)
    return tn_fail(sink->handle, TN_EINVAL, NULL,
                   "%s: an animated WebP, expected a single picture; convert it, for example with webpmux",
                   sink->path);
  sink->orientation = sink->ignores_orientation ? 0 : webp_orientation(bytes, count);
  tn_status status = image_size(sink, (uint64_t)features.height, (uint64_t)features.width, &wanted);
  return status == TN_OK && wanted ? webp_read_rows(sink, bytes, count, features.height, features.width)
                                   : status;
}
