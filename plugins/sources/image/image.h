/* plugins/sources/image/image.h: decodes pictures to u8 (3, height, width): red, green, blue. */
#pragma once

#include "plugins/sources/sources.h"

/* A picture during decoding. The decoder reports its size with image_size and receives memory for it. */
typedef struct image_sink {
  const void *handle;      /* for errors and memory */
  const char *path;        /* for messages */
  int64_t most_pixels;     /* larger pictures fail before memory is allocated */
  int64_t at_least;        /* a JPEG may be decoded smaller if both sides keep so many pixels; 0: full size */
  int ignores_orientation; /* 1: EXIF data are not read */
  int keeps_palette;       /* 1: pixels of a PNG with a palette become grey of their numbers, not colors */
  int orientation;         /* of EXIF, 1 to 8, set by the decoder before image_size; 0, 1: as it is stored */
  int64_t height, width; /* as decoded, set by image_size; for 5 to 8 those of the stored picture exchanged */
  /* Sets `to` to memory for 3 planes of height x width bytes. NULL: decode only the size. */
  tn_status (*planes)(struct image_sink *sink);
  /* Asked now and then: whether decoding ends with TN_ESTOPPED. NULL: it does not. */
  int (*stopping)(const struct image_sink *sink);
  void *context;
  uint8_t *to;
} image_sink;

/* Decodes a file; the first bytes determine the format. TN_EUNSUPPORTED: the build lacks its library. */
tn_status image_decode(image_sink *sink, const uint8_t *bytes, size_t count);

/* Fails if the picture is empty or has more than most_pixels. */
tn_status image_check_size(const image_sink *sink, uint64_t height, uint64_t width);
/* Checks the stored size, then calls `planes`. *wanted is 0 if only the size is decoded. */
tn_status image_size(image_sink *sink, uint64_t height, uint64_t width, int *wanted);
/* Stores row y of the stored picture, interleaved RGB, in the planes, turned as `orientation` says. */
void image_put_row(image_sink *sink, int64_t y, const uint8_t *rgb);

/* The orientation in EXIF data, with or without their head of six bytes, 1 to 8; 0: they are damaged, or have
 * none. */
int image_exif_orientation(const uint8_t *bytes, size_t n);

tn_status image_decode_jpeg(image_sink *sink, const uint8_t *bytes, size_t count);
tn_status image_decode_png(image_sink *sink, const uint8_t *bytes, size_t count);
tn_status image_decode_webp(image_sink *sink, const uint8_t *bytes, size_t count);
tn_status image_decode_tiff(image_sink *sink, const uint8_t *bytes, size_t count);
tn_status image_decode_avif(image_sink *sink, const uint8_t *bytes, size_t count);
