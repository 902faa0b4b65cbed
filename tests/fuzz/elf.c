/* ELF files: the checks before a plugin is loaded. */
#include "core/plugin/loader.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  int input = fuzz_file(bytes, size, path);
  fuzz_open(&f);
  fuzz_judge(&f, tn_plugin_check_elf(&f, path));
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
