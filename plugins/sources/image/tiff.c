/* plugins/sources/image/tiff.c: decodes TIFF with libtiff: the first picture of the file. Rows of grey, RGB,
 * palette and CMYK with 1 to 16 bits are read here, with Pillow's pixels; other kinds (tiles, YCbCr, CIELab)
 * by libtiff's own conversion. Messages go to the reader, and not to standard error. */
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "plugins/sources/image/image.h"

typedef struct tiff_reader {
  image_sink *sink;
  const uint8_t *bytes;
  size_t count, at;
  char text[160]; /* the first message of libtiff */
  uint32_t height, width;
  uint16_t bits, samples, photometric, planar;
  uint16_t *palette[3];
} tiff_reader;

/* ---- the file ---- */

static tmsize_t tiff_read(thandle_t handle, void *to, tmsize_t n) {
  tiff_reader *r = handle;
  size_t left = r->at < r->count ? r->count - r->at : 0, taken = n < 0              ? 0
                                                                 : (size_t)n < left ? (size_t)n
                                                                                    : left;
  memcpy(to, r->bytes + (taken > 0 ? r->at : 0), taken);
  r->at += taken;
  return (tmsize_t)taken;
}

static tmsize_t tiff_write(thandle_t handle, void *from, tmsize_t n) {
  (void)handle, (void)from, (void)n;
  return -1;
}

static toff_t tiff_seek(thandle_t handle, toff_t to, int whence) {
  tiff_reader *r = handle;
  r->at = whence == SEEK_SET ? (size_t)to : whence == SEEK_CUR ? r->at + (size_t)to : r->count + (size_t)to;
  return r->at;
}

static int tiff_close(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t tiff_size(thandle_t handle) { return ((const tiff_reader *)handle)->count; }

static int tiff_on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list values) {
  tiff_reader *r = user;
  (void)tiff, (void)module;
  if (r->text[0] == '\0') vsnprintf(r->text, sizeof r->text, format, values);
  return 1;
}

static int tiff_on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list values) {
  (void)tiff, (void)user, (void)module, (void)format, (void)values;
  return 1;
}

static tn_status tiff_fail(const tiff_reader *r) {
  return tn_fail(r->sink->handle, TN_EINVAL, NULL,
                 "%s: damaged TIFF: %s; remove it, or set corrupt = skip in [data]", r->sink->path,
                 r->text[0] != '\0' ? r->text : "its data cannot be decoded");
}

/* ---- rows ---- */

/* Sample i of a row, as a byte; 16 bits lose their lower half, and fewer are spread over the range. */
static uint8_t tiff_sample(const tiff_reader *r, const uint8_t *row, size_t i) {
  if (r->bits == 8) return row[i];
  if (r->bits == 16) {
    uint16_t value;
    memcpy(&value, row + 2 * i, sizeof value);
    return (uint8_t)(value >> 8);
  }
  size_t bit = i * r->bits;
  unsigned most = (1u << r->bits) - 1, value = (unsigned)row[bit / 8] >> (8 - r->bits - bit % 8) & most;
  return (uint8_t)(r->photometric == PHOTOMETRIC_PALETTE ? value : value * (255 / most));
}

/* Rounded product of parts of 255. */
static unsigned tiff_product(unsigned a, unsigned b) { return (a * b + 127) / 255; }

static void tiff_pixel(const tiff_reader *r, const uint8_t *row, size_t x, uint8_t rgb[3]) {
  size_t first = x * (r->planar == PLANARCONFIG_CONTIG ? r->samples : 1);
  uint8_t value = tiff_sample(r, row, first);
  for (size_t c = 0; c < 3; c++) {
    switch (r->photometric) {
    case PHOTOMETRIC_PALETTE: rgb[c] = (uint8_t)(r->palette[c][value] >> 8); break;
    case PHOTOMETRIC_MINISWHITE: rgb[c] = 255 - value; break;
    case PHOTOMETRIC_MINISBLACK: rgb[c] = value; break;
    case PHOTOMETRIC_SEPARATED:
      rgb[c] =
          (uint8_t)tiff_product(255u - tiff_sample(r, row, first + c), 255u - tiff_sample(r, row, first + 3));
      break;
    default: rgb[c] = tiff_sample(r, row, first + c);
    }
  }
}

/* Rows of planes that lie one after the other give a channel each. */
static int tiff_read_row(const tiff_reader *r, TIFF *tiff, uint32_t y, uint8_t *row, uint8_t *rgb) {
  int planes = r->planar == PLANARCONFIG_SEPARATE && r->photometric == PHOTOMETRIC_RGB ? 3 : 1;
  for (int plane = 0; plane < planes; plane++) {
    if (TIFFReadScanline(tiff, row, y, (uint16_t)plane) < 0) return 0;
    for (size_t x = 0; x < r->width; x++) {
      if (planes == 3)
        rgb[3 * x + (size_t)plane] = tiff_sample(r, row, x);
      else
        tiff_pixel(r, row, x, rgb + 3 * x);
    }
  }
  return 1;
}

static tn_status tiff_read_rows(const tiff_reader *r, TIFF *tiff) {
  tmsize_t size = TIFFScanlineSize(tiff);
  if (size <= 0) return tiff_fail(r);
  uint8_t *row = tn_new(r->sink->handle, (size_t)size + 3 * (size_t)r->width);
  if (row == NULL) return TN_ENOMEM;
  uint8_t *rgb = row + size;
  int read = 1;
  for (uint32_t y = 0; read && y < r->height; y++) {
    read = tiff_read_row(r, tiff, y, row, rgb);
    if (read) image_put_row(r->sink, y, rgb);
  }
  tn_delete(r->sink->handle, row);
  return read ? TN_OK : tiff_fail(r);
}

/* libtiff's conversion, whose rows are as they are stored. */
static tn_status tiff_read_converted(tiff_reader *r, TIFF *tiff) {
  uint32_t *pixels = tn_new(r->sink->handle, (size_t)r->height * r->width * sizeof *pixels);
  if (pixels == NULL) return TN_ENOMEM;
  uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
  int read = TIFFReadRGBAImageOriented(tiff, r->width, r->height, pixels, orientation, 1);
  for (uint32_t y = 0; read && y < r->height; y++) {
    uint32_t *row = pixels + (size_t)y * r->width;
    uint8_t *rgb = (uint8_t *)row; /* a pixel of three bytes never reaches beyond the four that it is from */
    for (uint32_t x = 0; x < r->width; x++) {
      uint32_t pixel = row[x];
      rgb[3 * x] = (uint8_t)TIFFGetR(pixel);
      rgb[3 * x + 1] = (uint8_t)TIFFGetG(pixel);
      rgb[3 * x + 2] = (uint8_t)TIFFGetB(pixel);
    }
    image_put_row(r->sink, y, rgb);
  }
  tn_delete(r->sink->handle, pixels);
  return read ? TN_OK : tiff_fail(r);
}

/* Whether tiff_read_rows knows the kind of pixels. */
static int tiff_is_plain(const tiff_reader *r, TIFF *tiff) {
  uint16_t format = SAMPLEFORMAT_UINT;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
  if (TIFFIsTiled(tiff) || format != SAMPLEFORMAT_UINT || r->samples > 8) return 0;
  int few = r->bits == 1 || r->bits == 2 || r->bits == 4, whole = r->bits == 8 || r->bits == 16;
  int chunky = r->planar == PLANARCONFIG_CONTIG || r->samples == 1;
  switch (r->photometric) {
  case PHOTOMETRIC_MINISWHITE:
  case PHOTOMETRIC_MINISBLACK: return chunky && (whole || (few && r->samples == 1));
  case PHOTOMETRIC_PALETTE: return chunky && (r->bits == 8 || few) && r->palette[0] != NULL;
  case PHOTOMETRIC_RGB: return whole && r->samples >= 3;
  case PHOTOMETRIC_SEPARATED: return whole && r->samples >= 4 && chunky;
  default: return 0;
  }
}

static tn_status tiff_decode(tiff_reader *r, TIFF *tiff) {
  int wanted;
  uint16_t orientation = 0, compression = COMPRESSION_NONE;
  if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &r->width) ||
      !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &r->height) ||
      !TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &r->photometric))
    return tiff_fail(r);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &r->samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &r->planar);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  if (TIFFGetField(tiff, TIFFTAG_ORIENTATION, &orientation) && orientation <= 8 &&
      !r->sink->ignores_orientation)
    r->sink->orientation = orientation;
  if (r->photometric == PHOTOMETRIC_PALETTE)
    TIFFGetField(tiff, TIFFTAG_COLORMAP, &r->palette[0], &r->palette[1], &r->palette[2]);
  TN_TRY(image_size(r->sink, r->height, r->width, &wanted));
  if (!wanted) return TN_OK;
  return tiff_is_plain(r, tiff) ? tiff_read_rows(r, tiff) : tiff_read_converted(r, tiff);
}

/* More memory than this at once is asked for by damaged files only: a strip is at most the picture. */
static tmsize_t tiff_most_memory(const image_sink *sink) {
  int64_t most = sink->most_pixels < ((int64_t)1 << 34) ? sink->most_pixels * 16 : (int64_t)1 << 38;
  return (tmsize_t)(most + (1 << 20));
}

tn_status image_decode_tiff(image_sink *sink, const uint8_t *bytes, size_t count) {
  tiff_reader r = {.sink = sink, .bytes = bytes, .count = count};
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (options == NULL)
    return tn_fail(sink->handle, TN_ENOMEM, NULL, "%s: out of memory while decoding", sink->path);
  TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_on_error, &r);
  TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_on_warning, &r);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, tiff_most_memory(sink));
  TIFF *tiff = TIFFClientOpenExt("picture", "rm", &r, tiff_read, tiff_write, tiff_seek, tiff_close, tiff_size,
                                 NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  if (tiff == NULL) return tiff_fail(&r);
  tn_status status = tiff_decode(&r, tiff);
  TIFFClose(tiff);
  return status;
}
