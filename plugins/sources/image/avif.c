/* plugins/sources/image/avif.c: decodes AVIF with libavif; of a sequence, its first picture. The orientation
 * is that of the properties irot and imir (ISO/IEC 23008-12), which stand for those of EXIF. */
#include <avif/avif.h>

#include "plugins/sources/image/image.h"

enum { AVIF_WAYS = 4 };

/* EXIF's number of a turn by quarters against the clock, then mirrored top to bottom, or left to right. */
static int avif_orientation(const avifImage *image) {
  static const int plain[AVIF_WAYS] = {1, 8, 3, 6}, down[AVIF_WAYS] = {4, 5, 2, 7},
                   across[AVIF_WAYS] = {2, 7, 4, 5};
  int turn = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3 : 0;
  if (!(image->transformFlags & AVIF_TRANSFORM_IMIR)) return plain[turn];
#if AVIF_VERSION_MAJOR >= 1
  return image->imir.axis == 0 ? down[turn] : across[turn];
#else
  return image->imir.mode == 0 ? down[turn] : across[turn];
#endif
}

static tn_status avif_fail(const image_sink *sink, avifResult result) {
  if (result == AVIF_RESULT_OUT_OF_MEMORY)
    return tn_fail(sink->handle, TN_ENOMEM, NULL, "%s: out of memory while decoding", sink->path);
  return tn_fail(sink->handle, TN_EINVAL, NULL,
                 "%s: damaged AVIF: %s; remove it, or set corrupt = skip in [data]", sink->path,
                 avifResultToString(result));
}

/* Rows without their alpha: the library's own conversion to three channels puts the picture on black. */
static void avif_put_row(image_sink *sink, uint32_t y, uint32_t width, uint8_t *row) {
  for (size_t x = 0; x < width; x++)
    for (size_t c = 0; c < 3; c++) row[3 * x + c] = row[4 * x + c];
  image_put_row(sink, y, row);
}

static tn_status avif_read_rows(image_sink *sink, const avifImage *image) {
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, image);
  rgb.format = AVIF_RGB_FORMAT_RGBA;
  rgb.depth = 8;
  rgb.rowBytes = image->width * 4;
  rgb.pixels = tn_new(sink->handle, (size_t)image->height * rgb.rowBytes);
  if (rgb.pixels == NULL) return TN_ENOMEM;
  avifResult result = avifImageYUVToRGB(image, &rgb);
  for (uint32_t y = 0; result == AVIF_RESULT_OK && y < image->height; y++)
    avif_put_row(sink, y, image->width, rgb.pixels + (size_t)y * rgb.rowBytes);
  tn_delete(sink->handle, rgb.pixels);
  return result == AVIF_RESULT_OK ? TN_OK : avif_fail(sink, result);
}

static tn_status avif_read(image_sink *sink, avifDecoder *decoder, const uint8_t *bytes, size_t count) {
  int wanted;
  avifResult result = avifDecoderSetIOMemory(decoder, bytes, count);
  if (result == AVIF_RESULT_OK) result = avifDecoderParse(decoder);
  if (result != AVIF_RESULT_OK) return avif_fail(sink, result);
  sink->orientation = sink->ignores_orientation ? 0 : avif_orientation(decoder->image);
  TN_TRY(image_size(sink, decoder->image->height, decoder->image->width, &wanted));
  if (!wanted) return TN_OK;
  uint32_t height = decoder->image->height, width = decoder->image->width;
  result = avifDecoderNextImage(decoder);
  if (result != AVIF_RESULT_OK) return avif_fail(sink, result);
  if (decoder->image->height != height || decoder->image->width != width)
    return avif_fail(sink, AVIF_RESULT_BMFF_PARSE_FAILED);
  return avif_read_rows(sink, decoder->image);
}

tn_status image_decode_avif(image_sink *sink, const uint8_t *bytes, size_t count) {
  avifDecoder *decoder = avifDecoderCreate();
  if (decoder == NULL) return avif_fail(sink, AVIF_RESULT_OUT_OF_MEMORY);
  decoder->maxThreads = 1;
  /* dav1d writes to standard error about damaged files; the decoders give the same pixels. */
  if (avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE) != NULL)
    decoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
  decoder->strictFlags = AVIF_STRICT_DISABLED;
  if (sink->most_pixels < decoder->imageSizeLimit) decoder->imageSizeLimit = (uint32_t)sink->most_pixels;
  tn_status status = avif_read(sink, decoder, bytes, count);
  avifDecoderDestroy(decoder);
  return status;
}
