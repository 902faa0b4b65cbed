/* core/formats/png.h: writes pictures as PNG (W3C Recommendation, 2003). The pixels are stored, not
 * compressed: pictures for people are small, and every program reads them. */
#pragma once

#include "core/base/env.h"

/* Writes height rows of width pixels, red, green, blue, atomically. TN_EINVAL: no pixels, or a side of more
 * than 65535. */
tn_status tn_png_write(const void *handle, const char *path, int64_t width, int64_t height,
                       const uint8_t *rgb);
/* The same file as bytes, which the caller releases (tn_release). */
tn_status tn_png_encode(const void *handle, int64_t width, int64_t height, const uint8_t *rgb,
                        uint8_t **bytes, size_t *n);
/* The same with a palette: each pixel is a number below `colors` (1 to 256), and palette has its red, green
 * and blue. */
tn_status tn_png_write_indexed(const void *handle, const char *path, int64_t width, int64_t height,
                               const uint8_t *pixels, const uint8_t *palette, int32_t colors);
