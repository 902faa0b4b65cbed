/* Tables: CSV, lines of JSON and packed ones. The first byte chooses the fields, and whether the rest is a
 * table or what the weights say of one. */
#include "tests/fuzz/source.h"

extern const tn_source table_source;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char *const inputs[] = {
      "a: number(missing=0)\nb: category(missing=class)\nc: text\nd: sequence(length=4)",
      "x: numbers(*, missing=mean, standardize=yes)\nb: categories(b)\nt: time(a, missing=median)",
      "b: category(order=appearance, unknown=other, missing=class)\nc: categories(c, classes=x|y, "
      "unknown=other)"};
  static const char known[] = "a,b,c\n1,x,y\n2,y,x\n";
  fuzz f;
  char path[64];
  if (size == 0) return 0;
  bool taught = bytes[0] & 0x80;
  char *text = fuzz_text(bytes + 1, size - 1);
  int file = taught ? fuzz_file((const uint8_t *)known, sizeof known - 1, path)
                    : fuzz_file(bytes + 1, size - 1, path);
  fuzz_open(&f);
  if (taught) f.record.learnt = text;
  fuzz_source(&f, &table_source,
              (const fuzz_option[]){{"file", path}, {"inputs", inputs[(bytes[0] & 0x7F) % 3]}}, 2);
  fuzz_close(&f);
  fuzz_file_end(file);
  free(text);
  return 0;
}
