/* EXIF data of pictures. */
#include "plugins/sources/image/image.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  int orientation = image_exif_orientation(bytes, size);
  fuzz_expect(orientation >= 0 && orientation <= 8, "an orientation that does not exist");
  return 0;
}
