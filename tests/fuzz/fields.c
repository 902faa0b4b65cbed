/* The lists of fields of the source arrays, whose file has no header: up to the first NUL the input is the
 * text behind the path, then the file follows. A colon would begin another field, with a file of the machine.
 */
#include <stdio.h>

#include "tests/fuzz/source.h"

extern const tn_source arrays_source;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  const uint8_t *nul = size > 0 ? memchr(bytes, '\0', size) : NULL;
  if (nul == NULL || memchr(bytes, ':', (size_t)(nul - bytes)) != NULL) return 0;
  size_t rest = size - (size_t)(nul + 1 - bytes), list_bytes = (size_t)(nul - bytes) + sizeof path + 4;
  int file = fuzz_file(nul + 1, rest, path);
  char *list = malloc(list_bytes);
  fuzz_expect(list != NULL, "no memory for the input");
  snprintf(list, list_bytes, "xy: %s %s", path, (const char *)bytes);
  fuzz_open(&f);
  fuzz_source(&f, &arrays_source, (const fuzz_option[]){{"inputs", list}, {"targets", list + 1}}, 2);
  fuzz_close(&f);
  fuzz_file_end(file);
  free(list);
  return 0;
}
