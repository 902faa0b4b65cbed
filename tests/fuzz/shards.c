/* Tar archives of samples. The first byte says whether every block gets a checksum that fits, so that changed
 * headers are read as well, whether the archive is read in order, and which fields it has. */
#include <stdio.h>

#include "tests/fuzz/source.h"

extern const tn_source shards_source;

static void fit_sums(uint8_t *bytes, size_t size) {
  enum { BLOCK = 512, SUM = 148, DIGITS = 8 };
  for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK) {
    unsigned sum = 0;
    char text[DIGITS + 1];
    memset(bytes + SUM, ' ', DIGITS);
    for (int i = 0; i < BLOCK; i++) sum += bytes[i];
    snprintf(text, sizeof text, "%06o", sum & 0777777);
    memcpy(bytes + SUM, text, DIGITS - 1);
  }
}

static int make_archive(const uint8_t *bytes, size_t size, char path[64]) {
  if (size == 0) return fuzz_file(bytes, 0, path);
  uint8_t *copy = malloc(size);
  fuzz_expect(copy != NULL, "no memory for the input");
  memcpy(copy, bytes + 1, size - 1);
  if (bytes[0] & 1) fit_sums(copy, size - 1);
  int file = fuzz_file(copy, size - 1, path);
  free(copy);
  return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  int file = make_archive(bytes, size, path);
  fuzz_open(&f);
  uint8_t choice = size > 0 ? bytes[0] : 0;
  const fuzz_option options[] = {{"files", path},
                                 {"inputs", choice & 4
                                                ? "x: npy, y: list(json(l)), z: tokens(txt), w: text(json(t))"
                                                : "image: jpg|png, text: txt, at: json(a.b)"},
                                 {"tokenizer", "bytes"},
                                 {"shuffle_buffer", choice & 2 ? "2" : "0"},
                                 {"targets", "label: cls, kind: class(json(k))"},
                                 {"max_pixels", "65536"},
                                 {"classes", "[10, 10]"},
                                 {"size", "0"}};
  fuzz_source(&f, &shards_source, options, sizeof options / sizeof *options);
  fuzz_close(&f);
  fuzz_file_end(file);
  return 0;
}
