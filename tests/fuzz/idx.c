/* idx files, gzipped or not; the first byte is the proportion of the labels file in the rest of the input. */
#include "tests/fuzz/source.h"

extern const tn_source idx_source;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char images[64], labels[64];
  if (size == 0) return 0;
  size_t n = (size - 1) * bytes[0] / 255;
  int a = fuzz_file(bytes + 1 + n, size - 1 - n, images), b = fuzz_file(bytes + 1, n, labels);
  fuzz_open(&f);
  fuzz_source(&f, &idx_source, (const fuzz_option[]){{"images", images}, {"labels", labels}}, 2);
  fuzz_close(&f);
  fuzz_file_end(a);
  fuzz_file_end(b);
  return 0;
}
