/* gguf: every tensor of a file that opens can be read, and its keys become a tokenizer and a configuration,
 * or errors. */
#include "core/gguf/gguf_model.h"
#include "core/tokenizer/calls.h"
#include "tests/fuzz/fuzz.h"

static void read_all(fuzz *f, const tn_gguf *file) {
  for (int32_t i = 0; i < tn_gguf_count(file); i++) {
    const tn_gguf_tensor *tensor = tn_gguf_at(file, i);
    float *data = tn_alloc(f, tn_type_bytes(&tensor->type) + 1);
    if (data != NULL) fuzz_judge(f, tn_gguf_read(file, f, tensor, data));
    tn_release(f, data);
    fuzz_expect(tn_gguf_tensor_find(file, tensor->name) == tensor, "a tensor is not found by its name");
  }
}

static void use(fuzz *f, tn_gguf *file) {
  char *json = NULL;
  tn_gguf_decoder decoder;
  tn_text text = tn_text_new(f);
  fuzz_judge(f, tn_gguf_tokenizer_json(f, file, &json));
  tn_release(f, json);
  tn_status status = tn_gguf_decoder_read(f, file, &decoder);
  fuzz_judge(f, status);
  if (status == TN_OK) tn_gguf_decoder_write(file, &decoder, "x", NULL, &text);
  tn_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  tn_gguf *file = NULL;
  int input = fuzz_file(bytes, size, path);
  fuzz_open(&f);
  tn_status status = tn_gguf_open(&f, path, &file);
  fuzz_judge(&f, status);
  if (status == TN_OK) {
    read_all(&f, file);
    use(&f, file);
    tn_gguf_close(file);
  }
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
