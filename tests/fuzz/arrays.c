/* Arrays and tokens in files: the first byte is the format, 0 .npy, 1 .npz, 2 .safetensors, 3 tokens. */
#include "plugins/sources/tokens/token_files.h"
#include "tests/fuzz/fuzz.h"

/* Reads the first row and the last one, as f64 and as they are by default. */
static void arrays_read_rows(fuzz *f, const array *a) {
  fuzz_expect(a->rank <= TN_MAX_RANK, "more dimensions than there may be");
  int64_t row = a->rank > 0 ? array_bytes(a->dims + 1, a->rank - 1, 1) : 1;
  int64_t bytes = array_bytes(a->dims, a->rank, a->element.size);
  fuzz_expect(bytes >= 0 && row >= 0, "a shape that cannot be counted");
  if (bytes == 0) return;
  int32_t dtypes[] = {TN_F64, element_dtype(&a->element, TN_FIELD_TARGET),
                      element_dtype(&a->element, TN_FIELD_INPUT)};
  for (int i = 0; i < 3; i++) {
    double value;
    if (!element_converts(&a->element, dtypes[i])) continue;
    void *to = tn_alloc(f, (size_t)row * tn_dtype_size(dtypes[i]));
    if (to == NULL) return;
    element_read(&a->element, a->data, dtypes[i], to, row, &value);
    element_read(&a->element, a->data + bytes - row * a->element.size, dtypes[i], to, row, &value);
    tn_release(f, to);
  }
}

static void arrays_open_bytes(fuzz *f, int format, const uint8_t *bytes, size_t size) {
  const array_place place = {.path = "file", .member = "", .preferred = "y"};
  array a = {.file = {bytes, size}};
  tn_status status = format == 0   ? npy_find(f, "file", bytes, size, &a)
                     : format == 1 ? npz_find(f, &place, &a)
                                   : safetensors_find(f, &place, &a);
  fuzz_judge(f, status);
  if (status == TN_OK) arrays_read_rows(f, &a);
  tn_release(f, a.unpacked);
}

static void arrays_open_tokens(fuzz *f, const uint8_t *bytes, size_t size) {
  char path[64];
  token_files files = {.n = 0};
  int64_t greatest = 0;
  int input = fuzz_file(bytes, size, path);
  tn_status status = token_files_open(&f->env, "files", "", path, TOKEN_TYPE_AUTO, &files);
  if (status == TN_OK) status = token_files_greatest(&f->env, &files, &greatest);
  fuzz_judge(f, status);
  if (status == TN_OK)
    fuzz_expect((size_t)files.tokens * files.size <= size, "more tokens than the file has");
  token_files_close(f, &files);
  fuzz_file_end(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  if (size == 0) return 0;
  fuzz_open(&f);
  if (bytes[0] % 4 == 3)
    arrays_open_tokens(&f, bytes + 1, size - 1);
  else
    arrays_open_bytes(&f, bytes[0] % 4, bytes + 1, size - 1);
  fuzz_close(&f);
  return 0;
}
