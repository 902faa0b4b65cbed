/* GGUF: blocks of each format are what the package gguf makes of them (tests/golden/make_gguf.py), and
 * malicious files are errors with a reason. */
#include <math.h>

#include "core/formats/gguf.h"
#include "core/formats/safetensors.h"
#include "tests/support/folder.h"

static test_env B;
static folder F;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  folder_make(&F);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

/* ---- goldens ---- */

static void compare_tensor(const tn_gguf *file, const tn_safetensors *expected, const tn_gguf_tensor *t) {
  size_t bytes = tn_type_bytes(&t->type), n = bytes / sizeof(float);
  float *is = malloc(bytes), *want = malloc(bytes);
  assert_non_null(is);
  assert_non_null(want);
  assert_int_equal(n, 3 * 512);
  assert_ok(&B, tn_gguf_read(file, &B, t, is));
  assert_ok(&B, tn_safetensors_read(expected, &B, tn_safetensors_find(expected, t->name), want, bytes));
  for (size_t i = 0; i < n; i++)
    if (!(fabsf(is[i] - want[i]) <= 1e-6F * fabsf(want[i]) + 1e-9F))
      fail_msg("%s: element %zu is %.9g, expected %.9g", t->name, i, (double)is[i], (double)want[i]);
  free(is);
  free(want);
}

static void blocks_of_all_formats_are_read(void **state) {
  (void)state;
  tn_gguf *file;
  tn_safetensors *expected;
  assert_ok(&B, tn_gguf_open(&B, GOLDENS "/blocks.gguf", &file));
  assert_ok(&B, tn_safetensors_open(&B, GOLDENS "/blocks.safetensors", &expected));
  assert_int_equal(tn_gguf_count(file), 11);
  for (int32_t i = 0; i < tn_gguf_count(file); i++) {
    assert_string_equal(tn_gguf_at(file, i)->stored, tn_gguf_at(file, i)->name);
    compare_tensor(file, expected, tn_gguf_at(file, i));
  }
  tn_gguf_close(file);
  tn_safetensors_close(expected);
}

static void a_file_of_weights_may_be_gguf(void **state) {
  (void)state;
  tn_safetensors *file;
  float values[3 * 512];
  assert_ok(&B, tn_safetensors_open(&B, GOLDENS "/blocks.gguf", &file));
  const tn_safetensor *tensor = tn_safetensors_find(file, "Q6_K");
  assert_non_null(tn_safetensors_gguf(file));
  assert_string_equal(tensor->stored, "Q6_K");
  assert_int_equal(tensor->type.dtype, TN_F32);
  assert_ok(&B, tn_safetensors_read(file, &B, tensor, values, sizeof values));
  assert_null(tn_safetensors_metadata(file, "format"));
  tn_safetensors_close(file);
}

static void keys_are_read(void **state) {
  (void)state;
  tn_gguf *file;
  tn_gguf_element e;
  assert_ok(&B, tn_gguf_open(&B, GOLDENS "/llama.gguf", &file));
  assert_string_equal(tn_gguf_text(file, "general.architecture", ""), "llama");
  assert_true(tn_gguf_number(file, "llama.block_count", 0) == 2);
  assert_true(fabs(tn_gguf_number(file, "llama.attention.layer_norm_rms_epsilon", 0) - 1e-5) < 1e-12);
  assert_true(tn_gguf_number(file, "llama.none", 7) == 7);
  assert_string_equal(tn_gguf_text(file, "llama.block_count", "a number"), "a number");
  tn_gguf_value tokens = *tn_gguf_find(file, "tokenizer.ggml.tokens");
  assert_int_equal(tokens.count, 352);
  assert_true(tn_gguf_next(&tokens, &e) && e.bytes == 5 && memcmp(e.text, "<unk>", 5) == 0);
  assert_null(tn_gguf_find(file, "none"));
  assert_null(tn_gguf_tensor_find(file, "none"));
  assert_int_equal(tn_gguf_tensor_find(file, "token_embd.weight")->type.dims[0], 352);
  tn_gguf_close(file);
}

/* ---- malicious files ---- */

/* The bytes of a file that is being made. */
static uint8_t bytes[4096];
static size_t n;

static void put(uint64_t value, size_t size) {
  for (size_t i = 0; i < size; i++) bytes[n++] = (uint8_t)(value >> 8 * i);
}
static void put_text(const char *text) {
  put(strlen(text), 8);
  memcpy(bytes + n, text, strlen(text));
  n += strlen(text);
}
static void begin(uint32_t version, uint64_t tensors, uint64_t keys) {
  n = 0;
  put(0x46554747, 4);
  put(version, 4);
  put(tensors, 8);
  put(keys, 8);
}
/* A tensor of f32 with one dimension. */
static void put_tensor(const char *name, uint64_t size, uint32_t type, uint64_t offset) {
  put_text(name);
  put(1, 4);
  put(size, 8);
  put(type, 4);
  put(offset, 8);
}
static void put_data(size_t data) {
  n = (n + 31) / 32 * 32;
  memset(bytes + n, 0, data);
  n += data;
}

static void refuses(tn_status status, const char *part) {
  tn_gguf *file;
  folder_write(&F, "x.gguf", bytes, n);
  assert_error(&B, tn_gguf_open(&B, folder_path(&F, "x.gguf"), &file), status, part);
  assert_null(file);
  assert_contains(tn_error_text(&B), "x.gguf");
}

static void good(void) {
  begin(3, 1, 1);
  put_text("general.alignment");
  put(TN_GGUF_U32, 4);
  put(32, 4);
  put_tensor("a", 4, 0, 0);
  put_data(16);
}

static void files_that_are_cut_off_are_refused(void **state) {
  (void)state;
  tn_gguf *file;
  good();
  size_t whole = n;
  folder_write(&F, "x.gguf", bytes, n);
  assert_ok(&B, tn_gguf_open(&B, folder_path(&F, "x.gguf"), &file));
  tn_gguf_close(file);
  for (size_t cut = 4; cut < whole; cut++) {
    folder_write(&F, "x.gguf", bytes, cut);
    assert_int_equal(tn_gguf_open(&B, folder_path(&F, "x.gguf"), &file), TN_EINVAL);
    assert_null(file);
  }
}

static void counts_and_versions_are_checked(void **state) {
  (void)state;
  begin(1, 0, 0);
  refuses(TN_EUNSUPPORTED, "version 1 of GGUF, expected 2 or 3, little-endian");
  begin(0x03000000, 0, 0);
  refuses(TN_EUNSUPPORTED, "version 50331648 of GGUF");
  begin(3, UINT64_MAX, 0);
  refuses(TN_EINVAL, "it says that it has more than 65536 tensors or keys");
  begin(3, 0, 1 << 17);
  refuses(TN_EINVAL, "more than 65536 tensors or keys");
  begin(3, 60000, 0);
  refuses(TN_EINVAL, "it is cut off");
}

static void put_key(const char *key, uint32_t kind) {
  begin(3, 0, 1);
  put_text(key);
  put(kind, 4);
}

static void values_are_checked(void **state) {
  (void)state;
  put_key("a", 13);
  refuses(TN_EINVAL, "the value of 'a' is of type 13, expected 0 to 12");
  put_key("a", TN_GGUF_LIST);
  put(TN_GGUF_LIST, 4), put(1, 8);
  refuses(TN_EINVAL, "no list of lists");
  put_key("a", TN_GGUF_LIST);
  put(TN_GGUF_U64, 4), put(UINT64_MAX / 8 + 2, 8);
  refuses(TN_EINVAL, "it is cut off");
  put_key("a", TN_GGUF_LIST);
  put(TN_GGUF_TEXT, 4), put(UINT64_MAX, 8), put_text("x");
  refuses(TN_EINVAL, "it is cut off");
  put_key("a", TN_GGUF_TEXT);
  put(UINT64_MAX, 8);
  refuses(TN_EINVAL, "it is cut off");
  begin(3, 0, 1);
  put(2000, 8);
  memset(bytes + n, 'k', 2000), n += 2000, put(TN_GGUF_U8, 4), put(1, 1);
  refuses(TN_EINVAL, "a key is too long or has a NUL");
  put_key("general.alignment", TN_GGUF_U32);
  put(0, 4);
  refuses(TN_EINVAL, "general.alignment is no number from 1 to 1048576");
}

static void tensors_are_checked(void **state) {
  (void)state;
  begin(3, 1, 0), put_tensor("a", 1 << 20, 0, 0), put_data(64);
  refuses(TN_EINVAL, "tensor 'a': its data reach behind the end of the file");
  begin(3, 1, 0), put_tensor("a", UINT64_MAX, 0, 0), put_data(64);
  refuses(TN_EINVAL, "tensor 'a': a dimension is not possible");
  begin(3, 1, 0), put_tensor("a", 4, 0, UINT64_MAX - 31), put_data(64);
  refuses(TN_EINVAL, "reach behind the end of the file");
  begin(3, 1, 0), put_tensor("a", 4, 0, 8), put_data(64);
  refuses(TN_EINVAL, "tensor 'a': its data are not aligned");
  begin(3, 1, 0), put_tensor("a", 40, 12, 0), put_data(4096 - 256);
  refuses(TN_EINVAL, "tensor 'a': its rows are no whole blocks");
  begin(3, 2, 0), put_tensor("a", 4, 0, 0), put_tensor("a", 4, 0, 32), put_data(64);
  refuses(TN_EINVAL, "tensor 'a': the name is there twice");
  begin(3, 1, 0), put_text("a"), put(5, 4), put(0, 64);
  refuses(TN_EINVAL, "tensor 'a': it has more than four dimensions");
}

static void other_formats_are_named(void **state) {
  (void)state;
  tn_gguf *file;
  float values[256];
  begin(3, 1, 0), put_tensor("a", 256, 10, 0), put_data(84);
  folder_write(&F, "x.gguf", bytes, n);
  assert_ok(&B, tn_gguf_open(&B, folder_path(&F, "x.gguf"), &file));
  assert_error(&B, tn_gguf_read(file, &B, tn_gguf_at(file, 0), values), TN_EUNSUPPORTED,
               "tensor 'a' is of Q2_K, which is not read; expected F32, F16");
  tn_gguf_close(file);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(blocks_of_all_formats_are_read),
      IN_FOLDER(a_file_of_weights_may_be_gguf),
      IN_FOLDER(keys_are_read),
      IN_FOLDER(files_that_are_cut_off_are_refused),
      IN_FOLDER(counts_and_versions_are_checked),
      IN_FOLDER(values_are_checked),
      IN_FOLDER(tensors_are_checked),
      IN_FOLDER(other_formats_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
