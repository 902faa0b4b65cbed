/* NumPy's files. */
#include "core/formats/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  tn_type type;
  void *data = NULL;
  int input = fuzz_file(bytes, size, path);
  fuzz_open(&f);
  tn_status status = tn_npy_read(&f, path, &type, &data);
  fuzz_judge(&f, status);
  if (status == TN_OK) fuzz_expect(tn_type_bytes(&type) <= size, "more data than the file has");
  tn_release(&f, data);
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
