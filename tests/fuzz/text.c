/* A text of the source text. The first byte chooses characters, bytes or a tokenizer of pieces, the second
 * one the window. */
#include <stdio.h>

#include "tests/fuzz/source.h"

extern const tn_source text_source;

static const char pieces[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"u\": 3}, "
    "\"merges\": [\"a b\"], \"unk_token\": \"u\"}}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64], tokenizer[64], tokens[16], stride[16];
  if (size < 2) return 0;
  int file = fuzz_file(bytes + 2, size - 2, path),
      json = fuzz_file((const uint8_t *)pieces, sizeof pieces - 1, tokenizer);
  const char *const kinds[] = {"characters", "bytes", tokenizer};
  snprintf(tokens, sizeof tokens, "%d", 1 + bytes[1] % 16);
  snprintf(stride, sizeof stride, "%d", bytes[1] / 16);
  fuzz_open(&f);
  const fuzz_option options[] = {
      {"file", path}, {"tokenizer", kinds[bytes[0] % 3]}, {"tokens", tokens}, {"stride", stride}};
  fuzz_source(&f, &text_source, options, sizeof options / sizeof *options);
  fuzz_close(&f);
  fuzz_file_end(file);
  fuzz_file_end(json);
  return 0;
}
