/* safetensors: every tensor of a file that opens can be read. */
#include "core/formats/safetensors.h"
#include "tests/fuzz/fuzz.h"

static void read_all(fuzz *f, const tn_safetensors *file) {
  for (int32_t i = 0; i < tn_safetensors_count(file); i++) {
    const tn_safetensor *tensor = tn_safetensors_at(file, i);
    if (tensor->type.dtype == TN_ANY) continue;
    size_t bytes = tn_type_bytes(&tensor->type);
    void *data = tn_alloc(f, bytes + 1);
    if (data) fuzz_judge(f, tn_safetensors_read(file, f, tensor, data, bytes));
    tn_release(f, data);
    const tn_safetensor *found = tn_safetensors_find(file, tensor->name);
    fuzz_expect(found == tensor, "a tensor is not found by its name");
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  tn_safetensors *file = NULL;
  int input = fuzz_file(bytes, size, path);
  fuzz_open(&f);
  tn_status status = tn_safetensors_open(&f, path, &file);
  fuzz_judge(&f, status);
  if (status == TN_OK) {
    read_all(&f, file);
    tn_safetensors_close(file);
  }
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
