/* WebP pictures. */
#include "plugins/sources/image/image.h"
#include "tests/fuzz/fuzz.h"

static tn_status planes(image_sink *sink) {
  sink->to = tn_alloc(sink->handle, (size_t)(3 * sink->height * sink->width));
  return sink->to ? TN_OK : TN_ENOMEM;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  fuzz_open(&f);
  image_sink sink = {.handle = &f, .path = "fuzz.webp", .most_pixels = 1 << 16, .planes = planes};
  fuzz_judge(&f, image_decode(&sink, bytes, size));
  tn_release(&f, sink.to);
  fuzz_close(&f);
  return 0;
}
