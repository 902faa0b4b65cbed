/* plugins/sources/image/image.h: pictures as samples: u8 (3, height, width), red, green, blue. */
#ifndef TN_PLUGINS_SOURCES_IMAGE_IMAGE_H
#define TN_PLUGINS_SOURCES_IMAGE_IMAGE_H

#include "plugins/sources/sources.h"

/* A picture being decoded. The decoder gives its size and gets memory for it. */
typedef struct image_sink {
  const void *handle;    /* for errors and memory */
  const char *path;      /* for messages */
  int64_t most_pixels;   /* larger pictures are refused before memory is taken */
  int64_t at_least;      /* JPEG may be decoded smaller if both sides keep so many pixels; 0: at full size */
  int64_t height, width; /* as decoded, set by image_size */
  /* Sets `to` to memory for 3 planes of height x width bytes. NULL: only the size is wanted. */
  tn_status (*planes)(struct image_sink *sink);
  void *context;
  uint8_t *to;
} image_sink;

/* Decodes a JPEG or PNG file; the first bytes tell which. */
tn_status image_decode(image_sink *sink, const uint8_t *bytes, size_t count);

/* For the decoders: refuses a size that no picture may have. */
tn_status image_check_size(const image_sink *sink, uint64_t height, uint64_t width);
/* Checks the size, then asks for planes. *wanted is 0 where the size was all. */
tn_status image_size(image_sink *sink, uint64_t height, uint64_t width, int *wanted);
/* Spreads a row of interleaved RGB over the planes. */
void image_put_row(image_sink *sink, int64_t y, const uint8_t *rgb);

tn_status image_decode_jpeg(image_sink *sink, const uint8_t *bytes, size_t count);
tn_status image_decode_png(image_sink *sink, const uint8_t *bytes, size_t count);

#endif
