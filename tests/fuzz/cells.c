/* Tables whose cells name a file, which the input is, or hold it. The first byte chooses the kind of the
 * field. */
#include <stdio.h>

#include "tests/fuzz/source.h"

extern const tn_source table_source;

static const struct {
  const char *file, *inputs;
} kinds[] = {{"x.png", "x: image(p)"},
             {"x.png", "x: mask(p, index=yes)"},
             {"x.wav", "x: audio(p, rate=8000, seconds=0.01)"},
             {"x.npy", "x: array(p)"},
             {"t.csv", "x: tokens(p, tokenizer=bytes)"},
             {"t.csv", "x: boxes(p, length=4)"},
             {"t.csv", "x: time(p)"}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  fuzz_folder folder;
  char table[96], rows[64];
  if (size == 0) return 0;
  int kind = bytes[0] % N_KINDS;
  fuzz_folder_open(&folder);
  snprintf(rows, sizeof rows, "p\n%s\n%s\n", kinds[kind].file, kinds[kind].file);
  fuzz_folder_write(&folder, "t.csv", (const uint8_t *)rows, strlen(rows));
  fuzz_folder_write(&folder, kinds[kind].file, bytes + 1, size - 1);
  snprintf(table, sizeof table, "%s/t.csv", folder.path);
  fuzz_open(&f);
  fuzz_source(&f, &table_source,
              (const fuzz_option[]){{"file", table}, {"inputs", kinds[kind].inputs}, {"max_pixels", "65536"}},
              3);
  fuzz_close(&f);
  fuzz_folder_close(&folder);
  return 0;
}
