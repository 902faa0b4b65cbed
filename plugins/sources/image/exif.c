/* plugins/sources/image/exif.c: the orientation of a photo, from the first image file directory of its EXIF
 * data (CIPA DC-008, EXIF 2.3; TIFF 6.0). */
#include "plugins/sources/image/image.h"

#include <string.h>

enum { EXIF_ORIENTATION = 0x0112, EXIF_SHORT = 3, EXIF_HEAD = 6, EXIF_ENTRY = 12 };

/* TIFF data: numbers are little or big endian. */
typedef struct exif_data {
  const uint8_t *bytes;
  size_t n;
  int big;
} exif_data;

/* 0 beyond the end. */
static uint32_t exif_number(const exif_data *d, size_t at, size_t width) {
  uint32_t value = 0;
  if (at > d->n || width > d->n - at) return 0;
  for (size_t i = 0; i < width; i++) value |= (uint32_t)d->bytes[at + i] << 8 * (d->big ? width - 1 - i : i);
  return value;
}

static int exif_is_tiff(exif_data *d) {
  d->big = d->n > 0 && d->bytes[0] == 'M';
  return d->n >= 8 && d->bytes[0] == d->bytes[1] && (d->bytes[0] == 'I' || d->bytes[0] == 'M') &&
         exif_number(d, 2, 2) == 42;
}

int image_exif_orientation(const uint8_t *bytes, size_t n) {
  size_t head = n >= EXIF_HEAD && memcmp(bytes, "Exif\0\0", EXIF_HEAD) == 0 ? EXIF_HEAD : 0;
  exif_data d = {bytes + head, n - head, 0};
  if (!exif_is_tiff(&d)) return 0;
  size_t directory = exif_number(&d, 4, 4);
  uint32_t entries = exif_number(&d, directory, 2);
  for (uint32_t i = 0; i < entries; i++) {
    size_t entry = directory + 2 + (size_t)i * EXIF_ENTRY;
    if (entry + EXIF_ENTRY > d.n) return 0;
    if (exif_number(&d, entry, 2) != EXIF_ORIENTATION || exif_number(&d, entry + 2, 2) != EXIF_SHORT)
      continue;
    uint32_t orientation = exif_number(&d, entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? (int)orientation : 0;
  }
  return 0;
}
