/* plugins/sources/image/decode.c: selects the decoder of a file. A new format has a file beside jpeg.c, a
 * line in image.h, a row here, and its endings in include/tenon/file_names.h. A format
 * whose library the build lacks (plugins/sources/meson.build) has no function. */
#include "plugins/sources/image/image.h"

#include <string.h>

typedef struct image_format {
  const char *name, *package; /* on Debian, with the library that decodes it */
  size_t at, n;               /* the bytes that it begins with, and where */
  const char *magic;
  tn_status (*decode)(image_sink *sink, const uint8_t *bytes, size_t count);
} image_format;

#ifdef IMAGE_WEBP
#define WEBP_DECODER image_decode_webp
#else
#define WEBP_DECODER NULL
#endif
#ifdef IMAGE_TIFF
#define TIFF_DECODER image_decode_tiff
#else
#define TIFF_DECODER NULL
#endif
#ifdef IMAGE_AVIF
#define AVIF_DECODER image_decode_avif
#else
#define AVIF_DECODER NULL
#endif

static const image_format formats[] = {
    {"JPEG", "libjpeg62-turbo-dev", 0, 3, "\xFF\xD8\xFF", image_decode_jpeg},
    {"PNG", "libpng-dev", 0, 8, "\x89PNG\r\n\x1A\n", image_decode_png},
    {"WebP", "libwebp-dev", 8, 4, "WEBP", WEBP_DECODER},
    {"TIFF", "libtiff-dev", 0, 4, "II*\0", TIFF_DECODER},
    {"TIFF", "libtiff-dev", 0, 4, "MM\0*", TIFF_DECODER},
    {"TIFF", "libtiff-dev", 0, 4, "II+\0", TIFF_DECODER}, /* with offsets of 64 bits */
    {"TIFF", "libtiff-dev", 0, 4, "MM\0+", TIFF_DECODER},
    {"AVIF", "libavif-dev", 4, 8, "ftypavif", AVIF_DECODER},
    {"AVIF", "libavif-dev", 4, 8, "ftypavis", AVIF_DECODER},
};

/* The first bytes select the decoder: the names of files are often wrong. */
tn_status image_decode(image_sink *sink, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    const image_format *f = &formats[i];
    if (count < f->at + f->n || memcmp(bytes + f->at, f->magic, f->n) != 0) continue;
    if (f->decode != NULL) return f->decode(sink, bytes, count);
    return tn_fail(sink->handle, TN_EUNSUPPORTED, NULL,
                   "%s: is %s, which this build of Tenon cannot decode; install %s and build Tenon again, or "
                   "convert the file to PNG",
                   sink->path, f->name, f->package);
  }
  return tn_fail(sink->handle, TN_EINVAL, NULL, "%s: is neither JPEG, PNG, WebP, TIFF nor AVIF", sink->path);
}
